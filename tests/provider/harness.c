// SPDX-License-Identifier: Apache-2.0 OR MIT
// Opening, waiting, meeting: see harness.h.
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct fi_info *new_hints(void)
{
    struct fi_info *hints = fi_allocinfo();
    CHECK(hints, "fi_allocinfo gave nothing");
    hints->fabric_attr->prov_name = strdup("weft");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_LOCAL_COMM;
    return hints;
}

struct fi_info *get_info(uint32_t version, const struct fi_info *hints)
{
    struct fi_info *info = NULL;
    OK(fi_getinfo(version ? version : FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    CHECK(info && !info->next, "not exactly one fi_info");
    return info;
}

void open_host(struct host *host, const struct wishes *wishes)
{
    static const struct wishes usual;
    memset(host, 0, sizeof(*host));
    host->wishes = wishes ? *wishes : usual;
    struct fi_info *hints = new_hints();
    hints->domain_attr->threading = host->wishes.threading;
    hints->domain_attr->av_type = host->wishes.av_type;
    hints->domain_attr->data_progress = host->wishes.progress;
    hints->tx_attr->op_flags = host->wishes.transmit_flags;
    hints->tx_attr->iov_limit = hints->rx_attr->iov_limit = 8;
    hints->caps &= ~host->wishes.caps_removed;
    hints->caps |= host->wishes.caps_added;
    hints->domain_attr->mr_mode = host->wishes.mr_mode;
    host->info = get_info(host->wishes.version, hints);
    fi_freeinfo(hints);
    OK(fi_fabric(host->info->fabric_attr, &host->fabric, NULL));
    OK(fi_domain(host->fabric, host->info, &host->domain, NULL));
}

void open_side(struct host *host, struct side *side)
{
    memset(side, 0, sizeof(*side));
    struct fi_av_attr av_attr = {.type = host->wishes.av_type ? host->wishes.av_type : FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {
        .size = host->wishes.queue_size,
        .format = host->wishes.format ? host->wishes.format : FI_CQ_FORMAT_TAGGED,
        .wait_obj = host->wishes.wait_object,
        .wait_set = host->wishes.wait_set,
    };
    OK(fi_endpoint(host->domain, host->info, &side->ep, NULL));
    OK(fi_av_open(host->domain, &av_attr, &side->av, NULL));
    OK(fi_cq_open(host->domain, &cq_attr, &side->cq, NULL));
    OK(fi_ep_bind(side->ep, &side->av->fid, 0));
    OK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV | host->wishes.binding));
    if (host->wishes.counters) {
        struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP,
                                    .wait_obj = host->wishes.wait_object ? host->wishes.wait_object
                                                                         : FI_WAIT_UNSPEC,
                                    .wait_set = host->wishes.wait_set};
        OK(fi_cntr_open(host->domain, &attr, &side->sent, NULL));
        OK(fi_cntr_open(host->domain, &attr, &side->received, NULL));
        OK(fi_ep_bind(side->ep, &side->sent->fid, FI_SEND));
        OK(fi_ep_bind(side->ep, &side->received->fid, FI_RECV));
    }
    OK(fi_enable(side->ep));
    side->name_bytes = sizeof(side->name);
    OK(fi_getname(&side->ep->fid, side->name, &side->name_bytes));
}

void introduce(struct side *side, const void *name, fi_addr_t *where)
{
    ANSWERS(1, fi_av_insert(side->av, name, 1, where, 0, NULL));
}

void close_side(struct side *side)
{
    OK(fi_close(&side->ep->fid));
    OK(fi_close(&side->cq->fid));
    OK(fi_close(&side->av->fid));
    if (side->sent) {
        OK(fi_close(&side->sent->fid));
        OK(fi_close(&side->received->fid));
    }
}

void close_host(struct host *host)
{
    OK(fi_close(&host->domain->fid));
    OK(fi_close(&host->fabric->fid));
    fi_freeinfo(host->info);
}

void open_pair(struct host *host, struct side *a, struct side *b, const struct wishes *wishes)
{
    open_host(host, wishes);
    open_side(host, a);
    open_side(host, b);
    introduce(a, b->name, &a->other);
    introduce(a, a->name, &a->self);
    introduce(b, a->name, &b->other);
    introduce(b, b->name, &b->self);
}

void close_pair(struct host *host, struct side *a, struct side *b)
{
    close_side(a);
    close_side(b);
    close_host(host);
}

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool over_datagrams(void)
{
    const char *route = getenv("FI_WEFT_ROUTE");
    return route && strcmp(route, "srd") == 0;
}

void progress(struct side *side)
{
    if (side)
        (void)fi_cq_read(side->cq, NULL, 0);
}

void answer_first_contact(struct side *sender)
{
    if (over_datagrams())
        progress(sender);
}

struct fi_cq_tagged_entry next_entry(struct side *side, struct side *other)
{
    struct fi_cq_tagged_entry entry = {0};
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    for (;;) {
        ssize_t count = fi_cq_read(side->cq, &entry, 1);
        if (count == 1)
            return entry;
        if (count == -FI_EAVAIL) {
            struct fi_cq_err_entry error = {0};
            fi_cq_readerr(side->cq, &error, 0);
            fail(__FILE__, __LINE__, "an error instead of a completion: %s (%s)",
                 fi_strerror(error.err), fi_cq_strerror(side->cq, error.prov_errno, NULL, NULL, 0));
        }
        CHECK(count == -FI_EAGAIN, "fi_cq_read answered %zd (%s)", count, fi_strerror((int)-count));
        CHECK(now_ms() < until, "no completion within %d ms", ENTRY_LIMIT_MS);
        progress(other);
    }
}

struct fi_cq_err_entry next_error(struct side *side, struct side *other)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    ssize_t count;
    while ((count = fi_cq_read(side->cq, &entry, 1)) == -FI_EAGAIN) {
        CHECK(now_ms() < until, "no error within %d ms", ENTRY_LIMIT_MS);
        progress(other);
    }
    CHECK(count == -FI_EAVAIL, "fi_cq_read answered %zd instead of -FI_EAVAIL", count);
    ANSWERS(1, fi_cq_readerr(side->cq, &error, 0));
    return error;
}

void expect_silence(struct side *side, struct side *other, int milliseconds)
{
    struct fi_cq_tagged_entry entry;
    int64_t until = now_ms() + milliseconds;
    do {
        ANSWERS(-FI_EAGAIN, fi_cq_read(side->cq, &entry, 1));
        progress(other);
    } while (now_ms() < until);
}

void progress_for(struct side *side, int milliseconds)
{
    int64_t until = now_ms() + milliseconds;
    for (int round = 0; round < 1000 || now_ms() < until; round++)
        progress(side);
}

void meet(struct link *link)
{
    if (link->sync < 0)
        return;
    char token = 'm';
    struct side *here = link->sender ? link->sender : link->receiver;
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    CHECK(write(link->sync, &token, 1) == 1, "the other process cannot be met: %s",
          strerror(errno));
    for (;;) {
        ssize_t count = read(link->sync, &token, 1);
        if (count == 1)
            return;
        CHECK(count < 0 && errno == EAGAIN, "the other process is gone");
        CHECK(now_ms() < until, "the other process does not come");
        progress(here);
    }
}

static unsigned char pattern(size_t index, unsigned seed)
{
    return (unsigned char)(index * 131 + (index >> 8) * 17 + seed);
}

void fill(void *buffer, size_t length, unsigned seed)
{
    for (size_t index = 0; index < length; index++)
        ((unsigned char *)buffer)[index] = pattern(index, seed);
}

void check_filled(const void *buffer, size_t length, unsigned seed)
{
    for (size_t index = 0; index < length; index++)
        CHECK(((const unsigned char *)buffer)[index] == pattern(index, seed),
              "byte %zu of %zu is wrong", index, length);
}

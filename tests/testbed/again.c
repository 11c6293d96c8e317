// SPDX-License-Identifier: Apache-2.0 OR MIT
// A server that is killed and started again at its address, and its client; libfabric alone.
// Started by suite harsh, which kills.
//
//   again server NUMBER ADDRESS PORT CLIENT-ADDRESS CLIENT-PORT    the NUMBER-th server at this
//                                                                  address; it says so to the
//                                                                  client
//   again client LAST ADDRESS PORT SERVER-ADDRESS SERVER-PORT      sends to each server that it
//                                                                  hears of; the LAST one gets a
//                                                                  few messages and an end
//   again bystander 0 ADDRESS PORT OTHER-ADDRESS OTHER-PORT
//     takes whatever comes until SIGTERM, and says whether anything did
//   Either may be told `mute` as the last word: then the servers do not say that they are there,
//   and the client names their address anew instead.
//
// Each message says for which server it is, and its number. A server ends with 1 when it gets what
// was meant for an earlier one, a message twice or out of order, or other bytes; a client when a
// send ends twice or never, or none fails when a server is killed.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 16, LONGEST = 1000000, FEW = 200, TAG_HELLO = 1, TAG_STREAM = 2, LIMIT_S = 60 };
static const size_t lengths[] = {100, 5000, 40000, LONGEST};

struct head {
    uint32_t server, number, length, is_last;
};

static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static fi_addr_t other;
static struct fi_info *info;
static const char *other_address, *other_port;
static time_t end_s;

#define CHECK(what, ...)                                                                           \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "again: " __VA_ARGS__);                                                \
            fprintf(stderr, "\n");                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        CHECK(code_ == 0, "%s: %s", #call, fi_strerror(-code_));                                   \
    } while (0)

static void name_other(void)
{
    struct fi_info *found;
    OK(fi_getinfo(FI_VERSION(1, 17), other_address, other_port, 0, info, &found));
    CHECK(fi_av_insert(av, found->dest_addr, 1, &other, 0, NULL) == 1,
          "the other one's address is not taken");
    fi_freeinfo(found);
}

static void open_at(const char *address, const char *port)
{
    struct fi_info *hints = fi_allocinfo();
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    hints->fabric_attr->prov_name = strdup("weft");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    OK(fi_getinfo(FI_VERSION(1, 17), address, port, FI_SOURCE, hints, &info));
    OK(fi_fabric(info->fabric_attr, &fabric, NULL));
    OK(fi_domain(fabric, info, &domain, NULL));
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_enable(ep));
    name_other();
    end_s = time(NULL) + LIMIT_S;
}

// The next completion, if there is one: 1 done, -1 failed, 0 none.
static int next(void **context)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    ssize_t count = fi_cq_read(cq, &entry, 1);
    CHECK(time(NULL) < end_s, "not done in %d s", LIMIT_S);
    if (count == 1)
        return *context = entry.op_context, 1;
    if (count == -FI_EAGAIN)
        return 0;
    CHECK(count == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1, "the queue answers %zd", count);
    return *context = error.op_context, -1;
}

static char *message(uint32_t server, uint32_t number, bool is_last)
{
    char *bytes = malloc(LONGEST);
    struct head head = {server, number, (uint32_t)lengths[number % 4], is_last};
    memset(bytes, (int)(server * 31 + number * 7) & 255, head.length);
    memcpy(bytes, &head, sizeof(head));
    return bytes;
}

struct slot {
    char *bytes;
    uint32_t due; // receives are filled in the order in which they were posted
};

static void receive(struct slot *slot)
{
    static uint32_t posted_count;
    slot->due = posted_count++;
    OK(fi_trecv(ep, slot->bytes, LONGEST, NULL, FI_ADDR_UNSPEC, TAG_STREAM, 0, slot));
}

static void check(const struct slot *slot, const struct head *head, uint32_t own)
{
    CHECK(head->server == own, "server %u got message %u of server %u", own, head->number,
          head->server);
    CHECK(head->number == slot->due, "server %u got message %u instead of %u", own, head->number,
          slot->due);
    for (size_t at = sizeof(*head); at < head->length; at++)
        CHECK((unsigned char)slot->bytes[at] == ((own * 31 + head->number * 7) & 255),
              "other bytes in message %u", head->number);
}

static void serve(uint32_t own, bool mute)
{
    struct slot slots[WINDOW];
    uint32_t count = 0, all = UINT32_MAX;
    void *context;
    for (uint32_t at = 0; at < WINDOW; at++) {
        slots[at].bytes = malloc(LONGEST);
        receive(&slots[at]);
    }
    while (!mute && fi_tinject(ep, &own, sizeof(own), other, TAG_HELLO) == -FI_EAGAIN)
        next(&context);
    while (count < all) {
        int outcome = next(&context);
        if (outcome == 0)
            continue;
        CHECK(outcome == 1, "a receive failed");
        struct slot *slot = context;
        struct head head;
        memcpy(&head, slot->bytes, sizeof(head));
        check(slot, &head, own);
        if (head.is_last)
            all = head.number + 1;
        count++;
        if (count == 50)
            printf("server %u is under way\n", own), fflush(stdout);
        receive(slot);
    }
    printf("server %u got all %u messages, each once and in order\n", own, count);
    OK(fi_close(&ep->fid));
}

static char *under_way[WINDOW];
static uint32_t heard, hello;
static int open_count, done_count, failed_count;

// Takes what has ended.
static void take(void)
{
    void *context;
    int outcome = next(&context);
    if (outcome == 0)
        return;
    if (context == &hello) {
        CHECK(outcome == 1, "the receive of a server's word failed");
        heard = hello;
        OK(fi_trecv(ep, &hello, sizeof(hello), NULL, FI_ADDR_UNSPEC, TAG_HELLO, 0, &hello));
        return;
    }
    char **slot = context;
    CHECK(slot >= under_way && slot < under_way + WINDOW && *slot, "a send has ended twice");
    free(*slot);
    *slot = NULL;
    open_count--;
    done_count += outcome == 1;
    failed_count += outcome == -1;
}

// Sends to a server until it is lost, or, the last one, a few and the end.
static void send_to(uint32_t server, bool is_last)
{
    uint32_t number = 0, count = is_last ? FEW : UINT32_MAX;
    bool refused = false;
    open_count = done_count = failed_count = 0;
    while (number < count && failed_count == 0 && !refused && heard == server) {
        char **slot = &under_way[number % WINDOW];
        if (!*slot) {
            *slot = message(server, number, number + 1 == count);
            ssize_t answer =
                fi_tsend(ep, *slot, lengths[number % 4], NULL, other, TAG_STREAM, slot);
            if (answer == 0) {
                open_count++;
                number++;
            } else {
                free(*slot);
                *slot = NULL;
                refused = answer != -FI_EAGAIN;
            }
        }
        take();
    }
    while (open_count > 0)
        take();
    printf("to server %u: %u posted, %d done, %d failed%s\n", server, number, done_count,
           failed_count, refused ? ", then refused" : "");
    fflush(stdout);
    CHECK(done_count + failed_count == (int)number, "not every send has ended");
    CHECK(is_last ? failed_count == 0 && !refused : failed_count > 0, "not as it should be");
}

// Whether one word reaches a server that does not speak: the first message of its stream, by
// itself.
static void ask(uint32_t server)
{
    struct timespec pause = {.tv_nsec = 50000000};
    for (;;) {
        char name[1];
        ssize_t answer;
        void *context = NULL;
        name_other();
        while ((answer = fi_tsend(ep, name, 0, NULL, other, TAG_HELLO + 100, &name)) == -FI_EAGAIN)
            next(&context);
        int outcome = answer == 0 ? 0 : -1;
        while (outcome == 0)
            outcome = next(&context);
        if (outcome == 1)
            break;
        nanosleep(&pause, NULL);
    }
    heard = server;
}

static volatile sig_atomic_t is_over;

static void end_it(int signal)
{
    (void)signal;
    is_over = 1;
}

// Nobody sends to it. It names the other one, so that it has something to answer with, and tries to
// reach it until somebody is there.
static void stand_by(void)
{
    static char bytes[LONGEST];
    static char name[1];
    int came_count = 0;
    bool asks = false, reached = false;
    void *context;
    signal(SIGTERM, end_it);
    OK(fi_trecv(ep, bytes, LONGEST, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, bytes));
    while (!is_over) {
        if (!asks && !reached) {
            name_other();
            asks = fi_tsend(ep, name, 0, NULL, other, TAG_HELLO + 100, name) == 0;
        }
        int outcome = next(&context);
        if (outcome != 0 && context == name) {
            asks = false;
            reached |= outcome == 1;
        } else if (outcome != 0) {
            came_count++;
        }
    }
    CHECK(came_count == 0, "the bystander got something");
    CHECK(reached, "the bystander reached nobody");
    printf("the bystander got nothing\n");
}

int main(int count, char **words)
{
    bool mute = count == 8 && strcmp(words[7], "mute") == 0;
    CHECK(count == 7 || mute,
          "usage: again server NUMBER|client LAST ADDRESS PORT OTHER-ADDRESS OTHER-PORT [mute]");
    uint32_t number = (uint32_t)atoi(words[2]);
    other_address = words[5];
    other_port = words[6];
    open_at(words[3], words[4]);
    if (strcmp(words[1], "server") == 0)
        return serve(number, mute), 0;
    if (strcmp(words[1], "bystander") == 0)
        return stand_by(), 0;
    OK(fi_trecv(ep, &hello, sizeof(hello), NULL, FI_ADDR_UNSPEC, TAG_HELLO, 0, &hello));
    printf("client is there\n");
    fflush(stdout);
    for (uint32_t server = 1; server <= number; server++) {
        if (mute)
            ask(server);
        while (heard < server)
            take();
        send_to(server, server == number);
    }
    return 0;
}

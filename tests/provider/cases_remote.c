// SPDX-License-Identifier: Apache-2.0 OR MIT
// Remote memory: every call that reads or writes it, registration in its modes, what is refused and
// how. fi_rma(3), fi_mr(3).
#include "harness.h"

#include <rdma/fi_rma.h>

#define LONGEST 300000
#define REMOTE_CAPS (FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_FENCE)

static struct host host;
static struct side a, b;
static struct fid_mr *region;
static char memory[LONGEST + 64], source[LONGEST], target[LONGEST];

// What one transfer is made of, for every form.
struct transfer {
    size_t length;
    uint64_t address, key, data;
    void *context;
};

static struct iovec pieces[2];
static struct fi_rma_iov ranges[2];

static const struct iovec *split(char *buffer, size_t length)
{
    pieces[0] = (struct iovec){buffer, length / 3};
    pieces[1] = (struct iovec){buffer + length / 3, length - length / 3};
    return pieces;
}

static struct fi_msg_rma whole(char *buffer, const struct transfer *it)
{
    ranges[0] = (struct fi_rma_iov){it->address, it->length / 2, it->key};
    ranges[1] =
        (struct fi_rma_iov){it->address + it->length / 2, it->length - it->length / 2, it->key};
    return (struct fi_msg_rma){
        .msg_iov = split(buffer, it->length),
        .iov_count = 2,
        .addr = a.other,
        .rma_iov = ranges,
        .rma_iov_count = 2,
        .context = it->context,
        .data = it->data,
    };
}

static ssize_t call_write(const struct transfer *it)
{
    return fi_write(a.ep, source, it->length, NULL, a.other, it->address, it->key, it->context);
}

static ssize_t call_writev(const struct transfer *it)
{
    return fi_writev(a.ep, split(source, it->length), NULL, 2, a.other, it->address, it->key,
                     it->context);
}

static ssize_t call_writemsg(const struct transfer *it)
{
    struct fi_msg_rma message = whole(source, it);
    return fi_writemsg(a.ep, &message, FI_COMPLETION);
}

static ssize_t call_writemsg_data(const struct transfer *it)
{
    struct fi_msg_rma message = whole(source, it);
    return fi_writemsg(a.ep, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
}

static ssize_t call_writedata(const struct transfer *it)
{
    return fi_writedata(a.ep, source, it->length, NULL, it->data, a.other, it->address, it->key,
                        it->context);
}

static ssize_t call_inject(const struct transfer *it)
{
    return fi_inject_write(a.ep, source, it->length, a.other, it->address, it->key);
}

static ssize_t call_injectdata(const struct transfer *it)
{
    return fi_inject_writedata(a.ep, source, it->length, it->data, a.other, it->address, it->key);
}

static ssize_t call_read(const struct transfer *it)
{
    return fi_read(a.ep, target, it->length, NULL, a.other, it->address, it->key, it->context);
}

static ssize_t call_readv(const struct transfer *it)
{
    return fi_readv(a.ep, split(target, it->length), NULL, 2, a.other, it->address, it->key,
                    it->context);
}

static ssize_t call_readmsg(const struct transfer *it)
{
    struct fi_msg_rma message = whole(target, it);
    return fi_readmsg(a.ep, &message, FI_COMPLETION);
}

static const struct form {
    const char *name;
    ssize_t (*call)(const struct transfer *it);
    bool reads, data, inject;
} forms[] = {
    {"fi_write", call_write},
    {"fi_writev", call_writev},
    {"fi_writemsg", call_writemsg},
    {"fi_writemsg with data", call_writemsg_data, .data = true},
    {"fi_writedata", call_writedata, .data = true},
    {"fi_inject_write", call_inject, .inject = true},
    {"fi_inject_writedata", call_injectdata, .inject = true, .data = true},
    {"fi_read", call_read, .reads = true},
    {"fi_readv", call_readv, .reads = true},
    {"fi_readmsg", call_readmsg, .reads = true},
    {NULL},
};

static void open_remote(int mr_mode, uint64_t access)
{
    open_pair(&host, &a, &b,
              &(struct wishes){.caps_added = REMOTE_CAPS, .mr_mode = mr_mode, .counters = true});
    OK(fi_mr_reg(host.domain, memory, sizeof(memory), access, 0, 4711, 0, &region, NULL));
}

static void close_remote(void)
{
    OK(fi_close(&region->fid));
    close_pair(&host, &a, &b);
}

static void try_form(const struct form *form, size_t length, uint64_t base)
{
    struct transfer it = {length, base + 32, fi_mr_key(region), 1234567890123, &pieces};
    memset(memory, 0x55, sizeof(memory));
    fill(form->reads ? memory + 32 : source, length, (unsigned)length);
    POST(&a, &b, form->call(&it));
    if (!form->inject) {
        struct fi_cq_tagged_entry entry = next_entry(&a, &b);
        uint64_t wanted = FI_RMA | (form->reads ? FI_READ : FI_WRITE);
        CHECK(entry.op_context == &pieces, "%s: another context", form->name);
        CHECK((entry.flags & (FI_RMA | FI_READ | FI_WRITE)) == wanted, "%s: flags %#llx",
              form->name, (unsigned long long)entry.flags);
    }
    if (form->data) {
        struct fi_cq_tagged_entry entry = next_entry(&b, &a);
        CHECK(entry.flags & FI_REMOTE_WRITE && entry.flags & FI_REMOTE_CQ_DATA, "flags %#llx",
              (unsigned long long)entry.flags);
        CHECK(entry.data == it.data && entry.len == length, "%s: data or length", form->name);
    } else if (form->inject) {
        expect_silence(&b, &a, 3);
    }
    check_filled(form->reads ? target : memory + 32, length, (unsigned)length);
    CHECK(memory[31] == 0x55 && memory[32 + length] == 0x55,
          "%s: bytes beside the range were touched", form->name);
}

static void try_all_forms(uint64_t base)
{
    static const size_t lengths[] = {1, 8, 60, 5000, 8192, 70000, LONGEST};
    for (size_t index = 0; index < sizeof(lengths) / sizeof(lengths[0]); index++)
        for (const struct form *form = forms; form->name; form++)
            if (!form->inject || lengths[index] <= host.info->tx_attr->inject_size)
                try_form(form, lengths[index], base);
}

static void every_call_moves_every_length(void)
{
    open_remote(0, FI_REMOTE_READ | FI_REMOTE_WRITE);
    CHECK(host.info->domain_attr->mr_mode == 0, "registration is asked for");
    CHECK(fi_mr_key(region) == 4711, "another key than asked for");
    try_all_forms(0);
    CHECK(host.info->ep_attr->max_order_waw_size >= 4096, "order ends early");
    close_remote();
}

static void basic_registration_names_bytes_by_their_addresses(void)
{
    open_remote(FI_MR_BASIC, FI_REMOTE_READ | FI_REMOTE_WRITE);
    CHECK(host.info->domain_attr->mr_mode == FI_MR_BASIC, "mode %d",
          host.info->domain_attr->mr_mode);
    try_all_forms((uint64_t)(uintptr_t)memory);
    close_remote();
}

static void a_region_of_all_memory_is_named_by_addresses(void)
{
    open_remote(0, 0);
    OK(fi_close(&region->fid));
    OK(fi_mr_reg(host.domain, NULL, UINTPTR_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &region,
                 NULL));
    OK(fi_mr_bind(region, &b.ep->fid, 0));
    OK(fi_mr_enable(region));
    OK(fi_mr_refresh(region, &(struct iovec){memory, sizeof(memory)}, 1, 0));
    for (const struct form *form = forms; form->name; form++)
        try_form(form, 100, (uint64_t)(uintptr_t)memory);
    close_remote();
}

static void expect_refusal(int wanted, const struct form *form, struct transfer it)
{
    it.context = &ranges;
    POST(&a, &b, form->call(&it));
    struct fi_cq_err_entry error = next_error(&a, &b);
    CHECK(error.err == wanted, "%s: %s instead of %s", form->name, fi_strerror(error.err),
          fi_strerror(wanted));
    CHECK(error.op_context == &ranges, "%s: another context", form->name);
    CHECK(strlen(fi_cq_strerror(a.cq, error.prov_errno, NULL, NULL, 0)) > 10, "no words");
}

static void what_may_not_be_touched_is_refused_by_name(void)
{
    struct fid_mr *closed;
    open_remote(0, FI_REMOTE_WRITE);
    OK(fi_mr_reg(host.domain, memory, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0, &closed,
                 NULL));
    OK(fi_close(&closed->fid));
    for (size_t length = 8; length <= LONGEST; length *= 100) {
        for (const struct form *form = forms; form->name; form++) {
            if (form->inject)
                continue;
            expect_refusal(FI_EKEYREJECTED, form, (struct transfer){.length = length, .key = 99});
            expect_refusal(FI_EKEYREJECTED, form, (struct transfer){.length = length, .key = 5});
            if (form->reads)
                expect_refusal(FI_EACCES, form, (struct transfer){.length = length, .key = 4711});
            else
                expect_refusal(FI_EINVAL, form,
                               (struct transfer){
                                   .length = length, .key = 4711, .address = sizeof(memory) - 1});
        }
    }
    try_form(&forms[0], 100, 0);
    close_remote();
}

static void calls_that_make_no_sense_are_refused_at_once(void)
{
    open_remote(0, FI_REMOTE_READ | FI_REMOTE_WRITE);
    struct transfer it = {16, 0, 4711, 0, NULL};
    struct fi_msg_rma message = whole(source, &it);
    message.iov_count = 1000;
    ANSWERS(-FI_EINVAL, fi_writemsg(a.ep, &message, 0));
    message = whole(source, &it);
    message.rma_iov_count = 1000;
    ANSWERS(-FI_EINVAL, fi_readmsg(a.ep, &message, 0));
    message = whole(source, &it);
    ranges[0].len++;
    ANSWERS(-FI_EINVAL, fi_writemsg(a.ep, &message, 0));
    message = whole(source, &it);
    ANSWERS(-FI_EOPNOTSUPP, fi_writemsg(a.ep, &message, FI_TRIGGER));
    ANSWERS(-FI_EINVAL, fi_writemsg(a.ep, NULL, 0));
    ANSWERS(-FI_EMSGSIZE,
            fi_inject_write(a.ep, source, host.info->tx_attr->inject_size + 1, a.other, 0, 4711));
    ANSWERS(-FI_EINVAL, fi_write(a.ep, source, 8, NULL, 99, 0, 4711, NULL));
    struct fid_mr *other;
    ANSWERS(-FI_EINVAL, fi_mr_reg(host.domain, memory, 8, FI_REMOTE_READ, 8, 1, 0, &other, NULL));
    ANSWERS(-FI_ENOKEY,
            fi_mr_reg(host.domain, memory, 8, FI_REMOTE_READ, 0, 4711, 0, &other, NULL));
    ANSWERS(-FI_EBUSY, fi_close(&host.domain->fid));
    expect_silence(&a, &b, 3);
    close_remote();
}

static void counters_count_on_both_sides(void)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *counters[5];
    open_remote(0, FI_REMOTE_READ | FI_REMOTE_WRITE);
    close_side(&a);
    OK(fi_endpoint(host.domain, host.info, &a.ep, NULL));
    OK(fi_av_open(host.domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &a.av, NULL));
    OK(fi_cq_open(host.domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED}, &a.cq, NULL));
    OK(fi_ep_bind(a.ep, &a.av->fid, 0));
    OK(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
    for (int index = 0; index < 5; index++)
        OK(fi_cntr_open(host.domain, &attr, &counters[index], NULL));
    OK(fi_ep_bind(a.ep, &counters[0]->fid, FI_WRITE));
    OK(fi_ep_bind(a.ep, &counters[1]->fid, FI_READ));
    OK(fi_ep_bind(a.ep, &counters[2]->fid, FI_REMOTE_WRITE));
    OK(fi_ep_bind(a.ep, &counters[3]->fid, FI_REMOTE_READ));
    OK(fi_mr_bind(region, &counters[4]->fid, FI_REMOTE_WRITE));
    OK(fi_enable(a.ep));
    a.name_bytes = sizeof(a.name);
    OK(fi_getname(&a.ep->fid, a.name, &a.name_bytes));
    introduce(&a, a.name, &a.other);
    POST(&a, NULL, fi_write(a.ep, source, 100, NULL, a.other, 0, 4711, NULL));
    POST(&a, NULL, fi_inject_write(a.ep, source, 100, a.other, 0, 4711));
    POST(&a, NULL, fi_read(a.ep, target, 60000, NULL, a.other, 0, 4711, NULL));
    OK(fi_cntr_wait(counters[0], 2, ENTRY_LIMIT_MS));
    OK(fi_cntr_wait(counters[1], 1, ENTRY_LIMIT_MS));
    OK(fi_cntr_wait(counters[2], 2, ENTRY_LIMIT_MS));
    OK(fi_cntr_wait(counters[3], 1, ENTRY_LIMIT_MS));
    CHECK(fi_cntr_read(counters[4]) == 2, "writes to the region: %llu",
          (unsigned long long)fi_cntr_read(counters[4]));
    expect_silence(&a, NULL, 3);
    POST(&a, NULL, fi_write(a.ep, source, 100, NULL, a.other, 0, 99, NULL));
    ANSWERS(-FI_EAVAIL, fi_cntr_wait(counters[0], 3, ENTRY_LIMIT_MS));
    CHECK(fi_cntr_readerr(counters[0]) == 1, "errors are not counted");
    OK(fi_close(&region->fid));
    OK(fi_close(&a.ep->fid));
    for (int index = 0; index < 5; index++)
        OK(fi_close(&counters[index]->fid));
    OK(fi_close(&a.cq->fid));
    OK(fi_close(&a.av->fid));
    close_side(&b);
    close_host(&host);
}

// The next end of side a's operation: 0, or the error number of its entry.
static int next_end(void)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    for (;;) {
        ssize_t count = fi_cq_read(a.cq, &entry, 1);
        if (count == 1)
            return 0;
        if (count == -FI_EAVAIL) {
            CHECK(fi_cq_readerr(a.cq, &error, 0) == 1, "no error entry");
            return error.err;
        }
        CHECK(count == -FI_EAGAIN, "fi_cq_read answered %zd", count);
        (void)!fi_cq_read(b.cq, NULL, 0);
    }
}

static void nothing_lands_in_a_region_after_it_was_closed(void)
{
    static char at_close[sizeof(memory)];
    for (int rounds = 0; rounds < 6; rounds++) {
        struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
        struct fid_cntr *counter;
        open_remote(0, FI_REMOTE_READ | FI_REMOTE_WRITE);
        OK(fi_cntr_open(host.domain, &attr, &counter, NULL));
        OK(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE));
        memset(memory, 0x55, sizeof(memory));
        fill(source, LONGEST, 1);
        struct transfer it = {LONGEST, 0, 4711, 0, &ranges};
        POST(&a, &b, call_write(&it));
        for (int round = 0; round < rounds; round++) {
            (void)!fi_cq_read(b.cq, NULL, 0);
            (void)!fi_cq_read(a.cq, NULL, 0);
        }
        OK(fi_close(&region->fid));
        memcpy(at_close, memory, sizeof(memory));
        int end = next_end();
        CHECK(end == 0 || end == FI_EKEYREJECTED, "the write ended with %s", fi_strerror(end));
        if (end == 0)
            check_filled(at_close, LONGEST, 1);
        expect_silence(&a, &b, 3);
        CHECK(memcmp(memory, at_close, sizeof(memory)) == 0,
              "written after the close, %d rounds before it", rounds);
        OK(fi_close(&counter->fid));
        close_pair(&host, &a, &b);
    }
}

static void a_fence_waits_for_all_before_it(void)
{
    /* A counted region is touched by its owner alone: a write that ended within its call would
     * leave nothing to wait for. */
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
    struct fid_cntr *counter;
    open_remote(0, FI_REMOTE_READ | FI_REMOTE_WRITE);
    OK(fi_cntr_open(host.domain, &attr, &counter, NULL));
    OK(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE));
    struct transfer it = {LONGEST, 0, 4711, 0, &ranges};
    fill(source, LONGEST, 1);
    POST(&a, &b, call_write(&it));
    struct fi_msg_rma message = whole(target, &it);
    ANSWERS(-FI_EAGAIN, fi_readmsg(a.ep, &message, FI_FENCE | FI_COMPLETION));
    POST(&a, &b, fi_readmsg(a.ep, &message, FI_FENCE | FI_COMPLETION));
    next_entry(&a, &b);
    next_entry(&a, &b);
    check_filled(target, LONGEST, 1);
    OK(fi_close(&region->fid));
    OK(fi_close(&counter->fid));
    close_pair(&host, &a, &b);
}

const struct test_case remote_cases[] = {
    {"every_call_moves_every_length", every_call_moves_every_length},
    {"basic_registration_names_bytes_by_their_addresses",
     basic_registration_names_bytes_by_their_addresses},
    {"a_region_of_all_memory_is_named_by_addresses", a_region_of_all_memory_is_named_by_addresses},
    {"what_may_not_be_touched_is_refused_by_name", what_may_not_be_touched_is_refused_by_name},
    {"calls_that_make_no_sense_are_refused_at_once", calls_that_make_no_sense_are_refused_at_once},
    {"counters_count_on_both_sides", counters_count_on_both_sides},
    {"nothing_lands_in_a_region_after_it_was_closed",
     nothing_lands_in_a_region_after_it_was_closed},
    {"a_fence_waits_for_all_before_it", a_fence_waits_for_all_before_it},
    {NULL, NULL},
};

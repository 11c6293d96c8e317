// SPDX-License-Identifier: Apache-2.0 OR MIT
// Completions: formats, selection, levels, sources, growth, counters.
#include "harness.h"

#include <stddef.h>

static struct host host;
static struct side a, b;

static void entries_have_the_format_asked_for(void)
{
    for (int format = FI_CQ_FORMAT_CONTEXT; format <= FI_CQ_FORMAT_TAGGED; format++) {
        struct wishes wishes = {.format = format};
        struct {
            struct fi_cq_tagged_entry entry;
            char guard[8];
        } got[2];
        uint32_t number = 42, in = 0;
        size_t known = format == FI_CQ_FORMAT_CONTEXT ? sizeof(struct fi_cq_entry)
                       : format == FI_CQ_FORMAT_MSG   ? sizeof(struct fi_cq_msg_entry)
                       : format == FI_CQ_FORMAT_DATA  ? sizeof(struct fi_cq_data_entry)
                                                      : sizeof(struct fi_cq_tagged_entry);
        open_pair(&host, &a, &b, &wishes);
        OK(fi_trecv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 3, 0, &in));
        POST(&a, &b, fi_tinjectdata(a.ep, &number, 4, 99, a.other, 3));
        memset(got, 0xab, sizeof(got));
        int64_t until = now_ms() + ENTRY_LIMIT_MS;
        while (fi_cq_read(b.cq, &got[0].entry, 1) != 1) {
            CHECK(now_ms() < until, "no completion");
            progress(&a);
        }
        CHECK(got[0].entry.op_context == &in, "context");
        CHECK(format < FI_CQ_FORMAT_MSG || (got[0].entry.len == 4 && got[0].entry.flags & FI_RECV),
              "length or flags");
        CHECK(format < FI_CQ_FORMAT_DATA || got[0].entry.data == 99, "data");
        CHECK(format < FI_CQ_FORMAT_TAGGED || got[0].entry.tag == 3, "tag");
        for (size_t index = known; index < sizeof(got); index++)
            CHECK(((unsigned char *)got)[index] == 0xab, "byte %zu behind the entry was written",
                  index);
        close_pair(&host, &a, &b);
    }
}

static void selective_queues_get_only_what_is_asked_for(void)
{
    struct wishes wishes = {.binding = FI_SELECTIVE_COMPLETION};
    uint32_t number = 1, in[2];
    struct iovec piece = {&number, 4}, room = {&in[1], 4};
    open_pair(&host, &a, &b, &wishes);
    struct fi_msg_tagged out = {
        .msg_iov = &piece, .iov_count = 1, .addr = a.other, .tag = 1, .context = &out};
    struct fi_msg_tagged into = {
        .msg_iov = &room, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1, .context = &into};
    OK(fi_trecv(b.ep, &in[0], 4, NULL, FI_ADDR_UNSPEC, 1, 0,
                &in[0])); // op_flags without FI_COMPLETION
    OK(fi_trecvmsg(b.ep, &into, FI_COMPLETION));
    POST(&a, &b, fi_tsendmsg(a.ep, &out, 0));
    POST(&a, &b, fi_tsendmsg(a.ep, &out, FI_COMPLETION));
    CHECK(next_entry(&b, &a).op_context == &into, "an entry that nobody asked for");
    CHECK(next_entry(&a, &b).op_context == &out, "no entry of the send");
    expect_silence(&a, &b, 20);
    expect_silence(&b, &a, 20);
    close_pair(&host, &a, &b);
}

static void default_flags_ask_for_entries(void)
{
    struct wishes wishes = {.binding = FI_SELECTIVE_COMPLETION, .transmit_flags = FI_COMPLETION};
    uint32_t number = 1;
    open_pair(&host, &a, &b, &wishes);
    POST(&a, &b, fi_tsend(a.ep, &number, 4, NULL, a.other, 1, &number));
    CHECK(next_entry(&a, &b).op_context == &number, "no entry");
    uint64_t flags = FI_TRANSMIT;
    OK(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags));
    CHECK(flags == FI_COMPLETION, "flags %#llx", (unsigned long long)flags);
    close_pair(&host, &a, &b);
}

static void injects_leave_no_entry(void)
{
    uint32_t number = 1, in;
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in));
    POST(&a, &b, fi_tinject(a.ep, &number, 4, a.other, 1));
    next_entry(&b, &a);
    expect_silence(&a, &b, 20);
    close_pair(&host, &a, &b);
}

static void delivery(size_t length, uint64_t flags)
{
    char *out = calloc(1, length), *in = malloc(length);
    struct iovec piece = {out, length};
    struct fi_msg_tagged msg = {
        .msg_iov = &piece, .iov_count = 1, .addr = a.other, .tag = 2, .context = out};
    POST(&a, &b, fi_tsendmsg(a.ep, &msg, FI_COMPLETION | flags));
    if (flags & FI_DELIVERY_COMPLETE)
        expect_silence(&a, &b, 30); // nobody has received it yet
    OK(fi_trecv(b.ep, in, length, NULL, FI_ADDR_UNSPEC, 2, 0, in));
    CHECK(next_entry(&b, &a).op_context == in, "not received");
    CHECK(next_entry(&a, &b).op_context == out, "not sent");
    free(out);
    free(in);
}

static void completion_levels_hold(void)
{
    static const size_t lengths[] = {0, 8, 3000, 100000, 3000000};
    open_pair(&host, &a, &b, NULL);
    for (size_t index = 0; index < sizeof(lengths) / sizeof(lengths[0]); index++) {
        delivery(lengths[index], FI_DELIVERY_COMPLETE);
        delivery(lengths[index], FI_TRANSMIT_COMPLETE);
        delivery(lengths[index], FI_INJECT_COMPLETE);
    }
    close_pair(&host, &a, &b);
}

static void a_fenced_send_waits_for_all_before_it(void)
{
    static const size_t length = 3000000;
    char *out = calloc(1, length), *in = malloc(length), byte = 'f';
    struct iovec piece = {&byte, 1};
    open_pair(&host, &a, &b, NULL);
    struct fi_msg_tagged msg = {
        .msg_iov = &piece, .iov_count = 1, .addr = a.other, .tag = 3, .context = &byte};
    POST(&a, &b, fi_tsend(a.ep, out, length, NULL, a.other, 2, out));
    for (int round = 0; round < 50; round++) {
        ANSWERS(
            -FI_EAGAIN,
            fi_tsendmsg(a.ep, &msg, FI_COMPLETION | FI_FENCE)); // the one before has no receive yet
        progress(&a);
        progress(&b);
    }
    POST(&a, &b, fi_tsend(a.ep, &byte, 1, NULL, a.other, 4, &msg)); // not fenced: goes at once
    OK(fi_trecv(b.ep, in, length, NULL, FI_ADDR_UNSPEC, 2, 0, in));
    POST(&a, &b, fi_tsendmsg(a.ep, &msg, FI_COMPLETION | FI_FENCE));
    void *order[3];
    for (int index = 0; index < 3; index++)
        order[index] = next_entry(&a, &b).op_context;
    CHECK(order[2] == &byte && (order[0] == out || order[1] == out),
          "the fenced send went before another one");
    close_pair(&host, &a, &b);
    free(out);
    free(in);
}

static void an_endpoint_answers_while_only_anothers_queue_is_read(void)
{
    uint32_t in[3], number = 6;
    open_pair(&host, &a, &b, NULL);
    for (int round = 0; round < 3; round++) {
        OK(fi_trecv(b.ep, &in[round], 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in[round]));
        POST(&a, NULL, fi_tsend(a.ep, &number, 4, NULL, a.other, 1, &number));
        CHECK(next_entry(&a, NULL).op_context == &number, "another completion");
    }
    for (int round = 0; round < 3; round++)
        CHECK(next_entry(&b, &a).op_context == &in[round] && in[round] == 6, "another message");
    close_pair(&host, &a, &b);
}

static fi_addr_t source_of_next(struct side *side, struct side *other)
{
    struct fi_cq_tagged_entry entry;
    fi_addr_t source = 12345;
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    while (fi_cq_readfrom(side->cq, &entry, 1, &source) != 1) {
        CHECK(now_ms() < until, "no completion");
        progress(other);
    }
    return source;
}

static void completions_name_their_source(void)
{
    uint32_t number = 1, in;
    open_pair(&host, &a, &b, NULL);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    POST(&a, &b, fi_inject(a.ep, &number, 4, a.other));
    fi_addr_t source = source_of_next(&b, &a);
    CHECK(source == b.other, "source %llu", (unsigned long long)source);
    OK(fi_av_remove(b.av, &b.other, 1, 0));
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    POST(&a, &b, fi_inject(a.ep, &number, 4, a.other));
    source = source_of_next(&b, &a);
    CHECK(source == FI_ADDR_NOTAVAIL, "a removed address is named: %llu",
          (unsigned long long)source);
    close_pair(&host, &a, &b);
}

static void a_queue_grows_and_loses_nothing(void)
{
    enum { COUNT = 5000 };
    struct wishes wishes = {.queue_size = 4};
    static uint32_t in[COUNT];
    open_pair(&host, &a, &b, &wishes);
    for (uint32_t index = 0; index < COUNT; index++) {
        OK(fi_trecv(a.ep, &in[index], 4, NULL, a.self, index, 0, &in[index]));
        POST(&a, NULL, fi_tinject(a.ep, &index, 4, a.self, index));
    }
    for (uint32_t index = 0; index < COUNT; index++) {
        struct fi_cq_tagged_entry entry = next_entry(&a, &b);
        CHECK(entry.tag == index && in[index] == index, "entry %u has tag %llu", index,
              (unsigned long long)entry.tag);
    }
    close_pair(&host, &a, &b);
}

static void counters_count_what_they_are_bound_to(void)
{
    struct wishes wishes = {.counters = true};
    uint32_t number = 1, in[4];
    open_pair(&host, &a, &b, &wishes);
    for (int index = 0; index < 4; index++)
        OK(fi_trecv(b.ep, &in[index], 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in[index]));
    POST(&a, &b, fi_tinject(a.ep, &number, 4, a.other, 1));
    POST(&a, &b, fi_tsend(a.ep, &number, 4, NULL, a.other, 1, &number));
    for (int64_t until = now_ms() + ENTRY_LIMIT_MS; fi_cntr_read(a.sent) < 2 && now_ms() < until;)
        (void)fi_cntr_read(
            b.received); // a send may be complete only when its receiver makes progress
    OK(fi_cntr_wait(a.sent, 2, SLEEP_MS));
    OK(fi_cntr_wait(b.received, 2, SLEEP_MS));
    CHECK(fi_cntr_read(a.sent) == 2 && fi_cntr_read(b.received) == 2 && fi_cntr_read(b.sent) == 0,
          "counts");
    ANSWERS(-FI_ETIMEDOUT, fi_cntr_wait(b.received, 3, 30));
    OK(fi_cancel(&b.ep->fid, &in[2]));
    CHECK(fi_cntr_readerr(b.received) == 1, "a canceled receive does not count as an error");
    OK(fi_cntr_set(b.received, 100));
    OK(fi_cntr_add(b.received, 5));
    OK(fi_cntr_seterr(b.received, 7));
    OK(fi_cntr_adderr(b.received, 1));
    CHECK(fi_cntr_read(b.received) == 105 && fi_cntr_readerr(b.received) == 8, "set or add");
    ANSWERS(-FI_EBUSY, fi_close(&b.received->fid));
    close_pair(&host, &a, &b);
}

// Reads the error of a truncated message into a buffer of bytes, as an application of another
// version would have it.
static void truncated(uint32_t version, unsigned char *bytes, size_t room)
{
    struct wishes wishes = {.version = version};
    char out[8] = {0}, in[4];
    open_pair(&host, &a, &b, &wishes);
    memset(bytes, 0, room);
    OK(fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, in));
    POST(&a, &b, fi_tinject(a.ep, out, sizeof(out), a.other, 1));
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    while (fi_cq_read(b.cq, NULL, 0) != -FI_EAVAIL) {
        CHECK(now_ms() < until, "no error");
        progress(&a);
    }
    ANSWERS(1, b.cq->ops->readerr(b.cq, (struct fi_cq_err_entry *)bytes, 0));
    CHECK(((struct fi_cq_err_entry *)bytes)->err == FI_ETRUNC, "another error");
}

static void old_applications_keep_what_lies_behind_their_entry(void)
{
    unsigned char bytes[128];
    size_t known = offsetof(struct fi_cq_err_entry, err_data_size); // the layout of 1.4
    memset(bytes + known, 0xab, sizeof(bytes) - known);
    struct fi_info *hints = new_hints(), *info = get_info(FI_VERSION(1, 4), hints);
    CHECK(info->domain_attr->mr_mode == FI_MR_SCALABLE, "mr_mode %d", info->domain_attr->mr_mode);
    truncated(FI_VERSION(1, 4), bytes, known);
    for (size_t index = known; index < sizeof(bytes); index++)
        CHECK(bytes[index] == 0xab, "byte %zu behind the entry was written", index);
}

static void new_applications_learn_the_source_of_an_error(void)
{
    unsigned char bytes[128];
    size_t place = 80; // of src_addr, which came with 1.20
    uint64_t source;
    if (fi_version() < FI_VERSION(1, 20))
        skip("libfabric %u.%u does not know it", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
    memset(bytes, 0xab, sizeof(bytes));
    truncated(FI_VERSION(1, 20), bytes, 88);
    memcpy(&source, bytes + place, sizeof(source));
    CHECK(source == b.other, "source %#llx", (unsigned long long)source);
    CHECK(bytes[88] == 0xab, "a byte behind the entry was written");
}

const struct test_case completion_cases[] = {
    {"old_applications_keep_what_lies_behind_their_entry",
     old_applications_keep_what_lies_behind_their_entry},
    {"new_applications_learn_the_source_of_an_error",
     new_applications_learn_the_source_of_an_error},
    {"entries_have_the_format_asked_for", entries_have_the_format_asked_for},
    {"selective_queues_get_only_what_is_asked_for", selective_queues_get_only_what_is_asked_for},
    {"default_flags_ask_for_entries", default_flags_ask_for_entries},
    {"injects_leave_no_entry", injects_leave_no_entry},
    {"completion_levels_hold", completion_levels_hold},
    {"an_endpoint_answers_while_only_anothers_queue_is_read",
     an_endpoint_answers_while_only_anothers_queue_is_read},
    {"a_fenced_send_waits_for_all_before_it", a_fenced_send_waits_for_all_before_it},
    {"completions_name_their_source", completions_name_their_source},
    {"a_queue_grows_and_loses_nothing", a_queue_grows_and_loses_nothing},
    {"counters_count_what_they_are_bound_to", counters_count_what_they_are_bound_to},
    {NULL, NULL},
};

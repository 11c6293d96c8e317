// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a receive takes: sources, ignored tag bits, order, peeks, claims, cancelling, truncation,
// multi-receives.
#include "harness.h"

static struct host host;
static struct side a, b;

// Sends a number from `from` to `to` under a tag, with the number as data too.
static void send_number(struct side *from, struct side *to, fi_addr_t where, uint64_t tag,
                        uint32_t number) {
    POST(from, to, fi_tinjectdata(from->ep, &number, sizeof(number), number, where, tag));
}

static void a_receive_takes_only_from_its_source(void)
{
    uint32_t from_self = 0, from_other = 0, from_any = 0;
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, &from_self, 4, NULL, b.self, 1, 0, &from_self));
    OK(fi_trecv(b.ep, &from_other, 4, NULL, b.other, 1, 0, &from_other));
    OK(fi_trecv(b.ep, &from_any, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &from_any));
    send_number(&a, &b, a.other, 1, 10);
    send_number(&a, &b, a.other, 1, 11);
    send_number(&b, &a, b.self, 1, 20);
    for (int count = 0; count < 3; count++)
        next_entry(&b, &a);
    CHECK(from_other == 10 && from_any == 11 && from_self == 20, "%u %u %u", from_other, from_any,
          from_self);
    close_pair(&host, &a, &b);
}

static void ignored_bits_do_not_count(void)
{
    uint32_t first = 0, second = 0;
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, &first, 4, NULL, FI_ADDR_UNSPEC, 0xff00, 0x00ff, &first));
    OK(fi_trecv(b.ep, &second, 4, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &second));
    send_number(&a, &b, a.other, 0x1234, 1);
    send_number(&a, &b, a.other, 0xff42, 2);
    struct fi_cq_tagged_entry one = next_entry(&b, &a), two = next_entry(&b, &a);
    CHECK(one.op_context == &second && one.tag == 0x1234 && second == 1, "tag %#llx",
          (unsigned long long)one.tag);
    CHECK(two.op_context == &first && two.tag == 0xff42 && first == 2, "tag %#llx",
          (unsigned long long)two.tag);
    close_pair(&host, &a, &b);
}

static void equal_tags_match_in_order(void)
{
    enum { COUNT = 200 };
    uint32_t in[COUNT];
    open_pair(&host, &a, &b, NULL);
    for (uint32_t index = 0; index < COUNT / 2; index++)
        OK(fi_trecv(b.ep, &in[index], 4, NULL, FI_ADDR_UNSPEC, 7, 0, &in[index]));
    for (uint32_t index = 0; index < COUNT; index++)
        send_number(&a, &b, a.other, 7, index);
    for (uint32_t index = COUNT / 2; index < COUNT; index++) {
        progress(&b);
        OK(fi_trecv(b.ep, &in[index], 4, NULL, b.other, 7, 0, &in[index]));
    }
    for (int count = 0; count < COUNT; count++)
        next_entry(&b, &a);
    for (uint32_t index = 0; index < COUNT; index++)
        CHECK(in[index] == index, "receive %u got message %u", index, in[index]);
    close_pair(&host, &a, &b);
}

static void untagged_and_tagged_do_not_mix(void)
{
    uint32_t plain = 0, tagged = 0, number = 5;
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, &tagged, 4, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &tagged));
    OK(fi_recv(b.ep, &plain, 4, NULL, FI_ADDR_UNSPEC, &plain));
    POST(&a, &b, fi_inject(a.ep, &number, 4, a.other));
    CHECK(next_entry(&b, &a).op_context == &plain && plain == 5,
          "the untagged message went elsewhere");
    expect_silence(&b, &a, 20);
    close_pair(&host, &a, &b);
}

static ssize_t ask(uint64_t tag, void *buffer, size_t length, void *context, uint64_t flags)
{
    struct iovec piece = {buffer, length};
    struct fi_msg_tagged msg = {.msg_iov = buffer ? &piece : NULL,
                                .iov_count = buffer ? 1 : 0,
                                .addr = FI_ADDR_UNSPEC,
                                .tag = tag,
                                .context = context};
    return fi_trecvmsg(b.ep, &msg, flags);
}

// Peeks until the message is there.
static struct fi_cq_tagged_entry find(uint64_t tag, void *context, uint64_t flags)
{
    struct fi_cq_tagged_entry entry = {0};
    struct fi_cq_err_entry error = {0};
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    for (;;) {
        OK(ask(tag, NULL, 0, context, FI_PEEK | FI_COMPLETION | flags));
        ssize_t count;
        while ((count = fi_cq_read(b.cq, &entry, 1)) == -FI_EAGAIN)
            progress(&a);
        if (count == 1)
            return entry;
        ANSWERS(1, fi_cq_readerr(b.cq, &error, 0));
        CHECK(error.err == FI_ENOMSG && error.op_context == context, "peek failed with %s",
              fi_strerror(error.err));
        CHECK(now_ms() < until, "the message is never found");
        answer_first_contact(&a);
    }
}

static void a_peek_for_nothing_is_an_error_entry(void)
{
    int context;
    open_pair(&host, &a, &b, NULL);
    OK(ask(1, NULL, 0, &context, FI_PEEK | FI_COMPLETION));
    struct fi_cq_err_entry error = next_error(&b, &a);
    CHECK(error.err == FI_ENOMSG && error.op_context == &context, "error %d", error.err);
    CHECK(error.flags & FI_RECV && error.flags & FI_TAGGED, "flags %#llx",
          (unsigned long long)error.flags);
    close_pair(&host, &a, &b);
}

static void a_peek_tells_and_leaves_the_message(void)
{
    int context;
    uint32_t in = 0;
    open_pair(&host, &a, &b, NULL);
    send_number(&a, &b, a.other, 5, 77);
    for (int twice = 0; twice < 2; twice++) {
        struct fi_cq_tagged_entry entry = find(5, &context, 0);
        CHECK(entry.op_context == &context && entry.len == 4 && entry.tag == 5, "length %zu",
              entry.len);
        CHECK(entry.flags & FI_REMOTE_CQ_DATA && entry.data == 77, "no data on a peek");
    }
    OK(fi_trecv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 5, 0, &in));
    CHECK(next_entry(&b, &a).op_context == &in && in == 77, "the message is gone");
    close_pair(&host, &a, &b);
}

static void claim_and_check(size_t length, bool discard)
{
    struct fi_context2 context;
    char *out = malloc(length), *in = calloc(1, length);
    fill(out, length, 3);
    POST(&a, &b, fi_tsend(a.ep, out, length, NULL, a.other, 6, out));
    CHECK(find(6, &context, FI_CLAIM).len == length, "another length");
    OK(ask(6, NULL, 0, &b, FI_PEEK | FI_COMPLETION));
    CHECK(next_error(&b, &a).err == FI_ENOMSG, "a claimed message is still found");
    if (discard) {
        OK(ask(6, NULL, 0, &context, FI_CLAIM | FI_DISCARD | FI_COMPLETION));
        CHECK(next_entry(&b, &a).op_context == &context, "no completion of the discard");
    } else {
        OK(ask(6, in, length, &context, FI_CLAIM | FI_COMPLETION));
        struct fi_cq_tagged_entry entry = next_entry(&b, &a);
        CHECK(entry.op_context == &context && entry.len == length,
              "the claimed message is not received");
        check_filled(in, length, 3);
    }
    CHECK(next_entry(&a, &b).op_context == out, "the send does not complete");
    free(out);
    free(in);
}

static void a_claimed_message_goes_to_its_claimer(void)
{
    open_pair(&host, &a, &b, NULL);
    claim_and_check(100, false);
    claim_and_check(500000, false);
    close_pair(&host, &a, &b);
}

static void a_claimed_message_can_be_discarded(void)
{
    open_pair(&host, &a, &b, NULL);
    claim_and_check(100, true);
    claim_and_check(500000, true);
    close_pair(&host, &a, &b);
}

static void a_peek_can_discard(void)
{
    int context;
    open_pair(&host, &a, &b, NULL);
    send_number(&a, &b, a.other, 5, 77);
    find(5, &context, FI_DISCARD);
    OK(ask(5, NULL, 0, &context, FI_PEEK | FI_COMPLETION));
    CHECK(next_error(&b, &a).err == FI_ENOMSG, "the message is still there");
    ANSWERS(-FI_EINVAL, ask(5, NULL, 0, &context, FI_CLAIM | FI_COMPLETION));
    close_pair(&host, &a, &b);
}

static void a_canceled_receive_ends_with_an_error(void)
{
    uint32_t in = 0, other = 0;
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in));
    OK(fi_recv(b.ep, &other, 4, NULL, FI_ADDR_UNSPEC, &other));
    OK(fi_cancel(&b.ep->fid, &in));
    struct fi_cq_err_entry error = next_error(&b, &a);
    CHECK(error.err == FI_ECANCELED && error.op_context == &in, "error %d", error.err);
    ANSWERS(-FI_ENOENT, fi_cancel(&b.ep->fid, &in));
    OK(fi_cancel(&b.ep->fid, &other));
    CHECK(next_error(&b, &a).op_context == &other, "another context");
    send_number(&a, &b, a.other, 1, 9);
    expect_silence(&b, &a, 20);
    CHECK(in == 0, "a canceled receive was filled");
    close_pair(&host, &a, &b);
}

static void truncation(size_t length, size_t room, bool tagged, bool unexpected)
{
    char *out = malloc(length), *in = malloc(length);
    fill(out, length, 4);
    memset(in, 0x11, length);
    for (int step = 0; step < 2; step++) {
        if ((step == 0) == unexpected)
            POST(&a, &b,
                 tagged ? fi_tsend(a.ep, out, length, NULL, a.other, 8, out)
                        : fi_send(a.ep, out, length, NULL, a.other, out));
        else
            OK(tagged ? fi_trecv(b.ep, in, room, NULL, b.other, 8, 0, in)
                      : fi_recv(b.ep, in, room, NULL, b.other, in));
    }
    struct fi_cq_err_entry error = next_error(&b, &a);
    CHECK(error.err == FI_ETRUNC && error.op_context == in, "error %d", error.err);
    CHECK(error.olen == length - room && error.len == room, "length %zu, over %zu", error.len,
          error.olen);
    CHECK(!tagged || error.tag == 8, "tag %llu", (unsigned long long)error.tag);
    CHECK(fi_cq_strerror(b.cq, error.prov_errno, error.err_data, NULL, 0), "no words");
    check_filled(in, room, 4);
    for (size_t index = room; index < length; index++)
        CHECK(in[index] == 0x11, "byte %zu behind the buffer was written", index);
    CHECK(next_entry(&a, &b).op_context == out, "the send does not complete");
    free(out);
    free(in);
}

static void a_short_receive_is_truncated(void)
{
    static const size_t lengths[] = {2, 100, 5000, 70000, 2000000};
    open_pair(&host, &a, &b, NULL);
    for (size_t index = 0; index < sizeof(lengths) / sizeof(lengths[0]); index++)
        for (int kind = 0; kind < 4; kind++)
            truncation(lengths[index], lengths[index] / 2, kind & 1, kind & 2);
    close_pair(&host, &a, &b);
}

static void one_buffer_takes_many_messages(void)
{
    enum { ROOM = 4096, LEAST = 1024, LENGTH = 500 };
    size_t least = LEAST, used = 0;
    char *buffer = malloc(ROOM), out[LENGTH];
    struct iovec piece = {buffer, ROOM};
    struct fi_msg msg = {
        .msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buffer};
    open_pair(&host, &a, &b, NULL);
    OK(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
    fill(out, LENGTH, 0);
    POST(&a, &b, fi_inject(a.ep, out, LENGTH, a.other)); // one that is unexpected
    progress(&b);
    OK(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    for (unsigned number = 0;; number++) {
        struct fi_cq_tagged_entry entry = next_entry(&b, &a);
        if (!(entry.flags & FI_RECV)) { // the release may come as an entry of its own
            CHECK(entry.flags & FI_MULTI_RECV, "flags %#llx", (unsigned long long)entry.flags);
            break;
        }
        CHECK(entry.op_context == buffer && entry.len == LENGTH, "length %zu", entry.len);
        CHECK((char *)entry.buf >= buffer + used && (char *)entry.buf + LENGTH <= buffer + ROOM,
              "a place outside");
        check_filled(entry.buf, LENGTH, number);
        used = (size_t)((char *)entry.buf - buffer) + LENGTH;
        if (entry.flags & FI_MULTI_RECV)
            break;
        fill(out, LENGTH, number + 1);
        POST(&a, &b, fi_inject(a.ep, out, LENGTH, a.other));
    }
    CHECK(ROOM - used < LEAST, "released with %zu bytes left", ROOM - used);
    close_pair(&host, &a, &b);
}

const struct test_case matching_cases[] = {
    {"a_receive_takes_only_from_its_source", a_receive_takes_only_from_its_source},
    {"ignored_bits_do_not_count", ignored_bits_do_not_count},
    {"equal_tags_match_in_order", equal_tags_match_in_order},
    {"untagged_and_tagged_do_not_mix", untagged_and_tagged_do_not_mix},
    {"a_peek_for_nothing_is_an_error_entry", a_peek_for_nothing_is_an_error_entry},
    {"a_peek_tells_and_leaves_the_message", a_peek_tells_and_leaves_the_message},
    {"a_claimed_message_goes_to_its_claimer", a_claimed_message_goes_to_its_claimer},
    {"a_claimed_message_can_be_discarded", a_claimed_message_can_be_discarded},
    {"a_peek_can_discard", a_peek_can_discard},
    {"a_canceled_receive_ends_with_an_error", a_canceled_receive_ends_with_an_error},
    {"a_short_receive_is_truncated", a_short_receive_is_truncated},
    {"one_buffer_takes_many_messages", one_buffer_takes_many_messages},
    {NULL, NULL},
};

// SPDX-License-Identifier: Apache-2.0 OR MIT
// Messages between two endpoints of one process: every form of every call, lengths, limits,
// threads.
#include <rdma/fi_rma.h>
#include "forms.h"

#include <pthread.h>

static struct host host;
static struct side a, b;

static void all_forms_with(enum fi_threading threading)
{
    struct wishes wishes = {.threading = threading};
    open_pair(&host, &a, &b, &wishes);
    struct link link = {.sender = &a, .receiver = &b, .sync = -1};
    transfer_all(&link, 5 << 20);
    close_pair(&host, &a, &b);
}

static void every_form_arrives_without_a_lock(void)
{
    all_forms_with(FI_THREAD_DOMAIN);
}

static void every_form_arrives_with_a_lock(void)
{
    all_forms_with(FI_THREAD_SAFE);
}

static void an_endpoint_sends_to_itself(void)
{
    open_pair(&host, &a, &b, NULL);
    a.other = a.self;
    for (const struct send_form *send = send_forms; send->name; send++) {
        char out[100], in[100];
        struct message from = {.buffer = out,
                               .length = sizeof(out),
                               .tag = 5,
                               .data = 6,
                               .address = a.self,
                               .context = out};
        struct message to = {
            .buffer = in, .length = sizeof(in), .tag = 5, .address = a.self, .context = in};
        const struct receive_form *receive = &receive_forms[send->tagged ? 3 : 0];
        fill(out, sizeof(out), 1);
        POST(&a, &b, receive->call(a.ep, &to));
        POST(&a, &b, send->call(a.ep, &from));
        for (int entries = send->inject ? 1 : 2; entries > 0; entries--) {
            struct fi_cq_tagged_entry entry = next_entry(&a, &b);
            CHECK(entry.op_context == in || entry.op_context == out, "%s: another context",
                  send->name);
        }
        check_filled(in, sizeof(in), 1);
    }
    close_pair(&host, &a, &b);
}

static void a_long_inject_is_refused(void)
{
    open_pair(&host, &a, &b, NULL);
    size_t length = host.info->tx_attr->inject_size + 1;
    char *buffer = calloc(1, length);
    ANSWERS(-FI_EMSGSIZE, fi_inject(a.ep, buffer, length, a.other));
    ANSWERS(-FI_EMSGSIZE, fi_tinjectdata(a.ep, buffer, length, 0, a.other, 0));
    close_pair(&host, &a, &b);
}

/* Before first contact and after it; the memory does not exist, and is not looked at. */
static void what_is_longer_than_any_message_is_refused(void)
{
    open_pair(&host, &a, &b, NULL);
    char buffer[8] = {0};
    size_t length = host.info->ep_attr->max_msg_size + 1;
    for (int contact = 0; contact < 2; contact++) {
        ANSWERS(-FI_EMSGSIZE, fi_send(a.ep, buffer, length, NULL, a.other, NULL));
        ANSWERS(-FI_EMSGSIZE, fi_tsend(a.ep, buffer, length, NULL, a.other, 0, NULL));
        ANSWERS(-FI_EMSGSIZE, fi_write(a.ep, buffer, length, NULL, a.other, 0, 1, NULL));
        ANSWERS(-FI_EMSGSIZE, fi_read(a.ep, buffer, length, NULL, a.other, 0, 1, NULL));
        OK(fi_inject(a.ep, buffer, 8, a.other));
    }
    close_pair(&host, &a, &b);
}

static void wrong_arguments_are_refused(void)
{
    struct iovec pieces[9] = {{0}};
    struct fi_msg_tagged none = {.msg_iov = NULL, .iov_count = 1};
    char byte = 0;
    open_pair(&host, &a, &b, NULL);
    ANSWERS(-FI_EINVAL, fi_sendv(a.ep, pieces, NULL, 9, a.other, NULL));
    ANSWERS(-FI_EINVAL, fi_trecvv(a.ep, pieces, NULL, 9, FI_ADDR_UNSPEC, 0, 0, NULL));
    ANSWERS(-FI_EINVAL, fi_tsendmsg(a.ep, &none, 0));
    ANSWERS(-FI_EINVAL, fi_sendmsg(a.ep, NULL, 0));
    ANSWERS(-FI_EINVAL, fi_send(a.ep, &byte, 1, NULL, 77, NULL));
    ANSWERS(-FI_EINVAL, fi_send(a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL));
    ANSWERS(-FI_EINVAL, fi_recv(a.ep, &byte, 1, NULL, 77, NULL));
    close_pair(&host, &a, &b);
}

static void a_message_may_be_empty_and_without_pieces(void)
{
    struct fi_msg_tagged empty = {.tag = 3, .context = &empty};
    open_pair(&host, &a, &b, NULL);
    OK(fi_trecv(b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 3, 0, &b));
    struct iovec piece = {NULL, 0};
    empty.addr = a.other;
    empty.msg_iov = &piece;
    empty.iov_count = 1;
    POST(&a, &b, fi_tsendmsg(a.ep, &empty, FI_COMPLETION));
    CHECK(next_entry(&b, &a).op_context == &b, "not received");
    CHECK(next_entry(&a, &b).op_context == &empty, "not sent");
    close_pair(&host, &a, &b);
}

// Cuts a buffer into up to `most` pieces of random lengths, some of them empty.
static size_t cut_randomly(char *buffer, size_t length, struct iovec *pieces, size_t most,
                           unsigned *random) {
    size_t count = 1 + (size_t)rand_r(random) % most;
    for (size_t index = 0; index < count; index++) {
        size_t piece = index + 1 == count ? length : (size_t)rand_r(random) % (length + 1);
        pieces[index] = (struct iovec){buffer, piece};
        buffer += piece;
        length -= piece;
    }
    return count;
}

static void pieces_of_any_length_arrive_whole(void)
{
    unsigned seed = (unsigned)now_ms(), random = seed;
    struct iovec out_pieces[8], in_pieces[8];
    open_pair(&host, &a, &b, NULL);
    size_t most = host.info->tx_attr->iov_limit;
    CHECK(most == 8, "iov_limit is %zu", most);
    for (unsigned round = 0; round < 2000; round++) {
        size_t length = (size_t)rand_r(&random) % (round % 50 == 0 ? 1000000
                                                   : round % 2     ? 100
                                                                   : 20000);
        char *out = malloc(length + 1), *in = calloc(1, length + 1);
        struct fi_msg_tagged to = {
            .msg_iov = out_pieces, .addr = a.other, .tag = round, .context = out};
        struct fi_msg_tagged from = {
            .msg_iov = in_pieces, .addr = b.other, .tag = round, .context = in};
        to.iov_count = cut_randomly(out, length, out_pieces, most, &random);
        from.iov_count = cut_randomly(in, length, in_pieces, most, &random);
        fill(out, length, round);
        if (round % 3)
            OK(fi_trecvmsg(b.ep, &from, FI_COMPLETION));
        POST(&a, &b, fi_tsendmsg(a.ep, &to, FI_COMPLETION));
        memset(out_pieces, 0xff, sizeof(out_pieces)); // the list is ours again
        if (round % 3 == 0)
            OK(fi_trecvmsg(b.ep, &from, FI_COMPLETION));
        memset(in_pieces, 0xff, sizeof(in_pieces));
        struct fi_cq_tagged_entry entry = next_entry(&b, &a);
        CHECK(entry.op_context == in && entry.len == length, "seed %u round %u: %zu of %zu bytes",
              seed, round, entry.len, length);
        for (size_t index = 0; index < length; index++)
            CHECK(in[index] == out[index], "seed %u round %u: byte %zu of %zu is wrong", seed,
                  round, index, length);
        next_entry(&a, &b);
        free(out);
        free(in);
    }
    close_pair(&host, &a, &b);
}

static void many_messages_arrive_in_order(void)
{
    enum { COUNT = 20000, WINDOW = 64 };
    uint32_t in[WINDOW], next = 0, posted = 0, sent = 0;
    struct wishes wishes = {.threading = FI_THREAD_DOMAIN};
    open_pair(&host, &a, &b, &wishes);
    while (next < COUNT) {
        for (; posted < COUNT && posted < next + WINDOW; posted++)
            OK(fi_trecv(b.ep, &in[posted % WINDOW], 4, NULL, b.other, 9, 0, &in[posted % WINDOW]));
        while (sent < COUNT && sent < next + 3 * WINDOW &&
               fi_tinject(a.ep, &sent, 4, a.other, 9) == 0)
            sent++;
        progress(&a);
        struct fi_cq_tagged_entry entries[16];
        ssize_t count = fi_cq_read(b.cq, entries, 16);
        CHECK(count > 0 || count == -FI_EAGAIN, "fi_cq_read answered %zd", count);
        for (ssize_t index = 0; index < count; index++, next++)
            CHECK(*(uint32_t *)entries[index].op_context == next, "message %u came as number %u",
                  *(uint32_t *)entries[index].op_context, next);
    }
    close_pair(&host, &a, &b);
}

struct thread_work {
    struct side *side;
    int number;
};

static int exchanges_done;

// One thread sends to and receives from the other endpoint; both do it at once on one domain.
static void *exchange(void *argument)
{
    struct thread_work *work = argument;
    struct side *side = work->side;
    for (uint64_t round = 0; round < 3000; round++) {
        uint64_t out = round * 2 + (uint64_t)work->number, in = 0;
        OK(fi_trecv(side->ep, &in, 8, NULL, side->other, round, 0, &in));
        POST(side, NULL, fi_tsend(side->ep, &out, 8, NULL, side->other, round, &out));
        next_entry(side, NULL);
        next_entry(side, NULL);
        CHECK(in == round * 2 + 1 - (uint64_t)work->number, "round %llu got %llu",
              (unsigned long long)round, (unsigned long long)in);
    }
    // The other's last send may still wait for us to make progress.
    __atomic_add_fetch(&exchanges_done, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&exchanges_done, __ATOMIC_SEQ_CST) < 2)
        progress(side);
    return NULL;
}

static void threads_share_a_domain(void)
{
    struct wishes wishes = {.threading = FI_THREAD_SAFE};
    pthread_t thread;
    open_pair(&host, &a, &b, &wishes);
    struct thread_work works[2] = {{&a, 0}, {&b, 1}};
    CHECK(pthread_create(&thread, NULL, exchange, &works[0]) == 0, "no thread");
    exchange(&works[1]);
    pthread_join(thread, NULL);
    close_pair(&host, &a, &b);
}

const struct test_case transfer_cases[] = {
    {"every_form_arrives_without_a_lock", every_form_arrives_without_a_lock},
    {"every_form_arrives_with_a_lock", every_form_arrives_with_a_lock},
    {"an_endpoint_sends_to_itself", an_endpoint_sends_to_itself},
    {"a_long_inject_is_refused", a_long_inject_is_refused},
    {"what_is_longer_than_any_message_is_refused", what_is_longer_than_any_message_is_refused},
    {"wrong_arguments_are_refused", wrong_arguments_are_refused},
    {"a_message_may_be_empty_and_without_pieces", a_message_may_be_empty_and_without_pieces},
    {"pieces_of_any_length_arrive_whole", pieces_of_any_length_arrive_whole},
    {"many_messages_arrive_in_order", many_messages_arrive_in_order},
    {"threads_share_a_domain", threads_share_a_domain},
    {NULL, NULL},
};

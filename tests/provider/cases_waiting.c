// SPDX-License-Identifier: Apache-2.0 OR MIT
// Blocking reads, wait objects, signals; the sender is another thread.
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static struct host host;
static struct side a, b;

static void open_waiting(enum fi_wait_obj object)
{
    struct wishes wishes = {.wait_object = object, .threading = FI_THREAD_SAFE};
    open_pair(&host, &a, &b, &wishes);
}

static void *send_later(void *argument)
{
    uint32_t number = 5;
    usleep(100000);
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    return argument;
}

static void *signal_later(void *argument)
{
    usleep(50000);
    OK(fi_cq_signal(b.cq));
    return argument;
}

static void a_blocking_read_ends_in_time(enum fi_wait_obj object)
{
    struct fi_cq_tagged_entry entry;
    open_waiting(object);
    int64_t start = now_ms();
    ANSWERS(-FI_EAGAIN, fi_cq_sread(b.cq, &entry, 1, NULL, 100));
    int64_t took = now_ms() - start;
    CHECK(took >= 95 && took < AWAKE_LIMIT_MS, "100 ms took %lld ms", (long long)took);
    ANSWERS(-FI_EAGAIN, fi_cq_sread(b.cq, &entry, 1, NULL, 0));
    close_pair(&host, &a, &b);
}

static void a_blocking_read_wakes_for_a_message(enum fi_wait_obj object)
{
    struct fi_cq_tagged_entry entry;
    pthread_t thread;
    uint32_t in = 0;
    open_waiting(object);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t start = now_ms();
    CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0, "no thread");
    ANSWERS(1, fi_cq_sread(b.cq, &entry, 1, NULL, SLEEP_MS));
    int64_t took = now_ms() - start;
    CHECK(entry.op_context == &in && in == 5, "another completion");
    CHECK(took >= 95 && took < AWAKE_LIMIT_MS, "a message after 100 ms woke after %lld ms",
          (long long)took);
    pthread_join(thread, NULL);
    close_pair(&host, &a, &b);
}

static void blocking_reads_end_in_time(void)
{
    a_blocking_read_ends_in_time(FI_WAIT_UNSPEC);
    a_blocking_read_ends_in_time(FI_WAIT_FD);
    a_blocking_read_ends_in_time(FI_WAIT_YIELD);
}

static void blocking_reads_wake_for_a_message(void)
{
    a_blocking_read_wakes_for_a_message(FI_WAIT_UNSPEC);
    a_blocking_read_wakes_for_a_message(FI_WAIT_FD);
    a_blocking_read_wakes_for_a_message(FI_WAIT_YIELD);
}

static void a_queue_without_a_wait_object_does_not_block(void)
{
    struct fi_cq_tagged_entry entry;
    int descriptor;
    open_waiting(FI_WAIT_NONE);
    ANSWERS(-FI_ENOSYS, fi_cq_sread(b.cq, &entry, 1, NULL, 100));
    ANSWERS(-FI_ENODATA, fi_control(&b.cq->fid, FI_GETWAIT, &descriptor));
    close_pair(&host, &a, &b);
}

static void a_signal_ends_a_blocking_read(void)
{
    struct fi_cq_tagged_entry entry;
    pthread_t thread;
    open_waiting(FI_WAIT_UNSPEC);
    CHECK(pthread_create(&thread, NULL, signal_later, NULL) == 0, "no thread");
    int64_t start = now_ms();
    ANSWERS(-FI_EAGAIN, fi_cq_sread(b.cq, &entry, 1, NULL, SLEEP_MS));
    CHECK(now_ms() - start < AWAKE_LIMIT_MS, "the signal was not heard");
    pthread_join(thread, NULL);
    close_pair(&host, &a, &b);
}

static void a_descriptor_is_readable_when_a_message_comes(void)
{
    struct fi_cq_tagged_entry entry;
    struct pollfd poller = {.events = POLLIN};
    struct fid *fids[1];
    pthread_t thread;
    uint32_t in = 0;
    int object = -1;
    open_waiting(FI_WAIT_FD);
    fids[0] = &b.cq->fid;
    OK(fi_control(&b.cq->fid, FI_GETWAIT, &poller.fd));
    OK(fi_control(&b.cq->fid, FI_GETWAITOBJ, &object));
    CHECK(object == FI_WAIT_FD && poller.fd >= 0, "wait object %d", object);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t start = now_ms();
    CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0, "no thread");
    ssize_t count;
    while ((count = fi_cq_read(b.cq, &entry, 1)) == -FI_EAGAIN) {
        CHECK(now_ms() - start < ENTRY_LIMIT_MS, "never readable");
        answer_first_contact(&a);
        if (fi_trywait(host.fabric, fids, 1) == FI_SUCCESS)
            poll(&poller, 1, SLEEP_MS);
    }
    CHECK(count == 1 && in == 5 && now_ms() - start < AWAKE_LIMIT_MS, "woke after %lld ms",
          (long long)(now_ms() - start));
    pthread_join(thread, NULL);
    close_pair(&host, &a, &b);
}

static void one_may_not_sleep_on_a_queue_with_entries(void)
{
    struct fid *fids[1];
    uint32_t in, number = 1;
    open_waiting(FI_WAIT_FD);
    fids[0] = &a.cq->fid;
    OK(fi_recv(a.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.self));
    ANSWERS(-FI_EAGAIN, fi_trywait(host.fabric, fids, 1));
    CHECK(next_entry(&a, &b).op_context == &in, "no completion");
    close_pair(&host, &a, &b);
}

const struct test_case waiting_cases[] = {
    {"blocking_reads_end_in_time", blocking_reads_end_in_time},
    {"blocking_reads_wake_for_a_message", blocking_reads_wake_for_a_message},
    {"a_queue_without_a_wait_object_does_not_block", a_queue_without_a_wait_object_does_not_block},
    {"a_signal_ends_a_blocking_read", a_signal_ends_a_blocking_read},
    {"a_descriptor_is_readable_when_a_message_comes",
     a_descriptor_is_readable_when_a_message_comes},
    {"one_may_not_sleep_on_a_queue_with_entries", one_may_not_sleep_on_a_queue_with_entries},
    {NULL, NULL},
};

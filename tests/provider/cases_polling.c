// SPDX-License-Identifier: Apache-2.0 OR MIT
// Poll sets, descriptors of counters, and sleepers that another thread of the process wakes.
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct host host;
static struct side a, b;

static void open_polling(enum fi_wait_obj object, bool counters)
{
    struct wishes wishes = {
        .wait_object = object, .threading = FI_THREAD_SAFE, .counters = counters};
    open_pair(&host, &a, &b, &wishes);
}

static struct fid_poll *open_set(void)
{
    struct fi_poll_attr attr = {0};
    struct fid_poll *set = NULL;
    OK(fi_poll_open(host.domain, &attr, &set));
    return set;
}

// Polls until a number of members have events.
static void expect_events(struct fid_poll *set, int wanted)
{
    void *contexts[4];
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    int count;
    while ((count = fi_poll(set, contexts, 4)) != wanted) {
        CHECK(count >= 0 && now_ms() < until, "%d members have events, not %d", count, wanted);
        answer_first_contact(&a);
    }
}

static void a_poll_set_finds_the_queue_with_an_entry(void)
{
    uint32_t in = 0, number = 7;
    open_polling(FI_WAIT_NONE, false);
    struct fid_poll *set = open_set();
    a.cq->fid.context = &a;
    b.cq->fid.context = &b;
    OK(fi_poll_add(set, &a.cq->fid, 0));
    OK(fi_poll_add(set, &b.cq->fid, 0));
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    expect_events(set, 0);
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    expect_events(set, 1);
    void *context = NULL;
    ANSWERS(1, fi_poll(set, &context, 1));
    CHECK(context == &b, "another queue's context");
    CHECK(next_entry(&b, &a).op_context == &in && in == 7, "another message");
    expect_events(set, 0);
    OK(fi_poll_del(set, &b.cq->fid, 0));
    OK(fi_close(&set->fid));
    close_pair(&host, &a, &b);
}

static void a_poll_set_finds_the_counter_that_changed(void)
{
    uint32_t in, number = 7;
    open_polling(FI_WAIT_NONE, true);
    struct fid_poll *set = open_set();
    OK(fi_poll_add(set, &b.received->fid, 0));
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    expect_events(set, 0);
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    expect_events(set, 1);
    ANSWERS(1, fi_cntr_read(b.received));
    expect_events(set, 0);
    OK(fi_cntr_add(b.received, 2));
    expect_events(set, 1);
    OK(fi_close(&set->fid));
    close_pair(&host, &a, &b);
}

static void poll_sets_refuse_what_they_cannot_poll(void)
{
    struct fi_poll_attr attr = {.flags = 1};
    struct fid_poll *set = NULL;
    open_polling(FI_WAIT_NONE, false);
    ANSWERS(-FI_EBADFLAGS, fi_poll_open(host.domain, &attr, &set));
    set = open_set();
    ANSWERS(-FI_EINVAL, fi_poll_add(set, &a.ep->fid, 0));
    ANSWERS(-FI_EBADFLAGS, fi_poll_add(set, &a.cq->fid, 1));
    ANSWERS(-FI_ENOENT, fi_poll_del(set, &a.cq->fid, 0));
    ANSWERS(-FI_EINVAL, fi_poll(set, NULL, -1));
    ANSWERS(-FI_EBUSY, fi_close(&host.domain->fid));
    OK(fi_close(&set->fid));
    close_pair(&host, &a, &b);
}

// What was closed would be asked.
static void what_a_poll_set_asks_is_busy(void)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
    struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cq *queue;
    struct fid_cntr *counter;
    open_polling(FI_WAIT_NONE, false);
    struct fid_poll *set = open_set(), *other = open_set();
    OK(fi_cq_open(host.domain, &cq_attr, &queue, NULL));
    OK(fi_cntr_open(host.domain, &cntr_attr, &counter, NULL));
    OK(fi_poll_add(set, &queue->fid, 0));
    OK(fi_poll_add(set, &queue->fid, 0));
    OK(fi_poll_add(other, &queue->fid, 0));
    OK(fi_poll_add(set, &counter->fid, 0));
    ANSWERS(-FI_EBUSY, fi_close(&queue->fid));
    ANSWERS(-FI_EBUSY, fi_close(&counter->fid));
    expect_events(set, 0);
    OK(fi_poll_del(set, &queue->fid, 0));
    ANSWERS(-FI_EBUSY, fi_close(&queue->fid));
    OK(fi_close(&other->fid));
    OK(fi_close(&queue->fid));
    OK(fi_close(&set->fid));
    OK(fi_close(&counter->fid));
    close_pair(&host, &a, &b);
}

static void *send_later(void *argument)
{
    uint32_t number = 5;
    usleep(100000);
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    return argument;
}

// Whether a descriptor became readable within a time.
static bool is_readable(struct fid *fid, int milliseconds)
{
    struct pollfd poller = {.events = POLLIN};
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    return poll(&poller, 1, milliseconds) == 1;
}

static void a_counter_has_a_descriptor(void)
{
    struct fid *fids[1];
    pthread_t thread;
    uint32_t in = 0;
    int object = -1;
    open_polling(FI_WAIT_FD, true);
    fids[0] = &b.received->fid;
    OK(fi_control(fids[0], FI_GETWAITOBJ, &object));
    CHECK(object == FI_WAIT_FD, "wait object %d", object);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t start = now_ms();
    CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0, "no thread");
    while (fi_cntr_read(b.received) < 1) {
        CHECK(now_ms() - start < ENTRY_LIMIT_MS, "never counted");
        answer_first_contact(&a);
        if (fi_trywait(host.fabric, fids, 1) == FI_SUCCESS)
            is_readable(fids[0], SLEEP_MS);
    }
    CHECK(now_ms() - start < AWAKE_LIMIT_MS, "woke after %lld ms", (long long)(now_ms() - start));
    pthread_join(thread, NULL);
    OK(fi_cntr_add(b.received, 1));
    ANSWERS(-FI_EAGAIN, fi_trywait(host.fabric, fids, 1));
    close_pair(&host, &a, &b);
}

static void *wait_for_three(void *argument)
{
    *(int64_t *)argument = fi_cntr_wait(b.received, 3, SLEEP_MS);
    return argument;
}

static void a_thread_that_waits_on_a_counter_wakes_when_another_adds_to_it(void)
{
    pthread_t thread;
    int64_t answer = -1, start;
    open_polling(FI_WAIT_FD, true);
    CHECK(pthread_create(&thread, NULL, wait_for_three, &answer) == 0, "no thread");
    usleep(50000); // asleep by now
    start = now_ms();
    OK(fi_cntr_set(b.received, 2));
    OK(fi_cntr_add(b.received, 1));
    pthread_join(thread, NULL);
    CHECK(answer == 0 && now_ms() - start < AWAKE_LIMIT_MS, "answered %lld after %lld ms",
          (long long)answer, (long long)(now_ms() - start));
    ANSWERS(-FI_ETIMEDOUT, fi_cntr_wait(b.received, 4, 20));
    close_pair(&host, &a, &b);
}

static atomic_bool goes_to_sleep, is_awake;

// Another thread receives the message for which this one sleeps, and goes on until it has woken.
static void *receive_for_all(void *argument)
{
    uint32_t number = 9;
    while (!goes_to_sleep)
        usleep(1000);
    usleep(50000); // the other thread sleeps by now
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    int64_t until = now_ms() + AWAKE_LIMIT_MS;
    while (!is_awake) {
        (void)fi_cntr_read(b.received); // progress, but no completion is taken
        answer_first_contact(&a);
        CHECK(now_ms() < until, "asleep though the message was received");
    }
    return argument;
}

static void a_sleeper_wakes_for_what_another_thread_receives(void)
{
    struct fi_cq_tagged_entry entry;
    struct fid *fids[1];
    pthread_t thread;
    uint32_t in = 0;
    for (int blocking = 0; blocking < 2; blocking++) {
        open_polling(FI_WAIT_FD, true);
        fids[0] = &b.cq->fid;
        OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
        ANSWERS(-FI_EAGAIN, fi_cq_read(b.cq, &entry, 1));
        CHECK(pthread_create(&thread, NULL, receive_for_all, NULL) == 0, "no thread");
        if (blocking) {
            goes_to_sleep = true;
            ANSWERS(1, fi_cq_sread(b.cq, &entry, 1, NULL, SLEEP_MS));
        } else {
            // It may be readable for something else first, as at first contact.
            ssize_t got;
            int64_t start = now_ms();
            do {
                CHECK(now_ms() - start < AWAKE_LIMIT_MS, "no completion, or one may not sleep");
                if (fi_trywait(host.fabric, fids, 1) == FI_SUCCESS) {
                    goes_to_sleep = true;
                    CHECK(is_readable(fids[0], SLEEP_MS), "asleep though the message was received");
                }
                got = fi_cq_read(b.cq, &entry, 1);
            } while (got == -FI_EAGAIN);
            ANSWERS(1, got);
        }
        is_awake = true;
        CHECK(entry.op_context == &in, "another completion");
        pthread_join(thread, NULL);
        goes_to_sleep = is_awake = false;
        close_pair(&host, &a, &b);
    }
}

static void *signal_later(void *argument)
{
    usleep(50000);
    OK(fi_cq_signal(b.cq));
    return argument;
}

static void a_signal_makes_the_descriptor_readable_once(void)
{
    struct fid *fids[1];
    pthread_t thread;
    open_polling(FI_WAIT_FD, false);
    fids[0] = &b.cq->fid;
    for (int round = 0; round < 2; round++) {
        while (fi_trywait(host.fabric, fids, 1) != FI_SUCCESS)
            ;
        CHECK(!is_readable(fids[0], 10), "readable before the signal");
        CHECK(pthread_create(&thread, NULL, signal_later, NULL) == 0, "no thread");
        CHECK(is_readable(fids[0], SLEEP_MS), "the signal was not heard");
        pthread_join(thread, NULL);
        ANSWERS(-FI_EAGAIN, fi_trywait(host.fabric, fids, 1));
    }
    close_pair(&host, &a, &b);
}

const struct test_case polling_cases[] = {
    {"a_poll_set_finds_the_queue_with_an_entry", a_poll_set_finds_the_queue_with_an_entry},
    {"a_poll_set_finds_the_counter_that_changed", a_poll_set_finds_the_counter_that_changed},
    {"poll_sets_refuse_what_they_cannot_poll", poll_sets_refuse_what_they_cannot_poll},
    {"what_a_poll_set_asks_is_busy", what_a_poll_set_asks_is_busy},
    {"a_counter_has_a_descriptor", a_counter_has_a_descriptor},
    {"a_thread_that_waits_on_a_counter_wakes_when_another_adds_to_it",
     a_thread_that_waits_on_a_counter_wakes_when_another_adds_to_it},
    {"a_sleeper_wakes_for_what_another_thread_receives",
     a_sleeper_wakes_for_what_another_thread_receives},
    {"a_signal_makes_the_descriptor_readable_once", a_signal_makes_the_descriptor_readable_once},
    {NULL, NULL},
};

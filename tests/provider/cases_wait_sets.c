// SPDX-License-Identifier: Apache-2.0 OR MIT
// Wait sets: one sleep on queues, counters and event queues of several domains.
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static struct host host;
static struct side a, b;
static struct fid_wait *set;

// Both sides' queues, and counters if asked for, are members of one set.
static void open_with_set(bool counters)
{
    struct wishes wishes = {.threading = FI_THREAD_SAFE, .counters = counters};
    struct fi_wait_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
    open_host(&host, &wishes);
    OK(fi_wait_open(host.fabric, &attr, &set));
    host.wishes.wait_object = FI_WAIT_SET;
    host.wishes.wait_set = set;
    open_side(&host, &a);
    open_side(&host, &b);
    introduce(&a, b.name, &a.other);
    introduce(&b, a.name, &b.other);
}

static void close_with_set(void)
{
    ANSWERS(-FI_EBUSY, fi_close(&set->fid));
    close_side(&a);
    close_side(&b);
    OK(fi_close(&host.domain->fid));
    ANSWERS(-FI_EBUSY, fi_close(&host.fabric->fid));
    OK(fi_close(&set->fid));
    OK(fi_close(&host.fabric->fid));
    fi_freeinfo(host.info);
}

static void *send_later(void *argument)
{
    uint32_t number = 5;
    usleep(100000);
    POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
    return argument;
}

// Waits until a call that looks for an event succeeds; every sleep between is one of the set.
static int64_t waited_ms(ssize_t (*look)(void), void *(*later)(void *))
{
    pthread_t thread;
    int64_t start = now_ms();
    CHECK(pthread_create(&thread, NULL, later, NULL) == 0, "no thread");
    while (look() != 1) {
        CHECK(now_ms() - start < ENTRY_LIMIT_MS, "nothing came");
        OK(fi_wait(set, SLEEP_MS));
    }
    int64_t took = now_ms() - start;
    pthread_join(thread, NULL);
    return took;
}

static ssize_t look_at_queue(void)
{
    struct fi_cq_tagged_entry entry;
    return fi_cq_read(b.cq, &entry, 1);
}

static ssize_t look_at_counter(void)
{
    return (ssize_t)fi_cntr_read(b.received);
}

static void a_set_wakes_for_the_entry_of_any_queue(void)
{
    uint32_t in = 0;
    open_with_set(false);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t took = waited_ms(look_at_queue, send_later);
    CHECK(in == 5 && took >= 95 && took < AWAKE_LIMIT_MS,
          "a message after 100 ms woke after %lld ms", (long long)took);
    close_with_set();
}

static void a_set_wakes_for_a_counter(void)
{
    uint32_t in = 0;
    open_with_set(true);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t took = waited_ms(look_at_counter, send_later);
    CHECK(in == 5 && took >= 95 && took < AWAKE_LIMIT_MS,
          "a message after 100 ms woke after %lld ms", (long long)took);
    close_with_set();
}

static struct fid_eq *events;

static ssize_t look_at_events(void)
{
    struct fi_eq_entry entry;
    uint32_t event;
    return fi_eq_read(events, &event, &entry, sizeof(entry), 0) == sizeof(entry);
}

static void *write_later(void *argument)
{
    struct fi_eq_entry entry = {.data = 7};
    usleep(50000);
    ANSWERS(sizeof(entry), fi_eq_write(events, FI_NOTIFY, &entry, sizeof(entry), 0));
    return argument;
}

static void a_set_wakes_for_an_event_queue(void)
{
    open_with_set(false);
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_SET, .wait_set = set, .flags = FI_WRITE};
    OK(fi_eq_open(host.fabric, &attr, &events, NULL));
    int64_t took = waited_ms(look_at_events, write_later);
    CHECK(took >= 45 && took < AWAKE_LIMIT_MS, "an event after 50 ms woke after %lld ms",
          (long long)took);
    OK(fi_close(&events->fid));
    ANSWERS(-FI_ETIMEDOUT, fi_wait(set, 10));
    close_with_set();
}

static void *signal_later(void *argument)
{
    usleep(50000);
    OK(fi_cq_signal(a.cq));
    return argument;
}

static void a_set_wakes_for_a_signal_and_else_in_time(void)
{
    pthread_t thread;
    open_with_set(true);
    int64_t start = now_ms();
    ANSWERS(-FI_ETIMEDOUT, fi_wait(set, 100));
    ANSWERS(-FI_ETIMEDOUT, fi_wait(set, 0));
    int64_t took = now_ms() - start;
    CHECK(took >= 95 && took < AWAKE_LIMIT_MS, "100 ms took %lld ms", (long long)took);
    CHECK(pthread_create(&thread, NULL, signal_later, NULL) == 0, "no thread");
    OK(fi_wait(set, SLEEP_MS));
    CHECK(now_ms() - start < 2 * AWAKE_LIMIT_MS, "the signal was not heard");
    pthread_join(thread, NULL);
    close_with_set();
}

static void a_set_has_a_descriptor(void)
{
    struct pollfd poller = {.events = POLLIN};
    struct fi_cq_tagged_entry entry;
    struct fid *fids[1];
    pthread_t thread;
    uint32_t in = 0;
    int object = -1;
    open_with_set(false);
    fids[0] = &set->fid;
    OK(fi_control(&set->fid, FI_GETWAIT, &poller.fd));
    OK(fi_control(&set->fid, FI_GETWAITOBJ, &object));
    CHECK(object == FI_WAIT_FD && poller.fd >= 0, "wait object %d", object);
    OK(fi_recv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
    int64_t start = now_ms();
    CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0, "no thread");
    while (fi_cq_read(b.cq, &entry, 1) != 1) {
        CHECK(now_ms() - start < ENTRY_LIMIT_MS, "never readable");
        if (fi_trywait(host.fabric, fids, 1) == FI_SUCCESS)
            poll(&poller, 1, SLEEP_MS);
    }
    CHECK(in == 5 && now_ms() - start < AWAKE_LIMIT_MS, "woke after %lld ms",
          (long long)(now_ms() - start));
    pthread_join(thread, NULL);
    close_with_set();
}

static void sets_that_make_no_sense_are_refused(void)
{
    struct fi_wait_attr attr = {.wait_obj = FI_WAIT_UNSPEC, .flags = 1};
    struct fi_cq_attr queue_attr = {.wait_obj = FI_WAIT_SET};
    struct fid_fabric *other;
    struct fid_cq *queue;
    open_host(&host, NULL);
    ANSWERS(-FI_EBADFLAGS, fi_wait_open(host.fabric, &attr, &set));
    attr = (struct fi_wait_attr){.wait_obj = FI_WAIT_MUTEX_COND};
    ANSWERS(-FI_ENOSYS, fi_wait_open(host.fabric, &attr, &set));
    ANSWERS(-FI_EINVAL, fi_cq_open(host.domain, &queue_attr, &queue, NULL)); // without a set
    attr.wait_obj = FI_WAIT_FD;
    OK(fi_fabric(host.info->fabric_attr, &other, NULL));
    OK(fi_wait_open(other, &attr, &set));
    queue_attr.wait_set = set;
    ANSWERS(-FI_EINVAL, fi_cq_open(host.domain, &queue_attr, &queue, NULL)); // another fabric's
    queue_attr.wait_set = (struct fid_wait *)host.fabric;
    ANSWERS(-FI_EINVAL, fi_cq_open(host.domain, &queue_attr, &queue, NULL)); // no set at all
    OK(fi_close(&set->fid));
    OK(fi_close(&other->fid));
    close_host(&host);
}

const struct test_case wait_set_cases[] = {
    {"a_set_wakes_for_the_entry_of_any_queue", a_set_wakes_for_the_entry_of_any_queue},
    {"a_set_wakes_for_a_counter", a_set_wakes_for_a_counter},
    {"a_set_wakes_for_an_event_queue", a_set_wakes_for_an_event_queue},
    {"a_set_wakes_for_a_signal_and_else_in_time", a_set_wakes_for_a_signal_and_else_in_time},
    {"a_set_has_a_descriptor", a_set_has_a_descriptor},
    {"sets_that_make_no_sense_are_refused", sets_that_make_no_sense_are_refused},
    {NULL, NULL},
};

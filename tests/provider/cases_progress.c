// SPDX-License-Identifier: Apache-2.0 OR MIT
// Automatic progress: what moves while the application is not in the library, and that nothing of
// it is left behind.
#include "harness.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

// Larger than what one side can do alone.
#define LARGE_BYTES (8u << 20)

static struct host host;
static struct side a, b;

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks, "no /proc");
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void open_automatic(void)
{
    struct wishes wishes = {.progress = FI_PROGRESS_AUTO};
    open_pair(&host, &a, &b, &wishes);
}

// Computes, without a call into the library, until the last byte of a buffer has come.
static void compute_until(const volatile unsigned char *last, unsigned char value)
{
    for (int64_t until = now_ms() + ENTRY_LIMIT_MS; *last != value;)
        CHECK(now_ms() < until, "nothing came while the application computed");
}

static void a_large_message_arrives_while_both_sides_compute(void)
{
    unsigned char *out = malloc(LARGE_BYTES), *in = calloc(1, LARGE_BYTES);
    open_automatic();
    fill(out, LARGE_BYTES, 3);
    out[LARGE_BYTES - 1] = 0xa5;
    for (int round = 0; round < 3; round++) {
        memset(in, 0, LARGE_BYTES);
        usleep(round * 20000); // long enough for the thread to fall asleep, or not
        OK(fi_trecv(b.ep, in, LARGE_BYTES, NULL, b.other, 1, 0, in));
        POST(&a, NULL, fi_tsend(a.ep, out, LARGE_BYTES, NULL, a.other, 1, out));
        compute_until(in + LARGE_BYTES - 1, 0xa5);
        CHECK(next_entry(&b, &a).op_context == in && next_entry(&a, &b).op_context == out,
              "other completions");
        CHECK(memcmp(in, out, LARGE_BYTES) == 0, "other bytes");
    }
    close_pair(&host, &a, &b);
    free(in);
    free(out);
}

static void a_large_message_that_was_unexpected_arrives_too(void)
{
    unsigned char *out = malloc(LARGE_BYTES), *in = calloc(1, LARGE_BYTES);
    open_automatic();
    fill(out, LARGE_BYTES, 4);
    out[LARGE_BYTES - 1] = 0xa5;
    POST(&a, NULL, fi_tsend(a.ep, out, LARGE_BYTES, NULL, a.other, 1, out));
    usleep(50000);
    OK(fi_trecv(b.ep, in, LARGE_BYTES, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    compute_until(in + LARGE_BYTES - 1, 0xa5);
    CHECK(next_entry(&b, &a).op_context == in && next_entry(&a, &b).op_context == out,
          "other completions");
    close_pair(&host, &a, &b);
    free(in);
    free(out);
}

static void small_messages_and_blocking_reads_work_beside_the_thread(void)
{
    struct fi_cq_tagged_entry entry;
    struct wishes wishes = {.progress = FI_PROGRESS_AUTO, .wait_object = FI_WAIT_FD};
    open_pair(&host, &a, &b, &wishes);
    for (uint32_t number = 0; number < 200; number++) {
        uint32_t in = 0;
        OK(fi_recv(b.ep, &in, 4, NULL, b.other, &in));
        if (number % 50 == 49)
            usleep(20000); // the thread is asleep, and is woken
        POST(&a, NULL, fi_inject(a.ep, &number, 4, a.other));
        ANSWERS(1, fi_cq_sread(b.cq, &entry, 1, NULL, SLEEP_MS));
        CHECK(entry.op_context == &in && in == number, "%u instead of %u", in, number);
    }
    close_pair(&host, &a, &b);
}

static void only_automatic_progress_has_a_thread_and_it_ends_with_the_domain(void)
{
    int before = count_threads(), heartbeats = over_datagrams() ? 2 : 0; // one for each endpoint
    open_pair(&host, &a, &b, NULL);
    CHECK(count_threads() == before + heartbeats, "a thread nobody asked for");
    close_pair(&host, &a, &b);
    for (int round = 0; round < 5; round++) {
        open_automatic();
        CHECK(count_threads() == before + heartbeats + 1, "%d more threads",
              count_threads() - before);
        CHECK(host.info->domain_attr->data_progress == FI_PROGRESS_AUTO,
              "another model of progress");
        close_pair(&host, &a, &b);
        // /proc shows a thread for a moment after it was joined.
        for (int64_t until = now_ms() + ENTRY_LIMIT_MS;
             count_threads() != before && now_ms() < until;)
            usleep(100);
        CHECK(count_threads() == before, "the thread outlives its domain");
    }
}

static void a_process_that_forks_or_leaves_its_domain_open_ends_well(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        open_automatic();
        pid_t grandchild = fork();
        if (grandchild == 0)
            exit(0); // runs libfabric's destructor, without the thread
        waitpid(grandchild, &status, 0);
        exit(status == 0 ? 0 : 3); // the domain is still open
    }
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    while (waitpid(child, &status, WNOHANG) == 0) {
        CHECK(now_ms() < until, "the process does not end");
        usleep(1000);
    }
    CHECK(status == 0, "the process ended with %#x", status);
}

const struct test_case progress_cases[] = {
    {"a_large_message_arrives_while_both_sides_compute",
     a_large_message_arrives_while_both_sides_compute},
    {"a_large_message_that_was_unexpected_arrives_too",
     a_large_message_that_was_unexpected_arrives_too},
    {"small_messages_and_blocking_reads_work_beside_the_thread",
     small_messages_and_blocking_reads_work_beside_the_thread},
    {"only_automatic_progress_has_a_thread_and_it_ends_with_the_domain",
     only_automatic_progress_has_a_thread_and_it_ends_with_the_domain},
    {"a_process_that_forks_or_leaves_its_domain_open_ends_well",
     a_process_that_forks_or_leaves_its_domain_open_ends_well},
    {NULL, NULL},
};

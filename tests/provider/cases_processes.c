// SPDX-License-Identifier: Apache-2.0 OR MIT
// Two and more processes: every form again, first contact, busy targets, death.
#include "forms.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct host host;
static struct side here;
static int sync_socket = -1;
static bool is_child;
static pid_t child;

// Splits the case into two processes, each with one endpoint that knows the other.
static void split(const struct wishes *wishes)
{
    int ends[2];
    char name[64];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
    child = fork();
    CHECK(child >= 0, "no second process");
    is_child = child == 0;
    sync_socket = ends[is_child];
    close(ends[!is_child]);
    open_host(&host, wishes);
    open_side(&host, &here);
    CHECK(write(sync_socket, here.name, here.name_bytes) == (ssize_t)here.name_bytes,
          "the name is not sent");
    CHECK(recv(sync_socket, name, here.name_bytes, MSG_WAITALL) == (ssize_t)here.name_bytes,
          "no name came");
    introduce(&here, name, &here.other);
    introduce(&here, here.name, &here.self);
    fcntl(sync_socket, F_SETFL, O_NONBLOCK);
}

// Ends both processes; fails if the other one did.
static void join(void)
{
    int status = 0;
    struct link link = {.sender = &here, .sync = sync_socket};
    meet(&link);
    close_side(&here);
    close_host(&host);
    if (is_child)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the other process ended with %#x",
          status);
}

static struct link link_towards(bool child_sends)
{
    bool sends = is_child == child_sends;
    return (struct link){
        .sender = sends ? &here : NULL, .receiver = sends ? NULL : &here, .sync = sync_socket};
}

static void every_form_crosses_processes(void)
{
    split(NULL);
    struct link one_way = link_towards(false), other_way = link_towards(true);
    transfer_all(&one_way, 1 << 20);
    transfer_all(&other_way, 5000);
    join();
}

static void first_contact_from_both_sides_at_once(void)
{
    for (int round = 0; round < 10; round++) {
        uint32_t out, in = 7;
        split(NULL);
        struct link link = {.sender = &here, .sync = sync_socket};
        OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 1, 0, &in));
        meet(&link);
        out = is_child;
        POST(&here, NULL, fi_tsend(here.ep, &out, 4, NULL, here.other, 1, &out));
        next_entry(&here, NULL);
        next_entry(&here, NULL);
        CHECK(in == (uint32_t)!is_child, "round %d got %u", round, in);
        join();
    }
}

static void a_computing_target_does_not_stop_the_first_send(void)
{
    uint32_t number = 3;
    split(NULL);
    struct link link = {.sender = &here, .sync = sync_socket};
    if (is_child) {
        uint32_t in = 0;
        usleep(500000); // computes, without a call
        OK(fi_trecv(here.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in));
        next_entry(&here, NULL);
        CHECK(in == 3, "got %u", in);
    } else {
        POST(&here, NULL, fi_tsend(here.ep, &number, 4, NULL, here.other, 1, &number));
    }
    meet(&link);
    join();
}

static void a_flood_waits_for_its_receiver(void)
{
    enum { COUNT = 30000 };
    split(NULL);
    if (is_child) {
        usleep(200000);
        for (uint32_t index = 0; index < COUNT; index++) {
            uint32_t in[64] = {0};
            OK(fi_trecv(here.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, in));
            next_entry(&here, NULL);
            CHECK(in[0] == index && in[63] == index, "message %u came as number %u", in[0], index);
        }
    } else {
        for (uint32_t index = 0; index < COUNT; index++) {
            uint32_t out[64];
            for (int word = 0; word < 64; word++)
                out[word] = index;
            POST(&here, NULL, fi_tinject(here.ep, out, sizeof(out), here.other, 1));
        }
    }
    join();
}

// What happens to operations when the other process is killed while they are under way.
static void death_of_the_other(bool receiving)
{
    static char buffer[8 << 20];
    uint32_t in = 0, number = 1;
    split(NULL);
    struct link link = {.sender = &here, .sync = sync_socket};
    if (is_child) {
        OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 1, 0, &in));
        POST(&here, NULL, fi_tinject(here.ep, &number, 4, here.other, 1));
        next_entry(&here, NULL);
        meet(&link);
        for (;;)
            pause();
    }
    OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 1, 0, &in));
    POST(&here, NULL, fi_tinject(here.ep, &number, 4, here.other, 1));
    next_entry(&here, NULL);
    meet(&link);
    if (receiving)
        OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 2, 0, buffer));
    else
        POST(&here, NULL, fi_tsend(here.ep, buffer, sizeof(buffer), NULL, here.other, 2, buffer));
    int64_t start = now_ms();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct fi_cq_err_entry error = next_error(&here, NULL);
    CHECK(error.op_context == buffer, "another context");
    CHECK(error.err == FI_ECONNRESET, "error %d (%s)", error.err, fi_strerror(error.err));
    CHECK(now_ms() - start < (over_datagrams() ? 15000 : 5000), "noticed after %lld ms",
          (long long)(now_ms() - start));
    CHECK(strlen(fi_cq_strerror(here.cq, error.prov_errno, NULL, NULL, 0)) > 10, "no words");
}

static void a_receive_from_a_dead_process_fails_in_time(void)
{
    death_of_the_other(true);
}

static void a_send_to_a_dead_process_fails_in_time(void)
{
    death_of_the_other(false);
}

static void nobody_at_an_address_is_an_error(void)
{
    char name[64];
    fi_addr_t nobody;
    uint32_t number = 1;
    struct side gone;
    open_host(&host, NULL);
    open_side(&host, &gone);
    memcpy(name, gone.name, sizeof(name));
    close_side(&gone);
    open_side(&host, &here);
    introduce(&here, name, &nobody);
    ssize_t answer;
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    while ((answer = fi_tsend(here.ep, &number, 4, NULL, nobody, 1, &number)) == -FI_EAGAIN &&
           now_ms() < until)
        progress(&here);
    if (answer == 0)
        answer = -next_error(&here, NULL).err;
    CHECK(answer == -FI_EHOSTUNREACH || answer == -FI_ECONNRESET || answer == -FI_ECONNREFUSED,
          "%s", fi_strerror((int)-answer));
}

static void a_blocking_read_sleeps_until_another_process_sends(void)
{
    struct wishes wishes = {.wait_object = FI_WAIT_UNSPEC};
    struct fi_cq_tagged_entry entry;
    uint32_t number = 9, in = 0;
    split(&wishes);
    if (is_child) {
        // Half of them are awake soon after the message; a machine that stops now and then may
        // delay the others.
        int soon_count = 0;
        for (int round = 0; round < 20; round++) {
            OK(fi_trecv(here.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &in));
            int64_t start = now_ms();
            ANSWERS(1, fi_cq_sread(here.cq, &entry, 1, NULL, SLEEP_MS));
            soon_count += now_ms() - start < 150;
            CHECK(now_ms() - start < AWAKE_LIMIT_MS, "round %d woke after %lld ms", round,
                  (long long)(now_ms() - start));
        }
        CHECK(soon_count >= 10, "only %d of 20 woke within 150 ms", soon_count);
    } else {
        for (int round = 0; round < 20; round++) {
            usleep(30000);
            POST(&here, NULL, fi_tinject(here.ep, &number, 4, here.other, 1));
        }
    }
    join();
}

// What a child closes, sends and reads after fork is its parent's: the two that talk hear nothing
// of it. A child would also encrypt under the nonces that its parent uses next.
static void a_child_that_sends_and_closes_leaves_its_parents_connections_alone(void)
{
    struct side first, second;
    int status = -1;
    uint32_t in = 0, out = 7;
    if (!over_datagrams())
        return; // shared memory has cases of its own
    open_pair(&host, &first, &second, NULL);
    for (int round = 0; round < 3; round++) {
        OK(fi_recv(second.ep, &in, 4, NULL, second.other, NULL));
        POST(&first, NULL, fi_inject(first.ep, &out, 4, first.other));
        for (in = 0; in != out; progress(&first))
            progress(&second);
        out++;
        pid_t forked = fork();
        CHECK(forked >= 0, "no child");
        if (forked == 0) {
            uint32_t stolen = 99;
            fi_inject(first.ep, &stolen, 4, first.other);
            for (int count = 0; count < 100; count++) {
                progress(&first);
                progress(&second);
            }
            close_pair(&host, &first, &second);
            _exit(0);
        }
        CHECK(waitpid(forked, &status, 0) == forked && status == 0, "the child ended with %#x",
              status);
    }
    OK(fi_recv(second.ep, &in, 4, NULL, second.other, NULL));
    POST(&first, NULL, fi_inject(first.ep, &out, 4, first.other));
    for (in = 0; in == 0; progress(&first))
        progress(&second);
    CHECK(in == out, "%u came instead of %u", in, out);
    close_pair(&host, &first, &second);
}

const struct test_case process_cases[] = {
    {"a_child_that_sends_and_closes_leaves_its_parents_connections_alone",
     a_child_that_sends_and_closes_leaves_its_parents_connections_alone},
    {"every_form_crosses_processes", every_form_crosses_processes},
    {"first_contact_from_both_sides_at_once", first_contact_from_both_sides_at_once},
    {"a_computing_target_does_not_stop_the_first_send",
     a_computing_target_does_not_stop_the_first_send},
    {"a_flood_waits_for_its_receiver", a_flood_waits_for_its_receiver},
    {"a_receive_from_a_dead_process_fails_in_time", a_receive_from_a_dead_process_fails_in_time},
    {"a_send_to_a_dead_process_fails_in_time", a_send_to_a_dead_process_fails_in_time},
    {"nobody_at_an_address_is_an_error", nobody_at_an_address_is_an_error},
    {"a_blocking_read_sleeps_until_another_process_sends",
     a_blocking_read_sleeps_until_another_process_sends},
    {NULL, NULL},
};

// SPDX-License-Identifier: Apache-2.0 OR MIT
// A rank that starts other processes: whatever these do, its messages stay right; and when it dies
// they do not hide it.
#include "forms.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// The rank that starts processes, as its other rank knows it, and the process that it has started
// last.
static struct host host;
static struct side here;
static int sync_socket = -1;
static pid_t rank, helper;
static bool is_rank;

// A death is noticed within a second, with or without children; the rest is for a machine that is
// busy.
enum { LONG_BYTES = 3 << 20, ROUND_COUNT = 3, NOTICE_MS = 5000 };

static struct link link_to_other(void)
{
    return (struct link){.sender = &here, .sync = sync_socket};
}

// Makes two ranks that know each other. The one that starts processes leads a group of its own, to
// be ended with all of them.
static void split(void)
{
    int ends[2];
    char name[64];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    rank = fork();
    CHECK(rank >= 0, "no second process");
    is_rank = rank == 0;
    if (is_rank)
        setpgid(0, 0);
    else
        setpgid(rank, rank);
    sync_socket = ends[is_rank];
    close(ends[!is_rank]);
    open_host(&host, NULL);
    open_side(&host, &here);
    ssize_t length = (ssize_t)here.name_bytes;
    CHECK(write(sync_socket, here.name, here.name_bytes) == length, "the name is not sent");
    CHECK(recv(sync_socket, name, here.name_bytes, MSG_WAITALL) == length, "no name came");
    introduce(&here, name, &here.other);
    fcntl(sync_socket, F_SETFL, O_NONBLOCK);
    struct link link = link_to_other();
    meet(&link);
}

// Sends a message and takes one, several times: the first rounds short, the last one offered.
static void exchange(unsigned seed)
{
    static uint8_t out[LONG_BYTES], in[LONG_BYTES];
    for (unsigned round = 0; round < ROUND_COUNT; round++) {
        size_t length = round + 1 < ROUND_COUNT ? 8 : LONG_BYTES;
        fill(out, length, seed + round + is_rank);
        OK(fi_trecv(here.ep, in, length, NULL, here.other, seed + round, 0, in));
        POST(&here, NULL, fi_tsend(here.ep, out, length, NULL, here.other, seed + round, out));
        next_entry(&here, NULL);
        next_entry(&here, NULL);
        check_filled(in, length, seed + round + !is_rank);
    }
}

// What a child does with what it has inherited. Each ends with an exit code of 0 if that was as it
// must be.
static void idle(void)
{
    for (;;)
        pause();
}

static void leave_at_once(void)
{
    _exit(0);
}

static void leave_by_exit(void)
{
    exit(0);
}

static void close_all(void)
{
    if (fi_close(&here.ep->fid) || fi_close(&here.cq->fid) || fi_close(&here.av->fid))
        _exit(1);
    if (fi_close(&host.domain->fid))
        _exit(3);
    _exit(fi_close(&host.fabric->fid) == 0 ? 0 : 2);
}

static void use_all(void)
{
    static uint8_t bytes[LONG_BYTES];
    struct fi_cq_tagged_entry entry;
    struct fid_mr *region;
    struct fid_ep *endpoint;
    fi_addr_t name;
    for (int times = 0; times < 200; times++) {
        if (fi_tsend(here.ep, bytes, LONG_BYTES, NULL, here.other, 99, NULL) != -FI_EOPBADSTATE ||
            fi_tinject(here.ep, bytes, 8, here.other, 99) != -FI_EOPBADSTATE ||
            fi_send(here.ep, bytes, 8, NULL, here.other, NULL) != -FI_EOPBADSTATE ||
            fi_trecv(here.ep, bytes, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, NULL) != -FI_EOPBADSTATE ||
            fi_cq_read(here.cq, &entry, 1) != -FI_EOPBADSTATE ||
            fi_cq_sread(here.cq, &entry, 1, NULL, -1) != -FI_EOPBADSTATE)
            _exit(1);
    }
    if (fi_write(here.ep, bytes, 8, NULL, here.other, 0, 0, NULL) != -FI_EOPBADSTATE ||
        fi_cancel(&here.ep->fid, bytes) != -FI_EOPBADSTATE ||
        fi_mr_reg(host.domain, bytes, 8, FI_REMOTE_READ, 0, 5, 0, &region, NULL) !=
            -FI_EOPBADSTATE ||
        fi_endpoint(host.domain, host.info, &endpoint, NULL) != -FI_EOPBADSTATE ||
        fi_av_insert(here.av, here.name, 1, &name, 0, NULL) != -FI_EOPBADSTATE ||
        fi_enable(here.ep) != -FI_EOPBADSTATE)
        _exit(2);
    _exit(0);
}

// Whether a socket is one of datagrams, by the number of its inode.
static bool is_port(unsigned long inode)
{
    static const char *const tables[] = {"/proc/self/net/udp", "/proc/self/net/udp6"};
    char line[256];
    for (size_t at = 0; at < 2; at++) {
        FILE *table = fopen(tables[at], "re");
        unsigned long known;
        while (table && fgets(line, sizeof(line), table))
            if (sscanf(line, "%*d: %*s %*s %*s %*s %*s %*s %*s %*s %lu", &known) == 1 &&
                known == inode)
                return fclose(table), true;
        if (table)
            fclose(table);
    }
    return false;
}

// Whoever comes to the rank's address when it is gone may have its ports.
static void hold_no_port(void)
{
    char path[64], what[64];
    for (int descriptor = 0; descriptor < 1024; descriptor++) {
        unsigned long inode;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(path, what, sizeof(what) - 1);
        what[length > 0 ? length : 0] = '\0';
        if (sscanf(what, "socket:[%lu]", &inode) == 1 && is_port(inode))
            _exit(1);
    }
    _exit(0);
}

// An endpoint of its own is as good as any.
static void open_own(void)
{
    struct host own_host;
    struct side own;
    char name[64];
    size_t length = sizeof(name);
    memcpy(name, here.name, length);
    open_host(&own_host, NULL);
    open_side(&own_host, &own);
    uint32_t out = 7, in = 0;
    introduce(&own, own.name, &own.self);
    OK(fi_trecv(own.ep, &in, 4, NULL, own.self, 1, 0, &in));
    POST(&own, NULL, fi_tsend(own.ep, &out, 4, NULL, own.self, 1, &out));
    next_entry(&own, NULL);
    next_entry(&own, NULL);
    close_side(&own);
    close_host(&own_host);
    _exit(in == 7 ? 0 : 1);
}

// How a process is started. Those that execute another program do nothing with what they have
// inherited.
static pid_t by_fork(void (*deed)(void))
{
    pid_t child = fork();
    if (child == 0)
        deed();
    return child;
}

static void *fork_in_thread(void *deed)
{
    return (void *)(intptr_t)by_fork((void (*)(void))deed);
}

static pid_t by_thread(void (*deed)(void))
{
    pthread_t thread;
    void *child = NULL;
    CHECK(pthread_create(&thread, NULL, fork_in_thread, (void *)deed) == 0, "no thread");
    pthread_join(thread, &child);
    return (pid_t)(intptr_t)child;
}

// Past the C library, so that nobody in the child hears of it.
static pid_t by_clone(void (*deed)(void))
{
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        deed();
    return child;
}

static pid_t by_fork_and_exec(void (*deed)(void))
{
    pid_t child = fork();
    (void)deed;
    if (child == 0) {
        execlp("sleep", "sleep", "1000", NULL);
        _exit(1);
    }
    return child;
}

static pid_t by_vfork(void (*deed)(void))
{
    pid_t child = vfork();
    (void)deed;
    if (child == 0) {
        execlp("sleep", "sleep", "1000", NULL);
        _exit(1);
    }
    return child;
}

static pid_t by_posix_spawn(void (*deed)(void))
{
    char *arguments[] = {"sleep", "1000", NULL};
    pid_t child = -1;
    (void)deed;
    posix_spawnp(&child, "sleep", NULL, NULL, arguments, environ);
    return child;
}

static pid_t by_system(void (*deed)(void))
{
    (void)deed;
    CHECK(system("sleep 1000 >/dev/null 2>&1 &") == 0, "no shell");
    return 0;
}

static pid_t by_popen(void (*deed)(void))
{
    (void)deed;
    return popen("sleep 1000", "r") != NULL ? 0 : -1;
}

static const struct way {
    const char *name;
    pid_t (*start)(void (*deed)(void));
    bool executes;
} ways[] = {
    {"fork", by_fork, false},
    {"fork in a thread", by_thread, false},
    {"fork and exec", by_fork_and_exec, true},
    {"vfork", by_vfork, true},
    {"posix_spawn", by_posix_spawn, true},
    {"system", by_system, true},
    {"popen", by_popen, true},
};
static const struct way raw_clone = {"clone", by_clone, false};

static const struct deed {
    const char *name;
    void (*act)(void);
} deeds[] = {
    {"is killed", idle},       {"ends by _exit", leave_at_once}, {"ends by exit", leave_by_exit},
    {"closes all", close_all}, {"uses all", use_all},            {"opens its own", open_own},
    {"holds no port", hold_no_port},
};

static void start(const struct way *way, const struct deed *deed)
{
    helper = way->start(deed->act);
    CHECK(helper >= 0, "%s: no process", way->name);
    if (helper == 0)
        return;
    int status = 0;
    if (way->executes || deed->act == idle) {
        kill(helper, SIGKILL);
        waitpid(helper, NULL, 0);
        return;
    }
    CHECK(waitpid(helper, &status, 0) == helper && status == 0, "%s, %s: ended with %#x", way->name,
          deed->name, status);
}

// Ends the rank, as the system would, and all that it has started.
static void end_rank(void)
{
    kill(-rank, SIGKILL);
    waitpid(rank, NULL, 0);
    close_side(&here);
    close_host(&host);
    close(sync_socket);
}

static void whatever_a_child_does_its_ranks_messages_stay_right(void)
{
    unsigned seed = 1;
    split();
    exchange(seed);
    for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
        for (size_t deed = 0; deed < sizeof(deeds) / sizeof(*deeds); deed++) {
            if (ways[way].executes && deed > 0)
                continue;
            if (is_rank)
                start(&ways[way], &deeds[deed]);
            exchange(seed += ROUND_COUNT);
        }
    }
    struct link link = link_to_other();
    meet(&link);
    if (is_rank)
        idle();
    end_rank();
}

static void a_fork_in_the_middle_of_a_long_message_does_not_change_it(void)
{
    static uint8_t bytes[LONG_BYTES];
    split();
    for (unsigned seed = 1; seed < 12; seed += 2) {
        fill(bytes, LONG_BYTES, seed);
        if (is_rank && seed % 4 == 1) {
            POST(&here, NULL, fi_tsend(here.ep, bytes, LONG_BYTES, NULL, here.other, seed, bytes));
        } else if (is_rank) {
            memset(bytes, 0, LONG_BYTES);
            OK(fi_trecv(here.ep, bytes, LONG_BYTES, NULL, here.other, seed, 0, bytes));
        }
        struct link link = link_to_other();
        meet(&link);
        if (is_rank) {
            start(&ways[0], &deeds[seed % 6]);
            helper = by_fork(idle);
        } else if (seed % 4 == 1) {
            memset(bytes, 0, LONG_BYTES);
            OK(fi_trecv(here.ep, bytes, LONG_BYTES, NULL, here.other, seed, 0, bytes));
        } else {
            POST(&here, NULL, fi_tsend(here.ep, bytes, LONG_BYTES, NULL, here.other, seed, bytes));
        }
        next_entry(&here, NULL);
        check_filled(bytes, LONG_BYTES, seed);
        meet(&link);
    }
    if (is_rank)
        idle();
    end_rank();
}

// Whether the kernel lists a local socket whose name begins so.
static bool is_listed(const char *wanted)
{
    char line[512];
    bool found = false;
    FILE *sockets = fopen("/proc/net/unix", "r");
    CHECK(sockets != NULL, "no /proc/net/unix");
    while (!found && fgets(line, sizeof(line), sockets) != NULL)
        found = strstr(line, wanted) != NULL;
    fclose(sockets);
    return found;
}

// The rank is killed while a process that it has started lives on.
static void death_beside_a_child(const struct way *way, bool keeps_names)
{
    uint32_t in = 0;
    char address[INET_ADDRSTRLEN], listener[64];
    struct sockaddr_in name;
    size_t length = sizeof(name);
    split();
    exchange(1);
    struct link link = link_to_other();
    if (is_rank) {
        CHECK(way->start(idle) >= 0, "%s: no process", way->name);
        meet(&link);
        idle();
    }
    meet(&link);
    OK(fi_av_lookup(here.av, here.other, &name, &length));
    inet_ntop(AF_INET, &name.sin_addr, address, sizeof(address));
    snprintf(listener, sizeof(listener), "@weft/%s:%d\n", address, ntohs(name.sin_port));
    CHECK(is_listed(listener) || name.sin_family != AF_INET, "%s is not listed", listener);
    OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 7, 0, &in));
    int64_t begin = now_ms();
    kill(rank, SIGKILL);
    waitpid(rank, NULL, 0);
    struct fi_cq_err_entry error = next_error(&here, NULL);
    int64_t took_ms = now_ms() - begin;
    CHECK(error.err == FI_ECONNRESET, "%s: %s", way->name, fi_strerror(error.err));
    CHECK(took_ms < NOTICE_MS, "%s: noticed after %lld ms", way->name, (long long)took_ms);
    CHECK(keeps_names || !is_listed(listener), "%s: %s is left behind", way->name, listener);
    end_rank();
}

static void a_dead_rank_is_missed_though_its_children_live(void)
{
    for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++)
        death_beside_a_child(&ways[way], false);
}

// Its descriptors are those of its parent: neither its names nor its ports say that the parent has
// ended.
static void a_dead_rank_is_missed_though_a_raw_clone_of_it_lives(void)
{
    if (over_datagrams())
        skip("the clone holds the port, so that only silence tells (FI_WEFT_DEAD_AFTER)");
    death_beside_a_child(&raw_clone, true);
}

// The parent ends in daemon(3), and with it the rank; its child may not go on with what it has
// inherited.
static void a_rank_that_becomes_a_daemon_has_ended(void)
{
    uint32_t in = 0;
    int64_t begin;
    split();
    exchange(1);
    struct link link = link_to_other();
    meet(&link);
    if (is_rank) {
        if (daemon(1, 1) != 0)
            _exit(1);
        uint32_t out = 1;
        if (fi_tsend(here.ep, &out, 4, NULL, here.other, 7, &out) != -FI_EOPBADSTATE)
            _exit(1);
        // It has left the rank's group: the other one ends it.
        pid_t own = getpid();
        CHECK(write(sync_socket, &own, sizeof(own)) == sizeof(own), "not said");
        idle();
    }
    OK(fi_trecv(here.ep, &in, 4, NULL, here.other, 7, 0, &in));
    begin = now_ms();
    struct fi_cq_err_entry error = next_error(&here, NULL);
    CHECK(error.err == FI_ECONNRESET, "error %d (%s)", error.err, fi_strerror(error.err));
    CHECK(now_ms() - begin < NOTICE_MS, "noticed too late");
    pid_t daemon_pid = 0;
    while (read(sync_socket, &daemon_pid, sizeof(daemon_pid)) < 0 && errno == EAGAIN &&
           now_ms() - begin < ENTRY_LIMIT_MS)
        usleep(1000);
    CHECK(daemon_pid > 1, "the daemon may send, or has ended");
    kill(daemon_pid, SIGKILL);
    end_rank();
}

#define CASE(law) {#law, law}

const struct test_case fork_cases[] = {
    CASE(whatever_a_child_does_its_ranks_messages_stay_right),
    CASE(a_fork_in_the_middle_of_a_long_message_does_not_change_it),
    CASE(a_dead_rank_is_missed_though_its_children_live),
    CASE(a_dead_rank_is_missed_though_a_raw_clone_of_it_lives),
    CASE(a_rank_that_becomes_a_daemon_has_ended),
    {NULL, NULL},
};

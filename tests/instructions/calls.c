// SPDX-License-Identifier: Apache-2.0 OR MIT
// Two endpoints in one process; sends 8-byte messages from one to the other, one at a time: the
// receive is posted, the queue is read in vain, the message is sent, the queue is read again. Or
// sends them too early (late): the message is sent, the queue is read in vain, the receive is
// posted, the queue is read again. Or touches 8 bytes of the other's registered memory, one
// operation at a time, from the call to its entry in the queue, the target's progress included: in
// private memory by messages, in a shared file by load and store. Each call stands in a function of
// its own, whose instructions run.sh has callgrind count. What comes before those functions are
// called, the first contact above all, is not counted. Or answers each message with one, as two
// hosts do (pingpong): then time goes by calls of the clock and not by how fast this machine
// counts, so that no timer fires that would not elsewhere.
//
// Usage: calls tagged|plain|late|pingpong|private|shared ROUNDS
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 8
#define DATA 7
#define TAG 42
#define IGNORE 0xff000000000000ull
#define FIRST_ROUNDS 50 // in which an initiator finds out what memory it is
#define CLOCK_STEP_NS 250 // between two readings of the clock that goes by calls

struct side {
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    fi_addr_t other;
    char address[64];
    size_t address_length;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static bool tagged;
static char source[LENGTH], target[LENGTH];
static struct fi_context2 context;
static struct fi_cq_tagged_entry entries[16];

static void check(ssize_t result, const char *call) {
    if (result >= 0) return;
    fprintf(stderr, "%s: %zd, %s\n", call, result, fi_strerror((int)-result));
    exit(1);
}

static void open_side(struct side *side) {
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED, .size = 128};
    struct fi_av_attr vector = {.type = FI_AV_TABLE};
    check(fi_endpoint(domain, info, &side->ep, NULL), "fi_endpoint");
    check(fi_cq_open(domain, &queue, &side->cq, NULL), "fi_cq_open");
    check(fi_av_open(domain, &vector, &side->av, NULL), "fi_av_open");
    check(fi_ep_bind(side->ep, &side->av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(side->ep), "fi_enable");
    side->address_length = sizeof side->address;
    check(fi_getname(&side->ep->fid, side->address, &side->address_length), "fi_getname");
}

static bool steps; // the clock goes by calls
int clock_gettime(clockid_t clock, struct timespec *now) {
    static uint64_t step_ns;
    if (!steps) return (int)syscall(SYS_clock_gettime, clock, now);
    if (step_ns == 0) {
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, now);
        step_ns = (uint64_t)now->tv_sec * 1000000000 + (uint64_t)now->tv_nsec;
    }
    step_ns += CLOCK_STEP_NS;
    now->tv_sec = (time_t)(step_ns / 1000000000);
    now->tv_nsec = (long)(step_ns % 1000000000);
    return 0;
}

static inline ssize_t post(struct side *to) {
    return tagged ? fi_trecv(to->ep, target, LENGTH, NULL, to->other, TAG, IGNORE, &context)
                  : fi_recv(to->ep, target, LENGTH, NULL, to->other, &context);
}

static inline ssize_t inject(struct side *from) {
    return tagged ? fi_tinjectdata(from->ep, source, LENGTH, DATA, from->other, TAG)
                  : fi_injectdata(from->ep, source, LENGTH, DATA, from->other);
}

// What is counted: these, everything that they call, and the few instructions of their own.
__attribute__((noinline)) ssize_t counted_post(struct side *to) { return post(to); }
__attribute__((noinline)) ssize_t counted_empty(struct side *to) {
    return fi_cq_read(to->cq, entries, 16);
}
__attribute__((noinline)) ssize_t counted_inject(struct side *from) { return inject(from); }
__attribute__((noinline)) ssize_t counted_find(struct side *to) {
    return fi_cq_read(to->cq, entries, 16);
}
// The same calls where the message comes before its receive.
__attribute__((noinline)) ssize_t counted_keep(struct side *to) {
    return fi_cq_read(to->cq, entries, 16);
}
__attribute__((noinline)) ssize_t counted_match(struct side *to) { return post(to); }
__attribute__((noinline)) ssize_t counted_take(struct side *to) {
    return fi_cq_read(to->cq, entries, 16);
}

// The other's memory, and what an operation ends with: both sides make progress until there is the
// entry.
static uint64_t remote_address, remote_key;
static inline ssize_t until_done(ssize_t posted, struct side *from, struct side *to) {
    ssize_t count;
    if (posted != 0) return posted;
    while ((count = fi_cq_read(from->cq, entries, 16)) == -FI_EAGAIN)
        fi_cq_read(to->cq, entries, 16);
    return count;
}

static inline ssize_t write_word(struct side *from, struct side *to) {
    return until_done(
        fi_write(from->ep, source, LENGTH, NULL, from->other, remote_address, remote_key, &context),
        from, to);
}
static inline ssize_t read_word(struct side *from, struct side *to) {
    return until_done(
        fi_read(from->ep, target, LENGTH, NULL, from->other, remote_address, remote_key, &context),
        from, to);
}
static inline ssize_t fetch_word(struct side *from, struct side *to) {
    return until_done(fi_fetch_atomic(from->ep, source, 1, NULL, target, NULL, from->other,
                                      remote_address, remote_key, FI_UINT64, FI_SUM, &context),
                      from, to);
}

__attribute__((noinline)) ssize_t counted_write(struct side *from, struct side *to) {
    return write_word(from, to);
}
__attribute__((noinline)) ssize_t counted_read(struct side *from, struct side *to) {
    return read_word(from, to);
}
__attribute__((noinline)) ssize_t counted_fetch(struct side *from, struct side *to) {
    return fetch_word(from, to);
}

static void touch_memory(struct side *from, struct side *to, bool shared, int rounds) {
    static uint64_t private_word;
    uint64_t *word = &private_word;
    struct fid_mr *mr;
    if (shared) {
        int file = memfd_create("calls", 0);
        if (file < 0 || ftruncate(file, 4096) != 0) exit(1);
        word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (word == MAP_FAILED) exit(1);
    }
    check(fi_mr_reg(domain, word, LENGTH, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 11, 0, &mr, NULL),
          "fi_mr_reg");
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        check(fi_mr_bind(mr, &to->ep->fid, 0), "fi_mr_bind");
        check(fi_mr_enable(mr), "fi_mr_enable");
    }
    remote_key = fi_mr_key(mr);
    remote_address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)word : 0;
    for (uint64_t round = 1; round <= (uint64_t)(rounds + FIRST_ROUNDS); round++) {
        bool counted = round > FIRST_ROUNDS;
        uint64_t before = 0;
        memcpy(source, &round, sizeof round);
        check(counted ? counted_write(from, to) : write_word(from, to), "fi_write");
        check(counted ? counted_read(from, to) : read_word(from, to), "fi_read");
        memcpy(&before, target, sizeof before);
        if (before != round) exit(1);
        check(counted ? counted_fetch(from, to) : fetch_word(from, to), "fi_fetch_atomic");
        memcpy(&before, target, sizeof before);
        if (before != round || *word != 2 * round) exit(1);
    }
    check(fi_close(&mr->fid), "fi_close");
}

// A message is there, and nothing else.
static void expect(ssize_t count) {
    if (count != 1 || entries[0].op_context != &context || entries[0].data != DATA ||
        memcmp(source, target, LENGTH) != 0)
        exit(1);
}

static void exchange(struct side *near, struct side *far, int rounds) {
    struct side *sides[2] = {near, far};
    for (int round = 0; round < rounds; round++) {
        struct side *from = sides[round % 2], *to = sides[1 - round % 2];
        memcpy(source, &round, sizeof round);
        check(counted_post(to), "post");
        if (counted_empty(to) != -FI_EAGAIN) exit(1);
        check(counted_inject(from), "inject");
        expect(counted_find(to));
    }
}

static void uncounted_round(struct side *from, struct side *to) {
    ssize_t result;
    check(post(to), "post");
    while ((result = inject(from)) == -FI_EAGAIN) fi_cq_read(from->cq, entries, 16);
    check(result, "inject");
    while ((result = fi_cq_read(to->cq, entries, 16)) == -FI_EAGAIN)
        fi_cq_read(from->cq, entries, 16);
    check(result, "fi_cq_read");
}

int main(int argc, char **argv) {
    bool known = false, shared, touches;
    for (const char **kind =
             (const char *[]){"tagged", "plain", "late", "pingpong", "private", "shared", NULL};
         *kind; kind++)
        known = known || (argc == 3 && strcmp(argv[1], *kind) == 0);
    if (!known) {
        fprintf(stderr, "usage: calls tagged|plain|late|pingpong|private|shared ROUNDS\n");
        return 2;
    }
    bool late = strcmp(argv[1], "late") == 0;
    steps = strcmp(argv[1], "pingpong") == 0;
    tagged = late || steps || strcmp(argv[1], "tagged") == 0;
    shared = strcmp(argv[1], "shared") == 0;
    touches = shared || strcmp(argv[1], "private") == 0;
    struct fi_info *hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | (touches ? FI_RMA | FI_ATOMIC : 0);
    hints->fabric_attr->prov_name = strdup("weft");
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    struct side from = {0}, to = {0};
    open_side(&from);
    open_side(&to);
    if (fi_av_insert(from.av, to.address, 1, &from.other, 0, NULL) != 1) return 1;
    if (fi_av_insert(to.av, from.address, 1, &to.other, 0, NULL) != 1) return 1;
    for (int round = 0; round < 400; round++)
        uncounted_round(round % 2 ? &to : &from, round % 2 ? &from : &to);
    if (steps) {
        exchange(&from, &to, atoi(argv[2]));
        return 0;
    }
    if (touches) {
        touch_memory(&from, &to, shared, atoi(argv[2]));
        return 0;
    }
    for (int round = atoi(argv[2]); round > 0; round--) {
        memcpy(source, &round, sizeof round);
        if (late) {
            check(counted_inject(&from), "inject");
            if (counted_keep(&to) != -FI_EAGAIN) return 1;
            check(counted_match(&to), "post");
        } else {
            check(counted_post(&to), "post");
            if (counted_empty(&to) != -FI_EAGAIN) return 1;
            check(counted_inject(&from), "inject");
        }
        expect(late ? counted_take(&to) : counted_find(&to));
    }
    return 0;
}

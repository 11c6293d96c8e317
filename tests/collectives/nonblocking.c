/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Collectives that do not wait: many random ones under way at a time on two communicators, with
 * messages and blocking collectives in between, ended by each of the MPI's functions for requests.
 * Each result is checked, byte by byte.
 *
 *   nonblocking TURNS SEED
 *
 * Ends with `all is well`, or says what is not. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 24, RANKS = 8, KINDS = 11, ROOM = 40000 };

static int rank, ranks, turn;
static long seed;
static uint64_t state;

static int below(int limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

/* One call under way. */
struct call {
    int kind, count, root, in_place, derived;
    uint32_t salt;
    uint32_t *send, *taken;
};

static struct call calls[CALLS];
static MPI_Request requests[CALLS];

/* Types of another layout, made when a call's own type is freed: an MPI may give them its handle or
 * its memory, and the call must not go by them. */
static MPI_Datatype others[CALLS];
static int other_count;

static void fail(const struct call *call, const char *what, int at) {
    fprintf(stderr, "seed %ld, turn %d, rank %d: kind %d, %d words%s: %s, word %d\n", seed, turn,
            rank, call ? call->kind : -1, call ? call->count : 0,
            call && call->in_place ? " in place" : "", what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
    /* MPICH comes back where errors return. */
    _exit(1);
}

/* Word `at` of what a rank gives. */
static uint32_t word(const struct call *call, int from, int at) {
    return (call->salt ^ (uint32_t)from << 24 ^ (uint32_t)at) * 0x9e3779b9u;
}

static uint32_t sum(const struct call *call, int first, int last, int at) {
    uint32_t all = 0;
    for (int from = first; from < last; from++) all += word(call, from, at);
    return all;
}

/* How many words a call gives, and takes. */
static int given(const struct call *call) {
    return call->count * (call->kind == 4 || call->kind == 5 || call->kind == 6 ? ranks : 1);
}

static int taken(const struct call *call) {
    int all = call->kind == 2 || call->kind == 3 || call->kind == 5;
    return call->count * (all || (call->kind == 6 && call->in_place) ? ranks : 1);
}

static void begin(struct call *call, MPI_Comm all, MPI_Request *request) {
    int count = call->count, root = call->root, is_root = rank == root, times = count;
    uint32_t *send = call->send, *to = call->taken;
    MPI_Datatype kind = MPI_UINT32_T, one = kind;
    for (int at = 0; at < given(call); at++) send[at] = word(call, rank, at);
    for (int at = 0; at < taken(call); at++) to[at] = 0xa5a5a5a5u;
    int in_place = call->in_place && call->kind != 1 && (call->kind != 2 || is_root) &&
                   (call->kind != 4 || is_root) && (call->kind != 8 || is_root);
    const void *from = in_place ? MPI_IN_PLACE : send;
    int place = call->kind == 2 || call->kind == 3 ? rank * count : 0;
    if (in_place && call->kind != 4) memcpy(to + place, send, (size_t)given(call) * 4);
    /* Some ranks describe what they give by pairs. */
    if (call->derived && count % 2 == 0 && rank % 2) {
        MPI_Type_contiguous(2, kind, &one);
        MPI_Type_commit(&one);
        times = count / 2;
    }
    switch (call->kind) {
    case 0: MPI_Ibarrier(all, request); break;
    case 1:
        if (is_root) memcpy(to, send, (size_t)count * 4);
        MPI_Ibcast(to, times, one, root, all, request);
        break;
    case 2: MPI_Igather(from, times, one, to, count, kind, root, all, request); break;
    case 3: MPI_Iallgather(from, times, one, to, count, kind, all, request); break;
    case 4:
        MPI_Iscatter(send, count, kind, in_place ? MPI_IN_PLACE : (void *)to, times, one, root, all,
                     request);
        break;
    case 5: MPI_Ialltoall(from, count, kind, to, times, one, all, request); break;
    case 6: MPI_Ireduce_scatter_block(from, to, count, kind, MPI_SUM, all, request); break;
    case 7: MPI_Iallreduce(from, to, count, kind, MPI_SUM, all, request); break;
    case 8: MPI_Ireduce(from, to, count, kind, MPI_SUM, root, all, request); break;
    case 9: MPI_Iscan(from, to, count, kind, MPI_SUM, all, request); break;
    default: MPI_Iexscan(from, to, count, kind, MPI_SUM, all, request);
    }
    if (one != kind) {
        MPI_Type_free(&one);
        MPI_Type_vector(2, 1, 3, kind, &others[other_count]);
        MPI_Type_commit(&others[other_count++]);
    }
}

static uint32_t expected(const struct call *call, int at) {
    int count = call->count, block = at / count, is_root = rank == call->root;
    switch (call->kind) {
    case 1: return word(call, call->root, at);
    case 2: return is_root ? word(call, block, at % count) : 0xa5a5a5a5u;
    case 3: return word(call, block, at % count);
    case 4:
        return call->in_place && is_root ? 0xa5a5a5a5u
                                         : word(call, call->root, rank * count + at);
    case 5: return word(call, block, rank * count + at % count);
    case 6: return sum(call, 0, ranks, rank * count + at);
    case 7: return sum(call, 0, ranks, at);
    case 8: return is_root ? sum(call, 0, ranks, at) : 0xa5a5a5a5u;
    case 9: return sum(call, 0, rank + 1, at);
    default: return sum(call, 0, rank, at);
    }
}

static void check(const struct call *call) {
    /* What lies behind the result of a reduce_scatter in place is nobody's, nor is the first
     * rank's of an exscan. */
    int words = call->kind == 6 ? call->count : taken(call);
    if (call->kind == 0 || (call->kind == 10 && rank == 0)) return;
    for (int at = 0; at < words; at++)
        if (call->taken[at] != expected(call, at)) fail(call, "wrong", at);
}

static void look_at(MPI_Status *status) {
    int cancelled = 1;
    MPI_Test_cancelled(status, &cancelled);
    if (cancelled) fail(NULL, "a status says that the call was cancelled", 0);
}

static void end(int count, int how) {
    int at, flag, ended, which[CALLS];
    MPI_Status status, statuses[CALLS];
    switch (how) {
    case 0: MPI_Waitall(count, requests, statuses); break;
    case 1:
        for (at = count - 1; at >= 0; at--) MPI_Wait(&requests[at], &status), look_at(&status);
        break;
    case 2:
        for (ended = 0; ended < count; ended++) {
            MPI_Waitany(count, requests, &at, &status);
            check(&calls[at]);
        }
        break;
    case 3:
        for (ended = 0; ended < count;) {
            MPI_Testsome(count, requests, &flag, which, statuses);
            for (at = 0; at < flag; at++) check(&calls[which[at]]);
            ended += flag;
        }
        break;
    case 4:
        do MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        while (!flag);
        break;
    case 5:
        for (at = 0; at < count; at++) {
            do MPI_Request_get_status(requests[at], &flag, &status);
            while (!flag);
            check(&calls[at]);
            MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        }
        break;
    default:
        for (at = 0; at < count; at++)
            do MPI_Test(&requests[at], &flag, &status);
            while (!flag);
    }
    for (at = 0; at < count; at++) {
        if (requests[at] != MPI_REQUEST_NULL) fail(&calls[at], "the request is still there", 0);
        check(&calls[at]);
    }
    while (other_count > 0) MPI_Type_free(&others[--other_count]);
}

static void round_of_calls(MPI_Comm *communicators) {
    int count = 1 + below(CALLS), token = turn, next = (rank + 1) % ranks;
    int before = (rank + ranks - 1) % ranks, got = -1;
    for (int at = 0; at < count; at++) {
        struct call *call = &calls[at];
        int most[] = {2, 20, 600, 4000, 8000};
        call->kind = below(KINDS);
        int blocks = call->kind > 6 || call->kind < 2 ? 1 : ranks;
        call->count = 1 + below(1 + most[below(5)] / blocks);
        call->root = below(ranks);
        call->in_place = below(2);
        /* Intel MPI 2021.18 loses a rank's own block in such an allgather. */
        call->derived = call->kind != 3 && call->kind < 6 && below(3) == 0;
        call->salt = (uint32_t)below(1 << 30);
        begin(call, communicators[below(2)], &requests[at]);
        if (below(8) == 0)
            MPI_Sendrecv(&token, 1, MPI_INT, next, 5, &got, 1, MPI_INT, before, 5, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        if (below(16) == 0) MPI_Barrier(communicators[below(2)]);
    }
    end(count, below(7));
}

/* A root that is far ahead goes on while it waits for a message, which comes only then. */
static void go_on_in_another_call(void) {
    int token = 0;
    for (int at = 0; at < CALLS; at++) {
        struct call *call = &calls[at];
        *call = (struct call){4, 300, 0, 0, 0, (uint32_t)at, call->send, call->taken};
        if (rank == 0) begin(call, MPI_COMM_WORLD, &requests[at]);
    }
    if (rank == 0)
        for (int from = 1; from < ranks; from++)
            MPI_Recv(&token, 1, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        for (int at = 0; at < CALLS; at++) begin(&calls[at], MPI_COMM_WORLD, &requests[at]);
    end(CALLS, rank == 0 ? 0 : below(7));
    if (rank != 0) MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
}

/* A communicator may be freed before its calls have ended. */
static void free_early(void) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int at = 0; at < 5; at++) MPI_Barrier(copy);
    for (int at = 0; at < 3; at++) {
        struct call *call = &calls[at];
        *call = (struct call){7, 50, 0, 0, 0, (uint32_t)at, call->send, call->taken};
        begin(call, copy, &requests[at]);
    }
    MPI_Comm_free(&copy);
    end(3, below(7));
}

static MPI_Comm heard_of;
static int heard;

static void hear(MPI_Comm *communicator, int *code, ...) {
    (void)code;
    heard_of = *communicator;
    heard++;
}

/* Ranks in different calls: the communicator's own error handler hears of it, and so it does of the
 * next call. For requests the MPI calls a handler of its own choice besides. */
static void differ(void) {
    MPI_Comm own;
    MPI_Errhandler handler;
    MPI_Request request;
    int one = 1, all = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(own, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int at = 0; at < 5; at++) MPI_Barrier(own);
    if (rank == 0) MPI_Ibarrier(own, &request);
    else MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, own, &request);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) fail(NULL, "different calls ended well", 0);
    if (heard != 1 || heard_of != own) fail(NULL, "the handler heard of different calls", heard);
    code = MPI_Ibarrier(own, &request);
    if (code == MPI_SUCCESS || heard != 2) fail(NULL, "a call behind one that failed", heard);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 100;
    seed = argc > 2 ? atol(argv[2]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm communicators[2] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[1]);
    for (int at = 0; at < 8; at++) MPI_Barrier(communicators[at % 2]);
    for (int at = 0; at < CALLS; at++) {
        calls[at].send = malloc(ROOM);
        calls[at].taken = malloc(ROOM);
    }
    for (turn = 0; turn < turns; turn++) {
        state = ((uint64_t)seed * 0x9e3779b97f4a7c15u + (uint64_t)turn * 2654435761u) | 1;
        round_of_calls(communicators);
        if (turn % 32 == 0) go_on_in_another_call();
        if (turn % 32 == 1) free_early();
    }
    differ();
    MPI_Comm_free(&communicators[1]);
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}

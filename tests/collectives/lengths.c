/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Collectives that do not wait against the MPI's own results: no data, one element, and blocks of
 * about the longest length that is served (2 KiB), in place or not, on communicators of all ranks
 * and of parts of them. Each call is made by a name that a preloaded library may serve, every
 * fourth turn by its second (PMPI_), and by the MPI's own function that waits. Sums of floating
 * point numbers are of small whole numbers: every order gives the same bits.
 *
 *   lengths TURNS SEED
 *
 * Ends with `N turns are right, seed S`, or says which call was wrong. */
#define _GNU_SOURCE
#include "own.h"
#include <stdint.h>
#include <string.h>

enum { CALLS = 10, KINDS = 11, TYPES = 5, COMMUNICATORS = 3, RANKS = 8, BLOCK = 4200, GUARD = 32 };
enum { ROOM = RANKS * BLOCK + GUARD };

static const char *const names[KINDS] = {"barrier",       "bcast",   "gather", "allgather",
                                         "scatter",       "alltoall", "reduce_scatter_block",
                                         "allreduce",     "reduce",  "scan",   "exscan"};

struct call {
    int kind, count, root, in_place, derives, type, rank, ranks;
    MPI_Comm communicator;
    /* What it gives, its result, and the MPI's. */
    char *given, *ours, *theirs;
};

static uint64_t shared_state, own_state;
static int world_rank, turn, is_intel;
static long seed;
static MPI_Datatype types[TYPES];
static int sizes[TYPES];

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The same numbers on all ranks. */
static int below(int limit) { return (int)(draw(&shared_state) % (uint64_t)limit); }

static void fail(const struct call *call, const char *what, size_t at) {
    fprintf(stderr, "seed %ld, turn %d, rank %d of %d: "
            "%s of %d elements of type %d%s: %s, byte %zu\n",
            seed, turn, call->rank, call->ranks, names[call->kind], call->count, call->type,
            call->in_place ? " in place" : "", what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(char *room, const struct call *call) {
    size_t size = (size_t)sizes[call->type];
    for (size_t at = 0; at + size <= ROOM; at += size) {
        if (call->type == 3) *(float *)(room + at) = (float)(draw(&own_state) % 4);
        else if (call->type == 4) *(double *)(room + at) = (double)(draw(&own_state) % 4);
        else for (size_t byte = 0; byte < size; byte++) room[at + byte] = (char)draw(&own_state);
    }
}

/* Elements in a block: none, few, or about as many as are served. */
static int length(int size) {
    int around = below(3) - 1, some = 1 + below(64), more = below(BLOCK / size);
    switch (below(6)) {
    case 0: return 0;
    case 1: return some;
    case 2: return more;
    case 3: return size == 1 ? 2048 + around : 2048 / size;
    default: return 2048 / size + around;
    }
}

/* Whether a kind has blocks that may be described by other types. */
static int moves(int kind) { return kind >= 1 && kind <= 5; }

static void draw_call(struct call *call, const MPI_Comm *communicators) {
    call->kind = below(KINDS);
    call->type = below(TYPES);
    call->count = length(sizes[call->type]);
    call->communicator = communicators[below(COMMUNICATORS)];
    MPI_Comm_rank(call->communicator, &call->rank);
    MPI_Comm_size(call->communicator, &call->ranks);
    call->root = below(1 << 20) % call->ranks;
    /* Of calls with a root only the root's data may be in place. */
    int rooted = call->kind == 2 || call->kind == 4 || call->kind == 8;
    call->in_place = below(3) == 0 && call->kind > 1 && (!rooted || call->rank == call->root);
    /* Intel MPI 2021.18 loses a rank's own block in such an allgather. */
    call->derives = below(3) == 0 && moves(call->kind) && !(is_intel && call->kind == 3) &&
                    call->count % 2 == 0 && call->rank % 2;
    fill(call->given, call);
    fill(call->ours, call);
    memcpy(call->theirs, call->ours, ROOM);
}

/* The call by a name that may be served, or the MPI's own that waits. */
#define EITHER(name, waits_not, ...)                                                               \
    (is_own ? OWN(name)(__VA_ARGS__)                                                               \
            : (turn % 4 ? MPI_##waits_not : PMPI_##waits_not)(__VA_ARGS__, request))

static void make(const struct call *call, int is_own, MPI_Request *request) {
    int count = call->count, root = call->root, times = count;
    MPI_Comm all = call->communicator;
    MPI_Datatype kind = types[call->type], one = kind;
    void *to = is_own ? call->theirs : call->ours;
    const void *from = call->in_place ? MPI_IN_PLACE : call->given;
    void *kept = call->in_place ? MPI_IN_PLACE : to;
    if (call->derives) {
        times = count / 2;
        MPI_Type_contiguous(2, kind, &one);
        MPI_Type_commit(&one);
    }
    switch (call->kind) {
    case 0: EITHER(Barrier, Ibarrier, all); break;
    case 1: EITHER(Bcast, Ibcast, to, times, one, root, all); break;
    case 2: EITHER(Gather, Igather, from, times, one, to, count, kind, root, all); break;
    case 3: EITHER(Allgather, Iallgather, from, times, one, to, count, kind, all); break;
    case 4:
        EITHER(Scatter, Iscatter, call->given, count, kind, kept, times, one, root, all);
        break;
    case 5: EITHER(Alltoall, Ialltoall, from, count, kind, to, times, one, all); break;
    case 6:
        EITHER(Reduce_scatter_block, Ireduce_scatter_block, from, to, count, kind, MPI_SUM, all);
        break;
    case 7: EITHER(Allreduce, Iallreduce, from, to, count, kind, MPI_SUM, all); break;
    case 8: EITHER(Reduce, Ireduce, from, to, count, kind, MPI_MAX, root, all); break;
    case 9: EITHER(Scan, Iscan, from, to, count, kind, MPI_SUM, all); break;
    default: EITHER(Exscan, Iexscan, from, to, count, kind, MPI_MIN, all);
    }
    /* The program's own type may go before its call has ended. */
    if (one != kind) MPI_Type_free(&one);
}

static void check(const struct call *call) {
    size_t bytes = ROOM;
    /* What lies behind the result of a reduce_scatter in place is nobody's, nor is the first rank's
     * of an exscan. */
    if (call->kind == 6 && call->in_place) bytes = (size_t)call->count * sizes[call->type];
    if (call->kind == 10 && call->rank == 0) return;
    for (size_t at = 0; at < bytes; at++)
        if (call->ours[at] != call->theirs[at]) fail(call, "not what the MPI gives", at);
}

static void end(int count, MPI_Request *requests) {
    int flag = 0;
    switch (below(3)) {
    case 0: MPI_Waitall(count, requests, MPI_STATUSES_IGNORE); break;
    case 1:
        while (!flag) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        break;
    default:
        for (int at = 0; at < count; at++) MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    static struct call calls[CALLS];
    MPI_Request requests[CALLS];
    MPI_Comm communicators[COMMUNICATORS] = {MPI_COMM_WORLD};
    int turns = argc > 1 ? atoi(argv[1]) : 100, ignored, ranks;
    seed = argc > 2 ? atol(argv[2]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Get_library_version(version, &ignored);
    is_intel = strstr(version, "Intel") != NULL;
    MPI_Datatype known[TYPES] = {MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE};
    for (int at = 0; at < TYPES; at++) {
        types[at] = known[at];
        MPI_Type_size(types[at], &sizes[at]);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &communicators[2]);
    for (int at = 0; at < 5 * COMMUNICATORS; at++) MPI_Barrier(communicators[at % COMMUNICATORS]);
    for (int at = 0; at < CALLS; at++) {
        calls[at].given = malloc(ROOM);
        calls[at].ours = malloc(ROOM);
        calls[at].theirs = malloc(ROOM);
    }
    shared_state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
    own_state = shared_state * 31 + (uint64_t)world_rank + 1;
    for (turn = 0; turn < turns; turn++) {
        int count = 1 + below(CALLS);
        for (int at = 0; at < count; at++) {
            draw_call(&calls[at], communicators);
            make(&calls[at], 0, &requests[at]);
            /* The MPI's own comes at once, or behind all others. */
            if (at % 2) make(&calls[at], 1, NULL);
        }
        for (int at = 0; at < count; at += 2) make(&calls[at], 1, NULL);
        end(count, requests);
        for (int at = 0; at < count; at++) check(&calls[at]);
    }
    for (int at = 1; at < COMMUNICATORS; at++) MPI_Comm_free(&communicators[at]);
    if (world_rank == 0) printf("%d turns are right, seed %ld\n", turns, seed);
    MPI_Finalize();
    return 0;
}

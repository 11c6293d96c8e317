/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Random collectives against the MPI's own results: each call is made by a name that a preloaded
 * library may serve, every fourth one by its second (PMPI_), and by the MPI's own function.
 * Communicators are split, duplicated and freed in the middle; messages travel in between.
 * Reductions of floating point numbers are of small whole numbers: every order gives the same bits.
 *
 *   random CASES SEED [THREADS]
 *
 * With THREADS so many threads of each rank do so at the same time (MPI_THREAD_MULTIPLE), each with
 * communicators of its own; the first has MPI_COMM_WORLD. In between each thread sends to another
 * thread of the next rank, on a communicator that all threads have in common. Ends with `N cases
 * are right, seed S`, or says which case was wrong. */
#define _GNU_SOURCE
#include "drawn.h"
#include "own.h"
#include <pthread.h>

#define CALL(name) (case_number % 4 ? MPI_##name : PMPI_##name)
enum { COMMUNICATORS = 6, RANKS = 64, MOST_THREADS = 8, INTEL_SEGMENT_BYTES = 16384 };

/* At every so many cases threads of different numbers send to each other. */
enum { CASES_BETWEEN = 8, LONGEST_BETWEEN_BYTES = 60000 };

static int is_intel, thread_count;
static MPI_Comm of_threads;
static _Thread_local char *send, *ours, *theirs;

static void broadcast(MPI_Comm communicator, int rank, int ranks) {
    struct type type = types[below(type_count)];
    int count = length(ranks), root = below(ranks), derive = below(4) == 0;
    /* Beyond 16 KiB Intel MPI 2021.18 now and then delivers wrong bytes to more than two ranks
     * (docs/conformance.md). */
    int most = INTEL_SEGMENT_BYTES / (int)type.bytes;
    if (is_intel && ranks > 2 && count > most) count = most;
    size_t bytes = count * type.bytes;
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    MPI_Datatype kind = type.handle;
    int times = count;
    /* One rank may describe the same data otherwise: twice as many halves, say. */
    if (derive && count % 2 == 0 && rank % 2 == 0) {
        MPI_Type_contiguous(2, type.handle, &kind);
        MPI_Type_commit(&kind);
        times = count / 2;
    }
    CALL(Bcast)(ours, times, kind, root, communicator);
    OWN(Bcast)(theirs, times, kind, root, communicator);
    if (kind != type.handle) MPI_Type_free(&kind);
    check(ours, theirs, bytes, "broadcast");
}

/* Columns of a matrix at one rank, plain elements at the others. */
static void broadcast_columns(MPI_Comm communicator, int rank, int ranks) {
    int rows = 1 + below(200), root = below(ranks), gap = 1 + below(3);
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, gap, MPI_INT, &column);
    MPI_Type_commit(&column);
    size_t bytes = (size_t)rows * gap * sizeof(int);
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    int is_plain = rank % 2;
    CALL(Bcast)(ours, is_plain ? rows : 1, is_plain ? MPI_INT : column, root, communicator);
    OWN(Bcast)(theirs, is_plain ? rows : 1, is_plain ? MPI_INT : column, root, communicator);
    MPI_Type_free(&column);
    check(ours, theirs, bytes, "broadcast of columns");
}

static void reduce(MPI_Comm communicator, int rank, int ranks, int to_all) {
    static const int kinds = 10;
    MPI_Op operations[] = {MPI_SUM, MPI_MAX, MPI_MIN,  MPI_PROD, MPI_BAND,
                           MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,  MPI_LXOR};
    int at_type = below(type_count);
    if (!types[at_type].is_float && !types[at_type].is_bits) at_type = 0;
    struct type type = types[at_type];
    int at = below(type.is_float > 0 ? 4 : kinds), count = length(ranks), root = below(ranks);
    MPI_Op operation = operations[at];
    int in_place = below(3) == 0;
    size_t bytes = count * type.bytes;
    fill(send, bytes, type.is_float);
    fill(ours, bytes, type.is_float);
    memcpy(theirs, ours, bytes);
    if (to_all) {
        const void *from = in_place ? MPI_IN_PLACE : send;
        CALL(Allreduce)(from, ours, count, type.handle, operation, communicator);
        OWN(Allreduce)(from, theirs, count, type.handle, operation, communicator);
        char what[100];
        snprintf(what, sizeof what, "allreduce%s, type %d, operation %d",
                 in_place ? " in place" : "", (int)(at_type), at);
        check(ours, theirs, bytes, what);
    } else {
        const void *from = in_place && rank == root ? MPI_IN_PLACE : send;
        CALL(Reduce)(from, rank == root ? ours : NULL, count, type.handle, operation, root,
                   communicator);
        OWN(Reduce)(from, rank == root ? theirs : NULL, count, type.handle, operation, root,
                    communicator);
        check(ours, theirs, bytes, in_place ? "reduce in place" : "reduce");
    }
}

/* Blocks of the ranks: elements of each, and where each begins, with gaps, in any order. */
static _Thread_local int counts[RANKS], places[RANKS];

/* Draws blocks; alike on all ranks. Answers how many elements they take. */
static int draw_blocks(int ranks) {
    int place = 0, turned = below(2), most = length(ranks) + 1;
    for (int at = 0; at < ranks; at++) {
        int rank = turned ? ranks - 1 - at : at;
        counts[rank] = below(4) == 0 ? 0 : below(most);
        places[rank] = place;
        place += counts[rank] + below(3);
    }
    return place;
}

/* Some ranks describe their blocks by pairs of elements, where the lengths allow it. */
static MPI_Datatype halved(struct type type, int *count, int derives) {
    MPI_Datatype kind = type.handle;
    if (!derives || *count % 2) return kind;
    MPI_Type_contiguous(2, type.handle, &kind);
    MPI_Type_commit(&kind);
    *count /= 2;
    return kind;
}

static void exchange(MPI_Comm communicator, int rank, int ranks, int to_each) {
    struct type type = types[below(type_count)];
    int count = length(ranks), in_place = below(3) == 0, derives = below(3) == 0 && rank % 2;
    size_t part = count * type.bytes, bytes = part * ranks;
    fill(send, to_each ? bytes : part, 0);
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    const void *from = in_place ? MPI_IN_PLACE : send;
    int times = count;
    /* Intel MPI 2021.18 loses a rank's own block in such an allgather. */
    if (is_intel && !to_each) derives = 0;
    MPI_Datatype kind = halved(type, &times, derives);
    if (to_each) {
        CALL(Alltoall)(from, count, type.handle, ours, times, kind, communicator);
        OWN(Alltoall)(from, count, type.handle, theirs, times, kind, communicator);
        check(ours, theirs, bytes, in_place ? "alltoall in place" : "alltoall");
    } else {
        CALL(Allgather)(from, count, type.handle, ours, times, kind, communicator);
        OWN(Allgather)(from, count, type.handle, theirs, times, kind, communicator);
        check(ours, theirs, bytes, in_place ? "allgather in place" : "allgather");
    }
    if (kind != type.handle) MPI_Type_free(&kind);
}

static void to_or_from_root(MPI_Comm communicator, int rank, int ranks, int gathers) {
    struct type type = types[below(type_count)];
    int count = length(ranks), root = below(ranks), in_place = below(3) == 0;
    int derives = below(3) == 0 && rank % 2, times = count;
    MPI_Datatype kind = halved(type, &times, derives);
    size_t part = count * type.bytes, bytes = part * ranks;
    int is_root = rank == root;
    fill(send, bytes, 0);
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    if (gathers) {
        const void *from = in_place && is_root ? MPI_IN_PLACE : send;
        CALL(Gather)(from, times, kind, is_root ? ours : NULL, count, type.handle, root,
                   communicator);
        OWN(Gather)(from, times, kind, is_root ? theirs : NULL, count, type.handle, root,
                    communicator);
        check(ours, theirs, bytes, "gather");
    } else {
        void *one = in_place && is_root ? MPI_IN_PLACE : ours;
        void *other = in_place && is_root ? MPI_IN_PLACE : theirs;
        CALL(Scatter)(is_root ? send : NULL, count, type.handle, one, times, kind, root,
                    communicator);
        OWN(Scatter)(is_root ? send : NULL, count, type.handle, other, times, kind, root,
                     communicator);
        check(ours, theirs, bytes, "scatter");
    }
    if (kind != type.handle) MPI_Type_free(&kind);
}

/* The v-forms with a root, or allgatherv. */
static void parts(MPI_Comm communicator, int rank, int ranks, int which) {
    struct type type = types[below(type_count)];
    MPI_Datatype kind = type.handle;
    int root = below(ranks), in_place = below(3) == 0, is_root = rank == root;
    size_t bytes = draw_blocks(ranks) * type.bytes;
    fill(send, bytes, 0);
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    const void *from = in_place && (which == 0 || is_root) ? MPI_IN_PLACE : send;
    int own = counts[rank];
    if (which == 0) {
        CALL(Allgatherv)(from, own, kind, ours, counts, places, kind, communicator);
        OWN(Allgatherv)(from, own, kind, theirs, counts, places, kind, communicator);
        check(ours, theirs, bytes, in_place ? "allgatherv in place" : "allgatherv");
    } else if (which == 1) {
        int *all = is_root ? counts : NULL, *where = is_root ? places : NULL;
        CALL(Gatherv)(from, own, kind, ours, all, where, kind, root, communicator);
        OWN(Gatherv)(from, own, kind, theirs, all, where, kind, root, communicator);
        check(ours, theirs, bytes, in_place ? "gatherv in place" : "gatherv");
    } else {
        int *all = is_root ? counts : NULL, *where = is_root ? places : NULL;
        void *one = in_place && is_root ? MPI_IN_PLACE : ours;
        void *other = in_place && is_root ? MPI_IN_PLACE : theirs;
        CALL(Scatterv)(send, all, where, kind, one, own, kind, root, communicator);
        OWN(Scatterv)(send, all, where, kind, other, own, kind, root, communicator);
        check(ours, theirs, bytes, in_place ? "scatterv in place" : "scatterv");
    }
}

/* Alltoallv, or alltoallw: each pair of ranks has a length of its own. Blocks that are given have
 * gaps between them in half of the calls; without, they may be read in place. */
static void parts_to_parts(MPI_Comm communicator, int rank, int ranks, int typed) {
    int send_counts[RANKS], send_places[RANKS];
    MPI_Datatype kinds[RANKS];
    struct type type = types[below(type_count)];
    int in_place = below(3) == 0, most = length(ranks) / 2 + 2, unit = typed ? type.bytes : 1;
    int factor = below(100), gap = below(2), send_place = 0, place = 0;
    for (int other = 0; other < ranks; other++) {
        int give = (rank * 7 + other * 13 + factor) % most;
        int take = (other * 7 + rank * 13 + factor) % most;
        if (in_place) take = ((rank + other) * 11 + factor) % most;
        send_counts[other] = give, send_places[other] = send_place * unit;
        counts[other] = take, places[other] = place * unit;
        send_place += give + gap, place += take + 1;
        kinds[other] = type.handle;
    }
    size_t bytes = place * type.bytes;
    fill(send, send_place * type.bytes, 0);
    fill(ours, bytes, 0);
    memcpy(theirs, ours, bytes);
    const void *from = in_place ? MPI_IN_PLACE : send;
    if (typed) {
        CALL(Alltoallw)(from, send_counts, send_places, kinds, ours, counts, places, kinds,
                      communicator);
        OWN(Alltoallw)(from, send_counts, send_places, kinds, theirs, counts, places, kinds,
                       communicator);
        check(ours, theirs, bytes, in_place ? "alltoallw in place" : "alltoallw");
    } else {
        MPI_Datatype kind = type.handle;
        CALL(Alltoallv)(from, send_counts, send_places, kind, ours, counts, places, kind,
                      communicator);
        OWN(Alltoallv)(from, send_counts, send_places, kind, theirs, counts, places, kind,
                       communicator);
        check(ours, theirs, bytes, in_place ? "alltoallv in place" : "alltoallv");
    }
}

static struct type drawn_number(void) {
    struct type type = types[below(type_count)];
    return type.is_float || type.is_bits ? type : types[0];
}

static void reduce_scatter_block(MPI_Comm communicator, int ranks) {
    struct type type = drawn_number();
    int count = length(ranks), in_place = below(3) == 0;
    size_t bytes = count * type.bytes * ranks;
    fill(send, bytes, type.is_float);
    fill(ours, bytes, type.is_float);
    memcpy(theirs, ours, bytes);
    const void *from = in_place ? MPI_IN_PLACE : send;
    CALL(Reduce_scatter_block)(from, ours, count, type.handle, MPI_SUM, communicator);
    OWN(Reduce_scatter_block)(from, theirs, count, type.handle, MPI_SUM, communicator);
    check(ours, theirs, count * type.bytes, "reduce_scatter_block");
}

static void reduce_scatter(MPI_Comm communicator, int rank, int ranks) {
    struct type type = drawn_number();
    int in_place = below(3) == 0, total = 0;
    draw_blocks(ranks);
    for (int at = 0; at < ranks; at++) total += counts[at];
    size_t bytes = total * type.bytes;
    fill(send, bytes, type.is_float);
    fill(ours, bytes, type.is_float);
    memcpy(theirs, ours, bytes);
    const void *from = in_place ? MPI_IN_PLACE : send;
    CALL(Reduce_scatter)(from, ours, counts, type.handle, MPI_MAX, communicator);
    OWN(Reduce_scatter)(from, theirs, counts, type.handle, MPI_MAX, communicator);
    check(ours, theirs, counts[rank] * type.bytes, "reduce_scatter");
}

static void prefix(MPI_Comm communicator, int rank, int with_own) {
    struct type type = drawn_number();
    int count = length(4), in_place = below(3) == 0;
    MPI_Op operation = below(2) ? MPI_SUM : MPI_MIN;
    size_t bytes = count * type.bytes;
    fill(send, bytes, type.is_float);
    fill(ours, bytes, type.is_float);
    memcpy(theirs, ours, bytes);
    const void *from = in_place ? MPI_IN_PLACE : send;
    if (with_own) {
        CALL(Scan)(from, ours, count, type.handle, operation, communicator);
        OWN(Scan)(from, theirs, count, type.handle, operation, communicator);
        check(ours, theirs, bytes, "scan");
    } else {
        CALL(Exscan)(from, ours, count, type.handle, operation, communicator);
        OWN(Exscan)(from, theirs, count, type.handle, operation, communicator);
        /* The first rank's result means nothing. */
        if (rank > 0) check(ours, theirs, bytes, "exscan");
    }
}

static void maximum(void *in, void *in_out, int *count, MPI_Datatype *type) {
    (void)type;
    for (int at = 0; at < *count; at++)
        if (((int *)in)[at] > ((int *)in_out)[at]) ((int *)in_out)[at] = ((int *)in)[at];
}

/* What the MPI must carry out: operations of the program, another length than is served. */
static void left(MPI_Comm communicator) {
    MPI_Op operation;
    MPI_Op_create(maximum, 1, &operation);
    int count = below(50);
    fill(send, count * sizeof(int), 0);
    fill(ours, count * sizeof(int), 0);
    memcpy(theirs, ours, count * sizeof(int));
    CALL(Allreduce)(send, ours, count, MPI_INT, operation, communicator);
    OWN(Allreduce)(send, theirs, count, MPI_INT, MPI_MAX, communicator);
    MPI_Op_free(&operation);
    check(ours, theirs, count * sizeof(int), "allreduce by an operation of the program");
}

/* Some ranks alone. */
static void alone(MPI_Comm self) {
    int one = world_rank, other = -1;
    if (below(3) % 2 != world_rank % 2) return;
    MPI_Allreduce(&one, &other, 1, MPI_INT, MPI_SUM, self);
    if (other != world_rank) fail("allreduce alone");
}

/* Between two halves of a communicator. */
static void between(MPI_Comm communicator, int rank, int ranks) {
    MPI_Comm half, both;
    int low = (ranks + 1) / 2, other = -1, is_high = rank >= low, one = rank;
    if (ranks < 2) return;
    MPI_Comm_split(communicator, is_high, rank, &half);
    MPI_Intercomm_create(half, 0, communicator, is_high ? 0 : low, 3, &both);
    for (int turn = 0; turn < 6; turn++) {
        MPI_Allreduce(&one, &other, 1, MPI_INT, MPI_MAX, both);
        if (other != (is_high ? low - 1 : ranks - 1)) fail("allreduce between communicators");
        MPI_Barrier(half);
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* A long message beside a collective: who receives it first waits for it in the collective. */
static void cross(MPI_Comm communicator, int rank, int ranks) {
    int bytes = 1 + below(300000), to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    memset(send, rank + 1, (size_t)bytes);
    MPI_Irecv(ours, bytes, MPI_BYTE, from, 7, communicator, &requests[0]);
    MPI_Isend(send, bytes, MPI_BYTE, to, 7, communicator, &requests[1]);
    MPI_Barrier(communicator);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < bytes; at++)
        if (ours[at] != (char)(from + 1)) fail("message across a barrier");
}

/* What a thread of a rank sends in this case: a number that its bytes begin with, and a length. */
static int sent_between(int rank, int one, char *first) {
    uint64_t own = (uint64_t)(one * RANKS + rank);
    uint64_t state = (uint64_t)(case_number + 1) * 0x9e3779b97f4a7c15u + own;
    *first = (char)draw(&state);
    return 1 + (int)(draw(&state) % (case_number % 3 ? 64 : LONGEST_BETWEEN_BYTES));
}

/* Each thread sends to the next one of the next rank, and hears of the one before of the rank
 * before. A thread may wait for one that is behind; the last of all waits for none. */
static void between_threads(void) {
    int ranks, from_thread = (thread + thread_count - 1) % thread_count;
    MPI_Comm_size(of_threads, &ranks);
    int to = (world_rank + 1) % ranks, from = (world_rank + ranks - 1) % ranks;
    char first, theirs_first;
    int bytes = sent_between(world_rank, thread, &first);
    int their_bytes = sent_between(from, from_thread, &theirs_first), received;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int at = 0; at < bytes; at++) send[at] = (char)(first + at);
    MPI_Irecv(ours, ROOM, MPI_BYTE, from, from_thread, of_threads, &requests[0]);
    MPI_Isend(send, bytes, MPI_BYTE, to, thread, of_threads, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_BYTE, &received);
    if (received != their_bytes) fail("the length of a message between threads");
    for (int at = 0; at < received; at++)
        if (ours[at] != (char)(theirs_first + at)) fail("a message between threads");
}

/* Replaces one of the communicators by a part of another, or a copy. */
static void renew(MPI_Comm *communicators, int *there) {
    int place = 1 + below(COMMUNICATORS - 1), source = below(place), colours = 1 + below(2);
    int copies = below(2), order = below(2);
    if (there[place]) MPI_Comm_free(&communicators[place]);
    there[place] = 0;
    if (!there[source]) return;
    if (copies) {
        MPI_Comm_dup(communicators[source], &communicators[place]);
    } else {
        int colour = world_rank % colours, key = order ? -world_rank : world_rank;
        MPI_Comm_split(communicators[source], colour, key, &communicators[place]);
    }
    there[place] = 1;
}

static void one(MPI_Comm communicator, MPI_Comm self) {
    int rank, ranks;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    switch (below(23)) {
    case 0: MPI_Barrier(communicator); break;
    case 1: broadcast(communicator, rank, ranks); break;
    case 2: broadcast_columns(communicator, rank, ranks); break;
    case 3: reduce(communicator, rank, ranks, 1); break;
    case 4: reduce(communicator, rank, ranks, 0); break;
    case 5: exchange(communicator, rank, ranks, 0); break;
    case 6: exchange(communicator, rank, ranks, 1); break;
    case 7: to_or_from_root(communicator, rank, ranks, 1); break;
    case 8: to_or_from_root(communicator, rank, ranks, 0); break;
    case 9: reduce_scatter_block(communicator, ranks); break;
    case 10: parts(communicator, rank, ranks, 0); break;
    case 11: parts(communicator, rank, ranks, 1); break;
    case 12: parts(communicator, rank, ranks, 2); break;
    case 13: parts_to_parts(communicator, rank, ranks, 0); break;
    case 14: parts_to_parts(communicator, rank, ranks, 1); break;
    case 15: reduce_scatter(communicator, rank, ranks); break;
    case 16: prefix(communicator, rank, 1); break;
    case 17: prefix(communicator, rank, 0); break;
    case 18: left(communicator); break;
    case 19: alone(self); break;
    case 20: between(communicator, rank, ranks); break;
    default: cross(communicator, rank, ranks);
    }
}

/* What a thread begins with. */
struct start {
    MPI_Comm all, self;
    int thread, cases;
};

static void *run(void *given) {
    const struct start *start = given;
    MPI_Comm communicators[COMMUNICATORS] = {start->all};
    int there[COMMUNICATORS] = {1};
    thread = start->thread;
    send = malloc(ROOM);
    ours = malloc(ROOM);
    theirs = malloc(ROOM);
    shared_state = (uint64_t)(seed + thread) * 0x9e3779b97f4a7c15u + 1;
    for (case_number = 0; case_number < start->cases; case_number++) {
        /* Each case draws anew, so that ranks outside a communicator draw the same. */
        uint64_t next = draw(&shared_state);
        own_state = next * 31 + (uint64_t)world_rank + 1;
        if (below(40) == 0) renew(communicators, there);
        if (thread_count > 1 && case_number % CASES_BETWEEN == 0) between_threads();
        int place = below(COMMUNICATORS);
        if (!there[place]) place = 0;
        one(communicators[place], start->self);
        shared_state = next | 1;
    }
    for (int place = 1; place < COMMUNICATORS; place++)
        if (there[place]) MPI_Comm_free(&communicators[place]);
    free(send);
    free(ours);
    free(theirs);
    return NULL;
}

static void run_threads(int threads, int cases) {
    static struct start starts[MOST_THREADS];
    static pthread_t others[MOST_THREADS];
    starts[0] = (struct start){MPI_COMM_WORLD, MPI_COMM_SELF, 0, cases};
    thread_count = threads;
    MPI_Comm_dup(MPI_COMM_WORLD, &of_threads);
    for (int at = 1; at < threads; at++) {
        starts[at] = (struct start){.thread = at, .cases = cases};
        MPI_Comm_dup(MPI_COMM_WORLD, &starts[at].all);
        MPI_Comm_dup(MPI_COMM_SELF, &starts[at].self);
    }
    for (int at = 1; at < threads; at++)
        if (pthread_create(&others[at], NULL, run, &starts[at])) fail("a thread");
    run(&starts[0]);
    for (int at = 1; at < threads; at++) {
        pthread_join(others[at], NULL);
        MPI_Comm_free(&starts[at].all);
        MPI_Comm_free(&starts[at].self);
    }
    MPI_Comm_free(&of_threads);
}

int main(int argc, char **argv) {
    int cases = argc > 1 ? atoi(argv[1]) : 100, threads = argc > 3 ? atoi(argv[3]) : 1, level;
    seed = argc > 2 ? atol(argv[2]) : 1;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "%d threads, and not 1 to %d\n", threads, MOST_THREADS);
        return 2;
    }
    int wanted = threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (level < wanted) fail("the MPI has no MPI_THREAD_MULTIPLE");
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int version_length;
    MPI_Get_library_version(version, &version_length);
    is_intel = strstr(version, "Intel") != NULL;
    add_type(MPI_INT, 0, 1);
    add_type(MPI_UNSIGNED_CHAR, 0, 1);
    add_type(MPI_SHORT, 0, 1);
    add_type(MPI_UNSIGNED_LONG, -8, 1);
    add_type(MPI_INT64_T, 0, 1);
    add_type(MPI_DOUBLE, 8, 0);
    add_type(MPI_FLOAT, 4, 0);
    add_type(MPI_C_DOUBLE_COMPLEX, 0, 0);
    add_type(MPI_CHAR, 0, 0);
    run_threads(threads, cases);
    if (world_rank == 0) printf("%d cases are right, seed %ld\n", cases, seed);
    MPI_Finalize();
    return 0;
}

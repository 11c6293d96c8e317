/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Collectives of derived datatypes against the MPI's own results: holes, negative lower bounds,
 * negative and small extents, interleaved blocks, absolute addresses (MPI_BOTTOM), other shapes on
 * each rank, in place or not, blocks at negative displacements; calls that wait, and those that do
 * not, whose types are freed at once. Holes must stay as they are.
 *
 *   shapes TURNS SEED
 *
 * Ends with `N turns are right, seed S`, or says which call was wrong. */
#define _GNU_SOURCE
#include "own.h"
#include <stdint.h>
#include <string.h>

enum { RANKS = 16, ROOM = 1 << 19, MIDDLE = ROOM / 2, CALLS = 10, WINDOW = 3 };
enum { BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV,
       ALLTOALLW };

static const char *const names[CALLS] = {"bcast",    "gather",    "gatherv",    "scatter",
                                         "scatterv", "allgather", "allgatherv", "alltoall",
                                         "alltoallv", "alltoallw"};

/* The shapes of a block of so many ints. */
enum { PLAIN, SCATTERED, COLUMN, SPREAD, PAIRS, SHAPES };

static uint64_t shared_state, own_state;
static long seed;
static int turn, call, rank, ranks, is_intel;

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The same numbers on all ranks, and each rank's own. */
static int below(int limit) { return (int)(draw(&shared_state) % (uint64_t)limit); }
static int own_below(int limit) { return (int)(draw(&own_state) % (uint64_t)limit); }

static int *given, *ours, *theirs, *before;

/* A block: so many of a type, which has so many ints. The extent, in ints, leaves no two blocks in
 * the same place. `is_absolute`: the type has the address in it. */
struct block {
    int shape, ints, count, extent, is_absolute;
    uint64_t state;
};

/* A shape for a block of `ints`; `may_repeat`: counts of its type may stand for several blocks. */
static struct block draw_block(int ints, int may_repeat) {
    struct block block = {own_below(SHAPES), ints, 1, 0, own_below(4) == 0, draw(&own_state)};
    if (block.shape == COLUMN && !may_repeat) block.shape = SCATTERED;
    if (block.shape == PAIRS && ints % 2) block.shape = SPREAD;
    if (ints == 0) block.shape = PLAIN;
    return block;
}

/* Elements of a block of `ints` in a window: each third place, or beside it, backwards or not. */
static MPI_Datatype scattered(int ints, uint64_t state) {
    MPI_Aint *places = malloc(sizeof *places * ints);
    int *lengths = malloc(sizeof *lengths * ints), turned = draw(&state) % 2;
    MPI_Datatype made;
    for (int at = 0; at < ints; at++) {
        int place = (turned ? ints - 1 - at : at) * WINDOW + (int)(draw(&state) % WINDOW);
        places[at] = (MPI_Aint)sizeof(int) * (place - ints);
        lengths[at] = 1;
    }
    MPI_Type_create_hindexed(ints, lengths, places, MPI_INT, &made);
    free(places);
    free(lengths);
    return made;
}

/* Frees the one, and returns the other. */
static MPI_Datatype instead(MPI_Datatype old, MPI_Datatype made) {
    if (old != MPI_INT) MPI_Type_free(&old);
    return made;
}

static MPI_Datatype resized(MPI_Datatype old, int lower, int extent) {
    MPI_Datatype made;
    MPI_Type_create_resized(old, (MPI_Aint)sizeof(int) * lower, (MPI_Aint)sizeof(int) * extent,
                            &made);
    return instead(old, made);
}

/* Open MPI's own collectives now and then fail with blocks of a negative extent
 * (docs/conformance.md). */
static int is_forward(void) {
#ifdef OMPI_MAJOR_VERSION
    return 1;
#else
    return 0;
#endif
}

/* The type of a block, its count and its extent. `*base` becomes the address to pass. */
static MPI_Datatype describe(struct block *block, int **base) {
    MPI_Datatype kind = MPI_INT, made;
    uint64_t state = block->state;
    int ints = block->ints, sign = draw(&state) % 2 || is_forward() ? 1 : -1;
    int gap = (int)(draw(&state) % 3);
    int lower = (int)(draw(&state) % 9) - 4;
    block->count = 1;
    switch (block->shape) {
    case PLAIN:
        block->count = ints;
        block->extent = 1;
        return kind;
    case SCATTERED:
        block->extent = sign * (ints * WINDOW + gap);
        kind = resized(scattered(ints, block->state), lower, block->extent);
        break;
    case COLUMN:
        MPI_Type_vector(ints, 1, ranks, MPI_INT, &kind);
        block->extent = 1;
        kind = resized(kind, lower, 1);
        break;
    case SPREAD:
        block->count = ints;
        block->extent = sign * (1 + gap);
        kind = resized(kind, lower, block->extent);
        break;
    default:
        MPI_Type_vector(2, 1, 2, MPI_INT, &kind);
        block->count = ints / 2;
        block->extent = sign * (3 + gap);
        kind = resized(kind, lower, block->extent);
    }
    if (block->is_absolute) {
        MPI_Aint address;
        int one = 1;
        MPI_Get_address(*base, &address);
        MPI_Type_create_hindexed(1, &one, &address, kind, &made);
        kind = resized(instead(kind, made), lower, block->extent);
        *base = MPI_BOTTOM;
    }
    MPI_Type_commit(&kind);
    return kind;
}

static void forget(MPI_Datatype *kind) {
    if (*kind != MPI_INT) MPI_Type_free(kind);
}

/* Ints of a block: few mostly, and about the lengths at which calls go other ways. */
static int length(void) {
    static const int around[] = {512, 2048, 3072, 4096, 8192};
    switch (below(8)) {
    case 0: return 0;
    case 1: return (around[below(5)] + below(3) - 1) / (ranks > 4 ? 8 : 1);
    case 2: return below(3000) / (ranks > 4 ? 8 : 1);
    default: return 1 + below(40);
    }
}

/* One call, as a rank makes it. */
struct job {
    int root, in_place, waits, ints;
    struct block send, recv;
    struct block each_send[RANKS], each_recv[RANKS];
    int send_counts[RANKS], send_places[RANKS], counts[RANKS], places[RANKS];
    MPI_Comm all;
};

static void check(const struct job *job) {
    for (int at = 0; at < ROOM; at++) {
        if (ours[at] == theirs[at]) continue;
        fprintf(stderr,
                "seed %ld, turn %d, rank %d of %d: %s%s%s, root %d, shape %d%s of %d ints: int %d "
                "from the middle is %d, should be %d, was %d\n",
                seed, turn, rank, ranks, names[call], job->waits ? "" : " that does not wait",
                job->in_place ? " in place" : "", job->root, job->recv.shape,
                job->recv.is_absolute ? " at MPI_BOTTOM" : "", job->recv.ints, at - MIDDLE,
                ours[at], theirs[at], before[at]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The call by a name that may be served, or the MPI's own that waits. */
#define EITHER(name, ...)                                                                          \
    (is_own       ? OWN(name)(__VA_ARGS__)                                                         \
     : job->waits ? MPI_##name(__VA_ARGS__)                                                        \
                  : (MPI_I##name)(__VA_ARGS__, &request))
#define WAITS(name, ...) (is_own ? OWN(name)(__VA_ARGS__) : MPI_##name(__VA_ARGS__))

static MPI_Request request;

#define MPI_IBcast MPI_Ibcast
#define MPI_IGather MPI_Igather
#define MPI_IScatter MPI_Iscatter
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAlltoall MPI_Ialltoall

/* Calls whose blocks all have one length. */
static void even(struct job *job, int is_own) {
    int *to = (is_own ? theirs : ours) + MIDDLE, *from = given + MIDDLE, root = job->root;
    struct block send = job->send, recv = job->recv;
    MPI_Datatype send_kind = describe(&send, &from), kind = describe(&recv, &to);
    const void *sent = job->in_place ? MPI_IN_PLACE : from;
    void *kept = job->in_place ? MPI_IN_PLACE : to;
    MPI_Comm all = job->all;
    request = MPI_REQUEST_NULL;
    switch (call) {
    case BCAST:
        EITHER(Bcast, to, recv.count, kind, root, all);
        break;
    case GATHER:
        EITHER(Gather, sent, send.count, send_kind, to, recv.count, kind, root, all);
        break;
    case SCATTER:
        EITHER(Scatter, from, send.count, send_kind, kept, recv.count, kind, root, all);
        break;
    case ALLGATHER:
        EITHER(Allgather, sent, send.count, send_kind, to, recv.count, kind, all);
        break;
    default:
        EITHER(Alltoall, sent, send.count, send_kind, to, recv.count, kind, all);
    }
    forget(&send_kind);
    forget(&kind);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Blocks of one type and a length of its own for each rank: `job->send` and `recv` describe one
 * unit, of which displacements count extents. */
static void uneven(struct job *job, int is_own) {
    int *to = (is_own ? theirs : ours) + MIDDLE, *from = given + MIDDLE, root = job->root;
    struct block send = job->send, recv = job->recv;
    MPI_Datatype send_kind = describe(&send, &from), kind = describe(&recv, &to);
    const void *sent = job->in_place ? MPI_IN_PLACE : from;
    void *kept = job->in_place ? MPI_IN_PLACE : to;
    int *from_counts = job->send_counts, *from_places = job->send_places, *counts = job->counts;
    int *places = job->places, own = from_counts[rank];
    MPI_Comm all = job->all;
    switch (call) {
    case GATHERV:
        WAITS(Gatherv, sent, own, send_kind, to, counts, places, kind, root, all);
        break;
    case SCATTERV:
        WAITS(Scatterv, from, from_counts, from_places, send_kind, kept, counts[rank], kind, root,
              all);
        break;
    case ALLGATHERV:
        WAITS(Allgatherv, sent, own, send_kind, to, counts, places, kind, all);
        break;
    default:
        WAITS(Alltoallv, sent, from_counts, from_places, send_kind, to, counts, places, kind, all);
    }
    forget(&send_kind);
    forget(&kind);
}

static void typed(struct job *job, int is_own) {
    int *to = (is_own ? theirs : ours) + MIDDLE, *from = given + MIDDLE;
    MPI_Datatype send_kinds[RANKS], kinds[RANKS];
    int send_counts[RANKS], counts[RANKS];
    for (int other = 0; other < ranks; other++) {
        struct block send = job->each_send[other], recv = job->each_recv[other];
        int *at = to;
        send.is_absolute = recv.is_absolute = 0;
        kinds[other] = describe(&recv, &at);
        at = from;
        send_kinds[other] = describe(&send, &at);
        counts[other] = recv.count, send_counts[other] = send.count;
    }
    WAITS(Alltoallw, job->in_place ? MPI_IN_PLACE : from, send_counts, job->send_places, send_kinds,
          to, counts, job->places, kinds, job->all);
    for (int other = 0; other < ranks; other++) {
        forget(&kinds[other]);
        forget(&send_kinds[other]);
    }
}

/* Blocks in any order, with gaps, about half of them before the address. */
static void draw_places(const int *counts, int *places) {
    int place = 0, all = 0, turned = own_below(2);
    for (int other = 0; other < ranks; other++) all += counts[other] + 1;
    for (int at = 0; at < ranks; at++) {
        int other = turned ? ranks - 1 - at : at;
        places[other] = place - all / 2;
        place += counts[other] + own_below(2);
    }
}

/* Units that `from` gives `to`. */
static int units(const struct job *job, int from, int to, int salt, int most) {
    int is_symmetric = job->in_place && (call == ALLTOALLV || call == ALLTOALLW);
    int one = is_symmetric && from > to ? to : from, other = is_symmetric && from > to ? from : to;
    if (call != ALLTOALLV && call != ALLTOALLW) other = 0;
    return (one * 7 + other * 13 + salt) % (most + 1);
}

/* `unit` ints each, and how many each rank gives and takes. */
static void draw_uneven(struct job *job) {
    int unit = 1 + below(6), most = length() / unit, salt = below(1000);
    job->send = draw_block(unit, 0), job->recv = draw_block(unit, 0);
    for (int other = 0; other < ranks; other++) {
        job->send_counts[other] = units(job, call == ALLTOALLV ? rank : other, other, salt, most);
        job->counts[other] = units(job, other, rank, salt, most);
    }
    draw_places(job->send_counts, job->send_places);
    draw_places(job->counts, job->places);
    /* The counts are of units, whose types may count ints or pairs. */
    job->send.shape = job->recv.shape = SCATTERED;
}

static void draw_typed(struct job *job) {
    int most = length() / 2, salt = below(1000), region = (most + 1) * (WINDOW + 3) + 16;
    for (int other = 0; other < ranks; other++) {
        job->each_send[other] = draw_block(units(job, rank, other, salt, most), 0);
        job->each_recv[other] = draw_block(units(job, other, rank, salt, most), 0);
        job->send_places[other] = job->places[other] = (other - ranks / 2) * 2 * region * 4;
    }
}

static void one(MPI_Comm all) {
    struct job job = {.all = all};
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    call = below(CALLS);
#if defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION < 5
    /* Its own are wrong over libfabric (docs/conformance.md). */
    if (call == ALLTOALL || call == ALLTOALLV || call == ALLTOALLW) call = ALLGATHERV;
#endif
    /* So is Intel MPI's own. */
    if (is_intel && call == ALLGATHER) call = ALLTOALL;
    job.root = below(ranks), job.waits = below(2), job.in_place = below(3) == 0;
    int rooted = call == GATHER || call == GATHERV || call == SCATTER || call == SCATTERV;
    if (rooted && rank != job.root) job.in_place = 0;
    for (int at = 0; at < ROOM; at++) {
        given[at] = own_below(1 << 30);
        ours[at] = theirs[at] = before[at] = own_below(1 << 30);
    }
    switch (call) {
    case GATHERV:
    case SCATTERV:
    case ALLGATHERV:
    case ALLTOALLV:
        draw_uneven(&job);
        uneven(&job, 0);
        uneven(&job, 1);
        break;
    case ALLTOALLW:
        draw_typed(&job);
        typed(&job, 0);
        typed(&job, 1);
        break;
    default:
        job.ints = length();
        job.send = draw_block(job.ints, 1), job.recv = draw_block(job.ints, 1);
        even(&job, 0);
        even(&job, 1);
    }
    check(&job);
}

int main(int argc, char **argv) {
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    is_intel = strstr(version, "Intel") != NULL;
    int turns = argc > 1 ? atoi(argv[1]) : 100, world_rank;
    seed = argc > 2 ? atol(argv[2]) : 1;
    given = malloc(sizeof(int) * ROOM), ours = malloc(sizeof(int) * ROOM);
    theirs = malloc(sizeof(int) * ROOM), before = malloc(sizeof(int) * ROOM);
    MPI_Comm communicators[2] = {MPI_COMM_WORLD};
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &communicators[1]);
    shared_state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
    for (turn = 0; turn < turns; turn++) {
        uint64_t next = draw(&shared_state);
        own_state = next * 31 + (uint64_t)world_rank + 1;
        one(communicators[below(2)]);
        shared_state = next | 1;
    }
    MPI_Comm_free(&communicators[1]);
    if (world_rank == 0) printf("%d turns are right, seed %ld\n", turns, seed);
    MPI_Finalize();
    return 0;
}

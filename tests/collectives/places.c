/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reductions of a value with its place (MPI_MAXLOC, MPI_MINLOC) and of truth values of Fortran:
 * programs in Fortran make many of them (CP2K, one call in five). Each result is compared with that
 * of the MPI's own function, part by part, since a structure may have gaps. The gaps must stay as
 * they are. Our buffers end with the last part, and the page behind them is not there: a program
 * that knows of no gap behind its last pair has no memory for it.
 *
 *   places SEED
 *
 * Ends with `all is well, N types`: an MPI that was built without Fortran lacks some. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

#include "drawn.h"
#include "own.h"

/* Two ranks of Open MPI leave reductions of more than 4 KiB to it; all, calls that do not wait of
 * more than 2 KiB. */
enum { TURNS = 200, MOST = 250, MOST_WITHOUT_WAITING = 120, PAGE = 4096, GAP = 0x5a };

struct float_int { float value; int place; };
struct double_int { double value; int place; };
struct long_int { long value; int place; };
struct short_int { short value; int place; };

static _Alignas(16) char given[MOST * 16], taken[MOST * 16], theirs[MOST * 16];
/* Where the pages of our two buffers end. */
static char *send_end, *ours_end;

/* A predefined type: its parts, and how they are filled. */
struct paired {
    MPI_Datatype handle;
    size_t extent, value_bytes, place_at, place_bytes;
    char value_kind, place_kind; /* d, f, l, i, s; or b, a truth value without a place */
};

static void put(char *at, char kind, int number) {
    switch (kind) {
    case 'd': *(double *)at = number; break;
    case 'f': *(float *)at = (float)number; break;
    case 'l': *(long *)at = number; break;
    case 's': *(short *)at = (short)number; break;
    default: *(int *)at = number;
    }
}

static void fill_pairs(char *buffer, const struct paired *type, int count) {
    for (int at = 0; at < count; at++) {
        char *one = buffer + at * type->extent;
        int limit = type->value_kind == 'b' ? 2 : 5;
        put(one, type->value_kind, (int)(draw(&own_state) % limit));
        if (type->place_bytes)
            put(one + type->place_at, type->place_kind, (int)(draw(&own_state) % 100));
    }
}

/* The parts of so many pairs, without the gap behind them. */
static size_t length_bytes(const struct paired *type, int count) {
    size_t last = type->place_bytes ? type->place_at + type->place_bytes : type->value_bytes;
    return count ? (count - 1) * type->extent + last : 0;
}

/* Room that ends where a page ends, behind which there is none. */
static char *end_of_room(void) {
    char *room = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || munmap(room + PAGE, PAGE)) fail("no memory");
    return room + PAGE;
}

static int is_part(const struct paired *type, size_t at) {
    return at < type->value_bytes ||
           (at >= type->place_at && at < type->place_at + type->place_bytes);
}

/* Our parts are the MPI's, and our gaps are as they were. */
static void check_pairs(const struct paired *type, const char *ours, int count, const char *what) {
    size_t length = length_bytes(type, count);
    for (size_t at = 0; at < length; at++) {
        char gap = GAP, should_be = is_part(type, at % type->extent) ? theirs[at] : gap;
        if (ours[at] == should_be) continue;
        fprintf(stderr, "byte %zu of %zu is %d and should be %d\n", at, length, ours[at],
                should_be);
        fail(what);
    }
}

/* What the calls of a turn are made with. `theirs` and `taken` begin alike, but for the gaps. */
struct terms {
    const struct paired *type;
    MPI_Op operation;
    int count, in_place;
};

/* Our result as it is before a call. */
static char *begin(const struct terms *terms, int count) {
    char *ours = ours_end - length_bytes(terms->type, count);
    memset(ours_end - PAGE, GAP, PAGE);
    for (size_t at = 0; at < length_bytes(terms->type, count); at++)
        if (is_part(terms->type, at % terms->type->extent)) ours[at] = taken[at];
    memcpy(theirs, taken, sizeof theirs);
    return ours;
}

/* One call of each kind, of Weft and of the MPI. */
static void turn(const struct terms *terms, int rank, int ranks) {
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Datatype handle = terms->type->handle;
    MPI_Op operation = terms->operation;
    int count = terms->count, root = below(ranks), block = count / ranks;
    char *send = send_end - length_bytes(terms->type, count);
    memcpy(send, given, length_bytes(terms->type, count));
    const void *from = terms->in_place ? MPI_IN_PLACE : send;
    const void *their_from = terms->in_place ? MPI_IN_PLACE : given;

    char *ours = begin(terms, count);
    MPI_Allreduce(from, ours, count, handle, operation, all);
    OWN(Allreduce)(their_from, theirs, count, handle, operation, all);
    check_pairs(terms->type, ours, count, "allreduce");

    ours = begin(terms, count);
    MPI_Reduce(send, ours, count, handle, operation, root, all);
    OWN(Reduce)(given, theirs, count, handle, operation, root, all);
    if (rank == root) check_pairs(terms->type, ours, count, "reduce");

    ours = begin(terms, count);
    MPI_Scan(send, ours, count, handle, operation, all);
    OWN(Scan)(given, theirs, count, handle, operation, all);
    check_pairs(terms->type, ours, count, "scan");

    ours = begin(terms, count);
    MPI_Exscan(send, ours, count, handle, operation, all);
    OWN(Exscan)(given, theirs, count, handle, operation, all);
    if (rank > 0) check_pairs(terms->type, ours, count, "exscan");

    /* In place the result is a block, and what lies behind it belongs to nobody. */
    ours = begin(terms, terms->in_place ? block * ranks : block);
    MPI_Reduce_scatter_block(from, ours, block, handle, operation, all);
    OWN(Reduce_scatter_block)(their_from, theirs, block, handle, operation, all);
    check_pairs(terms->type, ours, block, "reduce_scatter_block");

    MPI_Request request;
    if (count > MOST_WITHOUT_WAITING) count = MOST_WITHOUT_WAITING;
    ours = begin(terms, count);
    MPI_Iallreduce(from, ours, count, handle, operation, all, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    OWN(Allreduce)(their_from, theirs, count, handle, operation, all);
    check_pairs(terms->type, ours, count, "iallreduce");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    seed = argc > 1 ? atol(argv[1]) : 1;
    int rank, ranks, types_there = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    world_rank = rank;
    shared_state = (uint64_t)seed * 2654435761u + 1;
    own_state = shared_state + (uint64_t)rank * 7919 + 1;
    send_end = end_of_room();
    ours_end = end_of_room();
    const struct paired paired[] = {
        {MPI_2INT, 8, 4, 4, 4, 'i', 'i'},
        {MPI_FLOAT_INT, 8, 4, offsetof(struct float_int, place), 4, 'f', 'i'},
        {MPI_DOUBLE_INT, 16, 8, offsetof(struct double_int, place), 4, 'd', 'i'},
        {MPI_LONG_INT, 16, 8, offsetof(struct long_int, place), 4, 'l', 'i'},
        {MPI_SHORT_INT, 8, 2, offsetof(struct short_int, place), 4, 's', 'i'},
        {MPI_2INTEGER, 8, 4, 4, 4, 'i', 'i'},
        {MPI_2REAL, 8, 4, 4, 4, 'f', 'f'},
        {MPI_2DOUBLE_PRECISION, 16, 8, 8, 8, 'd', 'd'},
        {MPI_LOGICAL, 4, 4, 0, 0, 'b', 0},
    };
    for (size_t at = 0; at < sizeof paired / sizeof *paired; at++) {
        const struct paired *type = &paired[at];
        MPI_Aint lower, extent = 0;
        /* Without Fortran its types are none. */
        if (type->handle == MPI_DATATYPE_NULL) continue;
        MPI_Type_get_extent(type->handle, &lower, &extent);
        if (extent != (MPI_Aint)type->extent) continue;
        types_there++;
        MPI_Op places[] = {MPI_MAXLOC, MPI_MINLOC}, truths[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
        for (case_number = 0; case_number < TURNS; case_number++) {
            MPI_Op place = places[below(2)], truth = truths[below(3)];
            struct terms terms = {type, type->place_bytes ? place : truth, below(MOST),
                                  below(3) == 0};
            fill_pairs(given, type, terms.count);
            fill_pairs(taken, type, terms.count);
            turn(&terms, rank, ranks);
        }
    }
    if (rank == 0) printf("all is well, %d types\n", types_there);
    MPI_Finalize();
    return 0;
}

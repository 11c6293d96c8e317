/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reductions of a value with its place (MPI_MAXLOC, MPI_MINLOC) and of truth values of Fortran:
 * programs in Fortran make many of them (CP2K, one call in five). Each result is compared with that
 * of the MPI's own function, part by part, since a structure may have a gap.
 *
 *   places SEED
 *
 * Ends with `all is well, N types`: an MPI that was built without Fortran lacks some. */
#define _GNU_SOURCE
#include <stddef.h>

#include "drawn.h"
#include "own.h"

/* Two ranks of Open MPI leave reductions of more than 4 KiB to it. */
enum { TURNS = 200, MOST = 250 };

struct float_int { float value; int place; };
struct double_int { double value; int place; };
struct long_int { long value; int place; };
struct short_int { short value; int place; };

static _Alignas(16) char send[MOST * 16], ours[MOST * 16], theirs[MOST * 16];

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

static void check_pairs(const struct paired *type, int count, const char *what) {
    for (int at = 0; at < count; at++) {
        size_t from = at * type->extent;
        check(ours + from, theirs + from, type->value_bytes, what);
        from += type->place_at;
        check(ours + from, theirs + from, type->place_bytes, what);
    }
}

/* One call of each kind, of Weft and of the MPI. */
static void turn(const struct paired *type, MPI_Op operation, int rank, int ranks) {
    MPI_Comm all = MPI_COMM_WORLD;
    int count = below(MOST), root = below(ranks), in_place = below(3) == 0;
    fill_pairs(send, type, count);
    fill_pairs(ours, type, count);
    memcpy(theirs, ours, sizeof ours);
    const void *from = in_place ? MPI_IN_PLACE : send;
    MPI_Allreduce(from, ours, count, type->handle, operation, all);
    OWN(Allreduce)(from, theirs, count, type->handle, operation, all);
    check_pairs(type, count, "allreduce");
    MPI_Reduce(send, ours, count, type->handle, operation, root, all);
    OWN(Reduce)(send, theirs, count, type->handle, operation, root, all);
    if (rank == root) check_pairs(type, count, "reduce");
    MPI_Scan(send, ours, count, type->handle, operation, all);
    OWN(Scan)(send, theirs, count, type->handle, operation, all);
    check_pairs(type, count, "scan");
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
            turn(type, type->place_bytes ? place : truth, rank, ranks);
        }
    }
    if (rank == 0) printf("all is well, %d types\n", types_there);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Long data, written anew before each call, out of the same buffers again and again, so that ranks
 * come to read them in place: in blocks of malloc, in a static array, at odd addresses, in place,
 * and by a derived type on one rank. Each result is checked, byte by byte.
 *
 *   long TURNS
 *
 * Ends with `all is well`, or says what is not. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, MOST = 1 << 19 };

/* It begins with a page, so that blocks of 8 KiB can be read in place, too. */
static char fixed[RANKS * MOST + 64] __attribute__((aligned(4096)));
static int rank, ranks, turn;

static void fail(const char *what, int block) {
    fprintf(stderr, "rank %d, turn %d, %d bytes: %s\n", rank, turn, block, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Byte `at` of the data of `from` for `to` in this turn. */
static char byte(int from, int to, int at) {
    return (char)(from * 31 + to * 7 + turn * 13 + at * 3 + (at >> 8));
}

static void fill(char *data, int from, int to, int block) {
    for (int at = 0; at < block; at++) data[at] = byte(from, to, at);
}

static void check(const char *data, int from, int to, int block, const char *what) {
    for (int at = 0; at < block; at++)
        if (data[at] != byte(from, to, at)) fail(what, block);
}

static void move(char *one, char *other, int block, int derived) {
    MPI_Datatype kind = MPI_BYTE;
    int root = turn % ranks, count = block;
    if (derived && rank == ranks - 1) {
        MPI_Type_contiguous(block, MPI_BYTE, &kind);
        MPI_Type_commit(&kind);
        count = 1;
    }
    if (rank == root) fill(one, root, 0, block);
    MPI_Bcast(one, count, kind, root, MPI_COMM_WORLD);
    check(one, root, 0, block, "bcast");

    fill(one, rank, 0, block);
    MPI_Allgather(one, count, kind, other, block, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(other + from * block, from, 0, block, "allgather");
    memset(other, 0, (size_t)block * ranks);
    fill(other + rank * block, rank, 1, block);
    MPI_Allgather(MPI_IN_PLACE, 0, kind, other, block, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(other + from * block, from, 1, block, "allgather in place");

    int counts[RANKS], places[RANKS];
    for (int from = 0; from < ranks; from++) {
        counts[from] = block;
        places[from] = (ranks - 1 - from) * block;
    }
    fill(one, rank, 2, block);
    /* Open MPI chooses by the size of the rank's own type, so ranks that differ wait for ever. */
    int is_alike = ranks > 2;
    MPI_Allgatherv(one, is_alike ? block : count, is_alike ? MPI_BYTE : kind, other, counts,
                   places, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(other + places[from], from, 2, block, "allgatherv");

    for (int to = 0; to < ranks; to++) fill(one + to * block, rank, to, block);
    MPI_Alltoall(one, count, kind, other, block, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(other + from * block, from, rank, block, "alltoall");
    MPI_Alltoall(MPI_IN_PLACE, 0, kind, one, count, kind, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(one + from * block, from, rank, block, "alltoall in place");

    fill(one, rank, 3, block);
    MPI_Gather(one, count, kind, other, block, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int from = 0; from < ranks && rank == root; from++)
        check(other + from * block, from, 3, block, "gather");
    for (int to = 0; to < ranks; to++) fill(other + to * block, rank, to, block);
    MPI_Scatter(other, block, MPI_BYTE, one, count, kind, root, MPI_COMM_WORLD);
    check(one, root, rank, block, "scatter");
    if (kind != MPI_BYTE) MPI_Type_free(&kind);
}

static void combine(char *one, char *other, int block) {
    int64_t *given = (int64_t *)one, *taken = (int64_t *)other;
    int count = block / 8, root = turn % ranks;
    int64_t ring = (int64_t)ranks * (ranks - 1) / 2;
    for (int at = 0; at < count; at++) given[at] = (int64_t)rank * (at + turn);
    MPI_Allreduce(given, taken, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < count; at++)
        if (taken[at] != ring * (at + turn)) fail("allreduce", block);
    memset(taken, 0, block);
    MPI_Reduce(given, taken, count, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
    for (int at = 0; at < count; at++)
        if (taken[at] != (rank == root ? ring * (at + turn) : 0)) fail("reduce", block);
    MPI_Allreduce(MPI_IN_PLACE, given, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < count; at++)
        if (given[at] != ring * (at + turn)) fail("allreduce in place", block);
}

int main(int argc, char **argv) {
    static const int lengths[] = {8192, 8200, 12288, 40000, 65536, 100008, 262144, MOST};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    int turns = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    char *allocated = malloc((size_t)ranks * MOST + 64), *also = malloc((size_t)ranks * MOST + 64);
    for (int length = 0; length < LENGTHS; length++) {
        for (turn = 0; turn < turns; turn++) {
            int shift = length % 2 * 4;
            move(allocated + shift, also, lengths[length], turn > turns - 3);
            move(fixed + shift, allocated, lengths[length], 0);
            combine(allocated + shift, fixed, lengths[length]);
            combine(fixed, also + shift, lengths[length]);
        }
    }
    free(allocated);
    free(also);
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}

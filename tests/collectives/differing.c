/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Ranks that differ in the count or the root of a call, which the standard calls wrong: `differing
 * CALL LENGTH [LATE]` (bcast, roots, reduce, allreduce, gather, allgather, scatter, alltoall,
 * gatherv, alltoallv). The last rank has 8 bytes more, or each waits for the next one as the root.
 * The data are static, so they cannot be read in place. Rank LATE comes 20 ms later. Each rank says
 * whether the call or the barrier behind it failed, and whether something was written outside what
 * it takes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST = 100000, APART = 64 };
static char gives[MOST_RANKS * (MOST + APART)], takes[sizeof gives + APART];

/* The first byte outside the blocks that is not as it was; -1 if there is none. */
static long overwritten(long blocks, long length) {
    long stride = length + APART;
    for (long at = 0; at < (long)sizeof takes; at++) {
        int is_taken = at / stride < blocks && at % stride < length;
        if (!is_taken && takes[at] != 7) return at;
    }
    return -1;
}

int main(int count, char **arguments) {
    int rank, ranks, end, given[MOST_RANKS], taken[MOST_RANKS], places[MOST_RANKS];
    MPI_Init(&count, &arguments);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    const char *call = count > 2 ? arguments[1] : "";
    int length = count > 2 ? atoi(arguments[2]) : 0;
    if (length < 1 || length + 8 > MOST || ranks > MOST_RANKS) MPI_Abort(world, 2);
    int own = length + (rank == ranks - 1 ? 8 : 0), blocks = 1, block = own;
    int is_root = rank == 0;
    for (int i = 0; i < ranks; i++) {
        given[i] = own;
        taken[i] = length;
        places[i] = i * (length + APART);
    }
    memset(takes, 7, sizeof takes);
    MPI_Barrier(world);
    if (count > 3 && atoi(arguments[3]) == rank) usleep(20000);
    if (!strcmp(call, "bcast")) {
        end = MPI_Bcast(takes, own, MPI_BYTE, 0, world);
    } else if (!strcmp(call, "roots")) {
        block = length;
        end = MPI_Bcast(takes, length, MPI_BYTE, (rank + 1) % ranks, world);
    } else if (!strcmp(call, "allreduce")) {
        end = MPI_Allreduce(gives, takes, own, MPI_BYTE, MPI_BOR, world);
    } else if (!strcmp(call, "reduce")) {
        blocks = is_root;
        end = MPI_Reduce(gives, takes, own, MPI_BYTE, MPI_BOR, 0, world);
    } else if (!strcmp(call, "gather")) {
        blocks = is_root, block = ranks * own;
        end = MPI_Gather(gives, own, MPI_BYTE, takes, own, MPI_BYTE, 0, world);
    } else if (!strcmp(call, "allgather")) {
        block = ranks * own;
        end = MPI_Allgather(gives, own, MPI_BYTE, takes, own, MPI_BYTE, world);
    } else if (!strcmp(call, "scatter")) {
        end = MPI_Scatter(gives, own, MPI_BYTE, takes, own, MPI_BYTE, 0, world);
    } else if (!strcmp(call, "alltoall")) {
        block = ranks * own;
        end = MPI_Alltoall(gives, own, MPI_BYTE, takes, own, MPI_BYTE, world);
    } else if (!strcmp(call, "gatherv")) {
        blocks = is_root ? ranks : 0, block = length;
        end = MPI_Gatherv(gives, own, MPI_BYTE, takes, taken, places, MPI_BYTE, 0, world);
    } else {
        blocks = ranks, block = length;
        end = MPI_Alltoallv(gives, given, places, MPI_BYTE, takes, taken, places, MPI_BYTE, world);
    }
    int behind = MPI_Barrier(world);
    const char *found = end || behind ? "told" : "not told";
    long at = overwritten(blocks, block);
    if (at >= 0)
        printf("rank %d is %s, and byte %ld is overwritten\n", rank, found, at);
    else
        printf("rank %d is %s\n", rank, found);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

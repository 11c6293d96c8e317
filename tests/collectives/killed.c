/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The last rank kills itself while the others wait for it in a collective: they must not come back
 * as if all were well, and must not hang.
 *
 *   killed CALL
 *
 * where CALL is a name below, in small letters and without MPI_. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 16, EACH = 5000 };

static int send[RANKS * EACH], taken[RANKS * EACH], counts[RANKS], places[RANKS];

/* 0 for a name that is no call. */
static int call(const char *name) {
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Datatype kind = MPI_INT;
    int ranks, last;
    MPI_Comm_size(all, &ranks);
    last = ranks - 1;
    for (int rank = 0; rank < ranks; rank++) counts[rank] = EACH, places[rank] = rank * EACH;
    if (!strcmp(name, "barrier")) MPI_Barrier(all);
    else if (!strcmp(name, "bcast")) MPI_Bcast(send, EACH, kind, last, all);
    else if (!strcmp(name, "reduce")) MPI_Reduce(send, taken, EACH, kind, MPI_SUM, 0, all);
    else if (!strcmp(name, "allreduce")) MPI_Allreduce(send, taken, EACH, kind, MPI_SUM, all);
    else if (!strcmp(name, "gather")) MPI_Gather(send, EACH, kind, taken, EACH, kind, 0, all);
    else if (!strcmp(name, "gatherv"))
        MPI_Gatherv(send, EACH, kind, taken, counts, places, kind, 0, all);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(send, EACH, kind, taken, EACH, kind, all);
    else if (!strcmp(name, "allgatherv"))
        MPI_Allgatherv(send, EACH, kind, taken, counts, places, kind, all);
    else if (!strcmp(name, "scatter"))
        MPI_Scatter(send, EACH, kind, taken, EACH, kind, last, all);
    else if (!strcmp(name, "scatterv"))
        MPI_Scatterv(send, counts, places, kind, taken, EACH, kind, last, all);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(send, EACH, kind, taken, EACH, kind, all);
    else if (!strcmp(name, "alltoallv"))
        MPI_Alltoallv(send, counts, places, kind, taken, counts, places, kind, all);
    else if (!strcmp(name, "reduce_scatter"))
        MPI_Reduce_scatter(send, taken, counts, kind, MPI_SUM, all);
    else if (!strcmp(name, "reduce_scatter_block"))
        MPI_Reduce_scatter_block(send, taken, EACH, kind, MPI_SUM, all);
    else if (!strcmp(name, "scan")) MPI_Scan(send, taken, EACH, kind, MPI_SUM, all);
    else if (!strcmp(name, "exscan")) MPI_Exscan(send, taken, EACH, kind, MPI_SUM, all);
    else return 0;
    return 1;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 20; turn++)
        if (argc < 2 || !call(argv[1])) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    call(argv[1]);
    /* A rank that needs nothing of the dead one may come back; nobody comes back from here. */
    MPI_Barrier(MPI_COMM_WORLD);
    printf("the barrier came back\n");
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The last rank kills itself while the others wait for it in a barrier: they must not come back as
 * if all were well, and must not hang. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int call = 0; call < 100; call++) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("the barrier came back\n");
    MPI_Finalize();
    return 0;
}

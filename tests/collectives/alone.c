/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Calls on communicators of one rank, among calls that all ranks make: ScaLAPACK and GPAW make
 * thousands. Ends with `all is well`. */
#include <mpi.h>
#include <stdio.h>

enum { TURNS = 6 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm alone;
        MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
        for (int call = 0; call < TURNS; call++) {
            int given = 1, got = 0;
            MPI_Allreduce(&given, &got, 1, MPI_INT, MPI_SUM, alone);
            sum += got;
        }
        MPI_Comm_free(&alone);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0 && sum == TURNS * TURNS) puts("all is well");
    MPI_Finalize();
    return sum != TURNS * TURNS;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ranks that exchange short and long messages and check them. Rank 0 prints how many ranks there
// are, and the process that started it: nothing may stand between it and its launcher.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 40, LONG = 1 << 17 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned char *bytes = malloc(LONG);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) memset(bytes, round + 1, LONG);
        MPI_Bcast(bytes, LONG, MPI_UNSIGNED_CHAR, 0, MPI_COMM_WORLD);
        int sum, last = bytes[LONG - 1];
        MPI_Allreduce(&last, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != size * (round + 1)) {
            fprintf(stderr, "rank %d: %d instead of %d\n", rank, sum, size * (round + 1));
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
    if (rank == 0) printf("%d ranks, parent %d\n", size, (int)getppid());
    free(bytes);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The counterpart of call_cost.rs in C, linked directly; see there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 201, PAIRS = 20000 };

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
    static double blocks[BLOCKS];
    char given[8] = {1}, taken[8];

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int block = 0; block < BLOCKS; block++) {
        double start = now_ns();
        for (int pair = 0; pair < PAIRS; pair++) {
            if (MPI_Send(given, 8, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD) != MPI_SUCCESS)
                return 1;
            if (MPI_Recv(taken, 8, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
                MPI_SUCCESS)
                return 1;
        }
        blocks[block] = (now_ns() - start) / PAIRS;
    }
    qsort(blocks, BLOCKS, sizeof blocks[0], ascending);
    printf("c    %.2f ns per pair (P10 %.2f)\n", blocks[BLOCKS / 2], blocks[BLOCKS / 10]);
    MPI_Finalize();
    return 0;
}

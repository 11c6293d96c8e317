/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The loop of `weft bench latency` in C, linked directly, to see whether binding at run time costs
 * anything: mpicc -O3 latency.c -o latency && mpiexec -n 2 ./latency ITERATIONS WARM-UP SIZE...
 * Rank 0 prints `SIZE MEDIAN` in microseconds one way, the median over the same 25 blocks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 25, TAG = 100, ALIGNMENT = 4096 };

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int exchange(int rank, char *out, char *in, int size)
{
    int other = 1 - rank;
    if (rank == 0)
        return MPI_Send(out, size, MPI_CHAR, other, TAG, MPI_COMM_WORLD) ||
               MPI_Recv(in, size, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Recv(in, size, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ||
           MPI_Send(out, size, MPI_CHAR, other, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, iterations, warmup;
    double blocks[BLOCKS];

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    iterations = atoi(argv[1]);
    warmup = atoi(argv[2]);
    for (int argument = 3; argument < argc; argument++) {
        int size = atoi(argv[argument]), per_block = (iterations + BLOCKS - 1) / BLOCKS, used = 0;
        char *out = aligned_alloc(ALIGNMENT, size + ALIGNMENT - size % ALIGNMENT);
        char *in = aligned_alloc(ALIGNMENT, size + ALIGNMENT - size % ALIGNMENT);
        memset(out, 'a', size);
        memset(in, 'b', size);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < warmup; i++)
            if (exchange(rank, out, in, size))
                MPI_Abort(MPI_COMM_WORLD, 1);
        double start = now_seconds();
        for (int done = 0; done < iterations; used++) {
            int end = done + per_block < iterations ? done + per_block : iterations;
            for (int i = done; i < end; i++)
                if (exchange(rank, out, in, size))
                    MPI_Abort(MPI_COMM_WORLD, 1);
            double now = now_seconds();
            blocks[used] = (now - start) / (end - done) * 1e6 / 2;
            start = now;
            done = end;
        }
        qsort(blocks, used, sizeof blocks[0], ascending);
        if (rank == 0)
            printf("%d %.4f\n", size, blocks[used / 2]);
        free(out);
        free(in);
    }
    MPI_Finalize();
    return 0;
}

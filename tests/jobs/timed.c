// SPDX-License-Identifier: Apache-2.0 OR MIT
// Two ranks for against-sbatch.sh. Rank 0 prints when the last rank had left MPI_Init (in seconds
// since 1970), half a round trip of 8 bytes (us), and the rate of 1 MiB messages (MB/s). Both are
// medians of many batches, as a batch in which something else ran is longer.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 2000, BATCHES = 51, ROUND_TRIPS = 1000, LONG = 1 << 20, STREAM = 20 };
static char bytes[LONG];

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void round_trips(int rank, int count) {
    for (int i = 0; i < count; i++) {
        if (rank == 0) MPI_Send(bytes, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(bytes, 8, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(bytes, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

static void stream(int rank, int count) {
    for (int i = 0; i < count; i++) {
        if (rank == 0) MPI_Send(bytes, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        else MPI_Recv(bytes, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    round_trips(rank, 1);
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

// The median time of a batch.
static double batch_s(void (*run)(int, int), int rank, int count) {
    double times[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        double begin = now_s();
        run(rank, count);
        times[i] = now_s() - begin;
    }
    qsort(times, BATCHES, sizeof times[0], by_size);
    return times[BATCHES / 2];
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    double begun = now_s(), last;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&begun, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    memset(bytes, 1, LONG);
    round_trips(rank, WARM_UP);
    double trip_us = batch_s(round_trips, rank, ROUND_TRIPS) / ROUND_TRIPS / 2 * 1e6;
    stream(rank, STREAM);
    double rate = LONG / 1e6 * STREAM / batch_s(stream, rank, STREAM);
    if (rank == 0) printf("measured %.3f %.4f %.1f\n", last, trip_us, rate);
    MPI_Finalize();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// Matched probes by four threads at once (MPI 4.1, section 3.8.2): what one thread has probed no
// other receives. A program of its own, since weft run has programs with MPI_Mrecv go another way
// under Open MPI.
#include "crew.h"

enum { ROUNDS = 60, LONG = 200000 };

static int length_in(int round) { return round % 10 == 9 ? LONG : 8 << round % 10; }

static _Atomic int taken[THREADS * ROUNDS];

static void matched_from_any(int thread) {
    char *bytes = filled(LONG, 0);
    for (int round = 0; round < ROUNDS; round++) {
        int value = round * THREADS + thread, length = length_in(round), count = -1;
        MPI_Message message;
        MPI_Status status;
        memcpy(bytes, &value, sizeof value);
        if (rank == 0) {
            succeeds(MPI_Send(bytes, length, MPI_BYTE, 1, length % 1009, MPI_COMM_WORLD));
            continue;
        }
        succeeds(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
        succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
        if (count < (int)sizeof value || count > LONG) {
            wrong("a message of %d bytes", count);
            break;
        }
        succeeds(MPI_Mrecv(bytes, count, MPI_BYTE, &message, &status));
        memcpy(&value, bytes, sizeof value);
        expect(status.MPI_TAG == count % 1009 && count == length_in(value / THREADS));
        if (value < 0 || value >= THREADS * ROUNDS)
            wrong("value %d", value);
        else
            taken[value]++;
    }
    free(bytes);
}

static void matched_probes(void) {
    for (int i = 0; i < THREADS * ROUNDS; i++) taken[i] = 0;
    in_threads(matched_from_any);
    for (int i = 0; rank == 1 && i < THREADS * ROUNDS; i++)
        if (taken[i] != 1) wrong("message %d was received %d times", i, taken[i]);
}

static const struct test tests[] = {
    {"matched_probes", matched_probes, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "matchedthreads", MPI_THREAD_MULTIPLE, tests);
}

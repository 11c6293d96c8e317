// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends as it is told, for tests/mpi/suites/ends.sh: ends HOW [NUMBER] [FILE]. All ranks have
// exchanged messages before, except with the first.
//
//   before N     rank 1 calls exit(N) in the place of MPI_Init
//   code N       MPI_Finalize, and the last rank returns N
//   early N      the last rank calls exit(N) without MPI_Finalize, the others wait
//   abort N      the last rank calls MPI_Abort with N, the others wait
//   signal N     the last rank is killed by signal N, the others wait
//   late N FILE BYTES
//                rank 0 computes for a second; the others send it N messages of BYTES meanwhile
//                and end; then it receives and checks them, and makes FILE
//   sleep        all wait; rank 0 makes FILE when it begins
//   stubborn     the same, and all ignore whatever can be ignored
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// What the launcher says before MPI_Init.
static int early_rank(void) {
    const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *hydra = getenv("PMI_RANK");
    return atoi(open_mpi ? open_mpi : hydra ? hydra : "0");
}

static void wait_forever(void) {
    for (;;) sleep(1);
}

static char byte_of(int number, int at) { return (char)(number * 31 + at); }

// What was sent arrives, though its sender ends at once and its receiver comes late.
static int late(int rank, int ranks, int number, const char *file, int bytes) {
    char *message = malloc(bytes + 1);
    if (rank == 0) sleep(1);
    for (int from = 1; from < ranks; from++)
        for (int one = 0; one < number; one++) {
            if (rank == from) {
                for (int at = 0; at < bytes; at++) message[at] = byte_of(one, at);
                MPI_Send(message, bytes, MPI_CHAR, 0, one, MPI_COMM_WORLD);
            }
            if (rank != 0) continue;
            MPI_Recv(message, bytes, MPI_CHAR, from, one, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < bytes; at++)
                if (message[at] != byte_of(one, at)) {
                    fprintf(stderr, "message %d of rank %d is wrong at %d\n", one, from, at);
                    MPI_Abort(MPI_COMM_WORLD, 3);
                }
        }
    MPI_Finalize();
    if (rank == 0) fclose(fopen(file, "w"));
    return 0;
}

int main(int count, char **words) {
    int rank, ranks;
    char there[8] = {0}, here[8];
    const char *how = words[1];
    int number = count > 2 ? atoi(words[2]) : 0;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (!strcmp(how, "before") && early_rank() == 1) exit(number);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv(there, 8, MPI_CHAR, (rank + 1) % ranks, 0, here, 8, MPI_CHAR,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    int last = rank == ranks - 1;
    if (!strcmp(how, "late") && count > 4)
        return late(rank, ranks, number, words[3], atoi(words[4]));
    if (!strcmp(how, "code")) {
        MPI_Finalize();
        return last ? number : 0;
    }
    if (!strcmp(how, "stubborn"))
        for (int one = 1; one < 32; one++) signal(one, SIG_IGN);
    if (rank == 0 && count > 3) fclose(fopen(words[3], "w"));
    if (!last) wait_forever();
    if (!strcmp(how, "early")) exit(number);
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, number);
    if (!strcmp(how, "signal")) {
        signal(number, SIG_DFL);
        raise(number);
    }
    wait_forever();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends as it is told, for tests/mpi/suites/ends.sh: ends HOW [NUMBER] [FILE]. All ranks have
// exchanged messages before, except with the first.
//
//   before N     rank 1 calls exit(N) in the place of MPI_Init
//   code N       MPI_Finalize, and the last rank returns N
//   early N      the last rank calls exit(N) without MPI_Finalize, the others wait
//   abort N      the last rank calls MPI_Abort with N, the others wait
//   signal N     the last rank is killed by signal N, the others wait
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

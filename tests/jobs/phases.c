// SPDX-License-Identifier: Apache-2.0 OR MIT
// A rank for cancel.sh, key.sh and tests/job-mounts that stays in one phase of its life until
// somebody ends it:
//   phases init|run|finalize FOLDER
// init: rank 1 does not call MPI_Init, so the others stay in it. run: the ranks exchange messages
// for ever. finalize: MPI_Finalize calls the ranks back (MPI 4.1, "Allowing User Functions at MPI
// Finalization"), and they do not return. What a rank has reached is a file in FOLDER:
// entered-RANK, initialized-RANK, exchanged-RANK, finalizing-RANK.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder, *rank;

static const char *rank_of_launcher(void) {
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value) return value;
    }
    fprintf(stderr, "no launcher has said which rank this is\n");
    exit(2);
}

static void reached(const char *what) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%s", folder, what, rank);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(2);
    }
    fclose(file);
}

static void stay(void) {
    for (;;) pause();
}

static int stays(MPI_Comm communicator, int key, void *value, void *state) {
    (void)communicator, (void)key, (void)value, (void)state;
    reached("finalizing");
    stay();
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *phase = argv[1];
    folder = argv[2];
    rank = rank_of_launcher();
    reached("entered");
    if (strcmp(rank, "1") == 0 && strcmp(phase, "init") == 0) stay();
    MPI_Init(&argc, &argv);
    reached("initialized");
    int is_endless = strcmp(phase, "run") == 0, key;
    for (long round = 0, sum; round < 100 || is_endless; round++) {
        MPI_Allreduce(&round, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (round > 99) usleep(1000); // There are more ranks than cores.
        if (round == 99) reached("exchanged");
    }
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stays, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Finalize();
    return 0;
}

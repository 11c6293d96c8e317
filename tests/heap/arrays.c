/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two ranks send long messages out of the same memory again and again: a static array, memory of
 * mmap, or a block of malloc, as the argument says. Between messages the sender changes every byte,
 * now and then it throws the memory away or forks a child that writes over its own. The receiver
 * looks at every byte. Started by run.sh. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1 << 17, ROUNDS = 120, SKEW = 5 };

static unsigned array[WORDS + SKEW];
static unsigned got[WORDS];

static unsigned word(int round, int index)
{
    return (unsigned)(round * 1000003 + index * 2654435761u);
}

static unsigned *memory(const char *kind)
{
    size_t bytes = sizeof array;
    if (!strcmp(kind, "static"))
        return array;
    if (!strcmp(kind, "mmap"))
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return malloc(bytes);
}

static void fail(const char *what, int round)
{
    fprintf(stderr, "round %d: %s\n", round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fork_child(unsigned *message, int round)
{
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < WORDS; i++)
            if (message[i] != word(round, i))
                _exit(1);
        memset(message, 7, WORDS * sizeof *message);
        _exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("the child did not find its memory", round);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "malloc";
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Most messages do not begin with a page. */
    unsigned *block = memory(kind), *message = block + SKEW;
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            MPI_Recv(got, WORDS, MPI_UNSIGNED, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < WORDS; i++)
                if (got[i] != word(round, i))
                    fail("wrong bytes", round);
            continue;
        }
        for (int i = 0; i < WORDS; i++)
            message[i] = word(round, i);
        MPI_Request request;
        MPI_Isend(message, WORDS, MPI_UNSIGNED, 1, 1, MPI_COMM_WORLD, &request);
        if (round % 40 == 30)
            fork_child(message, round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (round % 40 == 39 && !strcmp(kind, "mmap")) {
            madvise(block, sizeof array, MADV_DONTNEED);
            if (message[WORDS / 2] != 0)
                fail("MADV_DONTNEED leaves bytes", round);
        } else if (round == 79 && !strcmp(kind, "malloc")) {
            free(block);
            block = memory(kind), message = block + SKEW;
        }
    }
    if (rank == 0) {
        const char *preload = getenv("LD_PRELOAD");
        if (preload && strstr(preload, "weft"))
            fail("a rank's children would preload the library", ROUNDS);
        printf("all bytes are right\n");
    }
    MPI_Finalize();
    return 0;
}

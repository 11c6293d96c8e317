/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * What programs do around collectives, on any number of ranks from two on:
 *
 * - a rank waits in a collective while another sends it a long message by a blocking call: who
 *   waits must drive the MPI, or nobody comes on;
 * - the same with one-sided reads of a window whose owner waits;
 * - threads, each with a communicator of its own (MPI_THREAD_MULTIPLE);
 * - a fork in the middle, attributes, an error handler of the program;
 * - floating point sums that must have the same bits each time and on all ranks;
 * - MPI_Finalize with communicators that were never freed.
 *
 * Ends with `all is well`, or says what is not. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 4 << 20, THREADS = 3, TURNS = 300, NUMBERS = 5000 };

static int rank, ranks;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 0 sends to each other rank by a call that returns when the data are received. */
static void send_to_who_waits(void) {
    char *data = malloc(LONG);
    for (int turn = 0; turn < 5; turn++) {
        if (rank == 0) {
            memset(data, turn + 1, LONG);
            for (int to = 1; to < ranks; to++)
                MPI_Ssend(data, LONG, MPI_BYTE, to, 5, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            MPI_Irecv(data, LONG, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (data[0] != turn + 1 || data[LONG - 1] != turn + 1) fail("a long message");
        }
    }
    free(data);
}

/* All read from rank 0, which waits. */
static void read_from_who_waits(void) {
    int *base, found[1000];
    MPI_Win window;
    MPI_Win_allocate(sizeof found, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    for (int at = 0; at < 1000; at++) base[at] = rank * 1000 + at;
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 20 && rank > 0; turn++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Get(found, 1000, MPI_INT, 0, 0, 1000, MPI_INT, window);
        MPI_Win_unlock(0, window);
        if (found[999] != 999) fail("a read from a rank that waits");
    }
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks) fail("the sum behind reads");
    MPI_Win_free(&window);
}

struct work {
    MPI_Comm communicator;
    int number;
};

static void *meet(void *argument) {
    struct work *work = argument;
    static char room[THREADS][1 << 16];
    for (int turn = 0; turn < TURNS; turn++) {
        int one = work->number + turn, sum = 0, bytes = 1 + (turn * 331) % (1 << 15);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, work->communicator);
        if (sum != ranks * one) fail("a sum of threads");
        char *mine = room[work->number];
        if (rank == turn % ranks) memset(mine, turn, bytes);
        MPI_Bcast(mine, bytes, MPI_BYTE, turn % ranks, work->communicator);
        if (mine[0] != (char)turn || mine[bytes - 1] != (char)turn) fail("a broadcast of threads");
        MPI_Barrier(work->communicator);
    }
    return NULL;
}

static void threads(int granted) {
    pthread_t others[THREADS];
    struct work work[THREADS];
    if (granted < MPI_THREAD_MULTIPLE) return;
    for (int at = 0; at < THREADS; at++) {
        work[at].number = at;
        MPI_Comm_dup(MPI_COMM_WORLD, &work[at].communicator);
    }
    for (int at = 0; at < THREADS; at++) pthread_create(&others[at], NULL, meet, &work[at]);
    for (int at = 0; at < THREADS; at++) pthread_join(others[at], NULL);
    /* The last one stays for MPI_Finalize. */
    for (int at = 0; at < THREADS - 1; at++) MPI_Comm_free(&work[at].communicator);
}

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) _exit(7);
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) fail("a child");
    MPI_Barrier(MPI_COMM_WORLD);
}

static int copies, deletions;

static int copied(MPI_Comm from, int key, void *extra, void *in, void *out, int *flag) {
    (void)from, (void)key, (void)extra;
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm from, int key, void *value, void *extra) {
    (void)from, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void attributes(void) {
    int key, found, *value, number = 3;
    MPI_Comm first, second;
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_set_attr(first, key, &number);
    for (int turn = 0; turn < 6; turn++) MPI_Barrier(first);
    MPI_Comm_dup(first, &second);
    for (int turn = 0; turn < 6; turn++) MPI_Barrier(second);
    MPI_Comm_get_attr(second, key, &value, &found);
    if (!found || *value != 3) fail("an attribute of a copy");
    MPI_Comm_free(&first);
    for (int turn = 0; turn < 6; turn++) MPI_Barrier(second);
    MPI_Comm_free(&second);
    if (copies != 1 || deletions != 2) fail("how often attributes were copied and deleted");
    MPI_Comm_free_keyval(&key);
}

static int errors_seen;

static void see(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    errors_seen++;
}

/* What all ranks get wrong is the MPI's to refuse. */
static void errors(void) {
    MPI_Comm own;
    MPI_Errhandler handler;
    int number = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(see, &handler);
    MPI_Comm_set_errhandler(own, handler);
    for (int turn = 0; turn < 6; turn++) MPI_Barrier(own);
    int code = PMPI_Bcast(&number, 1, MPI_INT, ranks, own);
    /* Some builds of MPICH check no arguments. */
    if (code == MPI_SUCCESS) return;
    errors_seen = 0;
    code = MPI_Bcast(&number, 1, MPI_INT, ranks, own);
    if (code == MPI_SUCCESS || errors_seen != 1) fail("a root that does not exist");
    code = MPI_Bcast(&number, -1, MPI_INT, 0, own);
    if (code == MPI_SUCCESS || errors_seen != 2) fail("a negative count");
    MPI_Barrier(own);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

/* Numbers of very different sizes, whose sum depends on the order. */
static void same_bits(void) {
    static double given[NUMBERS], first[NUMBERS], next[NUMBERS], theirs[NUMBERS];
    for (int at = 0; at < NUMBERS; at++) given[at] = sin(rank * 7.3 + at) * pow(10, at % 17 - 8);
    for (int count = 1; count <= NUMBERS; count = count * 3 + 1) {
        for (int turn = 0; turn < 20; turn++) {
            MPI_Allreduce(given, turn ? next : first, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            if (turn && memcmp(first, next, count * sizeof(double))) fail("a sum has other bits");
            if (turn % 7 == rank % 7) usleep(200);
        }
        memcpy(theirs, first, sizeof theirs);
        MPI_Bcast(theirs, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (memcmp(first, theirs, count * sizeof(double))) fail("ranks have different sums");
    }
    uint64_t bits = 0, word;
    for (int at = 0; at < 100; at++) memcpy(&word, &first[at], 8), bits = bits * 31 + word;
    if (rank == 0) printf("sums: %016llx\n", (unsigned long long)bits);
}

int main(int argc, char **argv) {
    int granted;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    send_to_who_waits();
    read_from_who_waits();
    threads(granted);
    fork_once();
    attributes();
    errors();
    same_bits();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}

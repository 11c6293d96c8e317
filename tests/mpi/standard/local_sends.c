/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Sends are local: ranks of each pair (0 and 1, ...) send COUNT messages to one another, while none
 * of them receives, then wait outside MPI, each for a file that the other one makes after its last
 * send. Only then do they receive. A transport whose sends wait for the receiver never comes to the
 * files. MPI-4.1 sections 3.4 (buffered mode is local), 3.7 (nonblocking calls are local); standard
 * mode may wait.
 *
 *   local_sends FOLDER CALLS COUNT BYTES   CALLS: isend, send, bsend, issend; BYTES: lengths.
 *                                          Several with commas between.
 *   local_sends FOLDER away COUNT BYTES    rank 0 sends, then stays outside MPI until rank 1 has
 *                                          had nothing for half a second; prints how many came till
 *                                          then
 *
 * Every byte received is checked. Exit code 1 and a sentence if something is wrong; after 60 s a
 * rank gives up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, other, count, bytes;
static const char *folder;
static char name[2][512];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void fail(const char *what, int number)
{
    printf("rank %d: %s (message %d)\n", rank, what, number);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* What byte `at` of message `number` from `from` is. */
static char byte_of(int from, int number, int at)
{
    return (char)(from * 89 + number * 31 + at * 7 + (at >> 8));
}

static void fill(char *buffer, int number)
{
    for (int at = 0; at < bytes; at++)
        buffer[at] = byte_of(rank, number, at);
}

static void check(const char *buffer, int number)
{
    for (int at = 0; at < bytes; at++)
        if (buffer[at] != byte_of(other, number, at))
            fail("a message is not what was sent", number);
}

static void make_file(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail("the folder cannot be written to", -1);
    fclose(file);
}

static void await_file(const char *path)
{
    double begin = now();
    while (access(path, F_OK) != 0) {
        if (now() - begin > 60)
            fail("the other rank has not come out of its sends after 60 s", -1);
        usleep(1000);
    }
}

static void receive_all(void)
{
    char *buffer = malloc(bytes + 1);
    for (int number = 0; number < count; number++) {
        MPI_Status status;
        MPI_Recv(buffer, bytes, MPI_CHAR, other, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG != number % 1000)
            fail("messages came in another order", number);
        check(buffer, number);
    }
    free(buffer);
}

/* Sends all by one call; the buffers and requests live until the end. */
static MPI_Request *send_all(const char *call, char *buffers)
{
    MPI_Request *requests = calloc(count, sizeof *requests);
    for (int number = 0; number < count; number++) {
        char *buffer = buffers + (size_t)number * bytes;
        int tag = number % 1000;
        fill(buffer, number);
        requests[number] = MPI_REQUEST_NULL;
        if (!strcmp(call, "isend"))
            MPI_Isend(buffer, bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD, &requests[number]);
        else if (!strcmp(call, "issend"))
            MPI_Issend(buffer, bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD, &requests[number]);
        else if (!strcmp(call, "bsend"))
            MPI_Bsend(buffer, bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD);
        else {
            MPI_Send(buffer, bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD);
            memset(buffer, 0x55, bytes);
        }
    }
    return requests;
}

static void bidirectional(const char *call)
{
    char *buffers = malloc((size_t)count * bytes + 1);
    int attached = count * (bytes + MPI_BSEND_OVERHEAD + 64);
    char *room = malloc(attached);
    if (!strcmp(call, "bsend"))
        MPI_Buffer_attach(room, attached);
    double begin = now();
    MPI_Request *requests = send_all(call, buffers);
    double took = now() - begin;
    make_file(name[rank & 1]);
    await_file(name[!(rank & 1)]);
    receive_all();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (!strcmp(call, "bsend"))
        MPI_Buffer_detach(&room, &attached);
    if (rank == 0)
        printf("%d messages of %d bytes each way by %s: sent in %.1f ms\n", count, bytes, call,
               1e3 * took);
    free(requests);
    free(buffers);
    free(room);
}

/* How many arrive while their sender stays outside MPI. */
static void away(void)
{
    char *buffers = malloc((size_t)count * bytes + 1);
    if (rank == 0) {
        MPI_Request *requests = send_all("isend", buffers);
        make_file(name[0]);
        await_file(name[1]);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        free(requests);
    } else if (rank == 1) {
        await_file(name[0]);
        int number = 0, told = 0;
        double last = now();
        for (; number < count; number++) {
            MPI_Request request;
            int done = 0;
            MPI_Irecv(buffers, bytes, MPI_CHAR, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
            while (!done) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                if (!done && !told && now() - last > 0.5) {
                    printf("%d of %d messages of %d bytes came while their sender was away\n",
                           number, count, bytes);
                    make_file(name[1]);
                    told = 1;
                }
                if (!done && now() - last > 60)
                    fail("a message is missing", number);
            }
            check(buffers, number);
            last = now();
        }
        if (!told) {
            printf("all %d messages of %d bytes came while their sender was away\n", count, bytes);
            make_file(name[1]);
        }
    }
    free(buffers);
}

static void one_round(const char *call, int round)
{
    for (int side = 0; side < 2; side++)
        snprintf(name[side], sizeof name[side], "%s/local_sends-%d-%d-%d", folder, round, rank / 2,
                 side);
    if (!strcmp(call, "away"))
        away();
    else
        bidirectional(call);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(name[rank & 1]);
}

/* The next word of a list with commas. */
static char *after(char *word)
{
    word += strcspn(word, ",");
    return *word ? word + 1 : word;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 5) {
        fprintf(stderr, "usage: local_sends FOLDER isend|send|bsend|issend|away COUNT BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = rank ^ 1;
    folder = argv[1];
    count = atoi(argv[3]);
    int round = 0;
    for (char *call = argv[2]; *call; call = after(call)) {
        for (char *length = argv[4]; *length; length = after(length)) {
            char word[16];
            snprintf(word, sizeof word, "%.*s", (int)strcspn(call, ","), call);
            bytes = atoi(length);
            one_round(word, round++);
        }
    }
    MPI_Finalize();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI ranks on several hosts that check every byte they get, for the suites that attack them or put
// a firewall between them.
//
//   pair exchange SECONDS SEED   all ranks send each other messages of every form, in random order
//   pair compute SECONDS         each of two ranks in turn computes so long while the other waits
//   pair talk SECONDS            two ranks answer each other
//   The last two say when they are under way. Who talks says also that the other one is lost.
//
// Every message is known by sender, receiver and number, so that one that is lost, doubled, cut off
// or out of order shows. Exit code 1 on the first wrong one.
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1000000, RANKS_MOST = 4, EACH = 6, TAG_LIMIT = 32768, FORMS = 3 };

static const int lengths[] = {0, 8, 300, 5000, 40000, 70000, 200000, LONGEST};
static int rank, ranks;
static uint64_t state;
static char *buffers[2][RANKS_MOST][EACH], *expected;

// xorshift64*, as in crates/srd: this is a program of one C file, which links to MPI alone.
static uint64_t number(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

static void stop(const char *what, int from, uint64_t index)
{
    fprintf(stderr, "pair: rank %d: message %llu of rank %d: %s\n", rank, (unsigned long long)index,
            from, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint64_t name_of(int from, int to, uint64_t index)
{
    return (((uint64_t)from << 8 | (uint64_t)to) << 40) + index + 1;
}

static int length_of(uint64_t name)
{
    uint64_t spread = name * 0x9e3779b97f4a7c15ULL;
    return lengths[(spread >> 40) % (sizeof(lengths) / sizeof(*lengths))];
}

// Bytes that tell one message from another, from its name alone: xorshift64 (Marsaglia 2003), whose
// state is its output.
static void fill(char *bytes, int length, uint64_t name)
{
    uint64_t word = name * 0x9e3779b97f4a7c15ULL | 1;
    for (int at = 0; at < length; at += 8) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        memcpy(bytes + at, &word, length - at < 8 ? (size_t)(length - at) : 8);
    }
}

static void compare(const char *bytes, int length, int from, uint64_t index)
{
    fill(expected, length, name_of(from, rank, index));
    if (memcmp(bytes, expected, (size_t)length) != 0)
        stop("other bytes", from, index);
}

static void check(const char *bytes, MPI_Status *status, int from, uint64_t index)
{
    int got = -1, length = length_of(name_of(from, rank, index));
    MPI_Get_count(status, MPI_BYTE, &got);
    if (status->MPI_TAG != (int)(index % TAG_LIMIT))
        stop("lost, doubled or out of order", from, index);
    if (got != length)
        stop("of another length", from, index);
    compare(bytes, length, from, index);
}

static void send_each(int to, uint64_t first, MPI_Request *requests)
{
    for (int at = 0; at < EACH; at++) {
        uint64_t index = first + (uint64_t)at, name = name_of(rank, to, index);
        char *bytes = buffers[0][to][at];
        int length = length_of(name), tag = (int)(index % TAG_LIMIT);
        fill(bytes, length, name);
        if (number() % FORMS == 0)
            MPI_Issend(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[at]);
        else
            MPI_Isend(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[at]);
    }
}

// Messages `first` and following between every two ranks; some find their receives, some wait.
static void one_round(uint64_t first)
{
    MPI_Request sends[RANKS_MOST * EACH], receives[RANKS_MOST * EACH];
    MPI_Status statuses[RANKS_MOST * EACH];
    int count = 0;
    bool late = number() % 2;
    for (int other = 0; other < ranks; other++) {
        if (other == rank)
            continue;
        if (late)
            send_each(other, first, sends + count);
        for (int at = 0; at < EACH; at++)
            MPI_Irecv(buffers[1][other][at], LONGEST, MPI_BYTE, other, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &receives[count + at]);
        if (!late)
            send_each(other, first, sends + count);
        count += EACH;
    }
    // Now and then a rank is away for a while.
    if (number() % 64 == 0)
        usleep(200000);
    MPI_Waitall(count, receives, statuses);
    MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    for (int other = 0, at = 0; other < ranks; other++)
        for (int each = 0; each < EACH && other != rank; each++, at++)
            check(buffers[1][other][each], &statuses[at], other, first + (uint64_t)each);
}

static void exchange(double seconds, uint64_t seed)
{
    double end = MPI_Wtime() + seconds;
    uint64_t count = 0;
    int goes_on = 1, one_more = 0;
    state = (seed + (uint64_t)rank) * 0x9e3779b97f4a7c15ULL | 1;
    while (goes_on) {
        one_round(count);
        count += EACH;
        goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    // What is still on its way is one too many.
    MPI_Barrier(MPI_COMM_WORLD);
    for (double wait = MPI_Wtime() + 0.3; MPI_Wtime() < wait && !one_more;)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &one_more, MPI_STATUS_IGNORE);
    if (one_more)
        stop("one too many", rank, count);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: all %llu messages of each other rank came once, whole and in order\n", rank,
           (unsigned long long)count);
}

// Says so by itself: Open MPI 4.1 now and then dies of its own message when its link to the other
// host's daemon is cut at the same time.
static void give_up(int other, int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "pair: rank %d gives rank %d up: %s\n", rank, other, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Answer each other, until rank 0 says that it is enough.
static void talk(double seconds)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int other = 1 - rank, length = 70000;
    char *mine = buffers[0][0][0], *theirs = buffers[1][0][0];
    double begin = MPI_Wtime();
    for (bool told = false; !theirs[0] && !mine[0];) {
        mine[0] = rank == 0 && MPI_Wtime() > begin + seconds;
        int error = MPI_Sendrecv(mine, length, MPI_BYTE, other, 1, theirs, length, MPI_BYTE, other,
                                 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS)
            give_up(other, error);
        if (!told && MPI_Wtime() > begin + 0.5) {
            printf("rank %d is under way\n", rank);
            fflush(stdout);
            told = true;
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// The other one waits for answers, and for the end of a short send and of a long one, which it
// offers.
static void compute(double seconds)
{
    static const int both[] = {300, LONGEST};
    MPI_Request requests[4];
    int other = 1 - rank;
    talk(1);
    for (uint64_t turn = 0; turn < 2; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (double end = MPI_Wtime() + seconds; (int)turn == rank && MPI_Wtime() < end;)
            continue;
        for (int at = 0; at < 2; at++) {
            fill(buffers[0][0][at], both[at], name_of(rank, other, 2 * turn + (uint64_t)at));
            MPI_Isend(buffers[0][0][at], both[at], MPI_BYTE, other, at, MPI_COMM_WORLD,
                      &requests[at]);
            MPI_Irecv(buffers[1][0][at], both[at], MPI_BYTE, other, at, MPI_COMM_WORLD,
                      &requests[2 + at]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int at = 0; at < 2; at++)
            compare(buffers[1][0][at], both[at], other, 2 * turn + (uint64_t)at);
    }
    printf("rank %d: all came while each computed for %g s\n", rank, seconds);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expected = malloc(LONGEST);
    for (int at = 0; at < 2 * RANKS_MOST * EACH; at++)
        buffers[at % 2][at / 2 % RANKS_MOST][at / 2 / RANKS_MOST] = calloc(1, LONGEST);
    if (count == 4 && !strcmp(words[1], "exchange") && ranks <= RANKS_MOST)
        exchange(atof(words[2]), strtoull(words[3], NULL, 10));
    else if (count == 3 && !strcmp(words[1], "compute") && ranks == 2)
        compute(atof(words[2]));
    else if (count == 3 && !strcmp(words[1], "talk") && ranks == 2)
        talk(atof(words[2]));
    else {
        fprintf(stderr, "usage: pair exchange SECONDS SEED|compute SECONDS|talk SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}

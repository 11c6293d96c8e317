// SPDX-License-Identifier: Apache-2.0 OR MIT
// Progress (MPI 4.1, sections 2.9, 3.5, 12.7.3): once a send and a receive match, one of them
// completes whatever else goes on; a process that is inside any call of MPI, or calls MPI_Test
// again and again, makes progress on all that it has begun.
#include "standard.h"

#define LONG (4 << 20)
enum { DATA = 1, ANSWER = 2, OTHER = 3 };

static void small_while_sender_computes(void) {
    int value = 42, got = 0;
    MPI_Request request;
    if (rank == 0) {
        succeeds(MPI_Isend(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        if (!await_outside(0, 1, 20))
            wrong("the receiver did not get it while the sender computed");
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        succeeds(MPI_Recv(&got, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect(got == 42);
        set_outside(0, 1);
    }
}

// MPI_Send has returned, and its buffer is used again: the message arrives though its sender calls
// nothing more.
static void middle_while_sender_computes(void) {
    static const int lengths[] = {10000, 16384, 40000, 65536};
    enum { COUNT = sizeof lengths / sizeof *lengths, ROUNDS = 12 };
    for (int round = 0; round < ROUNDS; round++) {
        int length = lengths[round % COUNT], value = round + 1;
        if (rank == 0) {
            char *from = patterned((size_t)length, (unsigned)round);
            succeeds(MPI_Send(from, length, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
            memset(from, 0xee, (size_t)length);
            // The first ones meet: that takes answers of both.
            if (round < COUNT)
                succeeds(MPI_Recv(&value, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD,
                                  MPI_STATUS_IGNORE));
            else if (!await_outside(0, value, 20))
                wrong("%d bytes did not arrive while their sender computed", length);
            free(from);
        } else if (rank == 1) {
            char *into = filled((size_t)length, 0);
            succeeds(MPI_Recv(into, length, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            expect_pattern(into, (size_t)length, (unsigned)round);
            set_outside(0, value);
            if (round < COUNT) succeeds(MPI_Send(&value, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
            free(into);
        }
    }
}

// receives_long: rank 1's part of the cases in which rank 0 sends.
static void receives_long(void) {
    char *into = filled(LONG, 0);
    succeeds(MPI_Recv(into, LONG, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_pattern(into, LONG, 1);
    set_outside(0, 1);
    free(into);
}

static void long_while_sender_tests(void) {
    if (rank == 1) receives_long();
    if (rank != 0) return;
    char *from = patterned(LONG, 1);
    MPI_Request request;
    int done = 0;
    double end = now() + 30;
    succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
    while (!outside->flag[0] && now() < end) {
        compute(0.0005);
        if (!done) succeeds(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    }
    expect(outside->flag[0]);
    if (!done) succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(from);
}

// The test is of a receive that nothing matches meanwhile.
static void long_while_sender_tests_another_request(void) {
    int never = 0, done = 0, value = 7;
    MPI_Request request, other;
    if (rank == 1) {
        receives_long();
        succeeds(MPI_Send(&value, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD));
    }
    if (rank != 0) return;
    char *from = patterned(LONG, 1);
    succeeds(MPI_Irecv(&never, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, &other));
    succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
    while (!done) {
        compute(0.0005);
        if (!succeeds(MPI_Test(&other, &done, MPI_STATUS_IGNORE))) break;
    }
    expect(never == 7);
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(from);
}

static void long_while_sender_probes_another_tag(void) {
    int flag = 0, value = 7;
    MPI_Request request;
    if (rank == 1) {
        receives_long();
        succeeds(MPI_Send(&value, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD));
    }
    if (rank != 0) return;
    char *from = patterned(LONG, 1);
    succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
    while (!flag)
        if (!succeeds(MPI_Iprobe(1, OTHER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE))) break;
    succeeds(MPI_Recv(&value, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(from);
}

static void long_while_sender_receives(void) {
    int value = 7;
    MPI_Request request;
    if (rank == 1) {
        receives_long();
        succeeds(MPI_Send(&value, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
    }
    if (rank != 0) return;
    char *from = patterned(LONG, 1);
    succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
    succeeds(MPI_Recv(&value, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(from);
}

static void long_while_sender_is_in_a_barrier(void) {
    MPI_Request request;
    if (rank == 1) receives_long();
    char *from = patterned(LONG, 1);
    if (rank == 0) succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
    succeeds(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    free(from);
}

static void long_while_receiver_tests(void) {
    if (rank == 0) {
        char *from = patterned(LONG, 1);
        succeeds(MPI_Send(from, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
        free(from);
    } else if (rank == 1) {
        char *into = filled(LONG, 0);
        MPI_Request request;
        int done = 0;
        succeeds(MPI_Irecv(into, LONG, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request));
        while (!done) {
            compute(0.0005);
            if (!succeeds(MPI_Test(&request, &done, MPI_STATUS_IGNORE))) break;
        }
        expect_pattern(into, LONG, 1);
        free(into);
    }
}

// A receive that was posted in time completes its sender's MPI_Ssend while the receiver waits for
// something else.
static void ssend_to_posted_receive(void) {
    int value = 5, got = 0, last = 0;
    MPI_Request request;
    if (rank == 0) {
        succeeds(MPI_Ssend(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD));
    } else if (rank == 1) {
        succeeds(MPI_Irecv(&got, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Recv(&last, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        expect(got == 5 && last == 5);
    }
}

static void long_bidirectional(void) {
    if (rank > 1) return;
    char *from = patterned(LONG, (unsigned)rank), *into = filled(LONG, 0);
    MPI_Request request;
    succeeds(MPI_Isend(from, LONG, MPI_BYTE, 1 - rank, DATA, MPI_COMM_WORLD, &request));
    succeeds(MPI_Recv(into, LONG, MPI_BYTE, 1 - rank, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect_pattern(into, LONG, 1 - (unsigned)rank);
    memset(into, 0, LONG);
    succeeds(MPI_Sendrecv(from, LONG, MPI_BYTE, 1 - rank, DATA, into, LONG, MPI_BYTE, 1 - rank,
                          DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_pattern(into, LONG, 1 - (unsigned)rank);
    free(from);
    free(into);
}

// What MPI_Bsend has taken is delivered while its sender waits for the answer.
static void bsend_while_sender_receives(void) {
    enum { BYTES = 1 << 20 };
    int value = 7;
    if (rank == 0) {
        char *from = patterned(BYTES, 3);
        void *room = filled(BYTES + MPI_BSEND_OVERHEAD + 4096, 0), *back;
        int length;
        succeeds(MPI_Buffer_attach(room, BYTES + MPI_BSEND_OVERHEAD + 4096));
        succeeds(MPI_Bsend(from, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
        memset(from, 0, BYTES);
        succeeds(MPI_Recv(&value, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        succeeds(MPI_Buffer_detach(&back, &length));
        free(room);
        free(from);
    } else if (rank == 1) {
        char *into = filled(BYTES, 0);
        succeeds(MPI_Recv(into, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_pattern(into, BYTES, 3);
        succeeds(MPI_Send(&value, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
        free(into);
    }
}

// MPI_Buffer_detach returns when all is delivered, though the receiver comes late.
static void detach_delivers(void) {
    enum { BYTES = 200000 };
    if (rank == 0) {
        char *from = patterned(BYTES, 4);
        void *room = filled(BYTES + MPI_BSEND_OVERHEAD + 4096, 0), *back;
        int length;
        succeeds(MPI_Buffer_attach(room, BYTES + MPI_BSEND_OVERHEAD + 4096));
        succeeds(MPI_Bsend(from, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
        succeeds(MPI_Buffer_detach(&back, &length));
        expect(back == room);
        memset(room, 0, (size_t)length);
        free(room);
        free(from);
    } else if (rank == 1) {
        char *into = filled(BYTES, 0);
        compute(0.1);
        succeeds(MPI_Recv(into, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_pattern(into, BYTES, 4);
        free(into);
    }
}

// A collective that was begun goes on while a rank waits for a message that comes after it.
static void collective_while_in_recv(void) {
    int one = rank + 1, sum = 0, value = 9;
    MPI_Request request;
    succeeds(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    if (rank == 0)
        succeeds(MPI_Recv(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(sum == size * (size + 1) / 2);
    if (rank == 1) succeeds(MPI_Send(&value, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD));
}

static const struct test tests[] = {
    {"small_while_sender_computes", small_while_sender_computes, 2},
    {"middle_while_sender_computes", middle_while_sender_computes, 2},
    {"long_while_sender_tests", long_while_sender_tests, 2},
    {"long_while_sender_tests_another_request", long_while_sender_tests_another_request, 2},
    {"long_while_sender_probes_another_tag", long_while_sender_probes_another_tag, 2},
    {"long_while_sender_receives", long_while_sender_receives, 2},
    {"long_while_sender_is_in_a_barrier", long_while_sender_is_in_a_barrier, 2},
    {"long_while_receiver_tests", long_while_receiver_tests, 2},
    {"ssend_to_posted_receive", ssend_to_posted_receive, 2},
    {"long_bidirectional", long_bidirectional, 2},
    {"bsend_while_sender_receives", bsend_while_sender_receives, 2},
    {"detach_delivers", detach_delivers, 2},
    {"collective_while_in_recv", collective_while_in_recv, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "progress", MPI_THREAD_SINGLE, tests);
}

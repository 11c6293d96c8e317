// SPDX-License-Identifier: Apache-2.0 OR MIT
// Locality (MPI 4.1, sections 2.4.2, 3.4, 3.7): these calls return whatever the other rank does.
// The receiver stays outside MPI until the sender's calls have returned. That MPI_Send of a few
// bytes returns too is no promise, but every transport keeps it and programs rely on it.
#include "standard.h"

#define LONG (4 << 20)
enum { RETURNED = 0, DATA = 1 };

// How long the receiver stays away at most.
#define AWAY_S 10

// Runs CALLS at rank 0 while rank 1 is outside MPI, then RECEIVE at rank 1 while rank 0 ends its
// requests by FINISH.
static void while_away(void (*calls)(void), void (*finish)(void), void (*receive)(void)) {
    meet(MPI_COMM_WORLD);
    if (rank == 0) {
        calls();
        set_outside(RETURNED, 1);
        finish();
    } else if (rank == 1) {
        if (!await_outside(RETURNED, 1, AWAY_S))
            wrong("the calls did not return while the receiver was outside MPI");
        receive();
    }
}

enum { COUNT = 20, SMALL = 64 };
static char small[COUNT][SMALL], *bulk;
static MPI_Request requests[COUNT];
static MPI_Datatype gaps;

static void nothing(void) {}

static void finish_all(void) { succeeds(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE)); }

static void receive_small(void) {
    char into[SMALL];
    for (unsigned i = 0; i < COUNT; i++) {
        succeeds(MPI_Recv(into, SMALL, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_pattern(into, SMALL, i);
    }
}

static void fill_small(void) {
    for (unsigned i = 0; i < COUNT; i++)
        for (size_t k = 0; k < SMALL; k++) small[i][k] = (char)pattern(i, k);
}

static void begin_isends(void) {
    fill_small();
    for (int i = 0; i < COUNT; i++)
        succeeds(MPI_Isend(small[i], SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[i]));
}
static void isend_small(void) { while_away(begin_isends, finish_all, receive_small); }

static void begin_issends(void) {
    int done = 0;
    fill_small();
    for (int i = 0; i < COUNT; i++)
        succeeds(MPI_Issend(small[i], SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[i]));
    succeeds(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
    if (done) wrong("MPI_Issend is complete before anybody received");
}
static void issend_small(void) { while_away(begin_issends, finish_all, receive_small); }

static void begin_sends(void) {
    fill_small();
    for (int i = 0; i < COUNT; i++)
        succeeds(MPI_Send(small[i], SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
}
static void send_of_64_bytes(void) { while_away(begin_sends, nothing, receive_small); }

static void begin_persistent(void) {
    fill_small();
    for (int i = 0; i < COUNT; i++)
        succeeds(MPI_Send_init(small[i], SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[i]));
    succeeds(MPI_Startall(COUNT, requests));
}
static void finish_persistent(void) {
    finish_all();
    for (int i = 0; i < COUNT; i++) succeeds(MPI_Request_free(&requests[i]));
}
static void start_of_persistent_sends(void) {
    while_away(begin_persistent, finish_persistent, receive_small);
}

static void begin_long(void) {
    bulk = patterned(LONG, 9);
    succeeds(MPI_Isend(bulk, LONG, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[0]));
}
static void finish_long(void) {
    succeeds(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    free(bulk);
}
static void receive_long(void) {
    char *into = filled(LONG, 0);
    succeeds(MPI_Recv(into, LONG, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_pattern(into, LONG, 9);
    free(into);
}
static void isend_long(void) { while_away(begin_long, finish_long, receive_long); }

// Every other block of 64 bytes: 2 MiB of 4.
static void begin_gaps(void) {
    bulk = patterned(LONG, 9);
    succeeds(MPI_Type_vector(LONG / 128, 64, 128, MPI_BYTE, &gaps));
    succeeds(MPI_Type_commit(&gaps));
    succeeds(MPI_Isend(bulk, 1, gaps, 1, DATA, MPI_COMM_WORLD, &requests[0]));
    succeeds(MPI_Type_free(&gaps));
}
static void receive_gaps(void) {
    unsigned char *into = filled(LONG / 2, 0);
    succeeds(MPI_Recv(into, LONG / 2, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (size_t i = 0; i < LONG / 2; i++) {
        size_t at = i / 64 * 128 + i % 64;
        if (into[i] != pattern(9, at)) {
            wrong("byte %zu of the vector is wrong", i);
            break;
        }
    }
    free(into);
}
static void isend_long_vector(void) { while_away(begin_gaps, finish_long, receive_gaps); }

static void *room;
static void begin_bsends(void) {
    int bytes = COUNT * (SMALL + MPI_BSEND_OVERHEAD) + LONG / 4 + MPI_BSEND_OVERHEAD + 4096;
    fill_small();
    bulk = patterned(LONG / 4, 9);
    room = filled((size_t)bytes, 0);
    succeeds(MPI_Buffer_attach(room, bytes));
    for (int i = 0; i < COUNT; i++)
        succeeds(MPI_Bsend(small[i], SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
    succeeds(MPI_Bsend(bulk, LONG / 4, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
    memset(bulk, 0, LONG / 4);
}
static void finish_bsends(void) {
    void *back;
    int length;
    succeeds(MPI_Buffer_detach(&back, &length));
    free(room);
    free(bulk);
}
static void receive_bsends(void) {
    char *into = filled(LONG / 4, 0);
    receive_small();
    succeeds(MPI_Recv(into, LONG / 4, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_pattern(into, LONG / 4, 9);
    free(into);
}
static void bsend_small_and_long(void) { while_away(begin_bsends, finish_bsends, receive_bsends); }

// Nothing comes: the tests and probes say so and return.
static int one;
static void look(void) {
    int found = 1, done = 1;
    MPI_Status status;
    succeeds(MPI_Irecv(&one, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &requests[0]));
    for (int i = 0; i < 100; i++) {
        MPI_Message message;
        succeeds(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status));
        expect(!found);
        succeeds(MPI_Improbe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status));
        expect(!found);
        succeeds(MPI_Test(&requests[0], &done, &status));
        expect(!done);
    }
}
static void finish_look(void) { succeeds(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)); }
static void answer(void) { succeeds(MPI_Send(&rank, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD)); }
static void iprobe_and_test(void) { while_away(look, finish_look, answer); }

static void begin_cancel(void) {
    int cancelled = 0;
    MPI_Status status;
    succeeds(MPI_Irecv(&one, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &requests[0]));
    succeeds(MPI_Cancel(&requests[0]));
    succeeds(MPI_Wait(&requests[0], &status));
    succeeds(MPI_Test_cancelled(&status, &cancelled));
    expect(cancelled);
}
static void cancel_of_a_receive(void) { while_away(begin_cancel, nothing, nothing); }

static const struct test tests[] = {
    {"isend_small", isend_small, 2},
    {"isend_long", isend_long, 2},
    {"isend_long_vector", isend_long_vector, 2},
    {"issend_small", issend_small, 2},
    {"send_of_64_bytes", send_of_64_bytes, 2},
    {"start_of_persistent_sends", start_of_persistent_sends, 2},
    {"bsend_small_and_long", bsend_small_and_long, 2},
    {"iprobe_and_test", iprobe_and_test, 2},
    {"cancel_of_a_receive", cancel_of_a_receive, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "locality", MPI_THREAD_SINGLE, tests);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI_Cancel (MPI 4.1, section 3.8.4): a receive is cancelled or takes its message, never both and
// never neither; so with a send, where the MPI can cancel sends at all.
#include "standard.h"

enum { DATA = 1, VERDICT = 2, LONG = 1 << 20 };

// cancelled: cancels REQUEST and waits for it; whether it was cancelled.
static int cancelled(MPI_Request *request, MPI_Status *status) {
    int flag = 0;
    succeeds(MPI_Cancel(request));
    succeeds(MPI_Wait(request, status));
    succeeds(MPI_Test_cancelled(status, &flag));
    return flag;
}

// Nothing matches it: it must be cancelled, and the message that comes later goes to the next
// receive.
static void receive_without_message(void) {
    int first = -1, second = -1, value = 5;
    MPI_Request request;
    MPI_Status status;
    if (rank == 1) {
        succeeds(MPI_Irecv(&first, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
        expect(cancelled(&request, &status));
    }
    meet(MPI_COMM_WORLD);
    if (rank == 0) succeeds(MPI_Send(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
    if (rank == 1) {
        succeeds(MPI_Recv(&second, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &status));
        expect(first == -1 && second == 5);
    }
}

static void one_of_several(void) {
    int got[4] = {-1, -1, -1, -1};
    MPI_Request requests[4];
    MPI_Status status;
    if (rank == 1) {
        for (int i = 0; i < 4; i++)
            succeeds(MPI_Irecv(&got[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : 0,
                               i == 1 ? MPI_ANY_TAG : DATA, MPI_COMM_WORLD, &requests[i]));
        expect(cancelled(&requests[1], &status));
        set_outside(0, 1);
        for (int i = 0; i < 4; i++) {
            if (i != 1) succeeds(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        }
        expect(got[0] == 0 && got[1] == -1 && got[2] == 1 && got[3] == 2);
    } else if (rank == 0) {
        await_outside(0, 1, 20);
        for (int i = 0; i < 3; i++) succeeds(MPI_Send(&i, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
    }
}

// The message may be on its way: it goes to the cancelled receive or to the next.
static void receive_in_a_race(void) {
    for (int i = 0; i < 200; i++) {
        int first = -1, second = -1, length = i % 2 ? LONG / 4 : 1;
        int *into = filled((size_t)length * 4, 0xff);
        MPI_Request request;
        MPI_Status status;
        meet(MPI_COMM_WORLD);
        if (rank == 0) {
            into[0] = i;
            succeeds(MPI_Send(into, length, MPI_INT, 1, DATA, MPI_COMM_WORLD));
        } else if (rank == 1) {
            succeeds(MPI_Irecv(into, length, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
            compute(i % 7 * 3e-6);
            int gone = cancelled(&request, &status);
            first = into[0];
            if (gone) {
                expect(first == -1);
                succeeds(MPI_Recv(into, length, MPI_INT, 0, DATA, MPI_COMM_WORLD, &status));
            }
            second = into[0];
            expect(second == i);
        }
        free(into);
        if (i % 20 == 0) meet(MPI_COMM_WORLD);
    }
}

static void persistent_receive(void) {
    int got = -1, flag = 0, value = 8;
    MPI_Request request;
    MPI_Status status;
    if (rank == 1) {
        succeeds(MPI_Recv_init(&got, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Start(&request));
        expect(cancelled(&request, &status));
        expect(request != MPI_REQUEST_NULL);
        succeeds(MPI_Start(&request));
        set_outside(0, 1);
        succeeds(MPI_Wait(&request, &status));
        succeeds(MPI_Test_cancelled(&status, &flag));
        expect(!flag && got == 8);
        succeeds(MPI_Request_free(&request));
    } else if (rank == 0) {
        await_outside(0, 1, 20);
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
    }
}

static void cancelled_and_freed(void) {
    static int never;
    int value = 3, got = -1;
    MPI_Request request;
    if (rank == 1) {
        succeeds(MPI_Irecv(&never, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Cancel(&request));
        succeeds(MPI_Request_free(&request));
        set_outside(0, 1);
        succeeds(MPI_Recv(&got, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect(got == 3);
    } else if (rank == 0) {
        await_outside(0, 1, 20);
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
    }
}

// The receiver takes what was not cancelled, and nothing else.
static void a_send_of(int bytes) {
    if (rank == 0) {
        char *from = patterned((size_t)bytes, 5);
        MPI_Request request;
        MPI_Status status;
        succeeds(MPI_Isend(from, bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
        int gone = cancelled(&request, &status);
        succeeds(MPI_Send(&gone, 1, MPI_INT, 1, VERDICT, MPI_COMM_WORLD));
        free(from);
    } else if (rank == 1) {
        char *into = filled((size_t)bytes, 0);
        int gone = -1, arrived = 0;
        MPI_Status status;
        // A send that cannot be cancelled may need its receiver before it completes.
        while (gone < 0) {
            int flag;
            succeeds(MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
            if (!flag) continue;
            if (status.MPI_TAG == DATA) {
                succeeds(MPI_Recv(into, bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &status));
                arrived++;
            } else {
                succeeds(MPI_Recv(&gone, 1, MPI_INT, 0, VERDICT, MPI_COMM_WORLD, &status));
            }
        }
        if (gone == arrived) wrong("cancelled is %d, received is %d", gone, arrived);
        if (arrived) expect_pattern(into, (size_t)bytes, 5);
        free(into);
    }
}
static void small_send(void) { a_send_of(64); }
static void long_send(void) { a_send_of(LONG); }

static const struct test tests[] = {
    {"receive_without_message", receive_without_message, 2},
    {"one_of_several", one_of_several, 2},
    {"receive_in_a_race", receive_in_a_race, 2},
    {"persistent_receive", persistent_receive, 2},
    {"cancelled_and_freed", cancelled_and_freed, 2},
    {"small_send", small_send, 2},
    {"long_send", long_send, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "cancel", MPI_THREAD_SINGLE, tests);
}

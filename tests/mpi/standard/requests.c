// SPDX-License-Identifier: Apache-2.0 OR MIT
// Requests and small promises (MPI 4.1, chapter 3): persistent requests, sendrecv_replace,
// MPI_PROC_NULL, truncation, zero-length messages, messages to oneself, the modes of sending,
// waiting for some of many.
#include "standard.h"

enum { DATA = 1, OTHER = 2, LONG = 1 << 20 };

static void persistent(void) {
    enum { ROUNDS = 10, COUNT = 4 };
    static const int lengths[COUNT] = {4, 300, 30000, LONG};
    char *buffers[COUNT];
    MPI_Request requests[COUNT];
    if (rank > 1) return;
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = filled((size_t)lengths[i], 0);
        if (rank == 0)
            succeeds(MPI_Send_init(buffers[i], lengths[i], MPI_BYTE, 1, i, MPI_COMM_WORLD,
                                   &requests[i]));
        else
            succeeds(MPI_Recv_init(buffers[i], lengths[i], MPI_BYTE, 0, i, MPI_COMM_WORLD,
                                   &requests[i]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            memset(buffers[i], rank ? 0 : round + i, (size_t)lengths[i]);
        if (round % 2)
            succeeds(MPI_Startall(COUNT, requests));
        else
            for (int i = COUNT - 1; i >= 0; i--) succeeds(MPI_Start(&requests[i]));
        succeeds(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < COUNT; i++)
            expect(buffers[i][0] == round + i && buffers[i][lengths[i] - 1] == round + i);
    }
    for (int i = 0; i < COUNT; i++) {
        expect(requests[i] != MPI_REQUEST_NULL);
        succeeds(MPI_Request_free(&requests[i]));
        free(buffers[i]);
    }
}

// A persistent request that is not started counts as complete, with an empty status.
static void inactive_persistent(void) {
    int value = 0, flag = 0, count = -1, index = 0;
    MPI_Request request;
    MPI_Status status;
    succeeds(MPI_Recv_init(&value, 1, MPI_INT, 0, DATA, MPI_COMM_SELF, &request));
    succeeds(MPI_Test(&request, &flag, &status));
    succeeds(MPI_Get_count(&status, MPI_INT, &count));
    expect(flag && count == 0 && status.MPI_SOURCE == MPI_ANY_SOURCE);
    succeeds(MPI_Wait(&request, &status));
    succeeds(MPI_Waitany(1, &request, &index, &status));
    expect(index == MPI_UNDEFINED);
    succeeds(MPI_Request_free(&request));
}

static void replace_of(int bytes) {
    if (rank > 1) return;
    char *both = patterned((size_t)bytes, (unsigned)rank);
    MPI_Status status;
    succeeds(MPI_Sendrecv_replace(both, bytes, MPI_BYTE, 1 - rank, DATA + rank, 1 - rank,
                                  DATA + 1 - rank, MPI_COMM_WORLD, &status));
    expect_pattern(both, (size_t)bytes, 1 - (unsigned)rank);
    expect(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == DATA + 1 - rank);
    free(both);
}
static void sendrecv_replace(void) {
    replace_of(1);
    replace_of(3000);
    replace_of(LONG);
    int own = 5;
    succeeds(MPI_Sendrecv_replace(&own, 1, MPI_INT, rank, 1, rank, 1, MPI_COMM_WORLD,
                                  MPI_STATUS_IGNORE));
    expect(own == 5);
}

static void expect_null(const MPI_Status *status) {
    int count = -1;
    succeeds(MPI_Get_count(status, MPI_INT, &count));
    expect(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG && count == 0);
}

static void proc_null(void) {
    int value = 5, flag = 0;
    MPI_Request request;
    MPI_Status status;
    succeeds(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, DATA, MPI_COMM_WORLD));
    succeeds(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, DATA, MPI_COMM_WORLD));
    succeeds(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &status));
    expect_null(&status);
    succeeds(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &request));
    succeeds(MPI_Wait(&request, &status));
    expect_null(&status);
    succeeds(MPI_Probe(MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &status));
    expect_null(&status);
    succeeds(MPI_Iprobe(MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &flag, &status));
    expect(flag);
    expect_null(&status);
    succeeds(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, &value, 1, MPI_INT, MPI_PROC_NULL,
                          0, MPI_COMM_WORLD, &status));
    expect_null(&status);
    succeeds(MPI_Sendrecv_replace(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0,
                                  MPI_COMM_WORLD, &status));
    expect_null(&status);
    // A chain, as in a stencil: nobody before the first and behind the last.
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL,
        after = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int got = -1;
    succeeds(MPI_Sendrecv(&rank, 1, MPI_INT, after, DATA, &got, 1, MPI_INT, before, DATA,
                          MPI_COMM_WORLD, &status));
    expect(got == rank - 1 && value == 5);
}

// A message longer than its receive is an error of that receive; nothing behind the buffer changes,
// and the next message comes whole.
static void truncation_of(int bytes, int unexpected, int immediate) {
    int half = bytes / 2;
    meet(MPI_COMM_WORLD);
    if (rank == 0) {
        char *from = patterned((size_t)bytes, 2);
        MPI_Request request;
        if (!unexpected) await_outside(OTHER, 1, 20);
        succeeds(MPI_Isend(from, bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
        if (unexpected) set_outside(OTHER, 1);
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        succeeds(MPI_Send(from, bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
        free(from);
    } else if (rank == 1) {
        unsigned char *into = filled((size_t)bytes, 0xaa);
        MPI_Request request;
        int code;
        if (unexpected) await_outside(OTHER, 1, 20);
        if (immediate) {
            succeeds(MPI_Irecv(into, half, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request));
            set_outside(OTHER, 1);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            set_outside(OTHER, 1);
            code = MPI_Recv(into, half, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (class_of(code) != MPI_ERR_TRUNCATE)
            wrong("%d bytes into %d: the error's class is %d", bytes, half, class_of(code));
        for (int i = half; i < bytes; i++)
            if (into[i] != 0xaa) {
                wrong("byte %d behind a receive of %d has changed", i, half);
                break;
            }
        succeeds(MPI_Recv(into, bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_pattern(into, (size_t)bytes, 2);
        free(into);
    }
    meet(MPI_COMM_WORLD);
    if (rank == 0) set_outside(OTHER, 0);
}
static void truncation(void) {
    static const int lengths[] = {2, 100, 10000, LONG};
    for (int i = 0; i < 4; i++) {
        truncation_of(lengths[i], 0, 0);
        truncation_of(lengths[i], 0, 1);
        truncation_of(lengths[i], 1, 0);
    }
}

static void zero_length(void) {
    MPI_Status status;
    int count = -1;
    if (rank == 0) {
        succeeds(MPI_Send(NULL, 0, MPI_INT, 1, DATA, MPI_COMM_WORLD));
        succeeds(MPI_Ssend(NULL, 0, MPI_INT, 1, OTHER, MPI_COMM_WORLD));
    } else if (rank == 1) {
        succeeds(MPI_Probe(0, DATA, MPI_COMM_WORLD, &status));
        succeeds(MPI_Recv(NULL, 0, MPI_INT, 0, DATA, MPI_COMM_WORLD, &status));
        succeeds(MPI_Get_count(&status, MPI_INT, &count));
        expect(count == 0);
        int value = 6;
        succeeds(MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        succeeds(MPI_Get_count(&status, MPI_INT, &count));
        expect(count == 0 && value == 6 && status.MPI_TAG == OTHER);
    }
}

static void to_oneself(void) {
    static const int lengths[] = {0, 8, 5000, LONG};
    for (int i = 0; i < 4; i++) {
        size_t length = (size_t)lengths[i];
        char *from = patterned(length, (unsigned)i), *into = filled(length, 0);
        MPI_Request request;
        MPI_Status status;
        succeeds(MPI_Isend(from, lengths[i], MPI_BYTE, rank, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Probe(rank, DATA, MPI_COMM_WORLD, &status));
        succeeds(MPI_Recv(into, lengths[i], MPI_BYTE, rank, DATA, MPI_COMM_WORLD, &status));
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        expect_pattern(into, length, (unsigned)i);
        memset(into, 0, length);
        succeeds(MPI_Irecv(into, lengths[i], MPI_BYTE, 0, DATA, MPI_COMM_SELF, &request));
        succeeds(MPI_Send(from, lengths[i], MPI_BYTE, 0, DATA, MPI_COMM_SELF));
        succeeds(MPI_Wait(&request, &status));
        expect_pattern(into, length, (unsigned)i);
        free(from);
        free(into);
    }
}

// A synchronous send is not complete before its receive has begun; a ready send finds the receive
// that is posted.
static void modes(void) {
    int value = 3, got = 0, done = 0;
    MPI_Request request;
    if (rank == 0) {
        succeeds(MPI_Issend(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        for (int i = 0; i < 50; i++) {
            succeeds(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            expect(!done);
            if (done) break;
            compute(0.0005);
        }
        set_outside(0, 1);
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        await_outside(1, 1, 20);
        succeeds(MPI_Rsend(&value, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD));
    } else if (rank == 1) {
        await_outside(0, 1, 20);
        succeeds(MPI_Recv(&got, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect(got == 3);
        succeeds(MPI_Irecv(&got, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD, &request));
        set_outside(1, 1);
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

// One by one, some at a time, and all, of receives that are complete in another order.
static void any_some_all(void) {
    enum { COUNT = 12 };
    int got[COUNT], seen = 0, order, indices[COUNT];
    MPI_Request requests[COUNT];
    MPI_Status statuses[COUNT];
    for (int way = 0; way < 4; way++) {
        meet(MPI_COMM_WORLD);
        if (rank == 0) {
            for (int i = COUNT - 1; i >= 0; i--)
                succeeds(MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD));
            continue;
        }
        if (rank != 1) continue;
        for (int i = 0; i < COUNT; i++)
            succeeds(MPI_Irecv(&got[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
        for (seen = 0; seen < COUNT;) {
            int some = 1, flag = 0;
            if (way == 0) succeeds(MPI_Waitany(COUNT, requests, &indices[0], statuses));
            if (way == 1) succeeds(MPI_Waitsome(COUNT, requests, &some, indices, statuses));
            if (way == 2) {
                succeeds(MPI_Testsome(COUNT, requests, &some, indices, statuses));
            }
            if (way == 3) {
                while (!flag) succeeds(MPI_Testall(COUNT, requests, &flag, statuses));
                for (some = 0; some < COUNT; some++) indices[some] = some;
            }
            if (some < 0 || some > COUNT) {
                wrong("%d requests complete of %d", some, COUNT);
                return;
            }
            for (int k = 0; k < some; k++) {
                order = indices[k];
                expect(order >= 0 && order < COUNT && got[order] == order);
                expect(statuses[k].MPI_TAG == order);
            }
            seen += some;
        }
        for (int i = 0; i < COUNT; i++) expect(requests[i] == MPI_REQUEST_NULL);
    }
}

// A freed send is delivered all the same.
static void freed_send(void) {
    static char from[200000];
    MPI_Request request;
    if (rank == 0) {
        for (size_t i = 0; i < sizeof from; i++) from[i] = (char)pattern(8, i);
        succeeds(MPI_Isend(from, sizeof from, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Request_free(&request));
        int done = 0;
        succeeds(MPI_Recv(&done, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        char *into = filled(sizeof from, 0);
        succeeds(MPI_Recv(into, sizeof from, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect_pattern(into, sizeof from, 8);
        succeeds(MPI_Send(&rank, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD));
        free(into);
    }
}

// The status can be had before the request is given up, and the largest tag works.
static void status_and_largest_tag(void) {
    int *largest = NULL, has = 0, value = 2, got = 0, flag = 0;
    MPI_Request request;
    MPI_Status status;
    succeeds(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &has));
    expect(has && *largest >= 32767);
    if (!has || rank > 1) return;
    if (rank == 0) {
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, *largest, MPI_COMM_WORLD));
        return;
    }
    succeeds(MPI_Irecv(&got, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    while (!flag) succeeds(MPI_Request_get_status(request, &flag, &status));
    expect(status.MPI_TAG == *largest && status.MPI_SOURCE == 0 && got == 2);
    expect(request != MPI_REQUEST_NULL);
    succeeds(MPI_Wait(&request, &status));
    expect(status.MPI_TAG == *largest);
}

static const struct test tests[] = {
    {"persistent", persistent, 2},
    {"inactive_persistent", inactive_persistent, 1},
    {"sendrecv_replace", sendrecv_replace, 2},
    {"proc_null", proc_null, 2},
    {"truncation", truncation, 2},
    {"zero_length", zero_length, 2},
    {"to_oneself", to_oneself, 1},
    {"modes", modes, 2},
    {"any_some_all", any_some_all, 2},
    {"freed_send", freed_send, 2},
    {"status_and_largest_tag", status_and_largest_tag, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "requests", MPI_THREAD_SINGLE, tests);
}

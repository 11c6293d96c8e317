// SPDX-License-Identifier: Apache-2.0 OR MIT
// Matched probes (MPI 4.1, section 3.8.2): MPI_Mprobe and MPI_Improbe take a message out of
// matching, MPI_Mrecv and MPI_Imrecv receive that message and no other, with every kind of
// datatype.
#include "kinds.h"

static const int sizes[] = {40, 3000, 60000, 1500000};
enum { SIZES = 4, DATA = 1, OTHER = 2 };

enum way { MPROBE_MRECV, MPROBE_IMRECV, IMPROBE_MRECV, IMPROBE_IMRECV };

static void probe(enum way way, int source, int tag, MPI_Message *message, MPI_Status *status) {
    int flag = 0;
    if (way == MPROBE_MRECV || way == MPROBE_IMRECV) {
        succeeds(MPI_Mprobe(source, tag, MPI_COMM_WORLD, message, status));
        return;
    }
    while (!flag)
        if (!succeeds(MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, message, status))) return;
}

static void take(enum way way, char *at, const struct kind *kind, MPI_Message *message) {
    MPI_Request request;
    MPI_Status status;
    int count = -1;
    if (way == MPROBE_MRECV || way == IMPROBE_MRECV) {
        succeeds(MPI_Mrecv(at, kind->count, kind->type, message, &status));
    } else {
        succeeds(MPI_Imrecv(at, kind->count, kind->type, message, &request));
        succeeds(MPI_Wait(&request, &status));
    }
    expect(*message == MPI_MESSAGE_NULL);
    succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
    if (count != kind->packed) wrong("%s: %d bytes came, not %d", kind->name, count, kind->packed);
    expect(status.MPI_SOURCE == 0 && status.MPI_TAG == DATA);
}

// Each size and kind once, each with the next way, from a named rank and from any in turn.
static void of_kind(int k) {
    for (int s = 0; s < SIZES; s++)
        for (enum way way = MPROBE_MRECV; way <= IMPROBE_IMRECV; way++) {
            struct kind kind;
            char *at, *buffer;
            make_kind(&kind, k, sizes[s]);
            if (rank == 0) {
                buffer = kind_buffer(&kind, s, &at);
                succeeds(MPI_Send(at, kind.count, kind.type, 1, DATA, MPI_COMM_WORLD));
                free(buffer);
            } else if (rank == 1) {
                MPI_Message message = MPI_MESSAGE_NULL;
                MPI_Status status;
                int count = -1, wild = (s + (int)way) % 2;
                probe(way, wild ? MPI_ANY_SOURCE : 0, wild ? MPI_ANY_TAG : DATA, &message, &status);
                succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
                if (count != kind.packed)
                    wrong("%s: the probe says %d bytes, not %d", kind.name, count, kind.packed);
                buffer = kind_buffer(&kind, -1, &at);
                take(way, at, &kind, &message);
                expect_kind(&kind, s, buffer);
                free(buffer);
            }
            free_kind(&kind);
        }
}

#define KIND_CASE(name, index) \
    static void name(void) { of_kind(index); }
KIND_CASE(basic, 0)
KIND_CASE(contiguous, 1)
KIND_CASE(vector, 2)
KIND_CASE(vectors, 3)
KIND_CASE(indexed, 4)
KIND_CASE(indexed_backwards, 5)
KIND_CASE(structure, 6)
KIND_CASE(negative_lower_bound, 7)
KIND_CASE(resized_larger, 8)
KIND_CASE(resized_smaller, 9)
KIND_CASE(subarray, 10)
KIND_CASE(negative_stride, 11)
KIND_CASE(nested, 12)
KIND_CASE(zero_size, 13)
KIND_CASE(zero_count, 14)

// A probed message is out of matching: receives of the same tag take the next ones.
static void out_of_matching(void) {
    int lengths[] = {1, 200000, 5, 50000};
    if (rank == 0) {
        MPI_Request requests[4];
        char *from[4];
        for (int i = 0; i < 4; i++) {
            from[i] = patterned((size_t)lengths[i], (unsigned)i);
            succeeds(
                MPI_Isend(from[i], lengths[i], MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &requests[i]));
        }
        succeeds(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; i++) free(from[i]);
    } else if (rank == 1) {
        MPI_Message messages[2];
        MPI_Status status;
        int order[] = {1, 3, 2, 0}, count;
        char *into = filled(200000, 0);
        succeeds(MPI_Mprobe(0, DATA, MPI_COMM_WORLD, &messages[0], &status));
        succeeds(MPI_Recv(into, 200000, MPI_BYTE, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &status));
        for (int i = 0; i < 4; i++) {
            if (i == 1) {
                succeeds(MPI_Mprobe(MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &messages[1], &status));
                succeeds(MPI_Recv(into, 200000, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            }
            if (i >= 2) {
                succeeds(MPI_Mrecv(into, lengths[order[i]], MPI_BYTE, &messages[3 - i], &status));
            }
            succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
            expect(count == lengths[order[i]]);
            expect_pattern(into, (size_t)lengths[order[i]], (unsigned)order[i]);
        }
        free(into);
    }
}

// A message that was probed stays while its receiver communicates with the sender about other
// things.
static void kept_for_long(void) {
    enum { BYTES = 300000 };
    int value = 1;
    MPI_Request request;
    if (rank == 0) {
        char *from = patterned(BYTES, 6);
        succeeds(MPI_Isend(from, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request));
        for (int i = 0; i < 50; i++)
            succeeds(MPI_Sendrecv_replace(&value, 1, MPI_INT, 1, OTHER, 1, OTHER, MPI_COMM_WORLD,
                                          MPI_STATUS_IGNORE));
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        free(from);
    } else if (rank == 1) {
        MPI_Message message;
        MPI_Status status;
        char *into = filled(BYTES, 0);
        succeeds(MPI_Mprobe(0, DATA, MPI_COMM_WORLD, &message, &status));
        for (int i = 0; i < 50; i++)
            succeeds(MPI_Sendrecv_replace(&value, 1, MPI_INT, 0, OTHER, 0, OTHER, MPI_COMM_WORLD,
                                          MPI_STATUS_IGNORE));
        succeeds(MPI_Mrecv(into, BYTES, MPI_BYTE, &message, &status));
        expect_pattern(into, BYTES, 6);
        free(into);
    }
}

static void synchronous_send(void) {
    int value = 4, got = 0, done = 1;
    MPI_Request request;
    if (rank == 0) {
        succeeds(MPI_Issend(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        succeeds(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        expect(!done);
        set_outside(0, 1);
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        MPI_Message message;
        await_outside(0, 1, 20);
        succeeds(MPI_Mprobe(0, DATA, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        succeeds(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        expect(got == 4);
    }
}

static void nobody(void) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int value = 3, count = -1, flag = 0;
    MPI_Request request;
    succeeds(MPI_Mprobe(MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &message, &status));
    expect(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    succeeds(MPI_Mrecv(&value, 1, MPI_INT, &message, &status));
    succeeds(MPI_Get_count(&status, MPI_INT, &count));
    expect(count == 0 && value == 3 && status.MPI_TAG == MPI_ANY_TAG &&
           message == MPI_MESSAGE_NULL);
    succeeds(MPI_Improbe(MPI_PROC_NULL, DATA, MPI_COMM_WORLD, &flag, &message, &status));
    expect(flag && message == MPI_MESSAGE_NO_PROC);
    succeeds(MPI_Imrecv(&value, 1, MPI_INT, &message, &request));
    succeeds(MPI_Wait(&request, &status));
    expect(status.MPI_SOURCE == MPI_PROC_NULL);
}

// MPI_Mrecv into less room than the message has is an error, as with MPI_Recv; the next message
// comes whole.
static void truncated(void) {
    enum { BYTES = 1000 };
    char bytes[BYTES];
    if (rank == 0) {
        memset(bytes, 7, BYTES);
        for (int i = 0; i < 2; i++)
            succeeds(MPI_Send(bytes, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
    } else if (rank == 1) {
        MPI_Message message;
        MPI_Status status;
        memset(bytes, 0, BYTES);
        succeeds(MPI_Mprobe(0, DATA, MPI_COMM_WORLD, &message, &status));
        int code = MPI_Mrecv(bytes, BYTES / 2, MPI_BYTE, &message, &status);
        if (class_of(code) != MPI_ERR_TRUNCATE) wrong("the error's class is %d", class_of(code));
        for (int i = BYTES / 2; i < BYTES; i++) expect(bytes[i] == 0);
        succeeds(MPI_Recv(bytes, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &status));
        expect(bytes[BYTES - 1] == 7);
    }
}

// Ranks 0 and 1 are a group each.
static void across_groups(void) {
    MPI_Comm own, across;
    int value = rank + 30, got = -1;
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    succeeds(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own));
    if (rank < 2) {
        succeeds(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 77, &across));
        succeeds(MPI_Isend(&value, 1, MPI_INT, 0, DATA, across, &request));
        succeeds(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, across, &message, &status));
        succeeds(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
        expect(got == 31 - rank && status.MPI_SOURCE == 0 && status.MPI_TAG == DATA);
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        succeeds(MPI_Comm_free(&across));
    }
    succeeds(MPI_Comm_free(&own));
}

static const struct test tests[] = {
    {"basic", basic, 2},
    {"contiguous", contiguous, 2},
    {"vector", vector, 2},
    {"vectors", vectors, 2},
    {"indexed", indexed, 2},
    {"indexed_backwards", indexed_backwards, 2},
    {"structure", structure, 2},
    {"negative_lower_bound", negative_lower_bound, 2},
    {"resized_larger", resized_larger, 2},
    {"resized_smaller", resized_smaller, 2},
    {"subarray", subarray, 2},
    {"negative_stride", negative_stride, 2},
    {"nested", nested, 2},
    {"zero_size", zero_size, 2},
    {"zero_count", zero_count, 2},
    {"out_of_matching", out_of_matching, 2},
    {"kept_for_long", kept_for_long, 2},
    {"synchronous_send", synchronous_send, 2},
    {"nobody", nobody, 2},
    {"truncated", truncated, 2},
    {"across_groups", across_groups, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "matched", MPI_THREAD_SINGLE, tests);
}

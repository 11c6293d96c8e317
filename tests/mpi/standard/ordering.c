// SPDX-License-Identifier: Apache-2.0 OR MIT
// Order (MPI 4.1, section 3.5): messages from one rank that match the same receive are received in
// the order in which they were sent, and receives that match the same message take it in the order
// in which they were posted; whatever the sizes and the modes of sending.
#include "standard.h"

enum { MESSAGES = 200, LONGEST = 300000, WINDOW = 16 };
static const int lengths[] = {8, 200, 4, 5000, 70000, LONGEST, 16, 1000, 9000, 32};

static int length_of(int i) { return lengths[i * 7 % 10 * 3 % 10]; }

// Bytes of message I: its number, then a pattern.
static void write_message(char *into, int i) {
    for (int k = 0; k < length_of(i); k++) into[k] = (char)pattern((unsigned)i, (size_t)k);
    memcpy(into, &i, sizeof i);
}

static void check_message(const char *from, const MPI_Status *status, int i) {
    int found, count;
    memcpy(&found, from, sizeof found);
    MPI_Get_count(status, MPI_BYTE, &count);
    if (found != i || count != length_of(i))
        wrong("message %d with %d bytes came instead of message %d with %d", found, count, i,
              length_of(i));
    for (int k = sizeof i; k < count; k++) {
        if ((unsigned char)from[k] == pattern((unsigned)i, (size_t)k)) continue;
        wrong("byte %d of message %d is wrong", k, i);
        return;
    }
}

static char *room(int i) {
    static char *rooms[WINDOW];
    if (!rooms[i % WINDOW]) rooms[i % WINDOW] = filled(LONGEST, 0);
    return rooms[i % WINDOW];
}

// sends_all TO TAG MODES: messages 0 to MESSAGES - 1; with MODES in a different mode each.
static void sends_all(int to, int modes) {
    MPI_Request requests[WINDOW];
    int buffer_bytes = LONGEST * 4, length;
    void *buffer = NULL;
    for (int i = 0; i < WINDOW; i++) requests[i] = MPI_REQUEST_NULL;
    if (modes) {
        buffer = filled((size_t)buffer_bytes, 0);
        succeeds(MPI_Buffer_attach(buffer, buffer_bytes));
    }
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request *request = &requests[i % WINDOW];
        succeeds(MPI_Wait(request, MPI_STATUS_IGNORE));
        write_message(room(i), i);
        int mode = modes ? i % 5 : 0;
        if (mode == 3 && length_of(i) > 9000) mode = 0; // the buffer holds short ones only
        char *from = room(i);
        MPI_Comm comm = MPI_COMM_WORLD;
        if (mode == 0) succeeds(MPI_Isend(from, length_of(i), MPI_BYTE, to, 1, comm, request));
        if (mode == 1) succeeds(MPI_Issend(from, length_of(i), MPI_BYTE, to, 1, comm, request));
        if (mode == 2) succeeds(MPI_Send(from, length_of(i), MPI_BYTE, to, 1, comm));
        if (mode == 3) succeeds(MPI_Ibsend(from, length_of(i), MPI_BYTE, to, 1, comm, request));
        if (mode == 4) succeeds(MPI_Ssend(from, length_of(i), MPI_BYTE, to, 1, comm));
    }
    succeeds(MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE));
    if (modes) {
        succeeds(MPI_Buffer_detach(&buffer, &length));
        free(buffer);
    }
}

static void receives_all(int source, int tag) {
    MPI_Status status;
    for (int i = 0; i < MESSAGES; i++) {
        succeeds(MPI_Recv(room(i), LONGEST, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status));
        check_message(room(i), &status, i);
        expect(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
    }
}

static void same_tag_mixed_sizes(void) {
    if (rank == 0) sends_all(1, 0);
    if (rank == 1) receives_all(0, 1);
}

static void any_source_and_tag_mixed_sizes(void) {
    if (rank == 0) sends_all(1, 0);
    if (rank == 1) receives_all(MPI_ANY_SOURCE, MPI_ANY_TAG);
}

static void all_modes_mixed_sizes(void) {
    if (rank == 0) sends_all(1, 1);
    if (rank == 1) receives_all(0, 1);
}

// Receives that stand before any message comes, with and without wildcards in turn.
static void posted_receives(void) {
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    for (int round = 0; round < 4; round++) {
        if (rank == 1) {
            for (int i = 0; i < WINDOW; i++)
                succeeds(MPI_Irecv(room(i), LONGEST, MPI_BYTE, i % 3 ? 0 : MPI_ANY_SOURCE,
                                   i % 2 ? 1 : MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]));
            set_outside(round, 1);
            succeeds(MPI_Waitall(WINDOW, requests, statuses));
            for (int i = 0; i < WINDOW; i++) check_message(room(i), &statuses[i], i);
        } else if (rank == 0) {
            await_outside(round, 1, 20);
            for (int i = 0; i < WINDOW; i++) {
                write_message(room(i), i);
                succeeds(
                    MPI_Isend(room(i), length_of(i), MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]));
            }
            succeeds(MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE));
        }
    }
}

// The receiver takes the tags one after the other, the last first; each tag keeps its order.
static void tags_apart(void) {
    enum { TAGS = 5, EACH = 20 };
    static int values[TAGS * EACH];
    static MPI_Request requests[TAGS * EACH];
    if (rank == 0) {
        for (int i = 0; i < TAGS * EACH; i++) {
            values[i] = i;
            succeeds(MPI_Isend(&values[i], 1, MPI_INT, 1, i % TAGS, MPI_COMM_WORLD, &requests[i]));
        }
        succeeds(MPI_Waitall(TAGS * EACH, requests, MPI_STATUSES_IGNORE));
    } else if (rank == 1) {
        for (int tag = TAGS - 1; tag >= 0; tag--)
            for (int i = 0; i < EACH; i++) {
                int got = -1;
                succeeds(MPI_Recv(&got, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                expect(got == i * TAGS + tag);
            }
    }
}

// The same tag on two communicators: neither takes the other's.
static void communicators_apart(void) {
    MPI_Comm other;
    int value, got;
    MPI_Request requests[2];
    succeeds(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    if (rank == 0) {
        int first = 1, second = 2;
        succeeds(MPI_Isend(&first, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]));
        succeeds(MPI_Isend(&second, 1, MPI_INT, 1, 1, other, &requests[1]));
        succeeds(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else if (rank == 1) {
        succeeds(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE));
        expect(got == 2);
        succeeds(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
        expect(value == 1);
    }
    succeeds(MPI_Comm_free(&other));
}

// What MPI_Probe names is what the next receive of that source and tag takes.
static void probe_names_the_next(void) {
    MPI_Status status;
    int count;
    if (rank == 0) sends_all(1, 0);
    if (rank != 1) return;
    for (int i = 0; i < MESSAGES; i++) {
        succeeds(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
        expect(count == length_of(i));
        if (count > LONGEST) return;
        succeeds(MPI_Recv(room(i), count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                          MPI_COMM_WORLD, &status));
        check_message(room(i), &status, i);
    }
}

// Many send to one who takes from any: each sender's order is kept.
static void each_sender_keeps_its_order(void) {
    enum { EACH = 100 };
    int value[2], next[64] = {0};
    MPI_Status status;
    if (rank > 0) {
        for (int i = 0; i < EACH; i++) {
            value[0] = rank, value[1] = i;
            succeeds(MPI_Send(value, 2, MPI_INT, 0, i % 3, MPI_COMM_WORLD));
        }
        return;
    }
    for (int i = 0; i < EACH * (size - 1); i++) {
        succeeds(MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        expect(status.MPI_SOURCE == value[0] && status.MPI_TAG == value[1] % 3);
        if (value[0] < 1 || value[0] >= size) return;
        expect(value[1] == next[value[0] % 64]);
        next[value[0] % 64]++;
    }
}

static const struct test tests[] = {
    {"same_tag_mixed_sizes", same_tag_mixed_sizes, 2},
    {"any_source_and_tag_mixed_sizes", any_source_and_tag_mixed_sizes, 2},
    {"all_modes_mixed_sizes", all_modes_mixed_sizes, 2},
    {"posted_receives", posted_receives, 2},
    {"tags_apart", tags_apart, 2},
    {"communicators_apart", communicators_apart, 2},
    {"probe_names_the_next", probe_names_the_next, 2},
    {"each_sender_keeps_its_order", each_sender_keeps_its_order, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "ordering", MPI_THREAD_SINGLE, tests);
}

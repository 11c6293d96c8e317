// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI_THREAD_MULTIPLE (MPI 4.1, section 11.6): four threads of each rank call MPI at once, for
// sends, receives, probes, windows and new communicators. A thread that waits keeps no other thread
// from its communication.
#include "crew.h"

enum { ROUNDS = 60, LONG = 200000 };

static MPI_Comm copies[THREADS];

static void make_copies(void) {
    for (int i = 0; i < THREADS; i++) {
        succeeds(MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]));
        succeeds(MPI_Comm_set_errhandler(copies[i], MPI_ERRORS_RETURN));
    }
}

static void free_copies(void) {
    for (int i = 0; i < THREADS; i++) succeeds(MPI_Comm_free(&copies[i]));
}

static int length_in(int round) { return round % 10 == 9 ? LONG : 8 << round % 10; }

// Both ranks send and receive; THREAD has its own tag, or its own communicator.
static void exchange(MPI_Comm comm, int tag, int thread) {
    char *from = filled(LONG, 0), *into = filled(LONG, 0);
    for (int round = 0; round < ROUNDS; round++) {
        int length = length_in(round), count = -1;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        memset(from, rank * 100 + thread * 10 + round % 7, (size_t)length);
        succeeds(MPI_Irecv(into, LONG, MPI_BYTE, 1 - rank, tag, comm, &requests[0]));
        succeeds(MPI_Isend(from, length, MPI_BYTE, 1 - rank, tag, comm, &requests[1]));
        succeeds(MPI_Waitall(2, requests, statuses));
        succeeds(MPI_Get_count(&statuses[0], MPI_BYTE, &count));
        char wanted = (char)((1 - rank) * 100 + thread * 10 + round % 7);
        expect(count == length && into[0] == wanted && into[length - 1] == wanted);
    }
    free(from);
    free(into);
}

static void by_tag(int thread) { exchange(MPI_COMM_WORLD, thread, thread); }
static void by_copy(int thread) { exchange(copies[thread], 5, thread); }
static void one_tag_each(void) { in_threads(by_tag); }
static void one_communicator_each(void) {
    make_copies();
    in_threads(by_copy);
    free_copies();
}

static void blocking(int thread) {
    int value, got;
    for (int round = 0; round < ROUNDS; round++) {
        value = round * THREADS + thread, got = -1;
        if (rank == 0) {
            succeeds(MPI_Send(&value, 1, MPI_INT, 1, thread, MPI_COMM_WORLD));
            succeeds(MPI_Recv(&got, 1, MPI_INT, 1, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            succeeds(MPI_Recv(&got, 1, MPI_INT, 0, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            succeeds(MPI_Send(&value, 1, MPI_INT, 0, thread, MPI_COMM_WORLD));
        }
        expect(got == value);
    }
}
static void blocking_ping_pong(void) { in_threads(blocking); }

// All threads of rank 1 take from any; every message is received by exactly one.
static _Atomic int taken[THREADS * ROUNDS];

static void from_any(int thread) {
    for (int round = 0; round < ROUNDS; round++) {
        int value = round * THREADS + thread;
        MPI_Status status;
        if (rank == 0) {
            succeeds(MPI_Send(&value, 1, MPI_INT, 1, round % 3, MPI_COMM_WORLD));
            continue;
        }
        succeeds(
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        if (value < 0 || value >= THREADS * ROUNDS)
            wrong("value %d", value);
        else
            taken[value]++;
    }
}

static void each_once(void (*run)(int thread)) {
    for (int i = 0; i < THREADS * ROUNDS; i++) taken[i] = 0;
    in_threads(run);
    for (int i = 0; rank == 1 && i < THREADS * ROUNDS; i++)
        if (taken[i] != 1) wrong("message %d was received %d times", i, taken[i]);
}
static void wildcard_receives(void) { each_once(from_any); }

// Three threads wait in MPI_Recv for what the fourth makes the other rank send.
static void waiters(int thread) {
    int value = thread, got = -1;
    if (rank == 0 && thread > 0) {
        succeeds(MPI_Recv(&got, 1, MPI_INT, 1, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect(got == thread);
    } else if (rank == 0) {
        compute(0.05);
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, 50, MPI_COMM_WORLD));
    } else if (thread == 0) {
        succeeds(MPI_Recv(&got, 1, MPI_INT, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (value = THREADS - 1; value > 0; value--)
            succeeds(MPI_Send(&value, 1, MPI_INT, 0, value, MPI_COMM_WORLD));
    }
}
static void a_waiting_thread_is_alone(void) { in_threads(waiters); }

// Each thread makes communicators of its own, uses them and frees them.
static void duplicate(int thread) {
    for (int round = 0; round < 10; round++) {
        MPI_Comm comm;
        int one = thread + 1, sum = 0;
        if (!succeeds(MPI_Comm_dup(copies[thread], &comm))) return;
        succeeds(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        expect(sum == one * size);
        succeeds(MPI_Comm_free(&comm));
    }
}
static void comm_dup(void) {
    if (size != 2) {
        cannot("it needs 2 ranks exactly");
        return;
    }
    make_copies();
    in_threads(duplicate);
    free_copies();
}

static void collect(int thread) {
    for (int round = 0; round < ROUNDS; round++) {
        int values[2] = {rank, thread}, all[4];
        succeeds(MPI_Allgather(values, 2, MPI_INT, all, 2, MPI_INT, copies[thread]));
        expect(all[0] == 0 && all[2] == 1 && all[1] == thread && all[3] == thread);
        succeeds(MPI_Barrier(copies[thread]));
    }
}
static void collectives(void) {
    if (size != 2) {
        cannot("it needs 2 ranks exactly");
        return;
    }
    make_copies();
    in_threads(collect);
    free_copies();
}

// One window that all threads use, each a part of its own.
static MPI_Win window;
static int *exposed;

static void touch(int thread) {
    int remote = 1 - rank, base = thread * ROUNDS;
    for (int round = 0; round < ROUNDS; round++) {
        int value = rank * 1000 + base + round, got = -1, one = 1;
        MPI_Aint own = base + round;
        succeeds(MPI_Put(&value, 1, MPI_INT, remote, own, 1, MPI_INT, window));
        succeeds(MPI_Win_flush(remote, window));
        succeeds(MPI_Get(&got, 1, MPI_INT, remote, own, 1, MPI_INT, window));
        succeeds(MPI_Win_flush(remote, window));
        expect(got == value);
        succeeds(
            MPI_Accumulate(&one, 1, MPI_INT, 0, THREADS * ROUNDS, 1, MPI_INT, MPI_SUM, window));
        succeeds(MPI_Fetch_and_op(&one, &got, MPI_INT, 0, THREADS * ROUNDS + 1, MPI_SUM, window));
        succeeds(MPI_Win_flush(0, window));
    }
}

static void use_window(void) {
    succeeds(MPI_Win_lock_all(0, window));
    in_threads(touch);
    succeeds(MPI_Win_unlock_all(window));
    meet(MPI_COMM_WORLD);
    if (rank == 0) {
        int wanted = THREADS * ROUNDS * 2;
        succeeds(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        if (exposed[THREADS * ROUNDS] != wanted || exposed[THREADS * ROUNDS + 1] != wanted)
            wrong("sums %d and %d instead of %d", exposed[THREADS * ROUNDS],
                  exposed[THREADS * ROUNDS + 1], wanted);
        succeeds(MPI_Win_unlock(0, window));
    }
    succeeds(MPI_Win_free(&window));
}

static void window_create(void) {
    int bytes = (THREADS * ROUNDS + 2) * (int)sizeof(int);
    exposed = filled((size_t)bytes, 0);
    if (succeeds(
            MPI_Win_create(exposed, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window)))
        use_window();
    free(exposed);
}

static void window_allocate(void) {
    int bytes = (THREADS * ROUNDS + 2) * (int)sizeof(int);
    if (!succeeds(
            MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &exposed, &window)))
        return;
    memset(exposed, 0, (size_t)bytes);
    meet(MPI_COMM_WORLD);
    use_window();
}

static const struct test tests[] = {
    {"one_tag_each", one_tag_each, 2},
    {"one_communicator_each", one_communicator_each, 2},
    {"blocking_ping_pong", blocking_ping_pong, 2},
    {"wildcard_receives", wildcard_receives, 2},
    {"a_waiting_thread_is_alone", a_waiting_thread_is_alone, 2},
    {"comm_dup", comm_dup, 2},
    {"collectives", collectives, 2},
    {"window_create", window_create, 2},
    {"window_allocate", window_allocate, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "threads", MPI_THREAD_MULTIPLE, tests);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// One-sided communication (MPI 4.1, chapter 12): passive-target accesses make progress while the
// target is inside any call of MPI. That they do so while the target computes is not promised, and
// not tested.
#include "standard.h"

enum { INTS = 4096, DATA = 1 };
static MPI_Win window;
static int *memory;

static int make(void) {
    MPI_Aint bytes = INTS * sizeof(int);
    memory = filled((size_t)bytes, 0);
    return succeeds(
        MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
}

static void drop(void) {
    succeeds(MPI_Win_free(&window));
    free(memory);
}

// Rank 0's accesses to the memory of rank 1, each seen to be complete by the next.
static void accesses(void) {
    int value = 7, got = -1, one = 1, wanted = 8, seen[4] = {0};
    static int many[INTS], back[INTS];
    for (int i = 0; i < INTS; i++) many[i] = i * 3;
    succeeds(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
    succeeds(MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window));
    succeeds(MPI_Win_flush(1, window));
    succeeds(MPI_Fetch_and_op(&one, &got, MPI_INT, 1, 0, MPI_SUM, window));
    succeeds(MPI_Win_flush(1, window));
    expect(got == 7);
    value = 100;
    succeeds(MPI_Compare_and_swap(&value, &wanted, &got, MPI_INT, 1, 0, window));
    succeeds(MPI_Win_flush(1, window));
    expect(got == 8);
    succeeds(
        MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, window));
    succeeds(MPI_Win_flush(1, window));
    expect(got == 100);
    succeeds(MPI_Get(seen, 4, MPI_INT, 1, 0, 4, MPI_INT, window));
    succeeds(MPI_Win_unlock(1, window));
    expect(seen[0] == 101 && seen[1] == 0);
    succeeds(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
    succeeds(MPI_Put(many, INTS, MPI_INT, 1, 0, INTS, MPI_INT, window));
    succeeds(MPI_Win_flush(1, window));
    succeeds(MPI_Get(back, INTS, MPI_INT, 1, 0, INTS, MPI_INT, window));
    succeeds(MPI_Win_unlock(1, window));
    expect(memcmp(many, back, sizeof many) == 0);
}

static void target_in_recv(void) {
    int value = 1;
    if (make()) {
        if (rank == 0) {
            accesses();
            succeeds(MPI_Send(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
        } else if (rank == 1) {
            succeeds(MPI_Recv(&value, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        drop();
    }
}

static void target_in_barrier(void) {
    if (!make()) return;
    if (rank == 0) accesses();
    succeeds(MPI_Barrier(MPI_COMM_WORLD));
    drop();
}

static void target_tests(void) {
    int value = 1, done = 0;
    MPI_Request request;
    if (!make()) return;
    if (rank == 0) {
        accesses();
        succeeds(MPI_Send(&value, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD));
    } else if (rank == 1) {
        succeeds(MPI_Irecv(&value, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &request));
        while (!done)
            if (!succeeds(MPI_Test(&request, &done, MPI_STATUS_IGNORE))) break;
    }
    drop();
}

static void fences(void) {
    int value = rank + 10, got = -1;
    if (!make()) return;
    succeeds(MPI_Win_fence(0, window));
    succeeds(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 5, 1, MPI_INT, window));
    succeeds(MPI_Win_fence(0, window));
    expect(memory[5] == (rank + size - 1) % size + 10);
    succeeds(MPI_Get(&got, 1, MPI_INT, (rank + 1) % size, 5, 1, MPI_INT, window));
    succeeds(MPI_Win_fence(0, window));
    expect(got == value);
    drop();
}

static void post_start_complete_wait(void) {
    MPI_Group world, other;
    int value = 33, who = rank == 0 ? 1 : 0;
    if (!make()) return;
    if (rank < 2) {
        succeeds(MPI_Comm_group(MPI_COMM_WORLD, &world));
        succeeds(MPI_Group_incl(world, 1, &who, &other));
        if (rank == 0) {
            succeeds(MPI_Win_start(other, 0, window));
            succeeds(MPI_Put(&value, 1, MPI_INT, 1, 9, 1, MPI_INT, window));
            succeeds(MPI_Win_complete(window));
        } else {
            succeeds(MPI_Win_post(other, 0, window));
            succeeds(MPI_Win_wait(window));
            expect(memory[9] == 33);
        }
        succeeds(MPI_Group_free(&world));
        succeeds(MPI_Group_free(&other));
    }
    drop();
}

// Both ranks add to the same place; nothing is lost.
static void sums(void) {
    int one = 1;
    if (!make()) return;
    succeeds(MPI_Win_lock_all(0, window));
    for (int i = 0; i < 100; i++)
        succeeds(MPI_Accumulate(&one, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_SUM, window));
    succeeds(MPI_Win_unlock_all(window));
    meet(MPI_COMM_WORLD);
    if (rank == 0) {
        succeeds(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
        if (memory[3] != 100 * size) wrong("the sum is %d instead of %d", memory[3], 100 * size);
        succeeds(MPI_Win_unlock(0, window));
    }
    drop();
}

// Every other int of the target, from every third of the origin.
static void gaps(void) {
    MPI_Datatype thirds, halves;
    int from[30];
    if (!make()) return;
    succeeds(MPI_Type_vector(10, 1, 3, MPI_INT, &thirds));
    succeeds(MPI_Type_vector(10, 1, 2, MPI_INT, &halves));
    succeeds(MPI_Type_commit(&thirds));
    succeeds(MPI_Type_commit(&halves));
    for (int i = 0; i < 30; i++) from[i] = i + 1;
    succeeds(MPI_Win_fence(0, window));
    if (rank == 0) succeeds(MPI_Put(from, 1, thirds, 1, 2, 1, halves, window));
    succeeds(MPI_Win_fence(0, window));
    for (int i = 0; rank == 1 && i < 20; i++) expect(memory[2 + i] == (i % 2 ? 0 : i / 2 * 3 + 1));
    succeeds(MPI_Type_free(&thirds));
    succeeds(MPI_Type_free(&halves));
    drop();
}

static void dynamic(void) {
    static int place[4];
    MPI_Aint at = 0;
    int value = 21, got = 0;
    succeeds(MPI_Get_address(place, &at));
    memset(place, 0, sizeof place);
    if (!succeeds(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window))) return;
    succeeds(MPI_Win_attach(window, place, sizeof place));
    if (rank == 1) succeeds(MPI_Send(&at, 1, MPI_AINT, 0, DATA, MPI_COMM_WORLD));
    if (rank == 0) {
        succeeds(MPI_Recv(&at, 1, MPI_AINT, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        succeeds(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
        succeeds(MPI_Put(&value, 1, MPI_INT, 1, at + 4, 1, MPI_INT, window));
        succeeds(MPI_Win_flush(1, window));
        succeeds(MPI_Get(&got, 1, MPI_INT, 1, at + 4, 1, MPI_INT, window));
        succeeds(MPI_Win_unlock(1, window));
        expect(got == 21);
    }
    meet(MPI_COMM_WORLD);
    succeeds(MPI_Win_detach(window, place));
    succeeds(MPI_Win_free(&window));
}

static void shared_memory(void) {
    MPI_Comm host;
    int *own = NULL, *theirs = NULL, unit = 0;
    MPI_Aint bytes = 0;
    succeeds(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    if (!succeeds(MPI_Win_allocate_shared(64, sizeof(int), MPI_INFO_NULL, host, &own, &window)))
        return;
    own[0] = rank + 1;
    succeeds(MPI_Win_fence(0, window));
    int me, all;
    MPI_Comm_rank(host, &me);
    MPI_Comm_size(host, &all);
    succeeds(MPI_Win_shared_query(window, (me + 1) % all, &bytes, &unit, &theirs));
    if (all == size) expect(theirs && theirs[0] == (rank + 1) % size + 1);
    succeeds(MPI_Win_fence(0, window));
    succeeds(MPI_Win_free(&window));
    succeeds(MPI_Comm_free(&host));
}

static const struct test tests[] = {
    {"target_in_recv", target_in_recv, 2},
    {"target_in_barrier", target_in_barrier, 2},
    {"target_tests", target_tests, 2},
    {"fences", fences, 2},
    {"post_start_complete_wait", post_start_complete_wait, 2},
    {"sums", sums, 2},
    {"gaps", gaps, 2},
    {"dynamic", dynamic, 2},
    {"shared_memory", shared_memory, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "windows", MPI_THREAD_SINGLE, tests);
}

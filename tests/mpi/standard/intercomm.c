// SPDX-License-Identifier: Apache-2.0 OR MIT
// Intercommunicators (MPI 4.1, sections 6.2, 7.6): two groups of ranks that send to each other's
// ranks, with messages, probes and collectives, and merged into one.
#include "standard.h"

enum { DATA = 1 };

static MPI_Comm own, across;
static int here, there, is_low;

// Even ranks are the low group, odd ranks the other.
static void make(void) {
    is_low = rank % 2 == 0;
    succeeds(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &own));
    succeeds(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_low ? 1 : 0, 77, &across));
    succeeds(MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN));
    succeeds(MPI_Comm_rank(across, &here));
    succeeds(MPI_Comm_remote_size(across, &there));
}

static void drop(void) {
    succeeds(MPI_Comm_free(&across));
    succeeds(MPI_Comm_free(&own));
}

// The groups have the same number of ranks where each rank has a partner.
static bool is_even(void) {
    if (size % 2) cannot("it needs an even number of ranks");
    return size % 2 == 0;
}

static void groups(void) {
    int is_inter = 0, mine = 0;
    make();
    succeeds(MPI_Comm_test_inter(across, &is_inter));
    succeeds(MPI_Comm_size(across, &mine));
    expect(is_inter && mine + there == size && mine == (size + is_low) / 2);
    drop();
}

// Every rank of one group sends to every rank of the other, long and short.
static void messages(void) {
    if (!is_even()) return;
    static const int lengths[] = {4, 3000, 300000};
    make();
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < there; i++) {
            char *from = patterned((size_t)lengths[l], (unsigned)rank),
                 *into = filled((size_t)lengths[l], 0);
            MPI_Status status;
            int count, to = (here + i) % there, source = ((here - i) % there + there) % there;
            MPI_Request request;
            succeeds(MPI_Isend(from, lengths[l], MPI_BYTE, to, DATA, across, &request));
            succeeds(MPI_Probe(source, DATA, across, &status));
            succeeds(
                MPI_Recv(into, lengths[l], MPI_BYTE, status.MPI_SOURCE, DATA, across, &status));
            succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
            expect(count == lengths[l] && status.MPI_SOURCE == source);
            expect_pattern(into, (size_t)lengths[l], (unsigned)(source * 2 + is_low));
            succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
            free(from);
            free(into);
        }
    drop();
}

// The same tags on the own communicator and across do not meet.
static void apart_from_others(void) {
    if (!is_even()) return;
    make();
    int value = 100 + rank, own_value = 200 + rank, got = 0;
    MPI_Request requests[2];
    succeeds(MPI_Isend(&own_value, 1, MPI_INT, here, DATA, own, &requests[0]));
    succeeds(MPI_Isend(&value, 1, MPI_INT, here, DATA, across, &requests[1]));
    succeeds(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, across, MPI_STATUS_IGNORE));
    expect(got == 100 + (rank ^ 1));
    succeeds(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, own, MPI_STATUS_IGNORE));
    expect(got == 200 + rank);
    succeeds(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    drop();
}

static void collectives(void) {
    make();
    int value = rank + 1, sum = 0, other = 0, total = size * (size + 1) / 2, mine = 0;
    int all[64];
    for (int i = is_low; i < size; i += 2) other += i + 1;
    mine = total - other;
    succeeds(MPI_Barrier(across));
    succeeds(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, across));
    expect(sum == other);
    memset(all, 0, sizeof all);
    succeeds(MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, across));
    for (int i = 0; i < there && i < 64; i++) expect(all[i] == i * 2 + is_low + 1);
    int word = is_low && here == 0 ? 99 : 0;
    int root = is_low ? (here == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    succeeds(MPI_Bcast(&word, 1, MPI_INT, root, across));
    expect(is_low ? word == (here == 0 ? 99 : 0) : word == 99);
    succeeds(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root, across));
    if (root == MPI_ROOT) expect(sum == other);
    (void)mine;
    drop();
}

static void merged(void) {
    make();
    MPI_Comm all, copy;
    int place = -1, sum = 0, one = 1;
    succeeds(MPI_Intercomm_merge(across, !is_low, &all));
    succeeds(MPI_Comm_rank(all, &place));
    expect(is_low ? place == here : place == there + here);
    succeeds(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    expect(sum == size);
    succeeds(MPI_Comm_free(&all));
    succeeds(MPI_Comm_dup(across, &copy));
    succeeds(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy));
    expect(sum == there);
    succeeds(MPI_Comm_free(&copy));
    drop();
}

static const struct test tests[] = {
    {"groups", groups, 2},
    {"messages", messages, 2},
    {"apart_from_others", apart_from_others, 2},
    {"collectives", collectives, 2},
    {"merged", merged, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "intercomm", MPI_THREAD_SINGLE, tests);
}

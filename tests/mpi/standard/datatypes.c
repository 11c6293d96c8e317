// SPDX-License-Identifier: Apache-2.0 OR MIT
// Messages of every kind of datatype: what one side sends with a type, the other receives with it,
// as packed bytes, or the other way round. Nothing but the type's own bytes may change. matched.c
// does the same with matched probes.
#include "kinds.h"

static const int sizes[] = {40, 3000, 60000, 1500000};
enum { SIZES = 4, DATA = 1 };

static void send_kind(const struct kind *kind, int seed, int packed) {
    char *at, *buffer = kind_buffer(kind, seed, &at);
    if (packed) {
        int length = 0, bytes = 0;
        succeeds(MPI_Pack_size(kind->count, kind->type, MPI_COMM_WORLD, &bytes));
        char *flat = filled((size_t)bytes + 64, 0);
        succeeds(MPI_Pack(at, kind->count, kind->type, flat, bytes + 64, &length, MPI_COMM_WORLD));
        succeeds(MPI_Send(flat, length, MPI_PACKED, 1, DATA, MPI_COMM_WORLD));
        free(flat);
    } else {
        succeeds(MPI_Send(at, kind->count, kind->type, 1, DATA, MPI_COMM_WORLD));
    }
    free(buffer);
}

static void receive_kind(const struct kind *kind, int seed, int posted) {
    char *at, *buffer = kind_buffer(kind, -1, &at);
    MPI_Status status;
    MPI_Request request;
    int count = -1;
    if (posted) {
        succeeds(MPI_Irecv(at, kind->count, kind->type, 0, DATA, MPI_COMM_WORLD, &request));
        meet(MPI_COMM_WORLD);
        succeeds(MPI_Wait(&request, &status));
    } else {
        meet(MPI_COMM_WORLD);
        succeeds(MPI_Recv(at, kind->count, kind->type, 0, DATA, MPI_COMM_WORLD, &status));
    }
    succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
    if (count != kind->packed) wrong("%s: %d bytes came, not %d", kind->name, count, kind->packed);
    expect_kind(kind, seed, buffer);
    free(buffer);
}

static void all_kinds(int packed, int posted) {
    for (int s = 0; s < SIZES; s++)
        for (int k = 0; k < KINDS; k++) {
            struct kind kind;
            make_kind(&kind, k, sizes[s]);
            if (rank == 1)
                receive_kind(&kind, s * KINDS + k, posted);
            else
                meet(MPI_COMM_WORLD);
            if (rank == 0) send_kind(&kind, s * KINDS + k, packed);
            free_kind(&kind);
        }
}

static void typed_to_typed(void) { all_kinds(0, 0); }
static void typed_to_posted(void) { all_kinds(0, 1); }
static void packed_to_typed(void) { all_kinds(1, 0); }

static const struct test tests[] = {
    {"typed_to_typed", typed_to_typed, 2},
    {"typed_to_posted", typed_to_posted, 2},
    {"packed_to_typed", packed_to_typed, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    return run_tests(argc, argv, "datatypes", MPI_THREAD_SINGLE, tests);
}

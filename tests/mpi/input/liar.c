/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An MPI that loses the last element of each message of more than one: what a benchmark with -c
 * must find. Linked to the real library, which answers everything that is not here. Single elements
 * pass, for ranks agree on their figures by them. */
#include <mpi.h>

static int shorter(int count)
{
    return count > 1 ? count - 1 : count;
}

int MPI_Send(const void *bytes, int count, MPI_Datatype type, int rank, int tag, MPI_Comm ranks)
{
    return PMPI_Send(bytes, shorter(count), type, rank, tag, ranks);
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int rank, int tag, MPI_Comm ranks,
              MPI_Request *request) {
    return PMPI_Isend(bytes, shorter(count), type, rank, tag, ranks, request);
}

int MPI_Send_init(const void *bytes, int count, MPI_Datatype type, int rank, int tag,
                  MPI_Comm ranks, MPI_Request *request) {
    return PMPI_Send_init(bytes, shorter(count), type, rank, tag, ranks, request);
}

int MPI_Bcast(void *bytes, int count, MPI_Datatype type, int root, MPI_Comm ranks)
{
    return PMPI_Bcast(bytes, shorter(count), type, root, ranks);
}

int MPI_Ibcast(void *bytes, int count, MPI_Datatype type, int root, MPI_Comm ranks,
               MPI_Request *request) {
    return PMPI_Ibcast(bytes, shorter(count), type, root, ranks, request);
}

int MPI_Allreduce(const void *given, void *result, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm ranks) {
    return PMPI_Allreduce(given, result, shorter(count), type, operation, ranks);
}

int MPI_Put(const void *bytes, int count, MPI_Datatype type, int rank, MPI_Aint place, int room,
            MPI_Datatype as, MPI_Win window) {
    return PMPI_Put(bytes, shorter(count), type, rank, place, shorter(room), as, window);
}

int MPI_Get(void *bytes, int count, MPI_Datatype type, int rank, MPI_Aint place, int room,
            MPI_Datatype as, MPI_Win window) {
    return PMPI_Get(bytes, shorter(count), type, rank, place, shorter(room), as, window);
}

int MPI_Accumulate(const void *bytes, int count, MPI_Datatype type, int rank, MPI_Aint place,
                   int room, MPI_Datatype as, MPI_Op operation, MPI_Win window) {
    return PMPI_Accumulate(bytes, shorter(count), type, rank, place, shorter(room), as, operation,
                           window);
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * 2,000 barriers and nothing else, so that the messages of a job tell who served them. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < 2000; turn++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * A tool of the profiling interface: counts barriers, as a profiler would, and says at the end how
 * many there were. Linked into a program, or preloaded. */
#include <mpi.h>
#include <stdio.h>

static int barriers;

int MPI_Barrier(MPI_Comm communicator) {
    barriers++;
    return PMPI_Barrier(communicator);
}

int MPI_Finalize(void) {
    printf("the tool saw %d barriers\n", barriers);
    fflush(stdout);
    return PMPI_Finalize();
}

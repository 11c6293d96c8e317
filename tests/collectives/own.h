/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The MPI's own functions, looked up in the MPI's library, where no preloaded library stands before
 * them. For programs that compare. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void *mpis_own(const char *name) {
    Dl_info found;
    /* A name that nobody stands before tells which library is the MPI's. */
    void *address = dlsym(RTLD_DEFAULT, "MPI_Comm_size"), *library = NULL;
    if (address && dladdr(address, &found))
        library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    address = library ? dlsym(library, name) : NULL;
    if (!address) {
        fprintf(stderr, "%s is not in the MPI's library\n", name);
        exit(1);
    }
    return address;
}

#define OWN(name) ((__typeof__(&PMPI_##name))mpis_own("PMPI_" #name))

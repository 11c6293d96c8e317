/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What MPI_Init has hwloc do, and whether a program that asks hwloc itself still gets all devices.
 * Without arguments an MPI program: `devices LIBHWLOC`. With a second argument it leaves MPI out.
 * Each process prints one line:
 *   plugins N at-begin M variables SAME devices P+O
 * N of hwloc's plugins are mapped behind MPI_Init, and M before it; SAME is 1 if the variables of
 * hwloc are the same behind MPI_Init as before it; P devices of PCI and O of the system are what
 * hwloc then tells the program. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* From hwloc.h, 2.x: keep all kinds of input and output; where such devices are in a topology. */
enum { KEEP_ALL = 0, PCI_DEPTH = -5, SYSTEM_DEPTH = -6 };

/* How many of hwloc's plugins this process has mapped: the first part of each file counts. */
static int plugins(void)
{
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, "/hwloc/hwloc_") && strstr(line, " 00000000 ");
    if (maps) fclose(maps);
    return count;
}

/* The variables of hwloc, one behind the other. */
static void note_variables(char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (char **each = environ; *each; each++)
        if (!strncmp(*each, "HWLOC_", 6) && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s\n", *each);
}

static int count_at(void *hwloc, void *topology, int depth)
{
    unsigned (*count)(void *, int) =
        (unsigned (*)(void *, int))dlsym(hwloc, "hwloc_get_nbobjs_by_depth");
    return (int)count(topology, depth);
}

int main(int count, char **arguments)
{
    static char before[8192], after[8192];
    void *hwloc = dlopen(arguments[1], RTLD_NOW), *topology;
    int at_begin = plugins(), has_mpi = count == 2, behind;
    if (!hwloc) return fprintf(stderr, "%s\n", dlerror()), 1;
    note_variables(before, sizeof before);
    if (has_mpi) MPI_Init(&count, &arguments);
    behind = plugins();
    note_variables(after, sizeof after);
    int (*make)(void **) = (int (*)(void **))dlsym(hwloc, "hwloc_topology_init");
    int (*keep)(void *, int) =
        (int (*)(void *, int))dlsym(hwloc, "hwloc_topology_set_io_types_filter");
    int (*load)(void *) = (int (*)(void *))dlsym(hwloc, "hwloc_topology_load");
    if (make(&topology) || keep(topology, KEEP_ALL) || load(topology)) return 1;
    printf("plugins %d at-begin %d variables %d devices %d+%d\n", behind, at_begin,
           !strcmp(before, after), count_at(hwloc, topology, PCI_DEPTH),
           count_at(hwloc, topology, SYSTEM_DEPTH));
    fflush(stdout);
    if (has_mpi) MPI_Finalize();
    return 0;
}

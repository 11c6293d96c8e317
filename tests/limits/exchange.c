// SPDX-License-Identifier: Apache-2.0 OR MIT
// Every rank exchanges a short and a long message with every other, and checks each byte, for
// tests/limits/run.sh: exchange [MAPPINGS | addresses]. With
// a number it first uses up the mappings of this process but for so many (vm.max_map_count), as a
// machine with a small limit would leave it. With `addresses` the odd ranks, once they are in MPI,
// may take only a few MiB of addresses more (RLIMIT_AS): too few for all ranks' regions.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { SHORT_BYTES = 8, LONG_BYTES = 1 << 20, LEFT_KIB = 15 << 10 };

static void use_up_mappings(long left) {
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    long most = 65530, lines = 0;
    if (!file || fscanf(file, "%ld", &most) != 1) exit(77);
    fclose(file);
    file = fopen("/proc/self/maps", "r");
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    // Neighbours of other protection are mappings of their own.
    char *area = mmap(NULL, (size_t)most * 4096, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) exit(77);
    for (long page = 0; lines + page + 2 < most - left; page += 2)
        mprotect(area + page * 4096, 4096, PROT_READ);
}

static void use_up_addresses(void) {
    char line[256];
    unsigned long size_kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmSize: %lu kB", &size_kib);
    if (!file || !size_kib) exit(77);
    fclose(file);
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit)) exit(77);
    limit.rlim_cur = (size_kib + LEFT_KIB) << 10;
    if (setrlimit(RLIMIT_AS, &limit)) exit(77);
}

static int exchange(int rank, int ranks, size_t bytes) {
    // Memory that the program has, whatever the limits leave.
    static unsigned char there[LONG_BYTES], here[LONG_BYTES];
    int wrong = 0;
    for (int step = 1; step < ranks; step++) {
        int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
        memset(there, rank * 31 + step, bytes);
        MPI_Sendrecv(there, (int)bytes, MPI_BYTE, to, step, here, (int)bytes, MPI_BYTE, from, step,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < bytes; i++) wrong += here[i] != (unsigned char)(from * 31 + step);
    }
    return wrong;
}

int main(int count, char **words) {
    int rank, ranks, wrong, all;
    int few_addresses = count > 1 && !strcmp(words[1], "addresses");
    if (count > 1 && !few_addresses) use_up_mappings(atol(words[1]));
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (few_addresses && rank % 2) use_up_addresses();
    wrong = exchange(rank, ranks, SHORT_BYTES) + exchange(rank, ranks, LONG_BYTES);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong bytes" : "all bytes right");
    MPI_Finalize();
    return all ? 1 : 0;
}

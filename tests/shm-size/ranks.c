// SPDX-License-Identifier: Apache-2.0 OR MIT
// An MPI program that needs a /dev/shm which its ranks share: `ranks BYTES MIB`. The tmpfs must
// have BYTES in each rank (0: any). Rank 0 fills a POSIX object of MIB there, which the others open
// by its name and read; each rank reads its neighbour's memory (process_vm_readv), passes 1 MiB
// around by MPI, and makes a file of its own user in the folder in which it runs. Rank 0 prints
// `fine` and how many KiB of /dev/shm the MPI had taken for itself; any fault is MPI_Abort.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

static int rank, size;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: ", rank);
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static long room(long wanted) {
    struct statvfs found;
    if (statvfs("/dev/shm", &found)) fail("/dev/shm");
    long bytes = (long)(found.f_blocks * found.f_frsize);
    if (wanted && bytes != wanted) {
        fprintf(stderr, "rank %d: /dev/shm has %ld bytes, not %ld\n", rank, bytes, wanted);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    return (long)((found.f_blocks - found.f_bfree) * found.f_frsize);
}

static void share_by_name(size_t bytes) {
    char name[64];
    int key = getpid();
    MPI_Bcast(&key, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/weft-test-%d", key);
    if (rank == 0) {
        int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (file < 0 || ftruncate(file, (off_t)bytes)) fail("shm_open");
        char *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (place == MAP_FAILED) fail("mmap");
        memset(place, 'w', bytes); // Where there is too little room, SIGBUS ends the rank here.
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int file = shm_open(name, O_RDONLY, 0);
    if (file < 0) fail("shm_open of another rank's name");
    const char *place = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) fail("mmap");
    for (size_t at = 0; at < bytes; at += 4096)
        if (place[at] != 'w') fail("another rank's bytes");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) shm_unlink(name);
}

static void read_neighbour(void) {
    static char own[64];
    snprintf(own, sizeof own, "memory of rank %d", rank);
    long all[2 * size], mine[2] = {getpid(), (long)own};
    MPI_Allgather(mine, 2, MPI_LONG, all, 2, MPI_LONG, MPI_COMM_WORLD);
    int next = (rank + 1) % size;
    char found[64] = "", wanted[64];
    snprintf(wanted, sizeof wanted, "memory of rank %d", next);
    struct iovec here = {found, sizeof found}, there = {(void *)all[2 * next + 1], sizeof found};
    if (process_vm_readv((pid_t)all[2 * next], &here, 1, &there, 1, 0) != sizeof found)
        fail("process_vm_readv");
    if (strcmp(found, wanted)) fail("another rank's memory");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pass_around(void) {
    int count = 1 << 18;
    int *out = malloc(count * sizeof *out), *in = malloc(count * sizeof *in);
    for (int at = 0; at < count; at++) out[at] = rank + at;
    int before = (rank + size - 1) % size;
    MPI_Sendrecv(out, count, MPI_INT, (rank + 1) % size, 1, in, count, MPI_INT, before, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < count; at++)
        if (in[at] != before + at) fail("a message");
}

static void keep_owner(void) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "file-of-%d-%d", (int)getuid(), rank);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file < 0 || fstat(file, &found) || found.st_uid != getuid() || found.st_gid != getgid())
        fail(path);
    close(file);
}

int main(int count, char **words) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count < 3) fail("usage: ranks BYTES MIB");
    pass_around();
    MPI_Barrier(MPI_COMM_WORLD);
    long taken = room(atol(words[1]));
    share_by_name((size_t)atol(words[2]) << 20);
    read_neighbour();
    keep_owner();
    if (rank == 0) printf("fine: %d ranks, %ld KiB taken\n", size, taken >> 10);
    MPI_Finalize();
    return 0;
}

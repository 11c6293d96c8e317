// SPDX-License-Identifier: Apache-2.0 OR MIT
// Large counts (MPI 4.1, sections 2.5.8, 3.2): a message of more than 2 GiB, by a datatype, and
// with MPI-4's calls that take an MPI_Count. The memory is 64 MiB, mapped again and again into one
// long range, so that the ranks need little of it.
#include "standard.h"

#include <sys/mman.h>
#include <unistd.h>

#define BLOCK ((size_t)64 << 20)
// 2 GiB and one block and a few bytes more.
#define BLOCKS 33
#define TAIL 12345
#define TOTAL (BLOCKS * BLOCK + TAIL)

enum { DATA = 1 };

// repeated: BLOCKS + 1 times the same memory, one behind the other; NULL where that is refused.
static unsigned char *repeated(void) {
    int file = memfd_create("weft standard large", 0);
    unsigned char *range = mmap(NULL, (BLOCKS + 1) * BLOCK, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool good = file >= 0 && range != MAP_FAILED && ftruncate(file, BLOCK) == 0;
    for (size_t i = 0; good && i <= BLOCKS; i++)
        good = mmap(range + i * BLOCK, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                    0) != MAP_FAILED;
    if (file >= 0) close(file);
    if (good) return range;
    cannot("memory cannot be mapped again and again");
    if (range != MAP_FAILED) munmap(range, (BLOCKS + 1) * BLOCK);
    return NULL;
}

static void check_and_drop(unsigned char *range) {
    // Some bytes of each page: what came must be the sender's pattern, which repeats with the
    // block.
    for (size_t i = 0; rank == 1 && i < BLOCK; i += 509) {
        if (range[i] == pattern(3, i)) continue;
        wrong("byte %zu of the repeated block is wrong", i);
        break;
    }
    munmap(range, (BLOCKS + 1) * BLOCK);
}

static unsigned char *prepared(void) {
    unsigned char *range = repeated();
    for (size_t i = 0; range && rank == 0 && i < BLOCK; i++) range[i] = pattern(3, i);
    return range;
}

static void by_datatype(void) {
    unsigned char *range = rank < 2 ? prepared() : NULL;
    MPI_Datatype block, parts[2], whole;
    int lengths[] = {BLOCKS, TAIL}, count = 0;
    MPI_Aint places[] = {0, (MPI_Aint)(BLOCKS * BLOCK)};
    MPI_Status status;
    MPI_Count elements = 0;
    if (!range) return;
    succeeds(MPI_Type_contiguous((int)BLOCK, MPI_BYTE, &block));
    parts[0] = block, parts[1] = MPI_BYTE;
    succeeds(MPI_Type_create_struct(2, lengths, places, parts, &whole));
    succeeds(MPI_Type_commit(&whole));
    if (rank == 0) {
        succeeds(MPI_Send(range, 1, whole, 1, DATA, MPI_COMM_WORLD));
    } else {
        succeeds(MPI_Recv(range, 1, whole, 0, DATA, MPI_COMM_WORLD, &status));
        succeeds(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
        if (elements != (MPI_Count)TOTAL)
            wrong("%lld bytes came instead of %zu", (long long)elements, TOTAL);
        succeeds(MPI_Get_count(&status, MPI_BYTE, &count));
        expect(count == MPI_UNDEFINED);
        succeeds(MPI_Get_count(&status, whole, &count));
        expect(count == 1);
    }
    succeeds(MPI_Type_free(&block));
    succeeds(MPI_Type_free(&whole));
    check_and_drop(range);
}

#if MPI_VERSION >= 4
// Built against an MPI that has these, run with one that may not.
#pragma weak MPI_Send_c
#pragma weak MPI_Recv_c
#pragma weak MPI_Get_count_c
#endif

static void by_count(void) {
#if MPI_VERSION >= 4
    int (*volatile has_it)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm) = MPI_Send_c;
    if (has_it) {
        unsigned char *range = rank < 2 ? prepared() : NULL;
        MPI_Status status;
        MPI_Count count = 0;
        if (!range) return;
        if (rank == 0) {
            succeeds(MPI_Send_c(range, (MPI_Count)TOTAL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD));
        } else {
            succeeds(
                MPI_Recv_c(range, (MPI_Count)TOTAL, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &status));
            succeeds(MPI_Get_count_c(&status, MPI_BYTE, &count));
            expect(count == (MPI_Count)TOTAL);
        }
        check_and_drop(range);
        return;
    }
#endif
    cannot("this MPI has no MPI_Send_c");
}

static const struct test tests[] = {
    {"by_datatype", by_datatype, 2},
    {"by_count", by_count, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) { return run_tests(argc, argv, "large", MPI_THREAD_SINGLE, tests); }

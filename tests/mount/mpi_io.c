// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI-IO on a folder that all ranks share: each kind of call writes one file from all ranks at
// once, and every rank checks every byte. For tests/mount/mpi.sh.
//
// mpi_io FOLDER: prints the cases that passed, and ends with 1 at the first byte that is wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 47008, PIECES = 12, RECORD = 100, RECORDS = 10, GRAIN = 1000, GRAINS = 40 };

static int rank, ranks;
static const char *folder;

static void fail(const char *what, long at) {
    fprintf(stderr, "rank %d: %s, at %ld\n", rank, what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void must(int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// What stands at each place of every file here.
static char byte_at(long at) { return (char)(at % 251 + at / 65536); }
static void fill(char *to, long at, long count) {
    for (long i = 0; i < count; i++) to[i] = byte_at(at + i);
}
static void check(const char *found, long at, long count, const char *what) {
    for (long i = 0; i < count; i++)
        if (found[i] != byte_at(at + i)) fail(what, at + i);
}

static MPI_File begin(const char *name, int mode) {
    char path[4096];
    MPI_File file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), path);
    return file;
}

static void whole(const char *name, long count) {
    MPI_File file = begin(name, MPI_MODE_RDONLY);
    MPI_Offset size;
    MPI_Status status;
    int got;
    char *all = malloc(count);
    must(MPI_File_get_size(file, &size), "MPI_File_get_size");
    if (size != count) fail("size after closing", size);
    must(MPI_File_read_at(file, 0, all, count, MPI_BYTE, &status), "MPI_File_read_at");
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != count) fail("read after closing", got);
    check(all, 0, count, "after closing");
    must(MPI_File_close(&file), "MPI_File_close");
    free(all);
    if (rank == 0) printf("%s\n", name);
}

// Pieces of all ranks in turn, by a view and collective calls; before the file is closed each rank
// reads what the next one wrote.
static void collective(void) {
    long count = (long)PIECE * PIECES;
    char *own = malloc(count);
    MPI_Datatype turns;
    MPI_File file = begin("collective", MPI_MODE_RDWR | MPI_MODE_CREATE);
    must(MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_BYTE, &turns), "MPI_Type_vector");
    MPI_Type_commit(&turns);
    for (int i = 0; i < PIECES; i++)
        fill(own + (long)i * PIECE, ((long)i * ranks + rank) * PIECE, PIECE);
    must(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, turns, "native",
                           MPI_INFO_NULL), "MPI_File_set_view");
    must(MPI_File_write_all(file, own, count, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
    must(MPI_File_sync(file), "MPI_File_sync");
    MPI_Barrier(MPI_COMM_WORLD);
    int next = (rank + 1) % ranks;
    must(MPI_File_set_view(file, (MPI_Offset)next * PIECE, MPI_BYTE, turns, "native",
                           MPI_INFO_NULL), "MPI_File_set_view");
    must(MPI_File_read_all(file, own, count, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_all");
    for (int i = 0; i < PIECES; i++)
        check(own + (long)i * PIECE, ((long)i * ranks + next) * PIECE, PIECE, "collective read");
    must(MPI_File_close(&file), "MPI_File_close");
    MPI_Type_free(&turns);
    free(own);
    whole("collective", count * ranks);
}

// Explicit offsets, each rank for itself; the file has its size before.
static void independent(void) {
    char *own = malloc(PIECE);
    long count = (long)PIECE * PIECES;
    MPI_File file = begin("independent", MPI_MODE_WRONLY | MPI_MODE_CREATE);
    must(MPI_File_set_size(file, count), "MPI_File_set_size");
    for (int i = rank; i < PIECES; i += ranks) {
        fill(own, (long)i * PIECE, PIECE);
        must(MPI_File_write_at(file, (MPI_Offset)i * PIECE, own, PIECE, MPI_BYTE,
                               MPI_STATUS_IGNORE), "MPI_File_write_at");
    }
    must(MPI_File_close(&file), "MPI_File_close");
    free(own);
    whole("independent", count);
}

// Small grains with those of others between them, in one call and each rank for itself. An MPI may
// read what lies between and write it back, under a lock of fcntl(2).
static void strided(void) {
    long count = (long)GRAIN * GRAINS;
    char *own = malloc(count);
    MPI_Datatype turns;
    MPI_File file = begin("strided", MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Type_vector(GRAINS, GRAIN, GRAIN * ranks, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    for (int i = 0; i < GRAINS; i++)
        fill(own + (long)i * GRAIN, ((long)i * ranks + rank) * GRAIN, GRAIN);
    must(MPI_File_set_view(file, (MPI_Offset)rank * GRAIN, MPI_BYTE, turns, "native",
                           MPI_INFO_NULL), "MPI_File_set_view");
    must(MPI_File_write(file, own, count, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write");
    must(MPI_File_close(&file), "MPI_File_close");
    MPI_Type_free(&turns);
    free(own);
    whole("strided", count * ranks);
}

// One pointer for all: in the order of ranks, and then as they come. Each record names its writer.
static void shared_pointer(void) {
    char record[RECORD];
    int counts[2][256] = {{0}};
    long total = 2L * RECORDS * ranks;
    MPI_File file = begin("ordered", MPI_MODE_RDWR | MPI_MODE_CREATE);
    memset(record, rank + 1, RECORD);
    for (int i = 0; i < RECORDS; i++)
        must(MPI_File_write_ordered(file, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
             "MPI_File_write_ordered");
    for (int i = 0; i < RECORDS; i++)
        must(MPI_File_write_shared(file, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
             "MPI_File_write_shared");
    must(MPI_File_sync(file), "MPI_File_sync");
    MPI_Barrier(MPI_COMM_WORLD);
    for (long at = 0; at < total; at++) {
        must(MPI_File_read_at(file, at * RECORD, record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
             "MPI_File_read_at");
        int is_late = at >= total / 2, writer = record[0];
        for (int i = 0; i < RECORD; i++)
            if (record[i] != writer) fail("a record of two writers", at * RECORD + i);
        if (!is_late && writer != at % ranks + 1) fail("a record out of order", at);
        counts[is_late][writer]++;
    }
    for (int one = 1; one <= ranks; one++)
        if (counts[0][one] != RECORDS || counts[1][one] != RECORDS) fail("records lost", one);
    must(MPI_File_close(&file), "MPI_File_close");
    if (rank == 0) printf("ordered\n");
}

// In atomic mode what one rank wrote, all others see without sync: never a mixture.
static void atomic(void) {
    char *own = malloc(PIECE);
    MPI_File file = begin("atomic", MPI_MODE_RDWR | MPI_MODE_CREATE);
    must(MPI_File_set_atomicity(file, 1), "MPI_File_set_atomicity");
    for (int round = 0; round < 4; round++) {
        memset(own, 16 * round + rank, PIECE);
        must(MPI_File_write_at(file, 0, own, PIECE, MPI_BYTE, MPI_STATUS_IGNORE),
             "MPI_File_write_at");
        must(MPI_File_read_at(file, 0, own, PIECE, MPI_BYTE, MPI_STATUS_IGNORE),
             "MPI_File_read_at");
        for (int i = 0; i < PIECE; i++)
            if (own[i] != own[0] || own[0] / 16 != round) fail("a mixture of writes", i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    must(MPI_File_close(&file), "MPI_File_close");
    free(own);
    if (rank == 0) printf("atomic\n");
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count < 2) fail("usage: mpi_io FOLDER [CASE]...", 0);
    folder = words[1];
    setvbuf(stdout, NULL, _IONBF, 0);
    struct { const char *name; void (*run)(void); } cases[] = {
        {"collective", collective}, {"independent", independent}, {"strided", strided},
        {"ordered", shared_pointer}, {"atomic", atomic},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int is_wanted = count == 2;
        for (int word = 2; word < count; word++)
            is_wanted |= strcmp(words[word], cases[i].name) == 0;
        if (is_wanted) cases[i].run();
    }
    MPI_Finalize();
    return 0;
}

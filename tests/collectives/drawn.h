/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * What a program of random collectives draws, for each of its threads: numbers that are the same on
 * all ranks, or each rank's own; types, lengths and data; and how it says what is wrong. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 1 << 21 };

static _Thread_local uint64_t shared_state, own_state;

/* The same numbers on all ranks. */
static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int below(int limit) { return (int)(draw(&shared_state) % (uint64_t)limit); }

static long seed;
static int world_rank;
static _Thread_local int case_number, thread;

static void fail(const char *what) {
    fprintf(stderr, "seed %ld, thread %d, case %d, rank %d: %s\n", seed, thread, case_number,
            world_rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(const void *ours, const void *theirs, size_t bytes, const char *what) {
    const char *one = ours, *other = theirs;
    for (size_t at = 0; at < bytes; at++) {
        if (one[at] == other[at]) continue;
        char text[200];
        snprintf(text, sizeof text, "%s: byte %zu of %zu is %d and should be %d", what, at, bytes,
                 one[at], other[at]);
        fail(text);
    }
}

struct type {
    MPI_Datatype handle;
    size_t bytes;
    int is_float; /* 4 or 8: small whole numbers of so many bytes; -8: no highest bits, since Open
                     MPI 4.1 compares unsigned long as if it had a sign */
    int is_bits;  /* takes bitwise operations */
};

static struct type types[12];
static int type_count;

static void add_type(MPI_Datatype handle, int is_float, int is_bits) {
    int bytes;
    MPI_Type_size(handle, &bytes);
    types[type_count++] = (struct type){handle, (size_t)bytes, is_float, is_bits};
}

/* Fills a buffer with the rank's own numbers. */
static void fill(void *buffer, size_t bytes, int is_float) {
    if (is_float == 8) {
        for (size_t at = 0; at < bytes / 8; at++) ((double *)buffer)[at] = draw(&own_state) % 4;
    } else if (is_float == 4) {
        for (size_t at = 0; at < bytes / 4; at++) ((float *)buffer)[at] = draw(&own_state) % 4;
    } else if (is_float == -8) {
        for (size_t at = 0; at < bytes / 8; at++) ((uint64_t *)buffer)[at] = draw(&own_state) >> 1;
    } else {
        for (size_t at = 0; at < bytes; at++) ((uint8_t *)buffer)[at] = (uint8_t)draw(&own_state);
    }
}

/* A length that is short mostly, and long now and then. */
static int length(int ranks) {
    int most = ROOM / 16 / ranks;
    int kind = below(16);
    if (kind == 0) return 0;
    if (kind == 1) return below(most);
    if (kind < 5) return below(4000);
    return below(64);
}

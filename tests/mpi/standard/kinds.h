// SPDX-License-Identifier: Apache-2.0 OR MIT
// Every kind of datatype that a message may have, and what a receive of it must leave behind. Used
// by datatypes.c and matched.c.
#ifndef KINDS_H
#define KINDS_H

#include "standard.h"

// A datatype, how many of it one message has, and the memory that it touches.
struct kind {
    const char *name;
    MPI_Datatype type;
    int count;
    // The bytes before and behind the address given to MPI that belong to the buffer.
    size_t before, behind;
    // Bytes of one message.
    int packed;
};

#define KINDS 15

// Makes kind number INDEX with roughly BYTES bytes of data; some kinds have one size only.
void make_kind(struct kind *kind, int index, int bytes);
void free_kind(struct kind *kind);

// A buffer for KIND, filled with a pattern or with one byte: what to give to free(), and in *AT
// what to give to MPI.
char *kind_buffer(const struct kind *kind, int seed, char **at);

// Notes what differs between BUFFER, filled with -1 before, and what a receive of the pattern SEED
// leaves there.
void expect_kind(const struct kind *kind, int seed, const char *buffer);

#endif

// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the programs of this folder share: cases, what they print, a watchdog, and a way for ranks
// to wait for each other outside MPI.
//
// A program is a list of cases. Every rank runs every case; rank 0 prints one line for each:
//
//   ok PROGRAM/CASE
//   not ok PROGRAM/CASE: rank R: why
//   skip PROGRAM/CASE: why
//   left out PROGRAM/CASE
//
// and at the end `end PROGRAM`. A case that does not end in time is `not ok` too, and ends the
// program. Arguments: -x CASE leaves that case out, -c CASE runs that case alone; both may be given
// again, and `*` is all cases. -t SECONDS sets the time for one case. The ranks must run on one
// host, since some cases share a file.
#ifndef STANDARD_H
#define STANDARD_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number of this process and of all in MPI_COMM_WORLD.
extern int rank, size;

// One case: its name within the program, and what runs it.
struct test {
    const char *name;
    void (*run)(void);
    // The case needs this many ranks at least; with fewer it is skipped.
    int ranks;
};

// Runs all cases between MPI_Init_thread(level) and MPI_Finalize; the exit code of the program. The
// last test has no name.
int run_tests(int argc, char **argv, const char *program, int level, const struct test *tests);

// Notes the first thing that is wrong in this case at this rank. May be called by any thread.
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The first thing that was noted in this case, or NULL.
const char *noted(void);

// Says why this rank cannot run the case: it counts as skipped then.
void cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Notes CONDITION and its place unless it holds.
#define expect(condition)                                                                        \
    ((condition) ? (void)0                                                                       \
                 : wrong("%s does not hold (%s:%d)", #condition, strrchr("/" __FILE__, '/') + 1, \
                         __LINE__))

// The same for a call of MPI that must succeed; answers whether it did.
#define succeeds(call) did_succeed(call, #call)
bool did_succeed(int code, const char *call);

// Seconds since some moment.
double now(void);

// Uses the processor for that long, without a call of MPI.
void compute(double seconds);

// A page that all ranks of this host share, zeroed before each case: how ranks wait for each other
// without MPI.
struct outside {
    _Atomic int flag[64];
};
extern struct outside *outside;

// Computes, without a call of MPI, until flag[index] is at least VALUE; false if that took longer
// than SECONDS.
bool await_outside(int index, int value, double seconds);
void set_outside(int index, int value);

// Byte I of the pattern SEED.
static inline unsigned char pattern(unsigned seed, size_t i) {
    return (unsigned char)((seed * 131 + i * 7 + (i >> 8) * 13) & 0xff);
}

// Memory of LENGTH bytes, all of them BYTE; never NULL.
void *filled(size_t length, int byte);
// Memory with that pattern.
void *patterned(size_t length, unsigned seed);
// Notes the first byte that differs from the pattern.
void expect_pattern(const void *bytes, size_t length, unsigned seed);

// The class of an error code.
int class_of(int code);

// Ends this case's use of COMM: all ranks meet in a barrier.
void meet(MPI_Comm comm);

#endif

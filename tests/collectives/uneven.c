/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Blocks with lengths of their own (the v- and w-forms), on a communicator that Weft serves. Each
 * result is checked.
 *
 *   uneven wait    MPI_Gatherv, MPI_Scatterv and MPI_Allgatherv, whose blocks are long, and
 *                  MPI_Alltoallv and MPI_Alltoallw, in place with short blocks, and with long ones
 *                  of one buffer without gaps
 *   uneven unpack  MPI_Alltoallv of long blocks, which the last rank takes through a type with gaps
 *   uneven begin   MPI_Igatherv and its relatives, with calls that Weft serves in between
 *
 * Ends with `all is well`, or says what is not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, UNIT = 5000, TURNS = 100, ROOM = RANKS * RANKS * UNIT };

static int given[ROOM], taken[ROOM], rank, ranks, turn;
static int counts[RANKS], places[RANKS], byte_places[RANKS];
static MPI_Datatype kinds[RANKS];

/* Word `at` of what `from` gives to `to`. */
static int word(int from, int to, int at) { return turn * 7919 + from * 911 + to * 131 + at; }

/* Rank `at` has `unit` words and some more, behind a gap. */
static void describe(int unit) {
    for (int at = 0, place = 1; at < ranks; at++) {
        counts[at] = unit + at * 3;
        places[at] = place;
        byte_places[at] = place * (int)sizeof(int);
        kinds[at] = MPI_INT;
        place += counts[at] + 2;
    }
}

/* Fills the place of rank `at` in a buffer with what `from` gives to `to`. */
static void put(int *buffer, int at, int count, int from, int to) {
    for (int word_at = 0; word_at < count; word_at++)
        buffer[places[at] + word_at] = word(from, to, word_at);
}

static void check(int begin, int count, int from, int to, const char *what) {
    for (int at = 0; at < count; at++) {
        if (taken[begin + at] == word(from, to, at)) continue;
        fprintf(stderr, "turn %d, rank %d: %s, word %d of rank %d\n", turn, rank, what, at, from);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Ends a call that was begun: Weft serves a barrier meanwhile. */
static void end(MPI_Request *request) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void gather(int begins) {
    int root = turn % ranks;
    MPI_Request request;
    put(given, rank, counts[rank], rank, root);
    const int *own = given + places[rank];
    if (begins) {
        MPI_Igatherv(own, counts[rank], MPI_INT, taken, counts, places, MPI_INT, root,
                     MPI_COMM_WORLD, &request);
        end(&request);
    } else {
        MPI_Gatherv(own, counts[rank], MPI_INT, taken, counts, places, MPI_INT, root,
                    MPI_COMM_WORLD);
    }
    for (int from = 0; from < ranks && rank == root; from++)
        check(places[from], counts[from], from, root, "gatherv");
}

static void scatter(int begins) {
    int root = turn % ranks;
    MPI_Request request;
    for (int to = 0; to < ranks; to++) put(given, to, counts[to], root, to);
    if (begins) {
        MPI_Iscatterv(given, counts, places, MPI_INT, taken, counts[rank], MPI_INT, root,
                      MPI_COMM_WORLD, &request);
        end(&request);
    } else {
        MPI_Scatterv(given, counts, places, MPI_INT, taken, counts[rank], MPI_INT, root,
                     MPI_COMM_WORLD);
    }
    check(0, counts[rank], root, rank, "scatterv");
}

static void gather_all(int begins) {
    MPI_Request request;
    put(given, rank, counts[rank], rank, 0);
    const int *own = given + places[rank];
    if (begins) {
        MPI_Iallgatherv(own, counts[rank], MPI_INT, taken, counts, places, MPI_INT, MPI_COMM_WORLD,
                        &request);
        end(&request);
    } else {
        MPI_Allgatherv(own, counts[rank], MPI_INT, taken, counts, places, MPI_INT, MPI_COMM_WORLD);
    }
    for (int from = 0; from < ranks; from++)
        check(places[from], counts[from], from, 0, "allgatherv");
    /* In place, with other words. */
    put(taken, rank, counts[rank], rank, 1);
    if (begins) return;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, taken, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(places[from], counts[from], from, 1, "allgatherv in place");
}

/* Each rank gives rank `to` as many words as `to` has room for of each. */
static void all_to_all(int typed) {
    MPI_Request request;
    int takes[RANKS], take_places[RANKS], unit = typed ? (int)sizeof(int) : 1;
    for (int at = 0; at < ranks; at++) {
        takes[at] = counts[rank];
        take_places[at] = at * (counts[rank] + 1) * unit;
        put(given, at, counts[at], rank, at);
    }
    if (typed)
        MPI_Ialltoallw(given, counts, byte_places, kinds, taken, takes, take_places, kinds,
                       MPI_COMM_WORLD, &request);
    else
        MPI_Ialltoallv(given, counts, places, MPI_INT, taken, takes, take_places, MPI_INT,
                       MPI_COMM_WORLD, &request);
    end(&request);
    for (int from = 0; from < ranks; from++)
        check(take_places[from] / unit, takes[from], from, rank, typed ? "alltoallw" : "alltoallv");
}

/* Each pair of ranks exchanges as many words as their numbers say together, in one buffer. */
static void all_to_all_in_place(int typed) {
    int numbers[RANKS], begins[RANKS], unit = typed ? (int)sizeof(int) : 1;
    for (int at = 0, place = 0; at < ranks; place += numbers[at] + 1, at++) {
        numbers[at] = (rank + at + turn) % 40;
        begins[at] = place * unit;
        for (int here = 0; here < numbers[at]; here++) taken[place + here] = word(rank, at, here);
    }
    if (typed)
        MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, taken, numbers, begins, kinds,
                      MPI_COMM_WORLD);
    else
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, taken, numbers, begins, MPI_INT,
                      MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(begins[from] / unit, numbers[from], from, rank, "alltoallv in place");
}

/* Words that `from` gives to `to`: nothing from the last rank in some turns, and
 * else more than goes through the segment, or little. */
static int long_words(int from, int to) {
    if (turn % 5 == 0 && from == ranks - 1) return 0;
    return (from + to + turn) % 3 == 0 ? 30 + from : 2 * UNIT + from * 3 + to;
}

/* All words that a rank gives lie in one row. */
static void long_blocks(int typed) {
    int gives[RANKS], begins[RANKS], takes[RANKS], take_begins[RANKS];
    int unit = typed ? (int)sizeof(int) : 1;
    for (int at = 0, place = 3, take_place = 1; at < ranks; at++) {
        gives[at] = long_words(rank, at), takes[at] = long_words(at, rank);
        begins[at] = place * unit, take_begins[at] = take_place * unit;
        for (int here = 0; here < gives[at]; here++) given[place + here] = word(rank, at, here);
        place += gives[at], take_place += takes[at] + 1;
    }
    if (typed)
        MPI_Alltoallw(given, gives, begins, kinds, taken, takes, take_begins, kinds,
                      MPI_COMM_WORLD);
    else
        MPI_Alltoallv(given, gives, begins, MPI_INT, taken, takes, take_begins, MPI_INT,
                      MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(take_begins[from] / unit, takes[from], from, rank, "alltoallv of long blocks");
}

/* What the last rank takes has a word between any two; it gives nothing. */
static void long_blocks_to_gaps(void) {
    int gives[RANKS], begins[RANKS], takes[RANKS], take_begins[RANKS];
    int is_last = rank == ranks - 1;
    MPI_Datatype apart, kind = MPI_INT;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &apart);
    MPI_Type_commit(&apart);
    if (is_last) kind = apart;
    memset(taken, 0, sizeof taken);
    for (int at = 0, place = 3; at < ranks; at++) {
        gives[at] = is_last ? 0 : 2 * UNIT, takes[at] = at == ranks - 1 ? 0 : 2 * UNIT;
        begins[at] = place, take_begins[at] = at * 2 * UNIT;
        for (int here = 0; here < gives[at]; here++) given[place + here] = word(rank, at, here);
        place += gives[at];
    }
    MPI_Alltoallv(given, gives, begins, MPI_INT, taken, takes, take_begins, kind, MPI_COMM_WORLD);
    for (int from = 0; from < ranks - 1; from++)
        for (int here = 0, step = is_last ? 2 : 1; here < 2 * UNIT; here++) {
            int *found = taken + (from * 2 * UNIT + here) * step;
            if (*found == word(from, rank, here) && (!is_last || found[1] == 0)) continue;
            fprintf(stderr, "turn %d, rank %d: gaps, word %d of rank %d\n", turn, rank, here, from);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_Type_free(&apart);
}

static void reduce_scatter(void) {
    MPI_Request request;
    for (int at = 0, place = 0; at < ranks; place += counts[at], at++)
        for (int here = 0; here < counts[at]; here++) given[place + here] = rank + at + here + turn;
    MPI_Ireduce_scatter(given, taken, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    end(&request);
    for (int at = 0; at < counts[rank]; at++)
        if (taken[at] != ranks * (ranks - 1) / 2 + ranks * (rank + at + turn)) {
            fprintf(stderr, "turn %d, rank %d: reduce_scatter, word %d\n", turn, rank, at);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

int main(int argc, char **argv) {
    int begins = argc > 1 && strcmp(argv[1], "begin") == 0;
    int unpacks = argc > 1 && strcmp(argv[1], "unpack") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int at = 0; at < 5; at++) MPI_Barrier(MPI_COMM_WORLD);
    for (turn = 0; turn < TURNS; turn++) {
        if (unpacks) {
            long_blocks_to_gaps();
            continue;
        }
        describe(begins || turn < TURNS / 2 ? 40 : UNIT - 100);
        memset(taken, 0, sizeof taken);
        gather(begins);
        scatter(begins);
        gather_all(begins);
        if (!begins) {
            all_to_all_in_place(0);
            all_to_all_in_place(1);
            long_blocks(0);
            long_blocks(1);
            continue;
        }
        all_to_all(0);
        all_to_all(1);
        reduce_scatter();
    }
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// Kinds of datatypes; see kinds.h. What a receive must leave is found by MPI_Pack and MPI_Unpack,
// which send nothing.
#include "kinds.h"

// The byte that a receive finds.
#define EMPTY 0xee

static int at_least_one(int n) { return n > 0 ? n : 1; }

// Blocks of 1 to 4 ints with gaps of 1 to 3 between them, COUNT of them, the last one first if
// BACKWARDS.
static MPI_Datatype blocks(int count, int backwards) {
    int *lengths = filled(sizeof(int) * (size_t)count, 0);
    int *places = filled(sizeof(int) * (size_t)count, 0);
    int place = 0;
    MPI_Datatype type;
    for (int i = 0; i < count; i++) {
        int at = backwards ? count - 1 - i : i;
        lengths[at] = 1 + i % 4;
        places[at] = place;
        place += lengths[at] + 1 + i % 3;
    }
    succeeds(MPI_Type_indexed(count, lengths, places, MPI_INT, &type));
    free(lengths);
    free(places);
    return type;
}

// A char, a short array and a double with the gaps that C has between them.
static MPI_Datatype structure(void) {
    struct cell {
        char letter;
        short numbers[3];
        double weight;
    };
    int lengths[] = {1, 3, 1};
    MPI_Aint places[] = {offsetof(struct cell, letter), offsetof(struct cell, numbers),
                         offsetof(struct cell, weight)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_SHORT, MPI_DOUBLE}, plain, type;
    succeeds(MPI_Type_create_struct(3, lengths, places, types, &plain));
    succeeds(MPI_Type_create_resized(plain, 0, sizeof(struct cell), &type));
    succeeds(MPI_Type_free(&plain));
    return type;
}

// Data on both sides of the address: 4 ints before it, 2 behind.
static MPI_Datatype around(void) {
    int lengths[] = {2, 2, 2};
    MPI_Aint places[] = {-32, -16, 8};
    MPI_Datatype type;
    succeeds(MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &type));
    return type;
}

static MPI_Datatype resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent) {
    MPI_Datatype type;
    succeeds(MPI_Type_create_resized(of, lower, extent, &type));
    if (of != MPI_INT) succeeds(MPI_Type_free(&of));
    return type;
}

static MPI_Datatype vector(int count, int block, int stride) {
    MPI_Datatype type;
    succeeds(MPI_Type_vector(count, block, stride, MPI_INT, &type));
    return type;
}

// From the middle of a square of ints.
static MPI_Datatype subarray(int side) {
    int whole[] = {side + 4, side + 4}, part[] = {side, side}, start[] = {3, 1};
    MPI_Datatype type;
    succeeds(MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_INT, &type));
    return type;
}

// A vector whose blocks go towards lower addresses.
static MPI_Datatype downwards(int count) {
    MPI_Datatype type;
    succeeds(MPI_Type_create_hvector(count, 2, -24, MPI_INT, &type));
    return type;
}

// A vector of structures.
static MPI_Datatype nested(int count) {
    MPI_Datatype inner = structure(), type;
    succeeds(MPI_Type_vector(count, 2, 3, inner, &type));
    succeeds(MPI_Type_free(&inner));
    return type;
}

static MPI_Datatype empty(void) {
    MPI_Datatype type;
    succeeds(MPI_Type_contiguous(0, MPI_INT, &type));
    return type;
}

static MPI_Datatype contiguous(int count) {
    MPI_Datatype type;
    succeeds(MPI_Type_contiguous(count, MPI_INT, &type));
    return type;
}

static int side_of(int ints) {
    int side = 1;
    while (side * side < ints) side++;
    return side;
}

// Where a kind is made of many small elements, the number of elements makes the size; where not,
// the type does.
static void choose(struct kind *kind, int index, int ints) {
    static const char *const names[KINDS] = {
        "basic",          "contiguous",        "vector",     "vectors",
        "indexed",        "indexed_backwards", "structure",  "negative_lower_bound",
        "resized_larger", "resized_smaller",   "subarray",   "negative_stride",
        "nested",         "zero_size",         "zero_count",
    };
    int many = 1;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    switch (index) {
    case 0: type = contiguous(1), many = ints; break; // replaced by MPI_INT below
    case 1: type = contiguous(ints); break;
    case 2: type = vector(at_least_one(ints / 3), 3, 5); break;
    case 3: type = vector(4, 1, 2), many = at_least_one(ints / 4); break;
    case 4: type = blocks(at_least_one(ints * 2 / 5), 0); break;
    case 5: type = blocks(at_least_one(ints * 2 / 5), 1); break;
    case 6: type = structure(), many = at_least_one(ints / 4); break;
    case 7: type = around(), many = at_least_one(ints / 6); break;
    case 8: type = resized(contiguous(3), -8, 28), many = at_least_one(ints / 3); break;
    // Elements between each other's: 2 blocks with a gap, of which each next one begins in the gap.
    case 9: type = resized(vector(2, 1, 2), 0, 4), many = 2; break;
    case 10: type = subarray(side_of(ints)); break;
    case 11: type = downwards(at_least_one(ints / 2)); break;
    case 12: type = nested(at_least_one(ints / 8)); break;
    case 13: type = empty(), many = at_least_one(ints); break;
    case 14: type = vector(2, 1, 2), many = 0; break;
    }
    kind->name = names[index];
    kind->type = type;
    kind->count = many;
}

void make_kind(struct kind *kind, int index, int bytes) {
    MPI_Aint lower, extent, true_lower, true_extent;
    choose(kind, index, at_least_one(bytes / (int)sizeof(int)));
    if (index == 0) {
        succeeds(MPI_Type_free(&kind->type));
        kind->type = MPI_INT;
    } else {
        succeeds(MPI_Type_commit(&kind->type));
    }
    succeeds(MPI_Type_get_extent(kind->type, &lower, &extent));
    succeeds(MPI_Type_get_true_extent(kind->type, &true_lower, &true_extent));
    MPI_Aint last = kind->count > 0 ? (kind->count - 1) * extent : 0;
    MPI_Aint end = true_lower + true_extent + (last > 0 ? last : 0);
    // Some bytes more at each end, so that a write beyond is seen.
    kind->before = (size_t)(true_lower < 0 ? -true_lower : 0) + 64;
    kind->behind = (size_t)(end > 0 ? end : 0) + 64;
    succeeds(MPI_Type_size(kind->type, &kind->packed));
    kind->packed *= kind->count;
}

void free_kind(struct kind *kind) {
    if (kind->type != MPI_INT) succeeds(MPI_Type_free(&kind->type));
}

char *kind_buffer(const struct kind *kind, int seed, char **at) {
    size_t length = kind->before + kind->behind;
    char *buffer = seed < 0 ? filled(length, EMPTY) : patterned(length, (unsigned)seed);
    *at = buffer + kind->before;
    return buffer;
}

void expect_kind(const struct kind *kind, int seed, const char *buffer) {
    char *from_at, *wanted_at;
    char *from = kind_buffer(kind, seed, &from_at), *wanted = kind_buffer(kind, -1, &wanted_at);
    int packed_bytes = 0, position = 0;
    succeeds(MPI_Pack_size(kind->count, kind->type, MPI_COMM_SELF, &packed_bytes));
    packed_bytes += 64;
    char *packed = filled((size_t)packed_bytes, 0);
    succeeds(
        MPI_Pack(from_at, kind->count, kind->type, packed, packed_bytes, &position, MPI_COMM_SELF));
    int length = position;
    position = 0;
    succeeds(
        MPI_Unpack(packed, length, &position, wanted_at, kind->count, kind->type, MPI_COMM_SELF));
    for (size_t i = 0; i < kind->before + kind->behind; i++) {
        if (buffer[i] == wanted[i]) continue;
        wrong("%s of %d bytes: byte %ld of the buffer is %d instead of %d", kind->name,
              kind->packed, (long)i - (long)kind->before, (unsigned char)buffer[i],
              (unsigned char)wanted[i]);
        break;
    }
    free(from);
    free(wanted);
    free(packed);
}

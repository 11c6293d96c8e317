// SPDX-License-Identifier: Apache-2.0 OR MIT
// Atomic operations on remote memory: every call, and what the questions about them answer.
// fi_atomic(3).
#include "harness.h"

#include <rdma/fi_atomic.h>

static struct host host;
static struct side a, b;
static struct fid_mr *region;
static uint64_t memory[2000], operands[2000], comparands[2000], results[2000];

static void open_remote(void)
{
    open_pair(&host, &a, &b, &(struct wishes){.caps_added = FI_ATOMIC});
    OK(fi_mr_reg(host.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0,
                 &region, NULL));
}

static void close_remote(void)
{
    OK(fi_close(&region->fid));
    close_pair(&host, &a, &b);
}

static void set_up(size_t count)
{
    memset(results, 0, sizeof(results));
    memory[count] = 0;
    for (size_t index = 0; index < count; index++) {
        memory[index] = index;
        operands[index] = 1000 + index;
        comparands[index] = index % 2 ? index : ~0ull;
    }
}

// The sum of both, or of every second one after a comparison; and what was there before, if
// fetched.
static void check(const char *what, size_t count, bool fetched, bool compared)
{
    struct fi_cq_tagged_entry entry = next_entry(&a, &b);
    uint64_t wanted = FI_ATOMIC | (fetched ? FI_READ : FI_WRITE);
    CHECK((entry.flags & wanted) == wanted && entry.op_context == &region, "%s: another entry",
          what);
    for (size_t index = 0; index < count; index++) {
        uint64_t now = compared ? (index % 2 ? 1000 + index : index) : 1000 + 2 * index;
        CHECK(memory[index] == now, "%s: %llu at %zu", what, (unsigned long long)memory[index],
              index);
        CHECK(results[index] == (fetched ? index : 0), "%s: result %llu", what,
              (unsigned long long)results[index]);
    }
    CHECK(memory[count] == 0, "%s: more than was asked for was changed", what);
}

static struct fi_ioc halves[3][2];
static struct fi_rma_ioc ranges[2];

static struct fi_ioc *split(int list, uint64_t *elements, size_t count)
{
    halves[list][0] = (struct fi_ioc){elements, count / 3};
    halves[list][1] = (struct fi_ioc){elements + count / 3, count - count / 3};
    return halves[list];
}

static struct fi_msg_atomic whole(size_t count, enum fi_op op)
{
    ranges[0] = (struct fi_rma_ioc){0, count / 2, 7};
    ranges[1] = (struct fi_rma_ioc){count / 2 * 8, count - count / 2, 7};
    return (struct fi_msg_atomic){
        .msg_iov = split(0, operands, count),
        .iov_count = 2,
        .addr = a.other,
        .rma_iov = ranges,
        .rma_iov_count = 2,
        .datatype = FI_UINT64,
        .op = op,
        .context = &region,
    };
}

static void base_forms(size_t count)
{
    fi_addr_t to = a.other;
    void *context = &region;
    set_up(count);
    POST(&a, &b, fi_atomic(a.ep, operands, count, NULL, to, 0, 7, FI_UINT64, FI_SUM, context));
    check("fi_atomic", count, false, false);
    set_up(count);
    POST(
        &a, &b,
        fi_atomicv(a.ep, split(0, operands, count), NULL, 2, to, 0, 7, FI_UINT64, FI_SUM, context));
    check("fi_atomicv", count, false, false);
    set_up(count);
    struct fi_msg_atomic message = whole(count, FI_SUM);
    POST(&a, &b, fi_atomicmsg(a.ep, &message, FI_COMPLETION));
    check("fi_atomicmsg", count, false, false);
    set_up(count);
    POST(&a, &b, fi_inject_atomic(a.ep, operands, count, to, 0, 7, FI_UINT64, FI_SUM));
    expect_silence(&a, &b, 5);
    CHECK(memory[count - 1] == 1000 + 2 * (count - 1), "fi_inject_atomic did nothing");
}

static void fetch_forms(size_t count)
{
    fi_addr_t to = a.other;
    void *context = &region;
    set_up(count);
    POST(&a, &b,
         fi_fetch_atomic(a.ep, operands, count, NULL, results, NULL, to, 0, 7, FI_UINT64, FI_SUM,
                         context));
    check("fi_fetch_atomic", count, true, false);
    set_up(count);
    POST(&a, &b,
         fi_fetch_atomicv(a.ep, split(0, operands, count), NULL, 2, split(1, results, count), NULL,
                          2, to, 0, 7, FI_UINT64, FI_SUM, context));
    check("fi_fetch_atomicv", count, true, false);
    set_up(count);
    struct fi_msg_atomic message = whole(count, FI_SUM);
    POST(&a, &b,
         fi_fetch_atomicmsg(a.ep, &message, split(1, results, count), NULL, 2, FI_COMPLETION));
    check("fi_fetch_atomicmsg", count, true, false);
    POST(&a, &b,
         fi_fetch_atomic(a.ep, NULL, count, NULL, results, NULL, to, 0, 7, FI_UINT64,
                         FI_ATOMIC_READ, context));
    next_entry(&a, &b);
    CHECK(results[count - 1] == memory[count - 1], "FI_ATOMIC_READ read something else");
}

static void compare_forms(size_t count)
{
    fi_addr_t to = a.other;
    void *context = &region;
    set_up(count);
    POST(&a, &b,
         fi_compare_atomic(a.ep, operands, count, NULL, comparands, NULL, results, NULL, to, 0, 7,
                           FI_UINT64, FI_CSWAP, context));
    check("fi_compare_atomic", count, true, true);
    set_up(count);
    POST(&a, &b,
         fi_compare_atomicv(a.ep, split(0, operands, count), NULL, 2, split(2, comparands, count),
                            NULL, 2, split(1, results, count), NULL, 2, to, 0, 7, FI_UINT64,
                            FI_CSWAP, context));
    check("fi_compare_atomicv", count, true, true);
    set_up(count);
    struct fi_msg_atomic message = whole(count, FI_CSWAP);
    POST(&a, &b,
         fi_compare_atomicmsg(a.ep, &message, split(2, comparands, count), NULL, 2,
                              split(1, results, count), NULL, 2, FI_COMPLETION));
    check("fi_compare_atomicmsg", count, true, true);
}

static void every_atomic_call_changes_every_element(void)
{
    size_t most;
    open_remote();
    for (size_t count = 1; count <= 100; count += 33) {
        base_forms(count);
        fetch_forms(count);
        compare_forms(count);
    }
    OK(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &most));
    base_forms(most);
    OK(fi_fetch_atomicvalid(a.ep, FI_UINT64, FI_SUM, &most));
    fetch_forms(most);
    OK(fi_compare_atomicvalid(a.ep, FI_UINT64, FI_CSWAP, &most));
    compare_forms(most);
    ANSWERS(-FI_EMSGSIZE,
            fi_compare_atomic(a.ep, operands, most + 1, NULL, comparands, NULL, results, NULL,
                              a.other, 0, 7, FI_UINT64, FI_CSWAP, NULL));
    close_remote();
}

static void questions_agree_with_what_calls_do(void)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
    struct fi_atomic_attr attr;
    size_t count;
    open_remote();
    for (int type = 0; type < 40; type++) {
        for (int op = 0; op < 40; op++) {
            int base = fi_atomicvalid(a.ep, type, op, &count);
            CHECK(base == 0 || base == -FI_EOPNOTSUPP, "answer %d", base);
            ANSWERS(base, fi_query_atomic(host.domain, type, op, &attr, 0));
            if (base == 0) {
                CHECK(attr.count == count && count > 0 && (type >= 12 || attr.size == sizes[type]),
                      "attributes");
                CHECK(op <= FI_BXOR || op == FI_ATOMIC_WRITE, "type %d, operation %d", type, op);
            }
            int fetch = fi_fetch_atomicvalid(a.ep, type, op, &count);
            ANSWERS(fetch, fi_query_atomic(host.domain, type, op, &attr, FI_FETCH_ATOMIC));
            CHECK(base != 0 || fetch == 0, "what can be done can be fetched");
            int compare = fi_compare_atomicvalid(a.ep, type, op, &count);
            ANSWERS(compare, fi_query_atomic(host.domain, type, op, &attr, FI_COMPARE_ATOMIC));
            CHECK(compare != 0 || (op >= FI_CSWAP && op <= FI_MSWAP), "operation %d", op);
        }
    }
    OK(fi_atomicvalid(a.ep, FI_DOUBLE, FI_SUM, &count));
    OK(fi_fetch_atomicvalid(a.ep, FI_INT32, FI_ATOMIC_READ, &count));
    OK(fi_compare_atomicvalid(a.ep, FI_UINT64, FI_MSWAP, &count));
    ANSWERS(-FI_EOPNOTSUPP, fi_atomicvalid(a.ep, FI_DOUBLE, FI_BOR, &count));
    ANSWERS(-FI_EINVAL, fi_query_atomic(host.domain, FI_UINT64, FI_SUM, &attr,
                                        FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
    ANSWERS(-FI_EOPNOTSUPP, fi_query_atomic(host.domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED));
    ANSWERS(-FI_EOPNOTSUPP,
            fi_atomic(a.ep, operands, 1, NULL, a.other, 0, 7, FI_DOUBLE, FI_BOR, NULL));
    ANSWERS(-FI_EOPNOTSUPP,
            fi_atomic(a.ep, operands, 1, NULL, a.other, 0, 7, FI_UINT64, FI_CSWAP, NULL));
    ANSWERS(-FI_EOPNOTSUPP, fi_atomic(a.ep, operands, 1, NULL, a.other, 0, 7, 999, FI_SUM, NULL));
    close_remote();
}

static void doubles_and_small_numbers_are_summed_as_what_they_are(void)
{
    double *fractions = (double *)memory, half = 0.5;
    int8_t *bytes = (int8_t *)(memory + 10), minus = -3;
    open_remote();
    fractions[3] = 1.25;
    bytes[5] = 1;
    POST(&a, &b, fi_atomic(a.ep, &half, 1, NULL, a.other, 24, 7, FI_DOUBLE, FI_SUM, NULL));
    POST(&a, &b, fi_atomic(a.ep, &minus, 1, NULL, a.other, 85, 7, FI_INT8, FI_MIN, NULL));
    next_entry(&a, &b);
    next_entry(&a, &b);
    CHECK(fractions[3] == 1.75 && fractions[2] == 0 && fractions[4] == 0, "%f", fractions[3]);
    CHECK(bytes[5] == -3 && bytes[4] == 0 && bytes[6] == 0, "%d", bytes[5]);
    close_remote();
}

const struct test_case atomic_cases[] = {
    {"every_atomic_call_changes_every_element", every_atomic_call_changes_every_element},
    {"questions_agree_with_what_calls_do", questions_agree_with_what_calls_do},
    {"doubles_and_small_numbers_are_summed_as_what_they_are",
     doubles_and_small_numbers_are_summed_as_what_they_are},
    {NULL, NULL},
};

// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the conformance cases share: endpoints in pairs, waiting with a limit, failing with a
// reason.
#ifndef WEFT_CONFORMANCE_HARNESS_H
#define WEFT_CONFORMANCE_HARNESS_H

#define _GNU_SOURCE

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

// A case that takes longer than this has failed. Chosen: far above what any case needs on two slow
// processors.
#define CASE_LIMIT_S 120
// How long to wait for one completion.
#define ENTRY_LIMIT_MS 30000
// Who is woken is awake long before this, even on a machine that stops now and then; who is not
// sleeps for SLEEP_MS.
#define AWAKE_LIMIT_MS 4000
#define SLEEP_MS 20000

// Ends the case with a reason. Every case runs in a process of its own, so nothing is cleaned up.
_Noreturn void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Ends the case as not possible here, with a reason.
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__FILE__, __LINE__, __VA_ARGS__);                                                 \
    } while (0)

// Checks a call that shall answer 0.
#define OK(call)                                                                                   \
    do {                                                                                           \
        int64_t answer_ = (call);                                                                  \
        if (answer_ != 0)                                                                          \
            fail(__FILE__, __LINE__, "%s answered %lld (%s)", #call, (long long)answer_,           \
                 fi_strerror((int)-answer_));                                                      \
    } while (0)

// Checks a call that shall answer one certain value.
#define ANSWERS(wanted, call)                                                                      \
    do {                                                                                           \
        int64_t answer_ = (call);                                                                  \
        if (answer_ != (int64_t)(wanted))                                                          \
            fail(__FILE__, __LINE__, "%s answered %lld, not %s", #call, (long long)answer_,        \
                 #wanted);                                                                         \
    } while (0)

// How to open endpoints; zeros mean the usual.
struct wishes {
    uint32_t version; // of the interface; FI_VERSION(1, 17) unless set
    enum fi_threading threading;
    enum fi_cq_format format; // FI_CQ_FORMAT_TAGGED unless set
    enum fi_wait_obj wait_object;
    struct fid_wait *wait_set; // for FI_WAIT_SET
    enum fi_av_type av_type;
    enum fi_progress progress; // of data
    size_t queue_size;
    uint64_t binding;        // added to FI_TRANSMIT | FI_RECV
    uint64_t transmit_flags; // op_flags of sends
    uint64_t caps_removed, caps_added;
    int mr_mode;
    bool counters;
};

// One endpoint and what is bound to it.
struct side {
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_cntr *sent, *received;
    char name[512];
    size_t name_bytes;
    fi_addr_t other, self;
};

// The objects above the endpoints.
struct host {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct wishes wishes;
};

// A sender and a receiver. Both are here, or one is and the other is in the process at the end of
// `sync`.
struct link {
    struct side *sender, *receiver;
    int sync;
};

struct fi_info *new_hints(void);
struct fi_info *get_info(uint32_t version, const struct fi_info *hints);
void open_host(struct host *host, const struct wishes *wishes);
void open_side(struct host *host, struct side *side);
void introduce(struct side *side, const void *name, fi_addr_t *where);
void close_side(struct side *side);
void close_host(struct host *host);

// Two endpoints in this process that know each other and themselves.
void open_pair(struct host *host, struct side *a, struct side *b, const struct wishes *wishes);
void close_pair(struct host *host, struct side *a, struct side *b);

// Lets an endpoint move on; a null one is skipped.
void progress(struct side *side);

// At first contact over datagrams the receiver asks the sender for its address again, so a message
// comes only if its sender moves on (docs/srd-protocol.md, clause 14.6).
void answer_first_contact(struct side *sender);
// Waits for the next completion of `side`, moving `other` on meanwhile.
struct fi_cq_tagged_entry next_entry(struct side *side, struct side *other);
// Waits for an error.
struct fi_cq_err_entry next_error(struct side *side, struct side *other);
// Lets both move on for a while; fails if `side` gets a completion or an error.
void expect_silence(struct side *side, struct side *other, int milliseconds);
// Lets a side move on for at least so long and so many times, so that what was sent to it has come.
void progress_for(struct side *side, int milliseconds);
int64_t now_ms(void);
// Whether everybody is reached by datagrams (FI_WEFT_ROUTE=srd), where a death shows by silence
// only.
bool over_datagrams(void);

// Meets the other process, moving the local side on meanwhile; nothing to do if both are here.
void meet(struct link *link);

// A buffer with a pattern that depends on the seed; checking it.
void fill(void *buffer, size_t length, unsigned seed);
void check_filled(const void *buffer, size_t length, unsigned seed);

// Repeats a call while it answers that there is no room.
#define POST(side, other, call)                                                                    \
    do {                                                                                           \
        int64_t posted_, until_ = now_ms() + ENTRY_LIMIT_MS;                                       \
        while ((posted_ = (call)) == -FI_EAGAIN && now_ms() < until_) {                            \
            progress(side);                                                                        \
            progress(other);                                                                       \
        }                                                                                          \
        if (posted_ != 0)                                                                          \
            fail(__FILE__, __LINE__, "%s answered %lld (%s)", #call, (long long)posted_,           \
                 fi_strerror((int)-posted_));                                                      \
    } while (0)

// A case: a name that states a law, and what checks it.
struct test_case {
    const char *name;
    void (*run)(void);
};

extern const struct test_case info_cases[], object_cases[], vector_cases[], transfer_cases[],
    matching_cases[], completion_cases[], waiting_cases[], polling_cases[], wait_set_cases[],
    progress_cases[], remote_cases[], atomic_cases[], peer_cases[], process_cases[], fork_cases[];

#endif

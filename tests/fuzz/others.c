// SPDX-License-Identifier: Apache-2.0 OR MIT
// Random calls with event queues, wait sets, poll sets, atomics, and domains and fabrics that come
// and go; with sizes of nothing, and objects in use that are closed.
#include "calls.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>

static struct fid_eq *eqs[KINDS_OF_EACH];
static struct fid_wait *waits[KINDS_OF_EACH];
static struct fid_poll *polls[KINDS_OF_EACH];
static struct fid_fabric *fabrics[KINDS_OF_EACH];
static struct fid_domain *domains[KINDS_OF_EACH];

// Closes an object, if there is one, and forgets it if it is closed; in use it is busy.
static bool close_fid(struct fid *fid, void *where)
{
    if (!fid)
        return true;
    if (CHECKED(fi_close(fid)) != 0)
        return false;
    memset(where, 0, sizeof(void *));
    return true;
}

static void open_queue(void)
{
    size_t at = place();
    struct fi_eq_attr attr = {.size = below(100), .flags = one_in(4) ? flags() : FI_WRITE};
    attr.wait_obj = (enum fi_wait_obj)below(5);
    attr.wait_set = one_in(2) ? waits[place()] : NULL;
    if (!eqs[at] && CHECKED(fi_eq_open(fabric, &attr, &eqs[at], context())) != 0)
        eqs[at] = NULL;
}

static void use_queue(struct fid_eq *queue)
{
    char entry[256] = {0}, text[64];
    struct fi_eq_err_entry error = {0};
    uint32_t event = (uint32_t)below(12);
    size_t bytes = one_in(4) ? below(sizeof(entry)) : sizeof(struct fi_eq_entry);
    switch (below(6)) {
    case 0: TRY(fi_eq_read(queue, &event, entry, bytes, one_in(4) ? FI_PEEK : 0)); break;
    case 1: TRY(fi_eq_readerr(queue, &error, 0)); break;
    case 2: TRY(fi_eq_write(queue, event, entry, bytes, one_in(8) ? flags() : 0)); break;
    case 3: TRY(fi_eq_sread(queue, &event, entry, bytes, (int)below(2), 0)); break;
    case 4: (void)fi_eq_strerror(queue, (int)below(200), NULL, text, sizeof(text)); break;
    default: TRY(fi_domain_bind(domain, &queue->fid, one_in(2) ? FI_REG_MR : 0));
    }
}

static void use_waits(void)
{
    size_t at = place();
    struct fi_wait_attr attr = {.wait_obj = (enum fi_wait_obj)below(5)};
    struct fid *fids[] = {cqs[place()] ? &cqs[place()]->fid : NULL, NULL};
    switch (below(4)) {
    case 0:
        if (!waits[at] && CHECKED(fi_wait_open(fabric, &attr, &waits[at])) != 0)
            waits[at] = NULL;
        break;
    case 1:
        if (waits[at])
            TRY(fi_wait(waits[at], (int)below(2)));
        break;
    case 2: TRY(fi_trywait(fabric, fids, fids[0] ? 1 : 0)); break;
    default: (void)close_fid(waits[at] ? &waits[at]->fid : NULL, &waits[at]);
    }
}

static void use_polls(void)
{
    size_t at = place(), of = place();
    struct fi_poll_attr attr = {.flags = one_in(8) ? flags() : 0};
    void *ready[8];
    struct fid *fids[] = {cqs[of] ? &cqs[of]->fid : NULL, counters[of] ? &counters[of]->fid : NULL,
                          eps[of] ? &eps[of]->fid : NULL};
    struct fid *fid = fids[one_in(8) ? 2 : below(2)];
    if (!polls[at]) {
        if (CHECKED(fi_poll_open(domain, &attr, &polls[at])) != 0)
            polls[at] = NULL;
        return;
    }
    switch (below(4)) {
    case 0:
        // What it asks is open.
        if (CHECKED(fi_poll(polls[at], ready, (int)below(9))) == -FI_ENOENT)
            abort();
        break;
    case 1:
        if (fid)
            TRY(fi_poll_add(polls[at], fid, 0));
        break;
    case 2:
        if (fid)
            TRY(fi_poll_del(polls[at], fid, 0));
        break;
    default: (void)close_fid(&polls[at]->fid, &polls[at]);
    }
}

// Queries for any type and operation; transfers where the endpoint has atomics.
static void use_atomics(void)
{
    struct fid_ep *ep = eps[place()];
    enum fi_datatype type = (enum fi_datatype)below(20);
    enum fi_op op = (enum fi_op)below(22);
    struct fi_atomic_attr attr;
    size_t count = below(5), bytes = 256;
    TRY(fi_query_atomic(domain, type, op, &attr, one_in(2) ? 0 : flags()));
    if (!ep || !(info->caps & FI_ATOMIC))
        return;
    char *operand = buffer(bytes), *result = buffer(bytes);
    uint64_t at = below(4096), key = below(8);
    fi_addr_t to = address();
    switch (below(6)) {
    case 0:
        TRY(fi_atomic(ep, operand, count, NULL, to, at, key, type, op, context()));
        break;
    case 1:
        TRY(fi_fetch_atomic(ep, operand, count, NULL, result, NULL, to, at, key, type, op, NULL));
        break;
    case 2:
        TRY(fi_compare_atomic(ep, operand, count, NULL, buffer(bytes), NULL, result, NULL, to, at,
                              key, type, op, context()));
        break;
    case 3: TRY(fi_inject_atomic(ep, operand, count, to, at, key, type, op)); break;
    case 4: TRY(fi_atomicvalid(ep, type, op, &count)); break;
    default: TRY(fi_compare_atomicvalid(ep, type, op, &count));
    }
}

// Further fabrics and domains, closed at any time: who has children is busy.
static void use_domains(void)
{
    size_t at = place();
    switch (below(6)) {
    case 0:
        if (!fabrics[at] && CHECKED(fi_fabric(info->fabric_attr, &fabrics[at], context())) != 0)
            fabrics[at] = NULL;
        break;
    case 1: {
        struct fid_fabric *of = fabrics[place()];
        if (of && !domains[at] && CHECKED(fi_domain(of, info, &domains[at], context())) != 0)
            domains[at] = NULL;
        break;
    }
    case 2: (void)close_fid(fabrics[at] ? &fabrics[at]->fid : NULL, &fabrics[at]); break;
    case 3: (void)close_fid(domains[at] ? &domains[at]->fid : NULL, &domains[at]); break;
    case 4: {
        struct fid_ep *ep = NULL;
        if (domains[at] && CHECKED(fi_endpoint(domains[at], info, &ep, context())) == 0)
            TRY(fi_close(&ep->fid));
        break;
    }
    default:
        // One that has children.
        if (CHECKED(fi_close(eps[at] ? &domain->fid : &fabric->fid)) != -FI_EBUSY)
            abort();
    }
}

// Nothing at all, where the man pages allow it.
static void ask_for_nothing(void)
{
    struct fid_ep *ep = eps[place()];
    size_t at = place(), zero = 0;
    if (cqs[at])
        TRY(fi_cq_read(cqs[at], NULL, 0));
    if (avs[at])
        TRY(fi_av_insert(avs[at], NULL, 0, NULL, 0, NULL));
    if (avs[at])
        TRY(fi_av_lookup(avs[at], address(), NULL, &zero));
    if (!ep)
        return;
    TRY(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, (int)below(20), NULL, &zero));
    TRY(fi_recv(ep, NULL, 0, NULL, address(), context()));
    TRY(fi_inject(ep, NULL, 0, address()));
    TRY(fi_cancel(&ep->fid, NULL));
}

void do_other(void)
{
    size_t at = place();
    switch (below(8)) {
    case 0: open_queue(); break;
    case 1:
        if (eqs[at])
            use_queue(eqs[at]);
        break;
    case 2: (void)close_fid(one_in(4) && eqs[at] ? &eqs[at]->fid : NULL, &eqs[at]); break;
    case 3: use_waits(); break;
    case 4: use_polls(); break;
    case 5: use_atomics(); break;
    case 6: use_domains(); break;
    default: ask_for_nothing();
    }
}

bool close_users(void)
{
    bool closed = true;
    for (int at = 0; at < KINDS_OF_EACH; at++) {
        closed &= close_fid(polls[at] ? &polls[at]->fid : NULL, &polls[at]);
        closed &= close_fid(domains[at] ? &domains[at]->fid : NULL, &domains[at]);
    }
    for (int at = 0; at < KINDS_OF_EACH; at++)
        closed &= close_fid(fabrics[at] ? &fabrics[at]->fid : NULL, &fabrics[at]);
    return closed;
}

bool close_used(void)
{
    bool closed = true;
    for (int at = 0; at < KINDS_OF_EACH; at++)
        closed &= close_fid(eqs[at] ? &eqs[at]->fid : NULL, &eqs[at]);
    for (int at = 0; at < KINDS_OF_EACH; at++)
        closed &= close_fid(waits[at] ? &waits[at]->fid : NULL, &waits[at]);
    return closed;
}

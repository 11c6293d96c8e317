// SPDX-License-Identifier: Apache-2.0 OR MIT
// Random calls of libfabric on the provider: right ones, and wrong ones for which the man pages
// name an error. Whatever they are, the process lives, calls end, and no memory is touched that is
// not there (run it with AddressSanitizer to see that).
//
//   calls [--seed N] [--seconds N] [--steps N]     each seed is a process of its own; a finding
//                                                  names the seed, exit code 1
#define _GNU_SOURCE
#include "calls.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ADDRESSES = 8, CONTEXTS = 64, CASE_LIMIT_S = 60 };

static uint64_t state;
static char arena[ARENA_BYTES];
static struct fi_context2 contexts[CONTEXTS];
struct fi_info *info;
struct fid_fabric *fabric;
struct fid_domain *domain;
struct fid_ep *eps[KINDS_OF_EACH];
struct fid_cq *cqs[KINDS_OF_EACH];
struct fid_av *avs[KINDS_OF_EACH];
struct fid_cntr *counters[KINDS_OF_EACH];
struct fid_mr *regions[KINDS_OF_EACH];
static char names[KINDS_OF_EACH][64];

// xorshift64*, as in crates/srd: these C files link to libfabric alone.
uint64_t number(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

uint64_t below(uint64_t end) { return (number() >> 16) % end; }
bool one_in(uint64_t count) { return below(count) == 0; }
size_t place(void) { return below(KINDS_OF_EACH); }
void *context(void) { return one_in(16) ? NULL : &contexts[below(CONTEXTS)]; }

size_t length(void)
{
    static const size_t lengths[] = {0, 1, 8, 64, 192, 4096, 8192, 8193, 65536, 262144};
    return lengths[below(sizeof(lengths) / sizeof(*lengths))];
}

char *buffer(size_t bytes) { return arena + below(ARENA_BYTES - bytes + 1); }

fi_addr_t address(void)
{
    uint64_t kind = below(16);
    if (kind == 0)
        return FI_ADDR_UNSPEC;
    if (kind == 1)
        return number();
    return below(ADDRESSES);
}

uint64_t flags(void)
{
    static const uint64_t known[] = {FI_COMPLETION,
                                     FI_INJECT,
                                     FI_REMOTE_CQ_DATA,
                                     FI_TRANSMIT_COMPLETE,
                                     FI_DELIVERY_COMPLETE,
                                     FI_INJECT_COMPLETE,
                                     FI_MORE,
                                     FI_FENCE,
                                     FI_PEEK,
                                     FI_CLAIM,
                                     FI_DISCARD,
                                     FI_MULTI_RECV,
                                     FI_TRANSMIT,
                                     FI_RECV,
                                     FI_SELECTIVE_COMPLETION};
    uint64_t chosen = 0;
    for (uint64_t left = below(4); left > 0; left--)
        chosen |= known[below(sizeof(known) / sizeof(*known))];
    return one_in(64) ? number() : chosen;
}

ssize_t checked(ssize_t answer, const char *call)
{
    if (answer >= 0 || (answer > -FI_ERRNO_OFFSET && answer < 0) ||
        (answer > -FI_ERRNO_MAX && answer <= -FI_ERRNO_OFFSET))
        return answer;
    fprintf(stderr, "ERROR: %s answered %zd\n", call, answer);
    exit(7);
}

static void open_one(void)
{
    size_t at = place();
    switch (below(5)) {
    case 0: {
        struct fi_cq_attr attr = {.size = one_in(2) ? 0 : below(100),
                                  .format = (enum fi_cq_format)below(6)};
        attr.wait_obj = (enum fi_wait_obj)below(5);
        attr.flags = one_in(16) ? flags() : 0;
        if (!cqs[at] && fi_cq_open(domain, one_in(8) ? NULL : &attr, &cqs[at], context()))
            cqs[at] = NULL;
        break;
    }
    case 1: {
        struct fi_av_attr attr = {.type = (enum fi_av_type)below(4),
                                  .count = below(1000),
                                  .flags = one_in(16) ? flags() : 0};
        if (!avs[at] && fi_av_open(domain, &attr, &avs[at], context()))
            avs[at] = NULL;
        break;
    }
    case 2: {
        struct fi_cntr_attr attr = {.events = (enum fi_cntr_events)below(3),
                                    .wait_obj = (enum fi_wait_obj)below(4)};
        if (!counters[at] && fi_cntr_open(domain, &attr, &counters[at], context()))
            counters[at] = NULL;
        break;
    }
    case 3: {
        size_t bytes = length();
        uint64_t access =
            one_in(8) ? number()
                      : FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SEND | FI_RECV;
        if (!regions[at] && fi_mr_reg(domain, buffer(bytes), bytes, access, 0, below(8), 0,
                                      &regions[at], context()))
            regions[at] = NULL;
        break;
    }
    default:
        if (!eps[at] && fi_endpoint(domain, info, &eps[at], context()))
            eps[at] = NULL;
    }
}

static void close_one(void)
{
    size_t at = place();
    struct fid *fids[] = {eps[at] ? &eps[at]->fid : NULL, cqs[at] ? &cqs[at]->fid : NULL,
                          avs[at] ? &avs[at]->fid : NULL, counters[at] ? &counters[at]->fid : NULL,
                          regions[at] ? &regions[at]->fid : NULL};
    size_t kind = below(5);
    if (!fids[kind] || fi_close(fids[kind]))
        return;
    void *places[] = {&eps[at], &cqs[at], &avs[at], &counters[at], &regions[at]};
    memset(places[kind], 0, sizeof(void *));
}

static void bind_one(void)
{
    struct fid_ep *ep = eps[place()];
    if (!ep)
        return;
    size_t at = place();
    struct fid *fids[] = {avs[at] ? &avs[at]->fid : NULL, cqs[at] ? &cqs[at]->fid : NULL,
                          counters[at] ? &counters[at]->fid : NULL, eps[at] ? &eps[at]->fid : NULL,
                          &fabric->fid};
    struct fid *fid = fids[one_in(16) ? 3 + below(2) : below(3)];
    if (fid)
        TRY(fi_ep_bind(ep, fid, one_in(4) ? flags() : FI_TRANSMIT | FI_RECV));
}

static void enable_one(void)
{
    size_t at = place();
    struct fid_ep *ep = eps[at];
    if (!ep)
        return;
    if (one_in(2)) {
        if (avs[at])
            TRY(fi_ep_bind(ep, &avs[at]->fid, 0));
        if (cqs[at])
            TRY(fi_ep_bind(ep, &cqs[at]->fid, FI_TRANSMIT | FI_RECV));
    }
    if (fi_enable(ep))
        return;
    size_t bytes = one_in(8) ? below(64) : sizeof(names[at]);
    (void)fi_getname(&ep->fid, names[at], &bytes);
    size_t zero = 0;
    (void)fi_getname(&ep->fid, NULL, &zero);
}

static void use_vector(void)
{
    struct fid_av *av = avs[place()];
    if (!av)
        return;
    fi_addr_t found[KINDS_OF_EACH * 2];
    char text[128];
    size_t bytes = sizeof(text);
    switch (below(6)) {
    case 0:
        TRY(fi_av_insert(av, names[place()], 1, found, one_in(16) ? flags() : 0, context()));
        break;
    case 1: TRY(fi_av_insert(av, arena, below(4), one_in(4) ? NULL : found, 0, context())); break;
    case 2: {
        const char *node = one_in(4) ? "no such host.invalid." : "127.0.0.1";
        TRY(fi_av_insertsvc(av, node, one_in(4) ? NULL : "7", found, 0, context()));
        break;
    }
    case 3:
        found[0] = address();
        TRY(fi_av_remove(av, found, one_in(8) ? 0 : 1, 0));
        break;
    case 4: TRY(fi_av_lookup(av, address(), text, &bytes)); break;
    default: (void)fi_av_straddr(av, names[place()], text, &bytes);
    }
}

static void send_one(struct fid_ep *ep)
{
    size_t bytes = length();
    char *from = buffer(bytes);
    struct iovec pieces[64];
    size_t count = one_in(8) ? below(64) : below(5);
    for (size_t at = 0; at < count; at++)
        pieces[at] = (struct iovec){buffer(bytes), bytes / (one_in(4) ? 1 : count)};
    struct fi_msg message = {.msg_iov = pieces,
                             .iov_count = count,
                             .addr = address(),
                             .context = context(),
                             .data = number()};
    struct fi_msg_tagged tagged = {.msg_iov = pieces,
                                   .iov_count = count,
                                   .addr = address(),
                                   .tag = below(4),
                                   .context = context()};
    switch (below(11)) {
    case 0: TRY(fi_send(ep, from, bytes, NULL, address(), context())); break;
    case 1: TRY(fi_tsend(ep, from, bytes, NULL, address(), below(4), context())); break;
    case 2: TRY(fi_inject(ep, from, bytes, address())); break;
    case 3: TRY(fi_tinject(ep, from, bytes, address(), below(4))); break;
    case 4: TRY(fi_senddata(ep, from, bytes, NULL, number(), address(), context())); break;
    case 5:
        TRY(fi_tsenddata(ep, from, bytes, NULL, number(), address(), below(4), context()));
        break;
    case 6: TRY(fi_sendv(ep, pieces, NULL, count, address(), context())); break;
    case 7: TRY(fi_tsendv(ep, pieces, NULL, count, address(), below(4), context())); break;
    case 8: TRY(fi_sendmsg(ep, &message, flags())); break;
    case 9: TRY(fi_tsendmsg(ep, &tagged, flags())); break;
    default: TRY(fi_injectdata(ep, from, bytes, number(), address()));
    }
}

static void receive_one(struct fid_ep *ep)
{
    size_t bytes = length();
    char *into = buffer(bytes);
    struct iovec pieces[64];
    size_t count = one_in(8) ? below(64) : below(5);
    for (size_t at = 0; at < count; at++)
        pieces[at] = (struct iovec){buffer(bytes), bytes};
    struct fi_msg message = {
        .msg_iov = pieces, .iov_count = count, .addr = address(), .context = context()};
    struct fi_msg_tagged tagged = {.msg_iov = pieces,
                                   .iov_count = count,
                                   .addr = address(),
                                   .tag = below(4),
                                   .context = context()};
    tagged.ignore = one_in(2) ? 0 : number();
    uint64_t ignored = one_in(2) ? 0 : ~0ULL;
    switch (below(7)) {
    case 0: TRY(fi_recv(ep, into, bytes, NULL, address(), context())); break;
    case 1: TRY(fi_trecv(ep, into, bytes, NULL, address(), below(4), ignored, context())); break;
    case 2: TRY(fi_recvv(ep, pieces, NULL, count, address(), context())); break;
    case 3: TRY(fi_trecvv(ep, pieces, NULL, count, address(), below(4), 0, context())); break;
    case 4: TRY(fi_recvmsg(ep, &message, flags())); break;
    case 5: TRY(fi_trecvmsg(ep, &tagged, flags())); break;
    default: TRY(fi_cancel(&ep->fid, context()));
    }
}

static void reach_memory(struct fid_ep *ep)
{
    if (!(info->caps & FI_RMA))
        return;
    size_t bytes = length();
    struct fid_mr *region = regions[place()];
    uint64_t key = region && !one_in(4) ? fi_mr_key(region) : below(8);
    uint64_t remote = one_in(4) ? number() : below(4096);
    if (one_in(2))
        TRY(fi_write(ep, buffer(bytes), bytes, NULL, address(), remote, key, context()));
    else
        TRY(fi_read(ep, buffer(bytes), bytes, NULL, address(), remote, key, context()));
}

static void wait_one(void)
{
    struct fid_cq *cq = cqs[place()];
    struct fi_cq_tagged_entry entries[8];
    struct fi_cq_err_entry error = {0};
    fi_addr_t sources[8];
    char text[64];
    if (cq) {
        switch (below(6)) {
        case 0: TRY(fi_cq_readfrom(cq, entries, 8, sources)); break;
        case 1: TRY(fi_cq_sread(cq, entries, below(9), NULL, (int)below(2))); break;
        case 2: TRY(fi_cq_signal(cq)); break;
        case 3: (void)fi_cq_strerror(cq, (int)below(200), NULL, text, sizeof(text)); break;
        default:
            for (int round = 0; round < 20; round++)
                if (fi_cq_read(cq, entries, below(9)) == -FI_EAVAIL)
                    TRY(fi_cq_readerr(cq, &error, one_in(16) ? flags() : 0));
        }
    }
    struct fid_cntr *counter = counters[place()];
    if (counter) {
        switch (below(5)) {
        case 0: (void)fi_cntr_read(counter); break;
        case 1: (void)fi_cntr_readerr(counter); break;
        case 2: TRY(fi_cntr_add(counter, number())); break;
        case 3: TRY(fi_cntr_set(counter, below(4))); break;
        default: TRY(fi_cntr_wait(counter, below(8), (int)below(2)));
        }
    }
}

static void ask(void)
{
    static const char *const nodes[] = {NULL, "127.0.0.1", "::1", "10.255.255.1", "not a name", ""};
    static const char *const services[] = {NULL, "0", "7471", "65536", "service"};
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    hints->caps = one_in(2) ? 0 : number() & number() & number();
    hints->mode = one_in(4) ? number() : 0;
    hints->addr_format = one_in(4) ? (uint32_t)below(10) : 0;
    hints->ep_attr->type = (enum fi_ep_type)below(6);
    hints->ep_attr->max_msg_size = one_in(4) ? number() : 0;
    hints->ep_attr->mem_tag_format = one_in(4) ? number() : 0;
    hints->domain_attr->mr_mode = one_in(2) ? 0 : (int)number();
    hints->domain_attr->threading = (enum fi_threading)below(8);
    hints->domain_attr->control_progress = hints->domain_attr->data_progress =
        (enum fi_progress)below(4);
    hints->tx_attr->op_flags = one_in(4) ? flags() : 0;
    hints->tx_attr->msg_order = one_in(4) ? number() : 0;
    hints->tx_attr->inject_size = one_in(4) ? below(10000) : 0;
    hints->tx_attr->iov_limit = one_in(4) ? below(100) : 0;
    hints->rx_attr->caps = one_in(4) ? number() : 0;
    if (!one_in(4))
        hints->fabric_attr->prov_name = strdup("weft");
    uint64_t wanted = one_in(8) ? flags() : one_in(4) ? FI_SOURCE : 0;
    uint32_t version = one_in(4) ? FI_VERSION(1, (uint32_t)below(30)) : FI_VERSION(1, 17);
    if (!fi_getinfo(version, nodes[below(6)], services[below(5)], wanted, one_in(16) ? NULL : hints,
                    &found))
        fi_freeinfo(found);
    fi_freeinfo(hints);
}

static void set_options(struct fid_ep *ep)
{
    char value[64] = {0};
    memcpy(value, arena + below(ARENA_BYTES - sizeof(value)), sizeof(value));
    size_t bytes = below(sizeof(value) + 1);
    if (one_in(2))
        TRY(fi_setopt(&ep->fid, (int)below(3), (int)below(20), value, bytes));
    else
        TRY(fi_getopt(&ep->fid, (int)below(3), (int)below(20), value, &bytes));
}

static void step(void)
{
    struct fid_ep *ep = eps[place()];
    switch (below(28)) {
    case 0: case 1: open_one(); break;
    case 2: if (one_in(3)) close_one(); break;
    case 3: bind_one(); break;
    case 4: enable_one(); break;
    case 5: case 6: use_vector(); break;
    case 7: if (one_in(16)) ask(); break;
    case 8: if (ep) set_options(ep); break;
    case 9: if (ep) reach_memory(ep); break;
    case 10: case 11: case 12: case 13: if (ep) send_one(ep); break;
    case 14: case 15: case 16: case 17: if (ep) receive_one(ep); break;
    case 18: case 19: case 20: case 21: do_other(); break;
    default: wait_one();
    }
}

static int run_case(uint64_t seed, long steps)
{
    state = seed * 0x9e3779b97f4a7c15ULL | 1;
    setenv("FI_PROVIDER", "weft", 1);
    alarm(CASE_LIMIT_S);
    struct fi_info *hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("weft");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | (one_in(2) ? FI_DIRECTED_RECV | FI_SOURCE : 0);
    hints->caps |= (one_in(2) ? FI_RMA : 0) | (one_in(2) ? FI_ATOMIC : 0);
    hints->caps |= one_in(2) ? FI_MULTI_RECV : 0;
    hints->domain_attr->threading = one_in(2) ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
    int answer = fi_getinfo(FI_VERSION(1, 17), one_in(2) ? NULL : "127.0.0.1", NULL,
                            one_in(2) ? FI_SOURCE : 0, hints, &info);
    fi_freeinfo(hints);
    if (answer) {
        fprintf(stderr,
                "fi_getinfo answered %d: is FI_PROVIDER_PATH the folder of libweft-fi.so?\n",
                answer);
        return 2;
    }
    if (fi_fabric(info->fabric_attr, &fabric, NULL) || fi_domain(fabric, info, &domain, NULL))
        return 3;
    for (size_t at = 0; at < ARENA_BYTES; at++)
        arena[at] = (char)number();
    for (long left = steps; left > 0; left--)
        step();
    if (!close_users())
        return 8;
    // In the order in which nothing is in use any more, everything closes.
    for (int at = 0; at < KINDS_OF_EACH; at++)
        if (eps[at] && fi_close(&eps[at]->fid))
            return 4;
    for (int at = 0; at < KINDS_OF_EACH; at++) {
        struct fid *fids[] = {cqs[at] ? &cqs[at]->fid : NULL, avs[at] ? &avs[at]->fid : NULL,
                              counters[at] ? &counters[at]->fid : NULL,
                              regions[at] ? &regions[at]->fid : NULL};
        for (int kind = 0; kind < 4; kind++)
            if (fids[kind] && fi_close(fids[kind]))
                return 5;
    }
    if (fi_close(&domain->fid) || !close_used() || fi_close(&fabric->fid))
        return 6;
    fi_freeinfo(info);
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **words)
{
    uint64_t seed = (uint64_t)time(NULL);
    double seconds = 5;
    long steps = 3000;
    for (int at = 1; at + 1 < count; at += 2) {
        if (!strcmp(words[at], "--seed"))
            seed = strtoull(words[at + 1], NULL, 10);
        else if (!strcmp(words[at], "--seconds"))
            seconds = strtod(words[at + 1], NULL);
        else if (!strcmp(words[at], "--steps"))
            steps = strtol(words[at + 1], NULL, 10);
        else {
            fprintf(stderr, "usage: calls [--seed N] [--seconds N] [--steps N]\n");
            return 2;
        }
    }
    double end = now() + seconds;
    uint64_t passed = 0;
    do {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            exit(run_case(seed + passed, steps));
        int status = 0;
        waitpid(child, &status, 0);
        if (status) {
            printf("a finding: calls --seed %llu --seconds 0 --steps %ld ends with %s %d\n",
                   (unsigned long long)(seed + passed), steps,
                   WIFSIGNALED(status) ? "signal" : "exit code",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            return 1;
        }
        passed++;
    } while (now() < end);
    printf("%llu sequences of %ld calls passed from seed %llu\n", (unsigned long long)passed, steps,
           (unsigned long long)seed);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Makes contact between many processes of one host, each with one endpoint of the provider.
 *
 *   ranks RANKS star|hops|all   star: rank 0 with all, and all with rank 0; hops: each with those
 *                               that are a power of two away; all: each with all
 *
 * Every rank sends 8 bytes to each of its remotes and waits for theirs. Prints one line with the
 * time, and what rank 0 and all together take of addresses and memory. Exit code 1 if a rank
 * failed. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 64
#define SECONDS 300

struct shared {
    volatile int named, done, failed;
    volatile long addresses_mib, resident_kib;
    char names[][NAME_BYTES];
};

static struct shared *shared;
static int ranks, rank;
static const char *pattern;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void must(long code, const char *call)
{
    if (code == 0)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, call, fi_strerror(code < 0 ? -code : code));
    shared->failed = 1;
    _exit(1);
}

/* Whether `from` sends to `to`; the same in both directions. */
static int speaks(int from, int to)
{
    int away = abs(from - to);
    if (from == to)
        return 0;
    if (!strcmp(pattern, "star"))
        return from == 0 || to == 0;
    if (!strcmp(pattern, "hops"))
        return (away & (away - 1)) == 0;
    return 1;
}

/* Waits until `counter` is `wanted`, and makes progress meanwhile. */
static void await(volatile int *counter, int wanted, struct fid_cq *cq)
{
    double begin = now();
    while (*counter < wanted) {
        struct fi_cq_tagged_entry entry;
        if (cq && fi_cq_read(cq, &entry, 1) == -FI_EAVAIL)
            must(FI_EIO, "fi_cq_read");
        if (shared->failed || now() - begin > SECONDS)
            must(FI_ETIMEDOUT, "waiting for the others");
        sched_yield();
    }
}

static long status_of(const char *name)
{
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            value = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return value;
}

static void run(void)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    hints->caps = FI_TAGGED;
    hints->mode = ~0ull;
    hints->fabric_attr->prov_name = strdup("weft");
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
    must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_enable(ep), "fi_enable");
    size_t length = NAME_BYTES;
    must(fi_getname(&ep->fid, shared->names[rank], &length), "fi_getname");
    __sync_fetch_and_add(&shared->named, 1);
    await(&shared->named, ranks, NULL);
    for (int other = 0; other < ranks; other++)
        must(fi_av_insert(av, shared->names[other], 1, NULL, 0, NULL) - 1, "fi_av_insert");
    long payload = rank, taken = 0;
    int expected = 0, came = 0;
    for (int other = 0; other < ranks; other++)
        expected += speaks(other, rank);
    must(fi_trecv(ep, &taken, sizeof taken, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
    for (int other = 0; other < ranks; other++)
        if (speaks(rank, other))
            must(fi_tinject(ep, &payload, sizeof payload, other, 7), "fi_tinject");
    double begin = now();
    while (came < expected) {
        struct fi_cq_tagged_entry entry;
        long count = fi_cq_read(cq, &entry, 1);
        if (count == 1) {
            came++;
            must(fi_trecv(ep, &taken, sizeof taken, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
        } else if (count != -FI_EAGAIN) {
            must(FI_EIO, "fi_cq_read");
        } else {
            sched_yield();
        }
        if (shared->failed || now() - begin > SECONDS)
            must(FI_ETIMEDOUT, "waiting for messages");
    }
    if (rank == 0)
        shared->addresses_mib = status_of("VmSize:") / 1024;
    __sync_fetch_and_add(&shared->resident_kib, status_of("RssAnon:") + status_of("VmPTE:"));
    __sync_fetch_and_add(&shared->done, 1);
    await(&shared->done, ranks, cq);
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3 || (ranks = atoi(argv[1])) < 2) {
        fprintf(stderr, "usage: ranks RANKS star|hops|all\n");
        return 2;
    }
    pattern = argv[2];
    size_t bytes = sizeof *shared + (size_t)ranks * NAME_BYTES;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double begin = now();
    for (rank = 0; rank < ranks; rank++) {
        pid_t child = fork();
        if (child == 0)
            run();
        if (child < 0) {
            perror("fork");
            shared->failed = 1;
            break;
        }
    }
    int failed = shared->failed, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("%d ranks, %s: %.1f s, rank 0 has %ld MiB of addresses, all %ld MiB of their own\n",
           ranks, pattern, now() - begin, shared->addresses_mib, shared->resident_kib / 1024);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * What else a process may do while its collectives that do not wait are under way. For two ranks.
 *
 *   beside CASE
 *
 * - asked: something has the provider loaded that the MPI does not use (the last line says so).
 * - thread: at MPI_THREAD_FUNNELED, another thread reads a queue of the provider's. It must not
 *   touch the MPI, nor go on with a call.
 * - fork: a child reads a queue of its own.
 * - freed: a request is freed before its call ends, and the program takes the memory.
 *
 * Ends with `all is well`, or says what is not. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 250, BLOCKS = 400, UNTOUCHED = 0x5a };

static int rank, words[WORDS], sent[2 * WORDS];
static struct fid_cq *queue;
static volatile int must_end;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* A function of the MPI's libfabric, or of the one that it will find. */
static void *find(const char *name) {
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) library = dlopen("libfabric.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) printf("no libfabric\n"), exit(0);
    return found;
}

/* Asks what there is, for which libfabric loads all providers. */
static struct fi_info *ask(void) {
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
                   struct fi_info **) = find("fi_getinfo");
    struct fi_info *infos = NULL;
    getinfo(FI_VERSION(1, 15), NULL, NULL, 0, NULL, &infos);
    return infos;
}

/* A queue of Weft's provider. */
static void open_queue(void) {
    int (*open_fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *) = find("fi_fabric");
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_info *info = ask();
    while (info && strcmp(info->fabric_attr->prov_name, "weft")) info = info->next;
    if (!info || open_fabric(info->fabric_attr, &fabric, NULL) ||
        fi_domain(fabric, info, &domain, NULL) || fi_cq_open(domain, &attr, &queue, NULL))
        fail("no queue");
}

static void read_queue(int times) {
    struct fi_cq_tagged_entry entry;
    for (int at = 0; at < times; at++)
        if (fi_cq_read(queue, &entry, 1) != -FI_EAGAIN) fail("something in an empty queue");
}

static void *read_until_the_end(void *nothing) {
    while (!must_end) read_queue(100), usleep(100);
    return nothing;
}

static void begin(MPI_Request *request) {
    for (int at = 0; at < 2 * WORDS; at++) sent[at] = at % WORDS;
    for (int at = 0; at < WORDS; at++) words[at] = -1;
    MPI_Iscatter(sent, WORDS, MPI_INT, words, WORDS, MPI_INT, 0, MPI_COMM_WORLD, request);
}

static void end(MPI_Request *request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int at = 0; at < WORDS; at++)
        if (words[at] != at) fail("a word is wrong");
}

/* The other rank begins a call; the root, a while later, while the other is not in the MPI. */
static void begin_all(MPI_Request *request) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) usleep(300000);
    begin(request);
    if (rank != 0) usleep(900000);
}

static void with_a_thread(void) {
    MPI_Request request;
    pthread_t thread;
    open_queue();
    pthread_create(&thread, NULL, read_until_the_end, NULL);
    begin_all(&request);
    if (rank != 0 && words[1] != -1) fail("another thread went on with a call");
    must_end = 1;
    pthread_join(thread, NULL);
    end(&request);
}

static void with_a_child(void) {
    MPI_Request request;
    int status = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) usleep(600000);
    else {
        begin(&request);
        pid_t child = fork();
        if (child == 0) {
            open_queue();
            read_queue(1000);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0) fail("no child");
        if (status != 0) fail("the child has died");
    }
    if (rank == 0) begin(&request);
    end(&request);
}

static void with_a_freed_request(void) {
    MPI_Request request;
    unsigned char *blocks[BLOCKS];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) usleep(300000);
    begin(&request);
    MPI_Request_free(&request);
    /* Whatever was freed is the program's now. */
    for (int at = 0; at < BLOCKS; at++) memset(blocks[at] = malloc(16), UNTOUCHED, 16);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    begin(&request);
    end(&request);
    for (int at = 0; at < BLOCKS; at++)
        for (int byte = 0; byte < 16; byte++)
            if (blocks[at][byte] != UNTOUCHED) fail("freed memory is written");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int level;
    if (!strcmp(what, "asked")) ask();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(what, "thread")) with_a_thread();
    if (!strcmp(what, "fork")) with_a_child();
    if (!strcmp(what, "freed")) with_a_freed_request();
    if (!strcmp(what, "asked")) {
        MPI_Request request;
        begin_all(&request);
        end(&request);
    }
    if (rank == 0) printf("all is well\n");
    MPI_Finalize();
    return 0;
}

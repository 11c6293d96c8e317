/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The last rank is killed while ranks wait in a collective that Weft carries out: the calls of all
 * others must end with an error, and must not come back as if all were well, nor hang.
 *
 *   killed CALL WAY FILE [at-once]
 *
 * CALL is a name below, in small letters and without MPI_. By WAY the last rank is killed
 *   inside   while it waits in the call for rank 0, as all others do; rank 0 calls after that
 *   before   while all others wait in the call for it
 * Whether a rank waits in the call it finds out by itself: a timer interrupts it, and looks whether
 * the program has called libweft-mpi.so. So the kill depends on no time.
 *
 * The ranks write to FILE, one line each, who waited, who was killed and whose calls failed; FILE
 * must be new, and be the same on all hosts. The launcher starts a parent of each rank, which
 * hides the death from it until the others' calls have failed: so it is not the launcher who ends
 * them. With `at-once` the launcher learns of it at once, and ends them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 16, EACH = 5000, SHORT = 1000, ONE = 1, FRAMES = 64 };

/* SHORT is served between hosts, too; EACH is read in place. */
static int send[RANKS * EACH], taken[RANKS * EACH], counts[RANKS], places[RANKS];

/* What the ranks know of each other, in a file that all map. */
struct known {
    _Atomic int waits[RANKS]; /* has been seen in the call, or in the barrier behind it */
    _Atomic int is_killed;
    _Atomic int failed; /* so many ranks' calls */
    _Atomic int survivors;
};

enum stage { OUTSIDE, IN_CALL, IN_BARRIER };

static struct known *known;
static volatile sig_atomic_t stage;
static int rank, ranks, late, dies_inside;
static const char *call_name, *file;

/* Where the code of the program and of the library lies. */
static struct range {
    uintptr_t begin, end;
} program, library;

/* The MPI's code; -1 for a name that is no call. */
static int call(const char *name, int root) {
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Datatype kind = MPI_INT, kinds[RANKS];
    MPI_Request request;
    int code = 0;
    for (int at = 0; at < ranks; at++) counts[at] = EACH, places[at] = at * EACH;
    if (!strcmp(name, "barrier")) return MPI_Barrier(all);
    if (!strcmp(name, "bcast")) return MPI_Bcast(send, EACH, kind, root, all);
    if (!strcmp(name, "reduce")) return MPI_Reduce(send, taken, EACH, kind, MPI_SUM, root, all);
    if (!strcmp(name, "allreduce")) return MPI_Allreduce(send, taken, SHORT, kind, MPI_SUM, all);
    if (!strcmp(name, "gather")) return MPI_Gather(send, EACH, kind, taken, EACH, kind, root, all);
    if (!strcmp(name, "gatherv"))
        return MPI_Gatherv(send, EACH, kind, taken, counts, places, kind, root, all);
    if (!strcmp(name, "allgather"))
        return MPI_Allgather(send, EACH, kind, taken, EACH, kind, all);
    if (!strcmp(name, "allgatherv"))
        return MPI_Allgatherv(send, EACH, kind, taken, counts, places, kind, all);
    if (!strcmp(name, "scatter"))
        return MPI_Scatter(send, EACH, kind, taken, EACH, kind, root, all);
    if (!strcmp(name, "scatterv"))
        return MPI_Scatterv(send, counts, places, kind, taken, EACH, kind, root, all);
    if (!strcmp(name, "alltoall"))
        return MPI_Alltoall(send, EACH, kind, taken, EACH, kind, all);
    if (!strcmp(name, "alltoallv"))
        return MPI_Alltoallv(send, counts, places, kind, taken, counts, places, kind, all);
    if (!strcmp(name, "alltoallw")) {
        for (int at = 0; at < ranks; at++) kinds[at] = kind, places[at] *= (int)sizeof *send;
        return MPI_Alltoallw(send, counts, places, kinds, taken, counts, places, kinds, all);
    }
    if (!strcmp(name, "reduce_scatter"))
        return MPI_Reduce_scatter(send, taken, counts, kind, MPI_SUM, all);
    if (!strcmp(name, "reduce_scatter_block"))
        return MPI_Reduce_scatter_block(send, taken, EACH, kind, MPI_SUM, all);
    if (!strcmp(name, "scan")) return MPI_Scan(send, taken, EACH, kind, MPI_SUM, all);
    if (!strcmp(name, "exscan")) return MPI_Exscan(send, taken, EACH, kind, MPI_SUM, all);
    if (!strcmp(name, "ibarrier")) code = MPI_Ibarrier(all, &request);
    else if (!strcmp(name, "iallreduce"))
        code = MPI_Iallreduce(send, taken, ONE, kind, MPI_SUM, all, &request);
    else if (!strcmp(name, "ireduce_scatter_block"))
        code = MPI_Ireduce_scatter_block(send, taken, ONE, kind, MPI_SUM, all, &request);
    else if (!strcmp(name, "iallgather"))
        code = MPI_Iallgather(send, ONE, kind, taken, ONE, kind, all, &request);
    else if (!strcmp(name, "ialltoall"))
        code = MPI_Ialltoall(send, ONE, kind, taken, ONE, kind, all, &request);
    else return -1;
    return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A line to the file, by a system call: the caller may be a handler of signals. */
static void tell(const char *form, ...) {
    char line[200];
    va_list arguments;
    va_start(arguments, form);
    int length = vsnprintf(line, sizeof line, form, arguments);
    va_end(arguments);
    int target = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (target < 0 || write(target, line, (size_t)length) != length) abort();
    close(target);
}

static int note_code(struct dl_phdr_info *object, size_t size, void *nothing) {
    (void)size, (void)nothing;
    int is_library = strstr(object->dlpi_name, "/libweft-mpi.so") != NULL;
    /* The first is the program. */
    if (program.end && !is_library) return 0;
    for (int at = 0; at < object->dlpi_phnum; at++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[at];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        *(is_library ? &library : &program) = (struct range){begin, begin + part->p_memsz};
    }
    return is_library;
}

static int is_in(struct range range, void *frame) {
    return (uintptr_t)frame >= range.begin && (uintptr_t)frame < range.end;
}

/* Whether the library carries the call out: the program has called it, and it has not gone on to
 * the MPI's function. A call that does not wait goes on wherever the MPI makes progress, here in
 * MPI_Wait. */
static int is_carried_out(void) {
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), begins = stage == IN_CALL && call_name[0] == 'i';
    for (int at = 0; at + 1 < count; at++)
        if (is_in(library, frames[at]) && (begins || is_in(program, frames[at + 1]))) return 1;
    return 0;
}

/* How many of the ranks that do not come late have been seen waiting. */
static int waiting(void) {
    int count = 0;
    for (int at = 0; at < ranks; at++) count += at != late && known->waits[at];
    return count;
}

static void die(const char *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    tell("rank %d is killed %s %s at %lld\n", rank, where, call_name,
         (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    known->is_killed = 1;
    kill(getpid(), SIGKILL);
}

/* The timer interrupts this rank. */
static void look(int signal) {
    (void)signal;
    if (stage == OUTSIDE || known->is_killed || !is_carried_out()) return;
    /* Who gives a short block need not wait for its root. */
    const char *where = stage == IN_CALL ? "inside" : "in the barrier behind";
    if (!known->waits[rank]) tell("rank %d waits %s %s\n", rank, where, call_name);
    known->waits[rank] = 1;
    if (dies_inside && rank == ranks - 1 && waiting() == ranks - 1) die(where);
}

static void start_timer(void) {
    struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 5000}, {0, 5000}};
    dl_iterate_phdr(note_code, NULL);
    if (!library.end) fprintf(stderr, "libweft-mpi.so is not loaded\n"), abort();
    is_carried_out(); /* The first time it loads a library. */
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void map_known(void) {
    char name[4096];
    snprintf(name, sizeof name, "%s.known", file);
    int target = open(name, O_RDWR | O_CREAT, 0666);
    if (target < 0 || ftruncate(target, sizeof *known) != 0) perror(name), abort();
    known = mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0);
    if (known == MAP_FAILED) perror(name), abort();
    close(target);
}

/* Waits for a rank, which is the child, and ends as it did. */
static int parent_of(pid_t child, int at_once) {
    int status;
    while (waitpid(child, &status, 0) != child) {}
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    while (!at_once && known->is_killed && known->failed < known->survivors)
        usleep(1000);
    kill(getpid(), WTERMSIG(status));
    return 1;
}

static void live(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    late = dies_inside ? 0 : ranks - 1;
    known->survivors = ranks - 1;
    for (int turn = 0; turn < 20; turn++)
        if (ranks > RANKS || call(call_name, late)) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    start_timer();
    while (rank == late && (waiting() < ranks - 1 || (dies_inside && !known->is_killed)))
        usleep(1000);
    if (rank == ranks - 1 && !dies_inside) die("before");
    stage = IN_CALL;
    int code = call(call_name, late), class = -1;
    /* A rank that needs nothing of the dead one may come back; nobody comes back from here. */
    if (!code) stage = IN_BARRIER, code = MPI_Barrier(MPI_COMM_WORLD);
    int was = stage;
    stage = OUTSIDE;
    if (!code || !known->is_killed) {
        tell("rank %d came back\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Error_class(code, &class);
    tell("rank %d %s %s: error %s\n", rank, was == IN_CALL ? "inside" : "in the barrier behind",
         call_name, class == MPI_ERR_OTHER ? "other" : "of another class");
    known->failed++;
    for (;;) pause();
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    call_name = argv[1], dies_inside = !strcmp(argv[2], "inside"), file = argv[3];
    map_known();
    pid_t child = fork();
    if (child) return parent_of(child, argc > 4);
    /* The launcher ends the parent. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    live();
}

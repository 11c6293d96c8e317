// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs the cases of a program; see standard.h.
#include "standard.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WHY_BYTES 240

int rank, size;
struct outside *outside;

static const char *program_name;
static const char *volatile current = "start";
static char why[WHY_BYTES];
static bool is_wrong, is_skipped;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
// Seconds for one case. Chosen: many times what the slowest takes on a busy machine.
static unsigned limit_s = 60;

static void note(bool *what, const char *format, va_list arguments) {
    pthread_mutex_lock(&noting);
    if (!is_wrong) {
        *what = true;
        vsnprintf(why, sizeof why, format, arguments);
    }
    pthread_mutex_unlock(&noting);
}

void wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note(&is_wrong, format, arguments);
    va_end(arguments);
}

const char *noted(void) { return is_wrong ? why : NULL; }

void cannot(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note(&is_skipped, format, arguments);
    va_end(arguments);
}

bool did_succeed(int code, const char *call) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return true;
    MPI_Error_string(code, text, &length);
    // The longest texts of MPICH name every level of the stack; one line is enough.
    text[strcspn(text, "\n")] = 0;
    wrong("%.90s failed: %.120s", call, text);
    return false;
}

int class_of(int code) {
    int class = MPI_ERR_UNKNOWN;
    MPI_Error_class(code, &class);
    return class;
}

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void compute(double seconds) {
    double end = now() + seconds;
    while (now() < end) continue;
}

bool await_outside(int index, int value, double seconds) {
    double end = now() + seconds;
    while (outside->flag[index] < value) {
        if (now() > end) return false;
        usleep(100); // the other rank may need this processor
    }
    return true;
}

void set_outside(int index, int value) { outside->flag[index] = value; }

void *filled(size_t length, int byte) {
    void *bytes = malloc(length ? length : 1);
    if (!bytes) abort();
    memset(bytes, byte, length);
    return bytes;
}

void *patterned(size_t length, unsigned seed) {
    unsigned char *bytes = filled(length, 0);
    for (size_t i = 0; i < length; i++) bytes[i] = pattern(seed, i);
    return bytes;
}

void expect_pattern(const void *bytes, size_t length, unsigned seed) {
    const unsigned char *found = bytes;
    for (size_t i = 0; i < length; i++) {
        if (found[i] != pattern(seed, i)) {
            wrong("byte %zu of %zu is %d instead of %d", i, length, found[i], pattern(seed, i));
            return;
        }
    }
}

void meet(MPI_Comm comm) { succeeds(MPI_Barrier(comm)); }

// write(2) alone is allowed in a signal handler.
static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(4);
}

static void out_of_time(int signal) {
    static char line[WHY_BYTES + 200];
    (void)signal;
    // Not snprintf, which is not allowed here.
    strcpy(line, "\nnot ok ");
    strcat(line, program_name);
    strcat(line, "/");
    strcat(line, (const char *)current);
    strcat(line, is_wrong ? ": did not end in time, after this: " : ": did not end in time");
    if (is_wrong) strcat(line, why);
    strcat(line, "\n");
    say(line);
    _exit(3);
}

// share: a page that the ranks of this host have in common. The file is gone once all have it.
static bool share(void) {
    char name[] = "/tmp/weft-standard-XXXXXX";
    int file = -1, good = 0, all = 0;
    if (rank == 0) {
        file = mkstemp(name);
        good = file >= 0 && ftruncate(file, sizeof *outside) == 0;
        if (file >= 0) close(file);
    }
    if (MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS) return false;
    FILE *opened = fopen(name, "r+");
    if (opened) {
        outside =
            mmap(NULL, sizeof *outside, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(opened), 0);
        good = outside != MAP_FAILED;
        fclose(opened);
    }
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
    return all;
}

// verdict: what all ranks say about the case; printed by rank 0. Answers whether it was wrong.
static bool verdict(const char *name, MPI_Comm comm) {
    char own[WHY_BYTES] = "", *all = filled((size_t)size * WHY_BYTES, 0);
    bool bad = false;
    if (is_wrong || is_skipped) snprintf(own, sizeof own, "%c%.230s", is_wrong ? '!' : '-', why);
    MPI_Gather(own, WHY_BYTES, MPI_CHAR, all, WHY_BYTES, MPI_CHAR, 0, comm);
    const char *first = NULL;
    int whose = 0;
    for (int i = 0; i < size; i++) {
        const char *text = all + (size_t)i * WHY_BYTES;
        if (*text == '!' && !bad) first = text, whose = i, bad = true;
        if (*text == '-' && !first) first = text, whose = i;
    }
    if (rank == 0) {
        if (!first)
            printf("ok %s/%s\n", program_name, name);
        else if (bad)
            printf("not ok %s/%s: rank %d: %s\n", program_name, name, whose, first + 1);
        else
            printf("skip %s/%s: %s\n", program_name, name, first + 1);
        fflush(stdout);
    }
    free(all);
    return bad;
}

static bool is_named(int argc, char **argv, const char *option, const char *name) {
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) != 0) continue;
        if (strcmp(argv[i + 1], name) == 0 || strcmp(argv[i + 1], "*") == 0) return true;
    }
    return false;
}

static bool is_left_out(int argc, char **argv, const char *name) {
    if (is_named(argc, argv, "-x", name)) {
        if (rank == 0) printf("left out %s/%s\n", program_name, name);
        return true;
    }
    bool alone = false;
    for (int i = 1; i < argc; i++) alone |= strcmp(argv[i], "-c") == 0;
    return alone && !is_named(argc, argv, "-c", name);
}

static bool run_test(const struct test *test, MPI_Comm verdicts) {
    current = test->name;
    is_wrong = is_skipped = false;
    if (rank == 0) memset(outside, 0, sizeof *outside);
    MPI_Barrier(verdicts);
    alarm(limit_s);
    if (size < test->ranks)
        cannot("it needs %d ranks", test->ranks);
    else
        test->run();
    bool bad = verdict(test->name, verdicts);
    alarm(0);
    return bad;
}

int run_tests(int argc, char **argv, const char *program, int level, const struct test *tests) {
    int provided, bad = 0;
    MPI_Comm verdicts;
    program_name = program;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "-t") == 0) limit_s = (unsigned)atoi(argv[i + 1]);
    signal(SIGALRM, out_of_time);
    alarm(limit_s);
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < level) {
        if (rank == 0)
            printf("skip %s: this MPI offers thread level %d, not %d\n", program, provided, level);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &verdicts);
    MPI_Comm_set_errhandler(verdicts, MPI_ERRORS_ARE_FATAL);
    if (!share()) {
        if (rank == 0) printf("not ok %s: the ranks cannot share a file in /tmp\n", program);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (const struct test *test = tests; test->name; test++) {
        if (is_left_out(argc, argv, test->name)) continue;
        if (run_test(test, verdicts)) bad = 1;
    }
    current = "end";
    alarm(limit_s);
    MPI_Comm_free(&verdicts);
    MPI_Finalize();
    if (rank == 0) printf("end %s\n", program);
    return rank == 0 ? bad : 0;
}

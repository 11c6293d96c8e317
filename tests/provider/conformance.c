// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs the provider through libfabric itself and checks what applications may rely on. Each case
// runs in a process of its own, so that a crash or a hang is one failure. Usage: conformance [part
// of a case's name]
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int reason_pipe = -1;
static pid_t case_process;

static void say_and_leave(const char *text, int status)
{
    ssize_t ignored = write(reason_pipe, text, strlen(text));
    (void)ignored;
    // A second process of a case ends the whole case, with the same outcome.
    if (getpid() != case_process)
        kill(case_process, status == 77 ? SIGUSR1 : SIGTERM);
    _exit(status);
}

_Noreturn void fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    const char *base = strrchr(file, '/');
    int used = snprintf(text, sizeof(text), "%s:%d: ", base ? base + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
    va_end(arguments);
    say_and_leave(text, 1);
    _exit(1);
}

_Noreturn void skip(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    say_and_leave(text, 77);
    _exit(77);
}

// Runs a case; answers 0 passed, 1 failed, 77 skipped, and stores the reason.
static int run_case(const struct test_case *test, char *reason, size_t room)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return snprintf(reason, room, "no pipe"), 1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        case_process = getpid();
        reason_pipe = ends[1];
        alarm(CASE_LIMIT_S);
        test->run();
        _exit(0);
    }
    close(ends[1]);
    int status = 0;
    waitpid(child, &status, 0);
    kill(-child, SIGKILL); // whatever the case left behind
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ssize_t length = read(ends[0], reason, room - 1);
    close(ends[0]);
    reason[length > 0 ? length : 0] = 0;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) == SIGUSR1)
        return 77;
    if (!reason[0])
        snprintf(reason, room,
                 WTERMSIG(status) == SIGALRM ? "still running after %d s" : "ended by signal %d",
                 WTERMSIG(status) == SIGALRM ? CASE_LIMIT_S : WTERMSIG(status));
    return 1;
}

int main(int argc, char **argv)
{
    const struct test_case *const all[] = {
        info_cases,       object_cases,  vector_cases,  transfer_cases, matching_cases,
        completion_cases, waiting_cases, polling_cases, wait_set_cases, progress_cases,
        remote_cases,     atomic_cases,  peer_cases,    process_cases,  fork_cases};
    int counts[3] = {0};
    for (size_t group = 0; group < sizeof(all) / sizeof(all[0]); group++) {
        for (const struct test_case *test = all[group]; test->name; test++) {
            if (argc > 1 && !strstr(test->name, argv[1]))
                continue;
            char reason[600];
            int result = run_case(test, reason, sizeof(reason));
            if (result == 0) {
                printf("ok %s\n", test->name);
                counts[0]++;
            } else {
                printf("%s %s: %s\n", result == 77 ? "skip" : "not ok", test->name, reason);
                counts[result == 77 ? 2 : 1]++;
            }
            fflush(stdout);
        }
    }
    printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
    return counts[1] != 0;
}

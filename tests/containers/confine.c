// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs a command with less than a machine usually gives, as container engines and batch systems do;
// built and used by run.sh.
//
//   confine [--deny SYSCALL]... [--limit RESOURCE=VALUE]... [--no-ptrace] COMMAND [ARGUMENT]...
//
//   --deny       the call fails with EPERM from now on, by a seccomp filter: process_vm_readv,
//                memfd_create, membarrier, sched_setaffinity, sendmsg or setsockopt
//   --limit      as (bytes of address space), fsize (bytes of a file) or nofile (descriptors)
//   --no-ptrace  without the capability to look into other processes, which root has
//
// Built with -DPRELOAD -shared it is a library whose processes nobody may look into
// (PR_SET_DUMPABLE): exec would undo that, so it is done in each program. Sources: seccomp(2),
// prctl(2), capabilities(7).
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef PRELOAD
__attribute__((constructor)) static void close_to_others(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}
#else

static int fail(const char *what)
{
    fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
    return 2;
}

static long number_of(const char *name)
{
    if (!strcmp(name, "process_vm_readv")) return SYS_process_vm_readv;
    if (!strcmp(name, "memfd_create")) return SYS_memfd_create;
    if (!strcmp(name, "membarrier")) return SYS_membarrier;
    if (!strcmp(name, "sched_setaffinity")) return SYS_sched_setaffinity;
    if (!strcmp(name, "sendmsg")) return SYS_sendmsg;
    if (!strcmp(name, "setsockopt")) return SYS_setsockopt;
    if (!strcmp(name, "unshare")) return SYS_unshare;
    return -1;
}

static int deny(long number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int limit(const char *text)
{
    const char *value = strchr(text, '=');
    if (!value) return errno = EINVAL, -1;
    int resource = !strncmp(text, "as=", 3) ? RLIMIT_AS
        : !strncmp(text, "fsize=", 6)       ? RLIMIT_FSIZE
        : !strncmp(text, "nofile=", 7)      ? RLIMIT_NOFILE
                                            : -1;
    struct rlimit both = { strtoull(value + 1, NULL, 10), strtoull(value + 1, NULL, 10) };
    if (resource < 0) return errno = EINVAL, -1;
    return setrlimit(resource, &both);
}

int main(int count, char **words)
{
    int at = 1;
    for (; at < count && !strncmp(words[at], "--", 2); at++) {
        const char *value = at + 1 < count ? words[at + 1] : "";
        if (!strcmp(words[at], "--deny")) {
            if (deny(number_of(value))) return fail(value);
            at++;
        } else if (!strcmp(words[at], "--limit")) {
            if (limit(value)) return fail(value);
            at++;
        } else if (!strcmp(words[at], "--no-ptrace")) {
            if (prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0)) return fail(words[at]);
        } else {
            return errno = EINVAL, fail(words[at]);
        }
    }
    if (at == count) return errno = EINVAL, fail("no command");
    execvp(words[at], words + at);
    return fail(words[at]);
}
#endif

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# MPI programs in environments that give less than a machine usually does, as containers and batch
# systems: /dev/shm of 64 MB, system calls refused, rights dropped, namespaces for each rank, no
# /proc, low limits. In each, every byte of every message is checked, only the way messages take may
# change, and `weft doctor` must explain it. Usage: tests/containers/run.sh [NAME]...
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Needs root for most,
# and gcc. About a minute and a half.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD wanted=("$@")
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
make_bare
confine=$work/confine
gcc -Wall -O2 -o "$confine" tests/containers/confine.c &&
    gcc -Wall -O2 -DPRELOAD -shared -fPIC -o "$bare/closed.so" tests/containers/confine.c ||
    { echo 'not ok - tests/containers/confine.c does not build';
        echo '0 passed, 1 failed, 0 skipped'; exit 1; }

# A container's environment: what surrounds the whole job, and what surrounds each rank. Both are
# functions that run their words.
plain() { "$@"; }

mpis() {
    [ -x /usr/bin/mpirun.openmpi ] && echo debian-openmpi
    [ -x "$ROOT/.env/mpi/mpich/bin/mpiexec" ] && echo mpich
}

# What is to be mapped is shared at once: benchmarks of a few messages share nothing by themselves.
heap=()

# job AROUND RANK MPI BENCHMARK WORDS...: two ranks; RANK is a file of words that start each rank,
# AROUND a function around the job.
job() {
    local around=$1 rank=$2 mpi=$3
    shift 3
    local words=()
    read -ra words <<<"$rank"
    "$around" "$WEFT" run -n 2 --mpi "$mpi" "${heap[@]}" --timeout 100 --require-weft -- \
        "${words[@]}" "$WEFT" bench "$@" >"$work/out" 2>&1 || return
    grep -q 'Pass$' "$work/out" && ! grep -q 'Fail$' "$work/out"
}

# environment NAME AROUND RANK-WORDS PATTERN-OF-WAYS: the benchmarks under each MPI. The pattern
# must be found in what weft run says of the ways that messages took, or, after !, must not.
environment() {
    local name=$1 around=$2 rank=$3 ways=$4 mpi bench status
    is_wanted "$name" || return 0
    if ! "$around" true 2>"$work/out"; then
        skip "$name" "$(tail -n 1 "$work/out")"
        return 0
    fi
    for mpi in $(mpis); do
        for bench in 'latency -m 1:1048576 -i 5 -x 1' 'bw -m 1:1048576 -i 3 -x 1' \
            'alltoall -m 4:262144 -i 3 -x 1'; do
            # shellcheck disable=SC2086 # words of a benchmark
            job "$around" "$rank" "$mpi" ${bench%% *} -c ${bench#* }
            status=$?
            case $ways in
            !*) grep 'through Weft (' "$work/out" | grep -q "${ways#!}" && status=1 ;;
            ?*) [[ $bench == alltoall* ]] || grep 'through Weft (' "$work/out" | grep -q "$ways" ||
                status=1 ;;
            esac
            report $status "$name: ${bench%% *}, $mpi"
        done
    done
}

# doctor NAME AROUND RANK-WORDS CHECK STATUS PATTERN: the line of that check has that status, and
# value, reason or fix match.
doctor() {
    local name=$1 around=$2 rank=$3 check=$4 status=$5 pattern=$6 words=()
    is_wanted "$name" || return 0
    "$around" true 2>/dev/null || return 0
    read -ra words <<<"$rank"
    "$around" "${words[@]}" "$WEFT" doctor --quick --explain >"$work/out" 2>&1
    grep -A 3 -E "^(ok|not tried|warn|fail) +$check " "$work/out" >"$work/lines"
    grep -qE "^$status +$check" "$work/lines" && grep -qE "$pattern" "$work/lines"
    local outcome=$?
    [ $outcome = 0 ] || cp "$work/lines" "$work/out"
    report $outcome "$name: the doctor says of $check: $status, $pattern"
}

small_shm() { unshare -m sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"' - "$@"; }
heap=(--heap shared)
environment small-shm small_shm '' mapped
heap=()
doctor small-shm small_shm '' /dev/shm warn 'shm-size'

no_single_copy() { "$confine" --deny process_vm_readv "$@"; }
environment no-single-copy no_single_copy '' '!single copy'
doctor no-single-copy no_single_copy '' 'single copy' warn \
    'seccomp profile that allows process_vm_readv'

no_rights() { "$confine" --no-ptrace env LD_PRELOAD="$bare/closed.so" "$@"; }
environment no-rights no_rights '' '!single copy'
doctor no-rights no_rights '' 'single copy' warn 'Operation not permitted'

environment user-namespaces plain 'unshare -U -r' '!single copy'
doctor user-namespaces plain 'unshare -U -r' 'single copy' '(ok|warn)' 'user namespace'

environment pid-namespaces plain 'unshare -p -f' '!single copy'
doctor pid-namespaces plain 'unshare -p -f' 'shared heap' warn 'different containers'

printf '#!/bin/sh\nmkdir -p %s/empty && mount --bind %s/empty /proc && exec "$@"\n' \
    "$bare" "$bare" >"$bare/no-proc" && chmod +x "$bare/no-proc"
environment no-proc plain "unshare -m $bare/no-proc" ''

no_memfd() { "$confine" --deny memfd_create "$@"; }
no_memfd_folder() { no_memfd env FI_WEFT_REGION_DIR=/dev/shm "$@"; }
environment no-memfd no_memfd '' ''
environment no-memfd-folder no_memfd_folder '' ''
doctor no-memfd no_memfd '' 'anonymous files' warn 'FI_WEFT_REGION_DIR'
doctor no-memfd no_memfd '' 'shared heap' warn 'stays private'

no_barrier() { "$confine" --deny membarrier "$@"; }
environment no-barrier no_barrier '' ''
doctor no-barrier no_barrier '' 'sleeping' warn 'membarrier'

few_files() { "$confine" --limit nofile=64 "$@"; }
environment few-files few_files '' ''
doctor few-files few_files '' 'open files' warn 'ulimit -n'

little_address_space() { "$confine" --limit as=8589934592 "$@"; }
environment little-address-space little_address_space '' ''
less_than_a_region() { "$confine" --limit as=1610612736 "$@"; }
doctor less-than-a-region less_than_a_region '' 'address space' fail 'ulimit -v'

little_memory() {
    local group=/sys/fs/cgroup/memory/weft-test-$$ status
    [ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/weft-test-$$
    mkdir "$group" && echo $((200 << 20)) >"$group/memory.limit_in_bytes" ||
        { echo 'the memory control group cannot be written' >&2; return 1; }
    (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@")
    status=$?
    # What the job's launcher left to end by itself may still do so.
    wait_for 60 rmdir "$group" 2>/dev/null
    return $status
}
environment little-memory little_memory '' ''
doctor little-memory little_memory '' 'memory' warn 'control group'

summary

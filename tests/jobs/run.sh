#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft submit`, `jobs`, `logs`, `cancel` and `wait` on a real Slurm of two nodes, which the suite
# starts and ends: each MPI by each way that the choice offers or refuses, an array, dependencies,
# a job that is cancelled in each phase (cancel.sh), where its key is (key.sh), a full /dev/shm
# (memory.sh), a rank that is killed, another attempt, buckets (mounts.sh), faults of Slurm
# (faults.sh), jobs in a row (row.sh), and what is left behind. Before it: Slurms that are too old.
# Usage: tests/jobs/run.sh [MPI...] [commands] [cancel] [key] [memory] [examples] [mounts] [faults]
#        [row] [many]
# (openmpi, mpich, intel, debian-openmpi; many: a hundred jobs in a row, not five)
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Four minutes; ended
# after LIMIT_S seconds, whatever Slurm does. Each command of Slurm and of Weft has a limit too.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# Its own processes, /dev/shm and System V memory, so that all that jobs leave there is seen, and
# what others do is not; nothing of the suite can outlive it.
if [ "$(id -u)" = 0 ] && [ -z "${OWN_SPACE:-}" ] &&
    unshare -mipf --mount-proc true 2>/dev/null; then
    limit_s=${LIMIT_S:-1200}
    export OWN_SPACE
    OWN_SPACE=$(mktemp -d)
    # shellcheck disable=SC2016 # the inner shell expands
    TMPDIR=$OWN_SPACE timeout -s KILL "$limit_s" unshare -mipf --kill-child --mount-proc sh -c \
        'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$0" "$@"' "$0" "$@"
    status=$?
    [ $status != 137 ] || echo "not ok - the suite was ended after $limit_s s"
    rm -rf --one-file-system "$OWN_SPACE"
    exit $status
fi
# shellcheck source=tests/reports.sh
. tests/reports.sh
show_seconds=yes
need_weft
wanted=("$@")
# The commands, none of which may take longer than that.
weft() { timeout -k 5 150 "$WEFT" "$@"; }
scontrol() { timeout -k 5 60 scontrol "$@"; }
sinfo() { timeout -k 5 60 sinfo "$@"; }
srun() { timeout -k 5 90 srun "$@"; }
begin_outside_jobs SBATCH_
# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh
# shellcheck source=tests/exec/slurm.sh
. tests/exec/slurm.sh

name='without Slurm a job is refused with what to do instead, and a script can be printed'
if build mpich >"$work/out" 2>&1; then
    program=$work/exchange-mpich
    nowhere() { env PATH="$work" "$WEFT" "$@"; }
    ends 1 'there is no sbatch on PATH' nowhere submit -- "$program" &&
        ends 0 'run --slurm' nowhere submit --dry-run -n 2 -- "$program" &&
        ends 1 'there is no scontrol on PATH' nowhere wait 1
    report $? "$name"
    # shellcheck source=tests/jobs/old.sh
    . "$ROOT/tests/jobs/old.sh"
else
    skip "$name" 'MPICH is not installed; scripts/setup.sh test installs it'
fi

if ! slurm_is_here; then
    skip_all 'jobs on a Slurm' 'slurmctld, slurmd and srun are not installed (tests/exec/slurm.sh)'
elif [ "$(id -u)" != 0 ]; then
    skip_all 'jobs on a Slurm' 'slurmd of Debian 12 takes root'
fi
slurm=$(dirname "$(slurm_program srun)")
# A job can be queued again when its credential has ended: after 15 seconds, not 2 minutes. Slurm
# looks for such jobs every 2 seconds here, not every 60. The least are 5 seconds, but ranks that a
# busy machine starts later than that are refused.
# A job that is cancelled has a few seconds, not 30, until KILL. Before a job and after it a node
# waits while a file is there.
# Jobs of one processor each share a node; sbatch's jobs begin at once, and not after 3 seconds.
for when in prolog epilog; do
    printf '%s\n' '#!/bin/sh' "while [ -e '$work/hold-$when' ]; do sleep 0.1; done" >"$work/$when"
    chmod 755 "$work/$when"
done
SLURM_SETTINGS="AuthInfo=cred_expire=15
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=16
Prolog=\"$work/prolog\"
Epilog=\"$work/epilog\""
trap 'slurm_stop; rm -rf "$work"' EXIT
if ! slurm_start "$work/slurm" >"$work/out" 2>&1; then
    cat "$work"/slurm/*.{log,out} >>"$work/out" 2>/dev/null
    report 1 'a Slurm of two nodes starts'
    summary
    exit
fi
export PATH=$slurm:$PATH WEFT_JOBS_DIR=$work/jobs
mkdir "$work/here"
cd "$work/here" || exit

# submit OPTIONS...: sets `id`; what weft submit said is in $work/said, and shown if it failed.
submit() { id=$(weft submit -t 5 "$@" 2>"$work/said") || { cp "$work/said" "$work/out"; false; }; }

# state_of JOB: its state, in weft's words.
state_of() { weft jobs --json "$1" | sed -n 's/.*"state": "\(.*\)",/\1/p'; }

# wait_state JOB STATE
wait_state() { [ "$(state_of "$1")" = "$2" ]; }
# says_its_end JOB: its record alone says that it was cancelled: under a number that Slurm does not
# know. Slurm may end the ranks before it sends TERM to the script, or kill the script.
says_its_end() {
    local other=4242$1 status
    cp -r "$WEFT_JOBS_DIR/weft/$1" "$WEFT_JOBS_DIR/weft/$other" &&
        ends 143 'CANCELLED' weft wait "$other"
    status=$?
    rm -r "$WEFT_JOBS_DIR/weft/$other"
    return $status
}

script() { # script NAME LINE...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$work/$1"
    chmod 755 "$work/$1"
}

carried() {
    grep -q "^$1 ranks" "$work/out" &&
        grep -Eq '^weft: rank 0, Weft [0-9.]*: sent [1-9][0-9]* messages .* by shm' "$work/out"
}

# found: what jobs could leave on this machine. Outside a process namespace of its own the suite
# cannot tell its processes from those of others.
left_of_jobs='processes, namespaces, mounts, files, System V memory'
found() {
    if [ -n "${OWN_SPACE:-}" ]; then
        ps -eo args | grep -Ev '^(ps|grep|comm|sort|sed) |<defunct>$|tests/jobs/run.sh|^sort$' |
            sed 's/ -c / /' | sort # a controller that was started again
        readlink /proc/[0-9]*/ns/mnt /proc/[0-9]*/ns/user 2>/dev/null | sort -u
        ipcs -mqs | grep -c ^0x
    fi
    # Other suites make and remove network namespaces.
    cut -d' ' -f5- /proc/self/mountinfo | grep -v '^/run/netns/'
    (cd "$work/slurm" && ls -A -I 'cred_state*' /dev/shm "${TMPDIR:-$work}" n1 n2 tmp-n1 tmp-n2)
}
# left: what was not there before the first job.
left() { comm -13 <(sort <<<"$before") <(found | sort); }
nothing_is_left() { [ -z "$(left)" ]; }
# in_the_end_nothing_is_left: and what is left stands in $work/out.
in_the_end_nothing_is_left() {
    wait_for 100 nothing_is_left >"$work/out" && return
    left >>"$work/out"
    return 1
}

# The matrix: a job of 2 nodes with 2 ranks each by each way, or the refusal.
runs() { # runs MPI WAY
    FI_WEFT_REPORT=1 submit -N 2 --ppn 2 ${2:+--pmi "$2"} -- "$work/exchange-$1" &&
        weft wait "$id" >"$work/out" 2>&1 && weft logs "$id" >"$work/out" 2>&1 && carried 4
    local status=$?
    cat "$work/said" >>"$work/out"
    report $status "$1${2:+ by $2}: 2 nodes with 2 ranks each, submitted, waited for, read"
}

refused() { # refused MPI WAY REMEDY
    ends 1 "$3" weft submit -N 2 --ppn 2 --pmi "$2" -- "$work/exchange-$1" &&
        [ "$(weft jobs | wc -l)" = "$listed" ]
    report $? "$1 by $2 is refused before a job is there"
}

# built: those of the parts that go through several, which are all where none is named.
before=$(found) built=() named=$(printf '%s\n' "${wanted[@]}" | grep -E 'openmpi|mpich|intel')
for mpi in openmpi intel debian-openmpi mpich; do
    if ! [ -x "$(launcher_of "$mpi")" ] || ! (cd "$ROOT" && build "$mpi") >"$work/out" 2>&1; then
        skip "$mpi" 'it is not installed; scripts/setup.sh test installs it'
        continue
    fi
    any=$mpi
    [ -n "$named" ] && ! is_wanted "$mpi" || built+=("$mpi")
    is_wanted "$mpi" || continue
    runs "$mpi" ''
    runs "$mpi" mpirun
    listed=$(weft jobs | wc -l)
    case $mpi in
    openmpi | debian-openmpi) refused "$mpi" pmi2 '--pmi pmix' ;;
    mpich) refused "$mpi" pmix '--pmi pmi2' ;;
    intel) runs "$mpi" pmix ;;
    esac
done
[ -n "${any:-}" ] || skip_all 'jobs on a Slurm' 'no MPI is installed'
# Of the cases below, those whose ranks talk use this program. The others are no MPI programs, and
# need --mpi.
code=$work/exchange-$any
plain=(--mpi "$any")
script well 'exit 0'
script slow 'echo "begun $$"' 'exec sleep 300'

for part in commands cancel key memory examples mounts faults row; do
    is_wanted "$part" || { [ "$part" = row ] && is_wanted many; } || continue
    # shellcheck source=/dev/null
    . "$ROOT/tests/jobs/$part.sh"
done

in_the_end_nothing_is_left
report $? "nothing is left of all jobs: $left_of_jobs"

cd "$ROOT" || exit
slurm_stop
summary

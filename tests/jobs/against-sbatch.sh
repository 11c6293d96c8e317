#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Measures a job of `weft submit` against the same job by hand, in turns, on a Slurm of two nodes:
# from the call to the last rank's return from MPI_Init, latency of 8 bytes, rate of 1 MiB messages.
#   weft    weft submit -N 2 -n 2 -- PROGRAM
#   hand    sbatch; its script has the key and `srun weft exec -- PROGRAM`
#   plain   sbatch; its script has `srun PROGRAM`, so the MPI's own transport carries the messages
# The first round is no part of the figures: programs are read from the disk then.
# `make test` does not run it.
# Usage: tests/jobs/against-sbatch.sh [ROUNDS] [MPI] [KIND...] (12 openmpi weft hand plain)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
rounds=${1:-12} mpi=${2:-openmpi} kinds=("${@:3}")
[ ${#kinds[@]} != 0 ] || kinds=(weft hand plain)
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh
# shellcheck source=tests/exec/slurm.sh
. tests/exec/slurm.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# By itself Slurm looks for jobs that could begin every 2 seconds at most.
SLURM_SETTINGS='SchedulerParameters=batch_sched_delay=0,sched_min_interval=0'
trap 'slurm_stop; rm -rf "$work"' EXIT
build "$mpi" tests/jobs/timed.c && slurm_start "$work/slurm" || exit
slurm=$(dirname "$(slurm_program srun)")
export PATH=$slurm:$PATH WEFT_JOBS_DIR=$work/jobs
cd "$work" || exit
program=$work/timed-$mpi pmi=pmix
[[ $mpi == *openmpi ]] || pmi=pmi2
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o hand\n%s\nsrun --mpi=%s %s\n' \
    "eval \"\$($WEFT env --only-key)\"" $pmi "$WEFT exec -- $program" >hand.sh
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o plain\nsrun --mpi=%s %s\n' $pmi "$program" >plain.sh
measured() { # measured KIND: one line, once the job has run and the nodes are free again
    wait_for 100 grep -qs ^measured "$1" && wait_for 100 slurm_is_idle &&
        read -r _ in_init trip_us rate <<<"$(grep ^measured "$1")" &&
        awk -v kind="$1" -v begin="$begin" -v in_init="$in_init" -v rest="$trip_us $rate" \
            'BEGIN { printf "%s %.3f %s\n", kind, in_init - begin, rest }'
}
for ((i = 0; i < rounds; i++)); do
    first=$((i % ${#kinds[@]}))
    for kind in "${kinds[@]:first}" "${kinds[@]:0:first}"; do
        rm -f $kind
        begin=$(date +%s.%N)
        if [ $kind = weft ]; then
            "$WEFT" submit -N 2 -n 2 -o weft -- "$program" >said 2>&1
        else
            sbatch $kind.sh >said 2>&1
        fi
        measured $kind || { cat said $kind >&2; exit 1; }
    done
done | tee figures
python3 "$ROOT/tests/jobs/intervals.py" figures

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Measures a job of `weft submit` against the same job by hand, in turns, on a Slurm of two nodes:
# from the call to the last rank's return from MPI_Init, latency of 8 bytes, rate of 1 MiB messages.
#   weft    weft submit -N 2 -n 2 -- PROGRAM
#   hand    sbatch; its script has the key and `srun weft exec -- PROGRAM`
#   plain   sbatch; its script has `srun PROGRAM`, so the MPI's own transport carries the messages
# `make test` does not run it. Usage: tests/jobs/against-sbatch.sh [ROUNDS] [MPI] (12 openmpi)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
rounds=${1:-12} mpi=${2:-openmpi}
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
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o hand\neval "$(%s env --only-key)"\nsrun --mpi=%s %s\n' \
    "$WEFT" $pmi "$WEFT exec -- $program" >hand.sh
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o plain\nsrun --mpi=%s %s\n' $pmi "$program" >plain.sh
measured() { # measured LEG: one line, once the job has run and the nodes are free again
    wait_for 30 grep -qs ^measured "$1" && wait_for 30 slurm_is_idle &&
        read -r _ in_init trip_us rate <<<"$(grep ^measured "$1")" &&
        printf '%s %.3f %s %s\n' "$1" "$(awk "BEGIN { print $in_init - $begin }")" "$trip_us" "$rate"
}
for ((i = 0; i < rounds; i++)); do
    case $((i % 3)) in
    0) legs='weft hand plain' ;;
    1) legs='hand plain weft' ;;
    2) legs='plain weft hand' ;;
    esac
    for leg in $legs; do
        rm -f $leg
        begin=$(date +%s.%N)
        if [ $leg = weft ]; then
            "$WEFT" submit -N 2 -n 2 -o weft -- "$program" >said 2>&1
        else
            sbatch $leg.sh >said 2>&1
        fi
        measured $leg || cat said $leg
    done
done | tee figures
python3 - figures <<'PYTHON'
import statistics
import sys

runs = {}
for line in open(sys.argv[1]):
    leg, *values = line.split()
    runs.setdefault(leg, []).append([float(value) for value in values])
for column, name in enumerate(("submit to MPI_Init, s", "8 B, us", "1 MiB, MB/s")):
    for leg, values in runs.items():
        values = sorted(row[column] for row in values)
        print(f"{name}, {leg}: median {statistics.median(values):.4g}, mean"
            f" {statistics.mean(values):.4g}, {values[0]:.4g} to {values[-1]:.4g}")
    for leg in ("hand", "plain"):
        pairs = zip(runs["weft"], runs[leg])
        ratios = sorted(ours[column] / theirs[column] for ours, theirs in pairs)
        print(f"{name}, weft over {leg}, in pairs: median {statistics.median(ratios):.3f},"
            f" {ratios[0]:.3f} to {ratios[-1]:.3f}")
PYTHON

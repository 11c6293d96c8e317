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
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o hand\n%s\nsrun --mpi=%s %s\n' \
    "eval \"\$($WEFT env --only-key)\"" $pmi "$WEFT exec -- $program" >hand.sh
printf '#!/bin/sh\n#SBATCH -N 2 -n 2 -o plain\nsrun --mpi=%s %s\n' $pmi "$program" >plain.sh
measured() { # measured KIND: one line, once the job has run and the nodes are free again
    wait_for 30 grep -qs ^measured "$1" && wait_for 30 slurm_is_idle &&
        read -r _ in_init trip_us rate <<<"$(grep ^measured "$1")" &&
        awk -v kind="$1" -v begin="$begin" -v in_init="$in_init" -v rest="$trip_us $rate" \
            'BEGIN { printf "%s %.3f %s\n", kind, in_init - begin, rest }'
}
for ((i = 0; i < rounds; i++)); do
    case $((i % 3)) in
    0) kinds='weft hand plain' ;;
    1) kinds='hand plain weft' ;;
    2) kinds='plain weft hand' ;;
    esac
    for kind in $kinds; do
        rm -f $kind
        begin=$(date +%s.%N)
        if [ $kind = weft ]; then
            "$WEFT" submit -N 2 -n 2 -o weft -- "$program" >said 2>&1
        else
            sbatch $kind.sh >said 2>&1
        fi
        measured $kind || cat said $kind
    done
done | tee figures
python3 - figures <<'PYTHON'
import statistics
import sys

runs = {}
for line in open(sys.argv[1]):
    kind, *values = line.split()
    runs.setdefault(kind, []).append([float(value) for value in values])
for column, name in enumerate(("submit to MPI_Init, s", "8 B, us", "1 MiB, MB/s")):
    for kind, values in runs.items():
        values = sorted(row[column] for row in values)
        print(f"{name}, {kind}: median {statistics.median(values):.4g}, mean"
            f" {statistics.mean(values):.4g}, {values[0]:.4g} to {values[-1]:.4g}")
    for kind in ("hand", "plain"):
        pairs = zip(runs["weft"], runs[kind])
        ratios = sorted(ours[column] / theirs[column] for ours, theirs in pairs)
        print(f"{name}, weft over {kind}, in pairs: median {statistics.median(ratios):.3f},"
            f" {ratios[0]:.3f} to {ratios[-1]:.3f}")
PYTHON

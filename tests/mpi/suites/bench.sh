# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Weft's own benchmarks with every received byte checked (-c): point to point with 2 ranks, collectives with 2 and with 8, on four MPIs.
# The sizes cross each protocol's border: inline, eager, rendezvous.

bench_case() {
    local mpi=$1 ranks=$2 benchmark=$3
    shift 3
    run_case "bench $benchmark, $ranks ranks, $mpi" 60 bench_run "$mpi" "$ranks" "$benchmark" "$@"
}

# bench_run: the exit code says whether a check failed; that checks were made at all is seen in the last row.
bench_run() {
    local mpi=$1 ranks=$2 benchmark=$3 out=$WORK/bench.out
    shift 3
    weft_run "$mpi" "$ranks" 60 "$WEFT" bench "$benchmark" "$@" >"$out"
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    [ "$benchmark" = barrier ] || tail -n 1 "$out" | grep -q 'Pass$' || { echo 'no row says that its data were checked'; return 1; }
}

bench_suite() {
    local mpi benchmark ranks size=4194304 iterations=20 collective=262144
    if [ "$FULL" = yes ]; then size=16777216 iterations=200 collective=1048576; fi
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "bench on $mpi" || continue
        for benchmark in latency bw bibw; do
            bench_case "$mpi" 2 "$benchmark" -c -m "1:$size" -i "$iterations" -x 2
        done
        for ranks in 2 8; do
            bench_case "$mpi" "$ranks" mbw_mr -c -m 1:65536 -i "$iterations" -x 2
            bench_case "$mpi" "$ranks" multi_lat -c -m 1:65536 -i "$iterations" -x 2
            bench_case "$mpi" "$ranks" barrier -i 200 -x 2
            for benchmark in bcast allreduce alltoall alltoallw; do
                bench_case "$mpi" "$ranks" "$benchmark" -c -m "4:$collective" -i 5 -x 1
            done
        done
    done
}

bench_suite

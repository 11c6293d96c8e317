# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What a program of Intel's MPI Benchmarks printed. Sourced by the suites that run one, in the
# project's root.

# imb_is_whole PROGRAM LOG BENCHMARK...: each benchmark printed its table, and the program says that
# it ended by itself.
imb_is_whole() {
    local program=$1 log=$2 benchmark
    shift 2
    for benchmark in "$@"; do
        grep -q "^# Benchmarking $benchmark *\$" "$log" ||
            { echo "$program printed no table for $benchmark"; return 1; }
    done
    grep -q '^# All processes entering MPI_Finalize' "$log" ||
        { echo "$program did not reach its end"; return 1; }
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of the suites that run one `weft bench` command on real MPIs. Sourced by their run.sh in the
# project's root; afterwards the working folder is a new one, WORK, that is removed at the end, and
# WEFT is the command. A case leaves its stdout in `out` and its stderr in `err`.

# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
WORK=$work
cd "$WORK" || exit 1

# bench RANKS TRANSPORT MPI BENCHMARK ARGUMENTS...
bench() {
    local ranks=$1 transport=$2 mpi=$3
    shift 3
    timeout 300 "$WEFT" run -n "$ranks" --mpi "$mpi" --transport "$transport" -- \
        "$WEFT" bench "$@" >out 2>err
}

# bench_alone BENCHMARK ARGUMENTS...: without a launcher, one rank.
bench_alone() { timeout 200 "$WEFT" bench "$@" >out 2>err; }

# verdict NAME STATUS: counts a case; what it printed is shown if it failed.
verdict() {
    if [ "$2" = 0 ]; then
        ok "$1"
    else
        not_ok "$1"
        sed 's/^/    | /' out err
    fi
}

# nobody_runs WORDS: no process with these words in its command line is left; the last ones have a
# while to go.
nobody_runs() { wait_for 100 is_gone "$1" >>err; }
is_gone() { ! pgrep -f -- "$1" >>err; }

# kill_a_rank WORDS COMMAND...: once the command is true. Of the processes with these words in their
# command line ranks are those that have no children.
kill_a_rank() {
    local words=$1 process
    shift
    wait_for 100 "$@" >>err
    for process in $(pgrep -f -- "$words"); do
        pgrep -P "$process" >/dev/null || { kill -9 "$process"; return; }
    done
}

has() { grep -Eq -- "$1" "${2:-out}"; }

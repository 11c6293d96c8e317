# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How jobs end, under every MPI: the exit codes of docs/run.md, ends that the user or --timeout asks
# for, what is said about Weft then, and that every rank is counted. Programs:
# tests/mpi/input/ends.c.

# ends_program MPI: compiles it against this MPI, and prints its path.
ends_program() { program_for "$1" tests/mpi/input/ends.c; }

# ends_with CODE MPI OPTIONS... -- HOW...: the job ends with this code, and nothing but its own
# words are said about Weft.
ends_with() {
    local code=$1 mpi=$2 options=() program status
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    program=$(ends_program "$mpi") || return 1
    "$WEFT" run -n 2 --mpi "$mpi" --timeout 40 "${options[@]}" -- "$program" "$@" >"$WORK/ends" 2>&1
    status=$?
    cat "$WORK/ends"
    echo "weft run ${options[*]} -- ends $*: $status"
    [ "$status" = "$code" ] || { echo "exit code $status instead of $code"; return 1; }
    # A crash, a time limit and Ctrl-C are no fault of Weft's.
    if grep -qE '^weft: warning|weft doctor' "$WORK/ends"; then
        echo 'this is blamed on Weft'; return 1; fi
}

# The table of docs/run.md.
ends_have_their_codes() {
    local mpi=$1
    ends_with 0 "$mpi" -- code 0 && ends_with 7 "$mpi" -- code 7 &&
        ends_with 7 "$mpi" -- early 7 && ends_with 5 "$mpi" -- abort 5 &&
        ends_with 137 "$mpi" -- signal 9 && ends_with 139 "$mpi" -- signal 11
}

# Hydra lets the others wait for ever, and the launchers of Open MPI sometimes hang.
failing_before_init_ends_the_job() {
    local mpi=$1 program status
    program=$(ends_program "$mpi") || return 1
    for _ in {1..4}; do
        "$WEFT" run -n 2 --mpi "$mpi" --timeout 40 -- "$program" before 7 >"$WORK/ends" 2>&1
        status=$?
        cat "$WORK/ends"
        [ "$status" = 7 ] || { echo "exit code $status instead of 7"; return 1; }
    done
}

# A rank that ends with 0 has not failed, and so the job goes on; but who waits hears why. Open MPI
# 5's launcher ends the job and says why, if another rank had begun MPI_Init by then.
who_is_missing_is_told() {
    local mpi=$1 program runner said status told='^weft: rank . has ended with exit code 0'
    local launcher='did not call "init" before exiting'
    program=$(ends_program "$mpi") || return 1
    "$WEFT" run -n 3 --mpi "$mpi" --timeout 100 -- "$program" before 0 >"$WORK/ends" 2>&1 &
    runner=$!
    wait_for 90 grep -qE "$told|$launcher" "$WORK/ends"
    said=$?
    signal_weft_run TERM
    wait "$runner"
    status=$?
    cat "$WORK/ends"
    if [ "$mpi" = openmpi ] && grep -q "$launcher" "$WORK/ends"; then
        echo "exit code $status"
        [ "$status" != 0 ]
        return
    fi
    [ "$said" = 0 ] && [ "$status" = 143 ] && [ "$(grep -c "$told" "$WORK/ends")" = 1 ]
}

# ended_by SIGNAL CODE MPI HOW: the signal goes to weft run alone, once all ranks run.
ended_by() {
    local name=$1 code=$2 mpi=$3 how=$4 runner status
    ends_program "$mpi" >/dev/null || return 1
    rm -f "$WORK/ready"
    ends_with "$code" "$mpi" -- "$how" 0 "$WORK/ready" &
    runner=$!
    until [ -e "$WORK/ready" ] || ! kill -0 "$runner" 2>/dev/null; do sleep 0.1; done
    signal_weft_run "$name"
    wait "$runner"
    status=$?
    grep -q "^weft: the job was ended by SIG$name" "$WORK/ends" ||
        { echo "nothing says that SIG$name ended it"; return 1; }
    return $status
}

# The processors are taken by others, and the ranks ignore everything.
time_limit_holds() {
    local mpi=$1 process hogs=()
    ends_program "$mpi" >/dev/null || return 1
    for _ in $(seq 16); do
        (while :; do :; done) &
        hogs+=($!)
    done
    "$WEFT" run -n 4 --mpi "$mpi" --timeout 4 -- \
        "$(ends_program "$mpi")" stubborn >"$WORK/ends" 2>&1
    process=$?
    kill -KILL "${hogs[@]}"
    cat "$WORK/ends"
    [ "$process" = 124 ] && grep -q 'ended after 4 seconds' "$WORK/ends" &&
        ! grep -q 'warning' "$WORK/ends"
}

# All ranks close at once: what they say must not be lost where the reader waits for a processor.
every_rank_is_counted() {
    local mpi=$1 json=$WORK/counted.json
    "$WEFT" run -n 64 --mpi "$mpi" --timeout 100 --json "$json" -- "$(ends_program "$mpi")" code 0 \
        || return 1
    python3 - "$json" <<'PYTHON'
import json, sys
record = json.load(open(sys.argv[1]))
summary = record["summary"]
assert (summary["opened"], summary["processes"], record["weft"]) == (64, 64, "full"), summary
sent = sum(count["messages"] for count in summary["sent"].values())
assert sent == summary["received"]["messages"] >= 64, summary
PYTHON
}

# A reader that goes away ends the job without a word and without a core.
# Open MPI 5's launcher waits for ever in some of the jobs, by itself too: then the time limit ends
# the job.
a_closed_pipe_is_quiet() {
    local mpi=$1 status
    # shellcheck disable=SC2016 # the ranks expand
    "$WEFT" run -n 2 --mpi "$mpi" --timeout 20 --quiet -- \
        sh -c 'while :; do echo line; done' 2>"$WORK/ends" | head -n 1
    status=${PIPESTATUS[0]}
    cat "$WORK/ends"
    echo "status $status"
    ! grep -qE 'panicked|core dumped' "$WORK/ends" && [ "$status" != 0 ] && [ "$status" != 134 ] &&
        { [ "$status" != 124 ] || [ "$mpi" = openmpi ]; }
}

# Senders end while their receiver computes: what they sent fills more than a lane, by each
# protocol.
late_messages_arrive() {
    local mpi=$1 route shape
    for route in auto srd; do
        for shape in '300 100' '300 1000' '40 12000' '3 300000'; do
            rm -f "$WORK/came"
            # shellcheck disable=SC2086 # two words
            FI_WEFT_ROUTE=$route ends_with 0 "$mpi" -n 3 -- late ${shape% *} "$WORK/came" \
                ${shape#* } || return 1
            [ -e "$WORK/came" ] || { echo "$shape over $route: did not all come"; return 1; }
        done
    done
}

ends_suite() {
    local mpi
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "ends on $mpi" || continue
        run_case "ends have their codes, $mpi" 200 ends_have_their_codes "$mpi"
        run_case "ends: a rank fails before MPI_Init, $mpi" 200 \
            failing_before_init_ends_the_job "$mpi"
        run_case "ends: a rank ends with 0 before MPI_Init, $mpi" 120 \
            who_is_missing_is_told "$mpi"
        run_case "ends: messages to a rank that computes, $mpi" 120 late_messages_arrive "$mpi"
        run_case "ends: Ctrl-C, $mpi" 60 ended_by INT 130 "$mpi" sleep
        run_case "ends: TERM, and the ranks ignore it, $mpi" 60 ended_by TERM 143 "$mpi" stubborn
        [ "$FULL" = yes ] || [ "$mpi" = mpich ] || [ "$mpi" = openmpi ] || continue
        run_case "ends: HUP, $mpi" 60 ended_by HUP 129 "$mpi" sleep
        run_case "ends: the time limit holds on a busy machine, $mpi" 90 time_limit_holds "$mpi"
        run_case "ends: every rank of 64 is counted, $mpi" 120 every_rank_is_counted "$mpi"
        run_case "ends: a closed pipe, $mpi" 60 a_closed_pipe_is_quiet "$mpi"
    done
}

ends_suite

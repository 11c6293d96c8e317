# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of tests/collectives/run.sh, which sources this file: ranks that differ (differing.c).

# calls_to_differ MPI: all under one MPI, and two under each of the others, by the seed.
calls_to_differ() {
    local calls=(bcast-98000 scatter-98000 gather-98000 allgather-98000 alltoall-98000 reduce-98000
        allreduce-98000 bcast-32761)
    if [ "$1" = mpich ]; then
        echo "${calls[@]}"
    else
        echo "${calls[@]:seed % 7:2}"
    fi
}

# differs MPI: ranks that differ in the count or root of a call are told where docs/collectives.md,
# clause 8, says so; no call writes outside what a rank takes.
differs() {
    local call length told heap late
    # Too long for the segment, and not to be read in place, for all ranks or only for the last.
    for call in $(calls_to_differ "$1"); do
        for heap in shared private; do
            late=$((RANDOM % 4))
            job 3 "$1" --heap $heap -- "$work/differing-$1" "${call%-*}" "${call#*-}" $late &&
                [ "$(grep -acE '^rank [0-2] is told$' "$work/out")" = 3 ] ||
                { echo "$call, --heap $heap, rank $late is late" >>"$work/out"; return 1; }
        done
    done
    # Of two ranks one leaves the call to the MPI, and the other follows it there. Then what the MPI
    # does counts: Intel MPI comes back.
    if [ "$1" = intel ]; then
        job 2 "$1" -- "$work/differing-$1" allgather 4090 &&
            [ "$(grep -acE '^rank [01] is told$' "$work/out")" = 2 ] || return
    fi
    for call in bcast-8 roots-8 roots-3000 allreduce-3000 gatherv-3000 alltoallv-3000; do
        length=${call#*-} call=${call%-*} told=told
        case $call in *v) told='(not )?told' ;; esac
        job 3 "$1" -- "$work/differing-$1" "$call" "$length" &&
            [ "$(grep -acE "^rank [0-2] is $told\$" "$work/out")" = 3 ] || return
    done
}

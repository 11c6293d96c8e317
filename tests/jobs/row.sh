# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Jobs in a row on a real Slurm, under each MPI: in turns one that runs well, one of which a rank is
# killed, and one that is cancelled while its messages go. After each the nodes are as before the
# first. Sourced by run.sh.

for mpi in "${built[@]}"; do
    (cd "$ROOT" && build "$mpi" tests/jobs/phases.c) >"$work/out" 2>&1
done
row_submit() { submit -N 2 -n 2 --shm-size 64m -- "$@"; }
talking() { # talking MPI: a job whose two ranks talk until somebody ends them
    both_talk() { [ -e "$work/phase/exchanged-0" ] && [ -e "$work/phase/exchanged-1" ]; }
    rm -rf "$work/phase" && mkdir "$work/phase" &&
        row_submit "$work/phases-$1" run "$work/phase" && wait_for 100 both_talk >"$work/out"
}
in_row() { # in_row NUMBER: the job with this number ends as it should
    local mpi=${built[$1 / 3 % ${#built[@]}]}
    case $(($1 % 3)) in
    0) row_submit "$work/exchange-$mpi" && ends 0 '' weft wait "$id" ;;
    1)
        talking "$mpi" && pgrep -f "^$work/phases-$mpi run" | tail -n 1 | xargs kill -KILL &&
            ! weft wait "$id" >"$work/out" 2>&1 && wait_state "$id" FAILED
        ;;
    2)
        talking "$mpi" && ends 0 '' weft cancel --wait "$id" &&
            ends 143 'CANCELLED' weft wait "$id"
        ;;
    esac || { echo "job $1 of the row, $mpi" >>"$work/out" && false; }
}

times=6
[[ " ${wanted[*]} " != *' many '* ]] || times=100
for ((row = 0; row < times; row++)); do
    in_row "$row" && in_the_end_nothing_is_left || break
done
[ "$row" = "$times" ]
report $? "$times jobs in a row, and after each nothing is left: $left_of_jobs"

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Jobs in a row on a real Slurm: each runs, and after the last one the nodes are as before the
# first. Sourced by run.sh.

times=5
[[ " ${wanted[*]} " != *' many '* ]] || times=100
for ((i = 0; i < times; i++)); do
    submit "${plain[@]}" -N 2 -n 2 --shm-size 64m -- "$code" && weft wait "$id" >"$work/out" 2>&1 ||
        break
done
[ "$i" = "$times" ] && in_the_end_nothing_is_left
report $? "$times jobs in a row, and nothing is left: $left_of_jobs"

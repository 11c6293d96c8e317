# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A /dev/shm that is too small for a rank, and one whose keeper is killed, on a real Slurm. Sourced
# by run.sh.

# Two ranks fill it, and then begin to talk. What their MPI itself takes there (docs/shm-size.md)
# must have room; Weft takes nothing.
script fills 'dd if=/dev/zero of="/dev/shm/all-$SLURM_PROCID" bs=1M count="$1"' \
    'touch "$0.filled-$1-$SLURM_PROCID"' \
    'until [ -e "$0.filled-$1-0" ] && [ -e "$0.filled-$1-1" ]; do sleep 0.05; done' \
    'df -m --output=size,avail /dev/shm | tail -n 1' "exec $code"
fills() { # fills MIB: each rank writes so many into 64 MiB
    FI_WEFT_REPORT=1 submit "${plain[@]}" -N 1 -n 2 -O --shm-size 64m -- "$work/fills" "$1" &&
        weft wait "$id" >"$work/out" 2>&1
    local status=$?
    weft logs "$id" >"$work/out" 2>&1
    return $status
}
fills 14 && carried 2 && [ "$(grep -Ec '^ *64 +3[0-9]$' "$work/out")" = 2 ] &&
    in_the_end_nothing_is_left
report $? 'ranks that half fill their /dev/shm talk over Weft'
fills 64
[ $? != 0 ] && wait_state "$id" FAILED && [ "$(grep -c 'No space' "$work/out")" = 2 ] &&
    [ "$(grep -Ec '^ *64 +0$' "$work/out")" = 2 ] && in_the_end_nothing_is_left
report $? 'ranks that leave no room for their MPI there: the job fails, and nothing is left'

# The same memory, by shm_open(3), mmap(2) and memset(3): more than there is, and then enough.
(cd "$ROOT" && build "$any" tests/shm-size/ranks.c) >"$work/out" 2>&1
with_mib() { # with_mib MIB: a job that writes 96 MiB there
    submit "${plain[@]}" -N 1 -n 2 -O --shm-size "$1m" -- "$work/ranks-$any" $(($1 << 20)) 96
}
with_mib 64 && ends 135 'FAILED' weft wait "$id" && in_the_end_nothing_is_left &&
    with_mib 128 && ends 0 '' weft wait "$id" && ends 0 'fine: 2 ranks' weft logs "$id" &&
    in_the_end_nothing_is_left
report $? 'a rank that ends by SIGBUS in 64 MiB fails the job with 135, and runs in 128 MiB'

script stays 'df -m --output=size /dev/shm | tail -n 1' 'touch "$0.begun-$SLURM_PROCID"' \
    'until [ -e "$0.go" ]; do sleep 0.05; done' 'df -m --output=size /dev/shm | tail -n 1' \
    "exec $code"
four_stay() { [ "$(cd "$work" && echo stays.begun-*)" = "$(echo stays.begun-{0..3})" ]; }
keepers() { pgrep -f 'dev-shm keep .* 61m'; }
FI_WEFT_REPORT=1 submit "${plain[@]}" -N 2 --ppn 2 --shm-size 61m -- "$work/stays" &&
    wait_for 100 four_stay >"$work/out" && [ "$(keepers | wc -l)" = 2 ] &&
    keepers | xargs kill -KILL && touch "$work/stays.go" && weft wait "$id" >"$work/out" 2>&1
status=$?
weft logs "$id" >"$work/out" 2>&1
[ $status = 0 ] && carried 4 && [ "$(grep -Ec '^ *61$' "$work/out")" = 8 ] &&
    in_the_end_nothing_is_left
report $? 'the keepers of /dev/shm are killed: the ranks go on in it, and nothing is left'

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Two hosts of tests/testbed that are one job and have one bucket. Sourced by the parts of
# tests/mount/run.sh that need them.

TESTBED=$PWD/tests/testbed/testbed.sh
hosts=(a0 b1)
LOCKER=$PWD/tests/mount/locker.py

# on HOST COMMAND...
on() { "$TESTBED" "$bed" host "$@"; }

# begin_two_hosts: the hosts, and a server with an empty bucket, at $there.
begin_two_hosts() {
    FI_WEFT_JOB_KEY=$(printf '%064d' 8)
    export FI_WEFT_JOB_KEY
    bed=$("$TESTBED" up --owner $$ --direct) || exit 2
    there=http://10.77.0.2:8014
    on a0 "$(realpath "$BUCKET_SERVER")" --bucket data --listen 10.77.0.2:8014 \
        >"$work/there" 2>&1 &
    wait_for 60 test -s "$work/there" || cat "$work/there"
}

# mount_on_both OPTION...: the bucket at $work/node0 on the first host and $work/node1 on the other.
mount_on_both() {
    local number
    for number in 0 1; do
        mkdir -p "$work/node$number"
        on "${hosts[number]}" "$WEFT_MOUNT" data "$work/node$number" --endpoint-url "$there" \
            --foreground --stage "$work/stage$number" "$@" \
            --job-nodes 10.77.0.2:7700,10.77.1.2:7700 --job-node "$number" 2>>"$work/job-log" &
    done
    for number in 0 1; do
        wait_for 60 on "${hosts[number]}" mountpoint -q "$work/node$number" || return 1
    done
}

# count_on_both FILE: four programs, two on each host, add 50 each to the number in a file, under a
# lock. All have it open before the first of them writes it.
count_on_both() {
    local number counters=()
    rm -f "$work"/counts-*
    for number in 0 1 2 3; do
        on "${hosts[number % 2]}" timeout 120 python3 "$LOCKER" count \
            "$work/node$((number % 2))/$1" 50 "$work/counts-$number" "$work/counts-all" &
        counters+=($!)
    done
    for number in 0 1 2 3; do wait_for 60 test -e "$work/counts-$number" || return 1; done
    touch "$work/counts-all"
    for number in "${counters[@]}"; do wait "$number" || return 1; done
}

# end_two_hosts NUMBER...: unmounts on these hosts, and ends the testbed.
end_two_hosts() {
    local number
    for number; do on "${hosts[number]}" umount "$work/node$number"; done
    "$TESTBED" "$bed" down
    unset FI_WEFT_JOB_KEY
}

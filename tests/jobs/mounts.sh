# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Submitted jobs with buckets, on a real Slurm. Sourced by run.sh.

# shellcheck source=tests/bucket-server/server.sh
. "$ROOT/tests/bucket-server/server.sh"

# A Weft with weft-mount beside it, as after `make build-mount`.
mounting=$work/mounting/bin/weft
arrange_mounts() {
    local mounter=${WEFT_MOUNT:-$ROOT/target/debug/weft-mount}
    mkdir -p "$work/mounting/bin" "$work/bucket" && cp -r "$(dirname "$WEFT")/../lib" \
        "$work/mounting/" && cp "$WEFT" "$mounting" && cp "$mounter" "$work/mounting/bin/weft-mount"
}
# control METHOD PATH [JSON]: from here, as the suite is in another folder.
control() { python3 "$ROOT/tests/bucket-server/control.py" "$BUCKET_URL/-/$2" "$1" "${@:3}"; }
objects() {
    control GET state |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["objects"])'
}
no_mount_is_left() {
    [ -z "$(pgrep -f "$work/mounting" || true)" ] && [ -z "$(ls -A "$work/bucket")" ]
}

# In mountinfo a space is \040 (proc(5)).
script writes "printf x >'$work/bucket/of-'\$SLURM_PROCID" \
    "until [ \$(cat '$work/bucket/of-'* | wc -c) = 4 ]; do sleep 0.1; done" \
    "grep -cF ' ${work// /\\040}/bucket ' /proc/self/mountinfo"
script loses "{ touch '$work/wrote'" "until [ -e '$work/refusing' ]; do sleep 0.1; done" \
    "printf x; kill -9 \$\$; } >'$work/bucket/lost-0'"
script lost "'$work/loses'" 'exit 0'

if [ ! -c /dev/fuse ]; then
    skip 'submitted jobs with a bucket' 'there is no /dev/fuse'
elif [ ! -x "${WEFT_MOUNT:-$ROOT/target/debug/weft-mount}" ]; then
    skip 'submitted jobs with a bucket' 'weft-mount is not built (cargo build -p weft-daemon)'
else
    BUCKET_SERVER=${BUCKET_SERVER:-$ROOT/target/debug/weft-bucket-server}
    need_bucket_server
    arrange_mounts
    start_bucket_server --bucket data
    trap 'stop_bucket_server; slurm_stop; rm -rf --one-file-system "$work"' EXIT
    export AWS_ENDPOINT_URL=$BUCKET_URL AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret
    export AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
    export WEFT_MPI_PATH=$ROOT/.env/mpi/$any
    # Like weft and submit, with buckets.
    weft_mounting() { timeout -k 5 90 "$mounting" "$@"; }
    mounted() {
        id=$(weft_mounting submit -t 5 "${plain[@]}" --mount "s3://data/p:$work/bucket" "$@" \
            2>"$work/said") || { cat "$work/said"; return 1; }
    }

    # Both nodes of this Slurm are one machine, and so each of two keepers has a mount of its own.
    mounted -N 2 --ppn 2 -- "$work/writes" && weft wait "$id" >"$work/out" 2>&1 &&
        weft logs "$id" >"$work/out" 2>&1 && [ "$(grep -c '^1$' "$work/out")" = 4 ] &&
        [ "$(objects)" = 4 ] && wait_for 100 no_mount_is_left >>"$work/out"
    report $? 'a submitted job has its bucket on each node, and all is published when it has ended'

    mounted -n 1 -- "$work/lost" && wait_for 100 test -e "$work/wrote" >"$work/out" &&
        faults '{"expired": true}' && touch "$work/refusing" &&
        ends 5 'FAILED' weft wait "$id" && no_faults && ends 0 'not published: lost-0' \
        weft logs "$id" && wait_for 100 no_mount_is_left >>"$work/out"
    status=$?
    no_faults
    report $status 'what cannot be published makes a submitted job fail, and its log says so'

    touch "$work/bucket/occupied"
    mounted -n 1 -- touch "$work/started"
    ends 1 'FAILED' weft wait "$id" && ends 0 'Give an empty folder' weft logs "$id" &&
        [ ! -e "$work/started" ]
    status=$?
    rm "$work/bucket/occupied"
    report $status 'a folder with something in it: no rank starts, and the log says what to do'

    # cancelled_with_mount: the job of `id`, which has nothing mounted and nothing running then.
    cancelled_with_mount() {
        ends 0 '' weft cancel --wait "$id" && ends 143 'CANCELLED' weft wait "$id" &&
            wait_for 100 no_mount_is_left >>"$work/out"
    }
    mounted -n 1 -- "$work/slow" && wait_for 100 wait_state "$id" RUNNING &&
        wait_for 100 grep -qs begun "slurm-$id.out" && cancelled_with_mount
    report $? 'a cancelled job leaves no mount'

    # The store does not answer until `store_answers`.
    store_waits() { kill -STOP "$bucket_server_process"; }
    store_answers() { kill -CONT "$bucket_server_process"; }
    mounting_now() { pgrep -f "^$work/mounting/bin/weft-mount" >"$work/out"; }
    store_waits
    mounted -n 1 -- touch "$work/started" && wait_for 100 mounting_now &&
        ends 0 '' weft cancel --wait "$id" && ends 143 'CANCELLED' weft wait "$id" &&
        store_answers && wait_for 100 no_mount_is_left >>"$work/out" && [ ! -e "$work/started" ]
    status=$?
    store_answers
    report $status 'cancelled while its bucket is being mounted: no rank starts, no mount stays'

    # A process that has inherited an open file writes into it and ends. Its close(2) does not wait
    # for the store, so the rank is over while the file is not in the bucket.
    script opens "exec 3>'$work/bucket/late-'\$SLURM_JOB_ID" "'$work/writes-late' & exit"
    script writes-late "touch '$work/wrote'" \
        "until [ -e '$work/store-waits' ]; do sleep 0.05; done" \
        'printf x >&3' "touch '$work/over'"
    script outlives "'$work/opens'" "until [ -e '$work/over' ]; do sleep 0.05; done"
    is_over_but_for_its_file() { ! pgrep -f "^/bin/sh $work/(outlives|writes-late)"; }
    # publishing: a job in that state.
    publishing() {
        rm -f "$work"/{wrote,store-waits,over}
        there=$(objects)
        mounted -n 1 -- "$work/outlives" && wait_for 100 test -e "$work/wrote" &&
            store_waits && touch "$work/store-waits" &&
            wait_for 100 is_over_but_for_its_file && wait_for 20 wait_state "$id" RUNNING ||
            { echo "job $id is $(state_of "$id"), and not RUNNING"; return 1; }
    }
    no_rank_is_left() { ! pgrep -af 'weft exec'; }
    late_is_published() { wait_for 100 no_mount_is_left && [ "$(objects)" = $((there + 1)) ]; }
    publishing >"$work/out" && ends 0 '' weft cancel "$id" && wait_state "$id" COMPLETING &&
        store_answers && late_is_published >>"$work/out" && ends 143 'CANCELLED' weft wait "$id"
    status=$?
    store_answers
    report $status 'cancelled while its files are published: they are, and it is CANCELLED'

    publishing >"$work/out" && ends 0 '' weft cancel --wait "$id" &&
        ends 143 'CANCELLED' weft wait "$id" && wait_for 100 no_rank_is_left >>"$work/out" &&
        store_answers && late_is_published >>"$work/out"
    status=$?
    store_answers
    report $status 'a store that takes longer than KillWait: the job ends, and no mount stays'

    script stays-mounted "printf x >'$work/bucket/kept-'\$SLURM_PROCID" \
        "touch '$work/stays-'\$SLURM_PROCID" "until [ -e '$work/leave' ]; do sleep 0.05; done"
    both_stay() { [ -e "$work/stays-0" ] && [ -e "$work/stays-1" ]; }
    keepers() { pgrep -f "^$work/mounting/bin/weft mounts keep"; }
    there=$(objects)
    mounted -N 2 --ppn 1 -- "$work/stays-mounted" && wait_for 100 both_stay >"$work/out" &&
        [ "$(keepers | wc -l)" = 2 ] && keepers | xargs kill -KILL && touch "$work/leave" &&
        ends 5 'FAILED' weft wait "$id" &&
        ends 0 'the process that kept the mounts was killed' weft logs "$id" &&
        wait_for 100 no_mount_is_left >>"$work/out" && [ "$(objects)" = $((there + 2)) ]
    report $? 'the keepers of the mounts are killed: the job fails with 5, and nothing is left'

    weft_mounting submit --dry-run "${plain[@]}" --mount "s3://data/p:$work/bucket:ro" -- \
        "$work/well" >"$work/out" 2>&1 &&
        grep -q -- "--mount '\?s3://data/p:$work/bucket:ro" "$work/out" &&
        ! grep -q -e weft-secret -e "$BUCKET_URL" "$work/out" &&
        ! grep -rq -e weft-secret "$WEFT_JOBS_DIR"
    report $? 'the script names the bucket, and neither address nor credentials'
    stop_bucket_server
    trap 'slurm_stop; rm -rf "$work"' EXIT
    unset WEFT_MPI_PATH AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
fi

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Four hosts of a job read one bucket together, and import one environment of Python: each byte
# leaves the store once, and the store gets hardly more requests than from one host. Sourced by
# tests/mount/run.sh; the hosts are those of tests/testbed. WEFT_MOUNT_COUNTS is a file for what was
# counted, and how long hosts took; WEFT_MOUNT_STORE are faults of the server meanwhile, as JSON.

# shellcheck source=tests/mount/imports.sh
. tests/mount/imports.sh

TESTBED=$PWD/tests/testbed/testbed.sh
hosts=(a0 b1 a2 b3)
FI_WEFT_JOB_KEY=$(printf '%064d' 7)
export FI_WEFT_JOB_KEY

# on HOST COMMAND...
on() { "$TESTBED" "$bed" host "$@"; }
# asked_there EXPRESSION, forget_there: as asked and forget, of the hosts' server.
asked_there() { BUCKET_URL=$there asked_on a0 "$1"; }
asked_on() {
    on "$1" python3 tests/bucket-server/control.py "$there/-/counters" GET | python3 -c '
import json, sys
counts = json.load(sys.stdin)
print(counts["requests"], counts["read_bytes"], "bytes read,", counts["sent_bytes"], "sent")
names = dict(counts, total=sum(counts["requests"].values()))
sys.exit(not eval(sys.argv[1], names))' "$2" | tee -a "${WEFT_MOUNT_COUNTS:-/dev/null}"
}
forget_there() {
    on a0 python3 tests/bucket-server/control.py "$there/-/counters" DELETE >/dev/null
}
objects_there() {
    on a0 python3 tests/bucket-server/control.py "$there/-/objects" POST \
        "{\"bucket\": \"data\", \"prefix\": \"$1\", \"count\": $2, \"size\": $3}" >/dev/null
}

# job_mounts COUNT OPTIONS...: the bucket on so many hosts; each one's process is in mounts_there.
mounts_there=()
job_mounts() {
    local count=$1 number nodes=
    shift
    for number in $(seq 0 $((count - 1))); do
        nodes+="${nodes:+,}10.77.$number.2:7600"
    done
    mounts_there=()
    for number in $(seq 0 $((count - 1))); do
        mkdir -p "$work/node$number"
        on "${hosts[number]}" nice -n -10 "$WEFT_MOUNT" data "$work/node$number" \
            --endpoint-url "$there" --foreground --metadata-ttl 3600 \
            --job-nodes "$nodes" --job-node "$number" "$@" \
            2>>"$work/job-log" &
        mounts_there+=($!)
    done
    for number in $(seq 0 $((count - 1))); do
        wait_for 60 on "${hosts[number]}" mountpoint -q "$work/node$number" || return 1
    done
}
end_job() {
    local number
    for number in "${!mounts_there[@]}"; do
        on "${hosts[number]}" umount "$work/node$number" 2>/dev/null
    done
    wait "${mounts_there[@]}" 2>/dev/null
    mounts_there=()
}

# timed WORDS COMMAND...: how long a command took stands with what was counted. No test asserts it.
timed() {
    local began=$EPOCHREALTIME
    "${@:2}" || return 1
    echo "$1 $(awk "BEGIN { print $EPOCHREALTIME - $began }") s" |
        tee -a "${WEFT_MOUNT_COUNTS:-/dev/null}"
}
# requests_there: all that the store got.
requests_there() {
    on a0 python3 tests/bucket-server/control.py "$there/-/counters" GET |
        python3 -c 'import json, sys; print(sum(json.load(sys.stdin)["requests"].values()))'
}
# slow_there: as slow as whoever measures wants the store.
slow_there() {
    [ -z "${WEFT_MOUNT_STORE:-}" ] ||
        on a0 python3 tests/bucket-server/control.py "$there/-/faults" POST "$WEFT_MOUNT_STORE" \
            >/dev/null
}

# all_read COUNT: so many hosts read everything at once, and see the same.
all_read() {
    local number readers=()
    for number in $(seq 0 $(($1 - 1))); do
        on "${hosts[number]}" sh -c "cd '$work/node$number' && find . -type f | sort |
            xargs cat | sha256sum" >"$work/sum$number" &
        readers+=($!)
    done
    for number in "${readers[@]}"; do wait "$number" || return 1; done
    for number in $(seq 0 $(($1 - 1))); do
        cat "$work/sum$number"
        cmp -s "$work/sum0" "$work/sum$number" || return 1
    done
}

alone() {
    job_mounts 1 && forget_there && slow_there && timed "one host reads" all_read 1 &&
        cp "$work/sum0" "$work/alone" && asked_there "read_bytes <= 1.001 * $data_bytes"
    local read=$?
    requests_alone=$(requests_there)
    end_job
    return $read
}

# while_answered DEAD COMMAND: a mount that gets no processor for as long as the dead are silent is
# taken for dead, and what it owns is fetched twice, as it should. Only then is the case done again.
# DEAD is the number of a mount that is silent on purpose.
while_answered() {
    local attempt
    for attempt in 1 2 3; do
        : >"$work/job-log"
        "$2" && return 0
        grep 'is silent' "$work/job-log" | grep -qv "node $1 of" || return 1
        echo "attempt $attempt: a mount was silent on a busy machine"
    done
    return 1
}

# together WORDS CASE BYTES REQUESTS: four hosts do it at once, for so many bytes and so many
# requests of one host, but for some.
together() {
    job_mounts 4 && forget_there && slow_there && timed "four hosts $1" "$2" 4 &&
        echo "one host alone: $4 requests; all files have $3 bytes" &&
        asked_there "read_bytes <= 1.02 * $3 and total <= 1.15 * $4"
    local ended=$?
    [ $ended = 0 ] || tail -n 5 "$work/job-log"
    end_job
    return $ended
}
all_read_the_same() { all_read "$1" && cmp "$work/sum0" "$work/alone"; }
read_together() { together read all_read_the_same "$data_bytes" "$requests_alone"; }
import_alone() {
    job_mounts 1 && forget_there && slow_there && timed "one host imports" all_import 1 &&
        asked_there 'read_bytes > 1_000_000'
    local imported=$?
    import_requests=$(requests_there)
    end_job
    return $imported
}
import_together() { together import all_import "$site_bytes" "$import_requests"; }

one_dies() {
    job_mounts 4 && forget_there || return 1
    on a0 python3 tests/bucket-server/control.py "$there/-/faults" POST \
        '{"total_rate": 40000000}' >/dev/null
    all_read 3 &
    local reader=$!
    sleep 1
    on b3 sh -c "kill -9 \$(cat /proc/[0-9]*/stat | awk '\$2 == \"(weft-mount)\" { print \$1 }')"
    wait "$reader" && cmp "$work/sum0" "$work/alone" &&
        asked_there "read_bytes <= 1.3 * $data_bytes"
    local read=$?
    on a0 python3 tests/bucket-server/control.py "$there/-/faults" DELETE >/dev/null
    [ $read = 0 ] || tail -n 5 "$work/job-log"
    on b3 umount -l "$work/node3"
    end_job
    return $read
}

no_key() {
    (unset FI_WEFT_JOB_KEY
    ends 2 "need its key" mount_bucket --job-nodes 127.0.0.1:7600,127.0.0.1:7700 --job-node 0) &&
        ends 2 "from 0 on" mount_bucket --job-nodes 127.0.0.1:7600 --job-node 1
}
check "mounts of a job without a key, or at a place that is none, are refused" no_key

if ! reason=$("$TESTBED" check); then
    skip "four hosts read a bucket together" "$reason"
else
    bed=$("$TESTBED" up --owner $$ --hosts 4) || exit 2
    there=http://10.77.0.2:8014
    on a0 "$(realpath "$BUCKET_SERVER")" --bucket data --listen 10.77.0.2:8014 --counted-etags \
        >"$work/there" 2>&1 &
    wait_for 60 test -s "$work/there" || cat "$work/there"
    objects_there large 3 30000000
    objects_there folder/small 200 10000
    data_bytes=$((3 * 30000000 + 200 * 10000))
    check "one host of a job reads a bucket" alone
    check "four hosts read a bucket, and each byte leaves the store once" \
        while_answered none read_together
    check "a host dies half-way, and the others read all" while_answered 3 one_dies
    if "$libraries" -c 'import numpy' 2>/dev/null; then
        environment || cat "$work/there"
        check "one host of a job imports numpy from a bucket" import_alone
        check "four hosts import it at once, for the requests of one, and each byte once" \
            while_answered none import_together
    else
        skip "four hosts import numpy from a bucket" "it is not in $libraries"
    fi
    "$TESTBED" "$bed" down
fi
unset FI_WEFT_JOB_KEY

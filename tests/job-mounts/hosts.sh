# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft run --hosts` with a bucket on two hosts (tests/testbed/testbed.sh). Sourced by run.sh.

TESTBED=$ROOT/tests/testbed/testbed.sh
name='two hosts'
if ! reason=$("$TESTBED" check); then
    skip "$name" "$reason"
    return 0
elif ! BED=$("$TESTBED" up --owner $$ --direct 2>"$work/out"); then
    report 1 "$name"
    return 0
fi
trap '"$TESTBED" "$BED" down; stop_bucket_server; rm -rf --one-file-system "$work"' EXIT
AGENT=$("$TESTBED" "$BED" agent)
on_hosts() { # on_hosts WORDS...: a job of one rank on each host
    timeout 90 "$TESTBED" "$BED" host a0 "$WEFT" run --quiet --mpi "$mpi" --hosts a0,b1 -n 2 \
        --launcher "$AGENT" --timeout 60 "$@"
}
stop_bucket_server
# A server that both hosts reach.
"$TESTBED" "$BED" host a0 "$ROOT/${BUCKET_SERVER#"$ROOT/"}" --listen 10.77.0.2:9000 \
    --bucket data >"$work/hosts-url" 2>"$work/server" &
wait_for 100 test -s "$work/hosts-url" >"$work/out"
BUCKET_URL=$(head -n 1 "$work/hosts-url")
export AWS_ENDPOINT_URL=$BUCKET_URL
control() {
    "$TESTBED" "$BED" host a0 python3 "$ROOT/tests/bucket-server/control.py" "$BUCKET_URL/-/$2" \
        "$1" "${@:3}"
}
hosts_tidy() {
    nobody_on_hosts() {
        ! "$TESTBED" "$BED" host a0 pgrep -af 'weft' |
            grep -v -e bucket-server -e pgrep -e host.py -e "\[weft" &&
            ! "$TESTBED" "$BED" host b1 pgrep -af 'weft' | grep -v -e pgrep -e host.py -e '\[weft'

    }
    wait_for 100 nobody_on_hosts && [ -z "$(ls -A "$one")" ]
}

ends 0 '' on_hosts --mount "s3://data:$one" -- \
    sh -c "hostname >$one/of-\$(hostname); sleep 0.5; grep -c ' $one ' /proc/self/mountinfo" &&
    [ "$(grep -c '^1$' "$work/out")" = 2 ] && [ "$(objects)" = 2 ] &&
    hosts_tidy >>"$work/out" 2>&1
report $? 'each of two hosts has the bucket, and all is published'

ends 0 '64' on_hosts --shm-size 64m --mount "s3://data/x:$one" -- \
    sh -c "sleep 0.5; df -m --output=size /dev/shm; ls $one" &&
    [ "$(grep -c '^ *64$' "$work/out")" = 2 ] && hosts_tidy >>"$work/out" 2>&1
report $? '--shm-size on both hosts beside it'

printf '#!/bin/sh\nsleep 0.5; df -m --output=size /dev/shm; hostname >"$1/at-$(hostname)"\n' >"$odd"
ends 0 '64' on_hosts --transport native --shm-size 64m --mount "s3://data/o:$one" -- \
    "$odd" "$one" &&
    [ "$(grep -c '^ *64$' "$work/out")" = 2 ] && [ "$(objects)" = 4 ] &&
    hosts_tidy >>"$work/out" 2>&1
report $? 'a program whose name is not UTF-8, with both'

# sent_once COMMAND...: both hosts read 40 MB, and the server sends little more than that.
control POST objects '{"bucket": "data", "prefix": "once/k", "count": 2, "size": 20000000}' \
    >/dev/null
sent_once() {
    control DELETE counters >/dev/null
    "$@" && [ "$(sort -u "$work"/read-*)" = "$(head -n 1 "$work/read-a0")" ] || return
    control GET counters | python3 -c '
import json, sys
counts = json.load(sys.stdin)
print(counts["read_bytes"], "bytes read,", counts["requests"])
sys.exit(not 40_000_000 <= counts["read_bytes"] <= 1.02 * 40_000_000)'
}
# Each waits for the other: a mount that has ended has nothing for others.
reads="cat $one/once/* | sha256sum >$work/read-\$(hostname)
    until [ -s $work/read-a0 ] && [ -s $work/read-b1 ]; do sleep 0.1; done"
sent_once on_hosts --mount "s3://data:$one" -- sh -c "$reads" >"$work/out" 2>&1 &&
    hosts_tidy >>"$work/out" 2>&1
report $? 'two hosts of a job read a bucket, and each byte leaves the store once'

# As srun starts ranks, one on each node, in the way that this MPI understands.
by_srun() { # by_srun MOUNT PROGRAM...
    local number hosts=(a0 b1) steps=() way=PMI_RANK
    [[ $mpi != *openmpi ]] || way=PMIX_RANK
    rm -f "$work"/read-*
    for number in 0 1; do
        export "$way=$number"
        FI_WEFT_JOB_KEY=$(printf '%064d' 7) SLURM_PROCID=$number \
            SLURM_NODEID=$number SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' \
            SLURM_STEP_NODELIST=a0,b1 SLURMD_NODENAME=${hosts[number]} SLURM_JOB_ID=$$ \
            SLURM_STEP_ID=0 timeout 60 "$TESTBED" "$BED" host "${hosts[number]}" "$WEFT" exec \
            --mpi "$mpi" --mount "$@" &
        steps+=($!)
    done
    unset "$way"
    wait "${steps[0]}" && wait "${steps[1]}"
}
sent_once by_srun "s3://data:$one" -- sh -c "$reads" >"$work/out" 2>&1 &&
    hosts_tidy >>"$work/out" 2>&1
report $? 'so do two nodes whose ranks srun starts'

# A rank of each host writes every other piece of one file, and reads all of it before it closes it.
cat >"$work/pieces.py" <<'END'
import os, sys, time
path, flags = sys.argv[1], sys.argv[2]
rank = int(os.environ.get("PMIX_RANK") or os.environ["PMI_RANK"])
piece, pieces = 47008, 100
data = lambda number: bytes((number * 31 + at) % 251 for at in range(256)) * 184
def meet(what):
    open(f"{flags}/{what}-{rank}", "w").close()
    while not all(os.path.exists(f"{flags}/{what}-{one}") for one in (0, 1)):
        time.sleep(0.01)
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
meet("opened")
for number in range(rank, pieces, 2):
    assert os.pwrite(file, data(number)[:piece], number * piece) == piece
meet("written")
for number in range(pieces):
    assert os.pread(file, piece, number * piece) == data(number)[:piece], number
meet("read")
os.close(file)
END
# What the store has of it afterwards.
whole_is_stored() {
    "$TESTBED" "$BED" host a0 "${BUCKET_PYTHON:-$ROOT/.env/bucket/bin/python}" - "$BUCKET_URL" \
        "$1" <<'END'
import sys, boto3
store = boto3.client("s3", endpoint_url=sys.argv[1])
whole = store.get_object(Bucket="data", Key=sys.argv[2])["Body"].read()
piece, pieces = 47008, 100
data = lambda number: bytes((number * 31 + at) % 251 for at in range(256)) * 184
assert len(whole) == piece * pieces, len(whole)
assert all(whole[n * piece:(n + 1) * piece] == data(n)[:piece] for n in range(pieces))
END
}
write_one_file() { # write_one_file KEY COMMAND...
    rm -rf "$work/flags" && mkdir "$work/flags"
    "${@:2}" -- python3 "$work/pieces.py" "$one/$1" "$work/flags" && whole_is_stored "$1" &&
        hosts_tidy
}
write_one_file by-agents on_hosts --mount "s3://data:$one:shared-writes" >"$work/out" 2>&1
report $? 'two hosts of a job write one file at once, and all of it is published'
write_one_file by-srun by_srun "s3://data:$one:shared-writes" >"$work/out" 2>&1
report $? 'two nodes whose ranks srun starts write one file at once'

rm -f "$work/started"
ends 1 'host b1: --mount' on_hosts --mount "s3://none:$one" -- touch "$work/started" &&
    [ ! -e "$work/started" ] && hosts_tidy >>"$work/out" 2>&1
report $? 'a bucket that is not there is refused with the name of the host'

hosts_lose() {
    rm -f "$work"/{wrote,refusing}
    local until="until [ -e $work/refusing ]; do sleep 0.05; done"
    on_hosts --mount "s3://data:$one" -- sh -c "[ \$(hostname) = a0 ] && { $until; exit; }
        sh -c '{ touch $work/wrote; $until; printf x; kill -9 \$\$; } >$one/lost'; exit 0" \
        >"$work/out" 2>&1 &
    local job=$!
    wait_for 100 test -e "$work/wrote" && faults '{"expired": true}'
    touch "$work/refusing"
    wait "$job"
    local ended=$?
    no_faults
    echo "exit code $ended"
    [ $ended = 5 ] && grep -q 'on host b1: .*not published: lost: ' "$work/out"
}
hosts_lose >>"$work/out" 2>&1 && hosts_tidy >>"$work/out" 2>&1
report $? 'what one host cannot publish makes the job fail'

agent_killed() {
    rm -f "$work"/asleep-*
    on_hosts --mount "s3://data:$one" -- sh -c "touch $work/asleep-\$(hostname); sleep 65" \
        >"$work/out" 2>&1 &
    local job=$!
    both_asleep() { [ -e "$work/asleep-a0" ] && [ -e "$work/asleep-b1" ]; }
    wait_for 100 both_asleep && "$TESTBED" "$BED" host b1 pkill -9 -f node-agent
    wait "$job"
    [ $? = 4 ] && hosts_tidy
}
agent_killed >>"$work/out" 2>&1
report $? 'a node agent is killed: the host counts as lost, and nothing is left'

"$TESTBED" "$BED" down
trap 'stop_bucket_server; rm -rf --one-file-system "$work"' EXIT

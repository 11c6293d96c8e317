# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The store is slow, refuses, breaks off, lies, goes away. Sourced by tests/mount/run.sh. What is
# read is what is there, or an error; nothing hangs.

seed=${WEFT_MOUNT_SEED:-$RANDOM}
echo "# faults: seed $seed (WEFT_MOUNT_SEED)"
mkdir -p "$work/faulty"
for file in 1 2 3; do head -c 4000000 /dev/urandom >"$work/faulty/$file"; done
upload "$work/faulty" faulty/

# reads_through JSON: with these faults all contents are right.
reads_through() {
    no_faults && remount && faults "$1" &&
        timeout 300 diff -r "$mnt/faulty" "$work/faulty"
}
check "reads are right where a fifth of the requests gets 503" \
    reads_through "{\"slow_down\": 0.2, \"seed\": $seed}"
check "reads are right where a tenth of the connections is reset" \
    reads_through "{\"reset\": 0.1, \"seed\": $seed}"
check "reads are right where a fifth of the bodies breaks off" \
    reads_through "{\"cut\": 0.2, \"seed\": $seed}"
check "reads are right at 30 ms for each request and 20 MB/s" \
    reads_through '{"first_byte_ms": 30, "connection_rate": 20000000}'

# A file that is replaced while it is read: never parts of both.
never_mixed() {
    no_faults
    objects replaced 1 30000000
    remount --metadata-ttl 0.1 || return 1
    "$PYTHON" - "$mnt/replaced" "$BUCKET_URL" <<'EOF'
import json, os, sys, time, urllib.request
path, url = sys.argv[1:]
def command(where, value):
    data = json.dumps(value).encode()
    urllib.request.urlopen(urllib.request.Request(f"{url}/-/{where}", data=data)).read()
def make(seed):
    command("objects", {"bucket": "data", "prefix": "replaced", "size": 30_000_000, "seed": seed})
def whole():
    with open(path, "rb") as file:
        return file.read()
contents = []
for seed in (1, 2):
    make(seed)
    time.sleep(0.5)
    contents.append(whole())
assert contents[0] != contents[1]
make(1)
time.sleep(0.5)
with open(path, "rb", buffering=0) as file:
    begin = file.read(1_000_000)
    assert begin == contents[0][:1_000_000]
    make(2)
    try:
        at = 1_000_000
        while at < 30_000_000:
            part = file.read(1_000_000)
            assert part == contents[0][at : at + len(part)], f"other contents at {at}"
            if not part:
                break
            at += len(part)
        print("read to the end")
    except OSError as error:
        print("refused:", error)
time.sleep(0.5)
assert whole() == contents[1], "opened anew it shows the new contents"
EOF
}
check "a file replaced while it is read is never mixed" never_mixed

gone_and_back() {
    no_faults && remount && faults '{"gone": true}' || return 1
    if timeout 300 cat "$mnt/faulty/1" >"$work/none" 2>"$work/why"; then
        echo "it was read from a server that was gone"
        return 1
    elif [ $? = 124 ]; then
        echo "it hung for a minute"
        return 1
    fi
    cat "$work/why"
    grep -q 'Input/output error\|timed out\|Connection' "$work/why" || return 1
    faults '{"gone": false}' && wait_for 60 cmp "$mnt/faulty/1" "$work/faulty/1"
}
check "a server that is gone gives an error, and serves again when it is back" gone_and_back

expired() {
    no_faults && remount && faults '{"expired": true}' &&
        ends 1 "" timeout 300 cat "$mnt/faulty/2" && faults '{"expired": false}' &&
        wait_for 60 cmp "$mnt/faulty/2" "$work/faulty/2"
}
check "expired credentials give an error, and reads go on with new ones" expired

flipped() {
    no_faults && remount &&
        faults "{\"flip\": 1.0, \"seed\": $seed}" || return 1
    # Whole small objects come with a checksum: a flipped bit is an error, never content.
    head -c 20000 /dev/urandom >"$work/faulty/small" && upload "$work/faulty" faulty/
    timeout 300 cat "$mnt/faulty/small" >"$work/small" 2>"$work/why" ||
        { cat "$work/why"; return 0; }
    cmp "$work/small" "$work/faulty/small"
}
check "a bit turned over on the way is never shown in a small file" flipped
control DELETE faults >/dev/null

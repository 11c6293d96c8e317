# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Folders that get another name, also under kills. Sourced by tests/mount/run.sh.

remount >"$work/out" 2>&1 || not_ok "renames: a bucket is mounted"

# whole FOLDER...: the bucket has the whole tree under one of these names, nothing under the others,
# and no record. Prints that name.
whole() {
    "$PYTHON" - "$BUCKET_URL" "$@" <<'EOF'
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
# Other parts of the suite have put many more objects there.
def keys_of(prefix):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix=prefix)
    return [one["Key"] for page in pages for one in page.get("Contents", [])]
assert not keys_of(".weft-renames/"), "a record is left"
keys = {name: keys_of(name + "/") for name in sys.argv[2:]}
names = [name for name in keys if keys[name]]
assert len(names) == 1, f"the folder has the names {names}"
tree = {key for key in keys[names[0]] if not key.endswith("/")}
wanted = {f"{names[0]}/tree/{part}/{n}" for part in "abc" for n in range(100)}
assert tree == wanted, f"{len(wanted - tree)} missing, {len(tree - wanted)} too many"
for key in sorted(wanted)[::37]:
    body = s3.get_object(Bucket="data", Key=key)["Body"].read()
    assert body.decode() == key.split("/", 1)[1], (key, body)
print(names[0])
EOF
}

plant_tree() { # plant_tree FOLDER: 300 files, each of which says where it is
    "$PYTHON" - "$BUCKET_URL" "$1" <<'EOF'
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
for part in "abc":
    for n in range(100):
        key = f"tree/{part}/{n}"
        s3.put_object(Bucket="data", Key=f"{sys.argv[2]}/{key}", Body=key.encode())
EOF
}

renamed_whole() {
    plant_tree first && mkdir "$mnt/second" && forget || return 1
    mv -T "$mnt/first" "$mnt/second" || return 1
    asked 'sent_bytes < 1 << 20 and written_bytes < 1 << 20 and get("CopyObject") == 300' &&
        [ "$(whole first second)" = second ] && [ ! -e "$mnt/first" ] &&
        [ "$(cat "$mnt/second/tree/b/42")" = tree/b/42 ]
}
check "a folder of 300 files is renamed over an empty one" renamed_whole

# kill_renaming OLD NEW OPERATION COUNT: the mount dies when the store has got so many of these
# requests of the rename, or when the rename has ended.
kill_renaming() {
    forget && faults '{"first_byte_ms": 100}' || return 1
    mv -T "$mnt/$1" "$mnt/$2" 2>/dev/null &
    local mover=$!
    "$PYTHON" - "$BUCKET_URL" "$mover" "$3" "$4" <<'EOF' || return 1
import json, sys, time, urllib.request
url, mover, operation, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
def has_ended():
    # The shell may have waited for it by now.
    try:
        with open(f"/proc/{mover}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
limit = time.monotonic() + 120  # only says that something hangs
while not has_ended():
    if time.monotonic() > limit:
        sys.exit("the rename hangs")
    with urllib.request.urlopen(f"{url}/-/counters") as answer:
        if json.load(answer)["requests"].get(operation, 0) >= count:
            break
    time.sleep(0.002)
EOF
    signal_daemon KILL
    wait "$mover"
    wait_for 60 daemon_is_gone && no_faults
}

# Some kills come in each step, whatever the machine.
killed_anywhere() {
    local now=second name other old=0 new=0 half=0 round=0 step
    for step in 'ListObjectsV2 0' 'ListObjectsV2 2' 'PutObject 1' 'PutObject 1' 'CopyObject 1' \
        'CopyObject 40' 'CopyObject 150' 'CopyObject 290' 'CopyObject 300' 'DeleteObject 1' \
        'DeleteObject 100' 'DeleteObject 250' 'DeleteObject 300' 'DeleteObject 1000'; do
        round=$((round + 1)) name=$now
        [ "$name" = second ] && other=first || other=second
        # shellcheck disable=SC2086 # the name of a request, and how many
        kill_renaming "$name" "$other" $step || return 1
        whole first second >/dev/null 2>&1 || half=$((half + 1))
        mount_bucket 2>>"$work/said" || return 1
        now=$(whole first second) || { echo "round $round, after $step"; return 1; }
        if [ "$now" = "$name" ]; then old=$((old + 1)); else new=$((new + 1)); fi
        [ "$now" = second ] && other=first || other=second
        [ "$(find "$mnt/$now" -type f | wc -l)" = 300 ] && [ ! -e "$mnt/$other" ] || return 1
    done
    echo "$old kills left the old folder, $new the new one; $half came half-way"
    [ "$new" -gt 0 ] && [ "$half" -gt 0 ]
}
: >"$work/said"
check "a folder whose mount is killed while it gets another name is old or new, whole" \
    killed_anywhere
check "the next mount says that it finished it" \
    grep -q "another mount had stopped half-way" "$work/said"

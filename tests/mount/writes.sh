# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Real programs write, and boto3 reads it back. Sourced by tests/mount/run.sh.

mount_bucket >"$work/out" 2>&1 || not_ok "writes: a bucket is mounted"
can_write=yes
(printf probe >"$mnt/probe") 2>"$work/why" || can_write=
if [ -z "$can_write" ]; then
    skip "writes" "this mount does not write: $(tail -n 1 "$work/why")"
    return 0
fi

# stored KEY FILE: the object has the file's contents.
stored() {
    "$PYTHON" - "$BUCKET_URL" "$1" "$2" <<'EOF'
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
found = s3.get_object(Bucket="data", Key=sys.argv[2])["Body"].read()
assert found == open(sys.argv[3], "rb").read(), f"{len(found)} bytes are there"
EOF
}
# leftovers: uploads that were neither completed nor aborted.
no_leftovers() {
    control GET state | python3 -c '
import json, sys
sys.exit(json.load(sys.stdin)["data"]["uploads"])'
}

mkdir -p "$work/written"
head -c 30000000 /dev/urandom >"$work/written/large"
head -c 100 /dev/urandom >"$work/written/small"
: >"$work/written/none"

copied() {
    local file
    for file in large small none; do
        cp "$work/written/$file" "$mnt/$file" && stored "$file" "$work/written/$file" || return 1
        cmp "$mnt/$file" "$work/written/$file" || return 1
    done
    no_leftovers
}
check "cp writes files of any size, whole at close" copied

tree_written() {
    cp -r docs/adr "$mnt/adr" && diff -r "$mnt/adr" docs/adr && remount &&
        diff -r "$mnt/adr" docs/adr
}
check "cp -r writes a tree that is there after a new mount" tree_written

unpacked() { mkdir -p "$mnt/tar" && tar -C docs -cf - lab | tar -C "$mnt/tar" -xf - &&
    diff -r "$mnt/tar/lab" docs/lab; }
check "tar unpacks into the bucket" unpacked

rewritten() {
    printf 'first contents' >"$mnt/rewritten" && printf 'second' >"$mnt/rewritten" &&
        [ "$(cat "$mnt/rewritten")" = second ]
}
check "a file is written again" rewritten

removed() {
    mkdir -p "$mnt/gone/inner" && printf x >"$mnt/gone/inner/file" && rm -r "$mnt/gone" &&
        [ ! -e "$mnt/gone" ] && rm "$mnt/small" && [ ! -e "$mnt/small" ] &&
        ends 1 "not empty" rmdir "$mnt/adr"
}
check "rm and rmdir remove, and a folder with files stays" removed

renamed() {
    forget && mv "$mnt/large" "$mnt/moved" && [ ! -e "$mnt/large" ] &&
        asked 'sent_bytes < 1 << 20 and written_bytes < 1 << 20' &&
        stored moved "$work/written/large"
}
check "mv renames inside the store, and no contents move" renamed

appended() {
    printf 'one\n' >"$mnt/log" && printf 'two\n' >>"$mnt/log" &&
        [ "$(cat "$mnt/log")" = "$(printf 'one\ntwo')" ]
}
check "a file is appended to" appended

# change FILE: bytes in the middle, and its length.
change() {
    "$PYTHON" - "$1" <<'EOF'
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(file, b"CHANGED", 12_345_678)
os.ftruncate(file, 20_000_000)
os.close(file)
EOF
}
in_place() {
    change "$mnt/moved" && change "$work/written/large" && stored moved "$work/written/large"
}
change "$mnt/moved" >"$work/why" 2>&1
if grep -q "Operation not supported" "$work/why"; then
    skip "a file is changed in place and cut" "this mount answers: Operation not supported"
else
    check "a file is changed in place and cut" in_place
fi

safe_save() {
    "$PYTHON" - "$mnt/model.safetensors" <<'EOF'
import os, sys
path = sys.argv[1]
with open(path + ".tmp", "wb") as file:
    os.ftruncate(file.fileno(), 100_000)
    file.write(b"m" * 100_000)
    os.fsync(file.fileno())
os.chmod(path + ".tmp", 0o644)
os.rename(path + ".tmp", path)
assert open(path, "rb").read() == b"m" * 100_000
EOF
}
check "set_len, write, chmod and rename, as safetensors saves" safe_save

if command -v sqlite3 >/dev/null; then
    database() {
        sqlite3 "$mnt/new.sqlite" 'create table t(a); insert into t values(42)' &&
            [ "$(sqlite3 "$mnt/new.sqlite" 'select a from t')" = 42 ] &&
            sqlite3 "$mnt/new.sqlite" 'update t set a = 43' && remount &&
            [ "$(sqlite3 "file:$mnt/new.sqlite?immutable=1" 'select a from t')" = 43 ]
    }
    check "sqlite makes and changes a database" database
fi

committed() {
    git init -q "$mnt/repository" && cp -r docs/adr "$mnt/repository/" &&
        git -C "$mnt/repository" add -A &&
        git -C "$mnt/repository" -c user.name=t -c user.email=t@t commit -qm one &&
        git -C "$mnt/repository" fsck --no-progress &&
        [ -z "$(git -C "$mnt/repository" status -s)" ]
}
check "git makes a repository and commits" committed

cheap_copy() {
    objects big/ 2 1073741824 && remount && forget || return 1
    local big
    big=$(ls "$mnt/big" | head -n 1)
    cp "$mnt/big/$big" "$mnt/big-copy" && mv "$mnt/big-copy" "$mnt/big-moved" &&
        [ "$(stat -c %s "$mnt/big-moved")" = 1073741824 ] &&
        asked 'sent_bytes < 1 << 20 and written_bytes < 1 << 20 and read_bytes < 1 << 20' &&
        cmp -n 1000000 -i 700000000 "$mnt/big/$big" "$mnt/big-moved" && rm "$mnt/big-moved"
}
check "cp and mv of 1 GiB move nothing through the client" cheap_copy

unlinked_open() {
    "$PYTHON" - "$mnt/moved" "$mnt/other" <<'EOF'
import os, sys
path, other = sys.argv[1:]
whole = open(path, "rb").read()
first, second = open(path, "rb"), open(path, "r+b")
os.unlink(path)
assert not os.path.exists(path)
second.seek(10)
second.write(b"unseen")
second.flush()
os.posix_fadvise(first.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
assert os.fstat(first.fileno()).st_size == len(whole)
first.seek(15_000_000)
assert first.read(1000) == whole[15_000_000:15_001_000]
for file in (first, second):
    file.close()
open(path, "wb").write(whole)
open(other, "wb").write(b"new")
first = open(path, "rb")
os.rename(other, path)
first.seek(15_000_000)
assert first.read(1000) == whole[15_000_000:15_001_000]
assert open(path, "rb").read() == b"new"
first.close()
EOF
    local ended=$?
    [ $ended = 0 ] && hidden_are_gone
}
hidden_are_gone() {
    "$PYTHON" - "$BUCKET_URL" <<'EOF'
import boto3, sys, time
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
for _ in range(600):
    if not s3.list_objects_v2(Bucket="data", Prefix=".weft-unlinked").get("Contents"):
        sys.exit()
    time.sleep(0.1)
sys.exit("hidden copies are left")
EOF
}
check "unlinked and replaced files are read on while they are open" unlinked_open

locked() {
    "$PYTHON" - "$mnt/lock" <<'EOF'
import fcntl, os, subprocess, sys
path = sys.argv[1]
open(path, "w").close()
other = '''
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    getattr(fcntl, sys.argv[2])(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(7)
'''
for call in ("flock", "lockf"):
    with open(path, "r+") as file:
        getattr(fcntl, call)(file, fcntl.LOCK_EX)
        taken = subprocess.run([sys.executable, "-c", other, path, call]).returncode
        assert taken == 7, (call, taken)
    free = subprocess.run([sys.executable, "-c", other, path, call]).returncode
    assert free == 0, (call, free)
EOF
}
check "flock and fcntl locks exclude programs of this host" locked

killed_writing() {
    printf 'old' >"$mnt/half" && stored half <(printf old) || return 1
    "$PYTHON" - "$mnt/half" "$work/half-way" <<'EOF' &
import sys, time
file = open(sys.argv[1], "wb", buffering=0)
# Not bytes(N), whose pages are not in memory yet: of those Linux 6.18 makes two requests for each
# page instead of one for each 1 MiB.
file.write(b"new " * 10_000_000)
open(sys.argv[2], "w").close()
time.sleep(3600)
EOF
    local writer=$! is_half_way=
    if wait_for 60 test -e "$work/half-way"; then
        is_half_way=yes
        signal_daemon KILL
    fi
    # Also where the time is up: while it has the file open, no later case can unmount.
    kill "$writer" 2>/dev/null
    wait "$writer"
    [ -n "$is_half_way" ] && wait_for 60 daemon_is_gone && mount_bucket &&
        stored half <(printf old)
}
check "a writer whose mount is killed leaves the old contents" killed_writing

written_through_faults() {
    # Shares so small that five attempts are enough, in whichever order the requests come.
    faults '{"slow_down": 0.1, "reset": 0.02, "seed": 7}' || return 1
    # Side by side: each request that is refused makes a pause.
    mkdir "$mnt/through-faults" && printf '%s\0' "$work/written/large" docs/adr/* |
        xargs -0 -P 6 -n 1 cp -t "$mnt/through-faults"
    local ended=$?
    control DELETE faults >/dev/null
    [ $ended = 0 ] && stored through-faults/large "$work/written/large" &&
        diff -r -x large "$mnt/through-faults" docs/adr
}
check "writes are right where requests are refused and reset" written_through_faults

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Writes in any order, what lies on the disk meanwhile, and what the next mount makes of it. Sourced
# by tests/mount/run.sh after writes.sh, whose functions it uses.

remount >"$work/out" 2>&1 || not_ok "staged: a bucket is mounted"
rm -f "$work/weft-mount.log"
random_writes() { # random_writes FILE SEED: as a database or an array format writes
    "$PYTHON" - "$1" "$2" <<'EOF2'
import mmap, os, random, sys
random.seed(int(sys.argv[2]))
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(file, 100_000_000)
for _ in range(300):
    os.pwrite(file, random.randbytes(random.randrange(1, 100_000)), random.randrange(99_900_000))
with mmap.mmap(file, 100_000_000) as memory:
    for _ in range(50):
        at = random.randrange(99_999_000)
        memory[at:at + 1000] = random.randbytes(1000)
    memory.flush()
os.ftruncate(file, 90_000_000)
os.close(file)
EOF2
}
in_any_order() {
    random_writes "$mnt/array" 1 && random_writes "$work/written/array" 1 &&
        stored array "$work/written/array" && cmp "$mnt/array" "$work/written/array" || return 1
    # Little changes in a large file cost little.
    forget
    change_at 45000000 "$mnt/array" && change_at 45000000 "$work/written/array" &&
        stored array "$work/written/array" && no_leftovers
}
change_at() { printf CHANGED | dd of="$2" bs=1 seek="$1" conv=notrunc status=none; }
check "a file of 100 MB is written in any order, mapped, and cut" in_any_order

small_change() {
    remount && forget && change_at 60000000 "$mnt/array" &&
        asked 'read_bytes < 12 << 20 and written_bytes < 12 << 20'
}
check "a change of 7 bytes moves a part, not the file" small_change
change_at 60000000 "$work/written/array"

mapped_alone() {
    "$PYTHON" - "$mnt/mapped" <<'EOF2'
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 1_000_000)
memory = mmap.mmap(file, 1_000_000)
os.close(file)
memory[10:14] = b"LATE"
memory.close()
EOF2
    wait_for 60 late_is_stored
}
late_is_stored() { remount && [ "$(tail -c +11 "$mnt/mapped" | head -c 4)" = LATE ]; }
check "what is written through a mapping after close is published, too" mapped_alone

# hold FILE SECONDS: writes a file and leaves it open.
hold() {
    "$PYTHON" - "$1" "$work/held" "$2" <<'EOF2' &
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, b"half a file", 5)
open(sys.argv[2], "w").close()
time.sleep(float(sys.argv[3]))
EOF2
    held_by=$!
}
killed_staging() {
    rm -f "$work/held"
    hold "$mnt/halved" 3600
    wait_for 60 test -e "$work/held" || return 1
    signal_daemon KILL
    kill "$held_by" 2>/dev/null
    wait "$held_by" 2>/dev/null
    wait_for 60 daemon_is_gone && mount_bucket 2>"$work/said" && [ ! -e "$mnt/halved" ] &&
        grep -F 'halved' "$work/said" &&
        cmp "$work"/stage/saved/*halved <(printf '\0\0\0\0\0half a file') && no_leftovers
}
check "a half-written file of a killed mount is saved, and said" killed_staging

# A store that takes no object yet is the slowest there is: a close that waits for it fails.
behind() {
    remount --publish async && mkdir "$mnt/behind" &&
        faults '{"slow_down": 1.0, "operations": ["PutObject"]}' || return 1
    local number closed=yes
    for number in {1..40}; do
        printf '%s' "$number" >"$mnt/behind/$number" || closed=
    done
    no_faults
    [ -n "$closed" ] && unmount_bucket && mount_bucket &&
        [ "$(cat "$mnt"/behind/* | wc -c)" = 71 ]
}
check "with --publish async 40 files are closed before a slow store has them" behind

killed_behind() {
    remount --publish async &&
        faults '{"slow_down": 1.0, "operations": ["PutObject"]}' || return 1
    printf 'closed, not stored' >"$mnt/promised"
    signal_daemon KILL
    wait_for 60 daemon_is_gone
    no_faults
    mount_bucket && [ "$(cat "$mnt/promised")" = 'closed, not stored' ]
}
check "what was closed under --publish async is published by the next mount" killed_behind

# written_until_full FILE: from its end to its beginning, until a write is refused; what was taken
# before that is in the file afterwards.
written_until_full() {
    "$PYTHON" - "$1" <<'EOF2'
import errno, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
taken = 0
try:
    for index in reversed(range(100)):
        if os.pwrite(file, bytes([index]) * 1_000_000, index * 1_000_000) == 1_000_000:
            taken += 1_000_000
    sys.exit("100 MB were taken")
except OSError as error:
    assert error.errno == errno.ENOSPC, error
os.close(file)
with open(sys.argv[1], "rb") as file:
    file.seek(100_000_000 - taken)
    for index in range(100 - taken // 1_000_000, 100):
        assert file.read(1_000_000) == bytes([index]) * 1_000_000, index
EOF2
}
full() { remount --stage-limit 64m && written_until_full "$mnt/full"; }
check "a full stage refuses with ENOSPC, and what was taken is stored" full

# The disk under the stage is full long before --stage-limit. Once there is room again, writing goes
# on.
full_disk() {
    local small=$work/small-disk ended
    mkdir "$small" && mount -t tmpfs -o size=30m tmpfs "$small" && unmount_bucket || return 1
    stage=$small/stage mount_bucket && written_until_full "$mnt/full-disk" &&
        head -c 20000000 /dev/urandom >"$work/again" &&
        dd if="$work/again" of="$mnt/again" bs=100000 conv=notrunc status=none &&
        stored again "$work/again" &&
        { head -c 29000000 /dev/zero >"$small/other"; ends 1 "No space left" \
            dd if="$work/again" of="$mnt/refused" bs=1000000 seek=5 status=none; } &&
        rm "$small/other" && cp "$work/again" "$mnt/third" && stored third "$work/again"
    ended=$?
    rm -f "$small/other"
    unmount_bucket && umount "$small" && return $ended
}
check "a full disk refuses with ENOSPC, what was taken is stored, and room ends that" full_disk

store_away() {
    remount || return 1
    "$PYTHON" - "$mnt/away" "$BUCKET_URL" <<'EOF2'
import errno, json, os, sys, urllib.request
def slow_down(share):
    data = json.dumps({"slow_down": share}).encode()
    urllib.request.urlopen(urllib.request.Request(sys.argv[2] + "/-/faults", data))
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"kept")
slow_down(1.0)
try:
    os.fsync(file)
    sys.exit("fsync said that it was stored")
except OSError as error:
    assert error.errno == errno.EIO, error
os.write(file, b" and more")
slow_down(0.0)
os.fsync(file)
os.close(file)
EOF2
    local ended=$?
    no_faults
    [ $ended = 0 ] && stored away <(printf 'kept and more')
}
check "fsync fails while the store is away, and stores all once it is back" store_away

strangers() {
    unmount_bucket
    mkdir -m 777 "$work/entered" && stage=$work/entered ends 1 "chmod 700" mount_bucket &&
        mount_bucket
}
check "a stage that others may enter is refused" strangers

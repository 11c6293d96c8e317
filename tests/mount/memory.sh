# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Many readers within a bound of memory. Sourced by tests/mount/run.sh.

# resident: the most memory that the mount had, in KiB.
resident() { awk '/^VmHWM/ { print $2 }' "/proc/$(daemon_id)/status"; }

objects readers/ 1000 3000000
readers() {
    remount --memory-target 512m --metadata-ttl 3600 && forget || return 1
    timeout 600 "$PYTHON" - "$mnt/readers" <<'EOF2' || return 1
import os, sys
names = sorted(os.listdir(sys.argv[1]))
files = [os.open(os.path.join(sys.argv[1], name), os.O_RDONLY) for name in names]
assert len(files) == 1000
# All are open, and each is read a piece at a time, so that all streams are under way at once.
read = 0
for at in range(0, 3_000_000, 500_000):
    for file in files:
        read += len(os.pread(file, 500_000, at))
assert read == 3_000_000_000, read
EOF2
    echo "$(resident) KiB"
    [ "$(resident)" -le $((563 * 1024)) ] && asked 'read_bytes <= 1.1 * 3_000_000_000'
}
check "1,000 readers under --memory-target 512m take at most 563 MiB" readers

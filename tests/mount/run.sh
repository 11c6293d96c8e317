#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# weft-mount under real programs, on the S3 server of the tests: what they read and write, how many
# requests that takes, faults of the store, kills, and wrong usage.
# Usage: tests/mount/run.sh [PART]...
#
# Parts: reads requests cache memory together locks hosts shared mpi faults stores ends writes
# staged renames posix programs.
# WEFT_MOUNT and BUCKET_SERVER name other programs than those in target/debug; WEFT_FSX_STEPS=100000
# is the long run of fsx, WEFT_PJDFSTEST= (empty) that of pjdfstest.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# In mounts of its own: a namespace that somebody else makes meanwhile, as other suites do, would
# hold a copy of each mount, and its daemon would live as long.
if [ -z "${WEFT_MOUNT_NAMESPACE:-}" ] && unshare --mount true 2>/dev/null; then
    export WEFT_MOUNT_NAMESPACE=1
    exec unshare --mount --propagation private tests/mount/run.sh "$@"
fi
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/bucket-server/server.sh
. tests/bucket-server/server.sh
all=(reads requests cache memory together locks hosts shared mpi faults stores ends writes staged
    renames posix programs)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
PYTHON=${BUCKET_PYTHON:-$PWD/.env/bucket/bin/python}
export AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret AWS_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null
export AWS_SHARED_CREDENTIALS_FILE=/dev/null

[ -c /dev/fuse ] || skip_all "the mount" "there is no /dev/fuse"
[ "$(id -u)" = 0 ] || skip_all "the mount" "mounting for the tests wants root"
"$PYTHON" -c 'import boto3' 2>/dev/null ||
    skip_all "the mount" "boto3 is not in $PYTHON (scripts/setup.sh test)"
need_bucket_server
WEFT_MOUNT=${WEFT_MOUNT:-${CARGO_TARGET_DIR:-target}/debug/weft-mount}
if [ ! -x "$WEFT_MOUNT" ]; then
    cargo build --locked --quiet -p weft-daemon
    [ -x "$WEFT_MOUNT" ] || { echo "run.sh: $WEFT_MOUNT could not be built" >&2; exit 2; }
fi
WEFT_MOUNT=$(realpath "$WEFT_MOUNT")

mnt=$work/mnt
mkdir "$mnt"
# Nothing below the folder is removed while a bucket may still be mounted there.
tidy() {
    umount "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null
    stop_bucket_server
    rm -rf --one-file-system "$work"
}
trap tidy EXIT

# mount_bucket OPTIONS...: the bucket `data` at $mnt.
mount_bucket() {
    timeout 300 "$WEFT_MOUNT" data "$mnt" --endpoint-url "$BUCKET_URL" \
        --log-directory "$work" --stage "${stage:-$work/stage}" "$@"
}

# is_mounted: whether a bucket is at $mnt.
is_mounted() { grep -qF " $mnt " /proc/self/mountinfo; }

# unmount_bucket: and nothing is left of it. What was open a moment ago may be open still.
unmount_bucket() {
    is_mounted || return 0
    wait_for 60 umount "$mnt" && wait_for 60 daemon_is_gone
}
daemon_id() { pgrep -f "^$WEFT_MOUNT data $mnt "; }
daemon_is_gone() { ! daemon_id >/dev/null; }
# signal_daemon SIGNAL
signal_daemon() {
    local id
    id=$(daemon_id) && kill "-$1" $id # more than one only if one was left behind
}

# remount OPTIONS...: with nothing in the caches of mount and kernel.
remount() { unmount_bucket && mount_bucket "$@"; }

# objects PREFIX COUNT SIZE: synthetic objects of the server.
objects() {
    control POST objects \
        "{\"bucket\": \"data\", \"prefix\": \"$1\", \"count\": $2, \"size\": $3}" >/dev/null
}

# upload FOLDER PREFIX: all files of a folder, by boto3.
upload() { "$PYTHON" tests/mount/upload.py "$BUCKET_URL" data "$1" "$2"; }

# forget: counts from zero.
forget() { control DELETE counters >/dev/null; }
asked() { # asked EXPRESSION: of `requests`, `ranges`, `read_bytes` and so on
    control GET counters | python3 -c '
import json, sys
counts = json.load(sys.stdin)
print(counts["requests"], counts["read_bytes"], "bytes read,", counts["sent_bytes"], "sent")
names = dict(counts, get=lambda name: counts["requests"].get(name, 0))
sys.exit(not eval(sys.argv[1], names))' "$1"
}

start_bucket_server --bucket data
trap tidy EXIT
for part in "${parts[@]}"; do
    no_faults
    if [ ! -f "tests/mount/$part.sh" ]; then
        echo "run.sh: there is no part $part; there are ${all[*]}" >&2
        exit 2
    fi
    # shellcheck source=/dev/null
    . "tests/mount/$part.sh"
    unmount_bucket || not_ok "$part: the mount goes away at the end"
done
summary

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Stores that do not keep conditions: it is said, and nobody's change is lost all the same. Sourced
# by tests/mount/run.sh.

# others_change: somebody else writes an object between open and close; close fails.
others_change() {
    "$PYTHON" - "$mnt/shared" "$BUCKET_URL" <<'EOF2'
import boto3, errno, os, sys
path, url = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=url)
s3.put_object(Bucket="data", Key="shared", Body=b"old")
file = os.open(path, os.O_RDWR)
os.write(file, b"mine")
s3.put_object(Bucket="data", Key="shared", Body=b"theirs")
try:
    os.fsync(file)
    sys.exit("it was published over the change of somebody else")
except OSError as error:
    assert error.errno == errno.ESTALE, error
try:
    os.close(file)
except OSError:
    pass
assert s3.get_object(Bucket="data", Key="shared")["Body"].read() == b"theirs"
left = [one["Key"] for one in s3.list_objects_v2(Bucket="data").get("Contents", [])]
assert not [key for key in left if "probe" in key], left
EOF2
}

# store_without FAULTS WORDS: what is said of such a store.
store_without() {
    unmount_bucket
    : >"$work/weft-mount.log"
    no_faults && faults "$1" && mount_bucket >"$work/said" 2>&1 || return 1
    cat "$work/said"
    grep -q "does not honour conditions .* on $2:" "$work/said" && others_change
}
check "the log names a store that honours no conditions on writes, and the mount asks before each" \
    store_without '{"conditional_put": "ignored"}' \
    'PutObject, CompleteMultipartUpload, DeleteObject'
check "the same for a store that refuses conditions on copies" \
    store_without '{"conditional_copy": "refused"}' CopyObject

keeps_all() {
    unmount_bucket && no_faults && mount_bucket >"$work/said" 2>&1 && others_change &&
        [ ! -s "$work/said" ]
}
check "of a store that keeps all conditions nothing is said" keeps_all

reads_only() {
    unmount_bucket && forget && mount_bucket --read-only >"$work/said" 2>&1 &&
        asked '"PutObject" not in requests'
}
check "a store that is mounted to be read is not written to" reads_only

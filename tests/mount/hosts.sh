# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs that others wrote, on two hosts of a job that share a bucket: what one host's program
# wrote, the other host's program checks, and then an S3 client that is no mount. Sourced by
# tests/mount/run.sh; the hosts are those of tests/testbed.

# shellcheck source=tests/mount/two_hosts.sh
. tests/mount/two_hosts.sh
# shellcheck source=tests/mount/imports.sh
. tests/mount/imports.sh

# Names may be twice as old as the time to live, which is one second.
later() { sleep 2.2; }

# stored FOLDER PREFIX: boto3 reads each file of the folder from the bucket with the same bytes.
stored() {
    on a0 "$PYTHON" - "$there" "$1" "$2" <<'PYTHON'
import pathlib, sys
import boto3
url, folder, prefix = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=url)
files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
for path in files:
    key = prefix + "/" + str(path.relative_to(folder))
    assert s3.get_object(Bucket="data", Key=key)["Body"].read() == path.read_bytes(), key
print(len(files), "files are in the bucket")
assert files
PYTHON
}

git_on() {
    on "${hosts[$1]}" env HOME="$work" GIT_CONFIG_NOSYSTEM=1 git -c user.name=weft \
        -c user.email=w@example.org -c init.defaultBranch=main -c safe.directory='*' \
        -c protocol.file.allow=always "${@:2}"
}
# commit NUMBER NAME: a commit with a file of this name, from this host's clone to the bucket.
commit() {
    echo "$2" >"$work/clone$1/$2" && git_on "$1" -C "$work/clone$1" add "$2" &&
        git_on "$1" -C "$work/clone$1" commit -q -m "$2" &&
        git_on "$1" -C "$work/clone$1" push -q origin HEAD:main && later
}
git_by_turns() {
    local number
    git_on 0 init -q --bare "$work/node0/repo.git" &&
        git_on 0 clone -q "$work/node0/repo.git" "$work/clone0" && commit 0 first &&
        git_on 1 clone -q "$work/node1/repo.git" "$work/clone1" && commit 1 second &&
        git_on 0 -C "$work/clone0" pull -q --ff-only origin main && commit 0 third &&
        git_on 1 -C "$work/clone1" pull -q --ff-only origin main || return 1
    for number in 0 1; do
        git_on $number -C "$work/node$number/repo.git" fsck --full --strict &&
            git_on $number -C "$work/node$number/repo.git" log --format='%H %s' main \
                >"$work/log$number" || return 1
    done
    cat "$work/log1"
    [ "$(wc -l <"$work/log1")" = 3 ] && cmp "$work/log0" "$work/log1" &&
        cmp "$work/clone0/third" "$work/clone1/third"
}

# A folder of 120 files, of 0 bytes to 2 MB.
some_files() {
    python3 - "$work/some" <<'PYTHON'
import pathlib, random, sys
chance = random.Random(20261129)
for number in range(120):
    path = pathlib.Path(sys.argv[1], f"d{number % 7}", f"file{number}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chance.randbytes(number * 300 if number % 40 else number * 20000))
PYTHON
}
# The second run of rsync, on the other host, compares checksums and may name no file.
rsync_compared() {
    some_files && on a0 rsync -r --inplace "$work/some/" "$work/node0/some/" && later &&
        on b1 rsync -rnc --delete --itemize-changes "$work/some/" "$work/node1/some/" \
            >"$work/differs" || return 1
    cat "$work/differs"
    ! grep -q '^[<>*]' "$work/differs" && stored "$work/some" some
}

tar_unpacked() {
    tar -C "$work/some" -cf "$work/some.tar" . && mkdir -p "$work/node0" &&
        on a0 mkdir "$work/node0/unpacked" &&
        on a0 tar -C "$work/node0/unpacked" -xf "$work/some.tar" && later &&
        on b1 tar -C "$work/node1/unpacked" --compare -f "$work/some.tar" &&
        stored "$work/some" unpacked
}

# python_on NUMBER CODE: Python of the libraries on a host, with `folder` of its mount.
python_on() {
    on "${hosts[$1]}" "$libraries" -c "folder = '$work/node$1'; host = $1
$2"
}
# Hosts append to one HDF5 file by turns, and each finds all that the other wrote.
h5py_by_turns() {
    local code='
import h5py, numpy
with h5py.File(folder + "/turns.h5", "a") as file:
    x = file.require_dataset("x", (0,), "f8", maxshape=(None,), chunks=(4096,)) if not count \
        else file["x"]
    assert len(x) == 50_000 * count, len(x)
    assert (x[:] == numpy.arange(50_000.0 * count)).all()
    x.resize((50_000 * (count + 1),))
    x[50_000 * count:] = numpy.arange(50_000.0 * count, 50_000 * (count + 1))
'
    local count
    for count in 0 1 2 3; do
        python_on $((count % 2)) "count = $count; $code" && later || return 1
    done
}
# Both hosts write their chunks of one array at the same time.
zarr_at_once() {
    local code='
import numpy, zarr
array = zarr.open_array(folder + "/both.zarr", mode="r+")
for row in range(host, 10, 2):
    data = numpy.arange(row * 16_000.0, (row + 1) * 16_000)
    array[row * 40:(row + 1) * 40] = data.reshape(40, 400)
'
    local check='
import numpy, zarr
found = zarr.open_array(folder + "/both.zarr", mode="r")[:]
assert (found == numpy.arange(160_000.0).reshape(400, 400)).all()
'
    python_on 0 'import zarr
zarr.create_array(folder + "/both.zarr", shape=(400, 400), chunks=(40, 100), dtype="f8")' &&
        later || return 1
    python_on 0 "$code" &
    local other=$!
    python_on 1 "$code" && wait $other && later && python_on 0 "$check" && python_on 1 "$check"
}
# A model that one host saves the other one loads, and saves another in its place.
safetensors_by_turns() {
    local step code='
import numpy
from safetensors.numpy import load_file, save_file
path = folder + "/model.safetensors"
if step:
    found = load_file(path)
    assert (found["w"] == step - 1).all() and len(found["w"]) == 500_000 and found["b"].sum() == 7
save_file({"w": numpy.full((500_000,), step, "f4"), "b": numpy.ones(7)}, path)
'
    for step in 0 1 2; do python_on $((step % 2)) "step = $step; $code" && later || return 1; done
}
# An environment of Python lies in the bucket; both hosts import from it at once.
environment_imported() {
    environment || return 1
    on a0 python3 tests/bucket-server/control.py "$there/-/counters" DELETE >/dev/null
    all_import 2 &&
        on a0 python3 tests/bucket-server/control.py "$there/-/counters" GET | python3 -c '
import json, sys
counts, total = json.load(sys.stdin), int(sys.argv[1])
print(counts["requests"], counts["read_bytes"], "of", total)
sys.exit(counts["read_bytes"] > 1.02 * total)' "$site_bytes"
}
library() { # library NAME WORDS CASE
    if "$libraries" -c "import $1" 2>/dev/null; then
        check "$1: $2" "$3"
    else
        skip "$1: $2" "it is not in $libraries (scripts/setup.sh test)"
    fi
}

# with PROGRAM NAME CASE
with() {
    if command -v "$1" >/dev/null; then check "$2" "$3"; else skip "$2" "there is no $1"; fi
}

if ! reason=$("$TESTBED" check); then
    skip "programs on two hosts" "$reason"
else
    begin_two_hosts
    check "a bucket on two hosts, for programs" mount_on_both
    with git "git: two hosts push by turns, and fsck and log agree" git_by_turns
    with rsync "rsync on one host, compared by checksums on the other" rsync_compared
    with tar "tar unpacks on one host, and compares on the other" tar_unpacked
    library h5py "two hosts append to one file by turns" h5py_by_turns
    library zarr "two hosts write chunks of one array at once" zarr_at_once
    library safetensors "two hosts load and save one model by turns" safetensors_by_turns
    library numpy "two hosts import it from the bucket, and no byte leaves the store twice" \
        environment_imported
    end_two_hosts 0 1
fi

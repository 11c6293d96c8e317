# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs and libraries that write as jobs do, and fsx, which judges. Sourced by
# tests/mount/run.sh.

remount >"$work/out" 2>&1 || not_ok "programs: a bucket is mounted"
libraries=${MOUNT_PYTHON:-$PWD/.env/mount-programs/bin/python}
fsx=${FSX:-$PWD/.env/mount-judges/bin/fsx}

if command -v rsync >/dev/null; then
    synced() {
        rsync -r docs/adr/ "$mnt/synced/" && diff -r docs/adr "$mnt/synced" &&
            rsync -r --inplace docs/lab/ "$mnt/in-place/" && remount &&
            diff -r docs/adr "$mnt/synced" && diff -r docs/lab "$mnt/in-place"
    }
    check "rsync copies a tree, with its temporary names and in place" synced
fi

# library NAME CODE: Python code with `folder`, a new folder on the mount.
library() {
    if ! "$libraries" -c "import $1" 2>/dev/null; then
        skip "$1" "it is not in $libraries (scripts/setup.sh test)"
        return
    fi
    check "$1 writes, changes, and reads back after a new mount" library_runs "$1" "$2"
}
library_runs() {
    mkdir -p "$mnt/$1" && "$libraries" -c "folder = '$mnt/$1'; again = False; $2" && remount &&
        "$libraries" -c "folder = '$mnt/$1'; again = True; $2"
}

library h5py '
import h5py, numpy
path = folder + "/a.h5"
data = numpy.arange(3_000_000.0)
if not again:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, maxshape=(None,), chunks=(65536,))
    for _ in range(2):
        with h5py.File(path, "a") as file:
            x = file["x"]
            x.resize((len(x) + len(data),))
            x[-len(data):] = data
            x[5] = 55
with h5py.File(path) as file:
    x = file["x"][:]
    assert len(x) == 3 * len(data) and x[5] == 55 and (x[-len(data):] == data).all()
'
library zarr '
import numpy, zarr
path = folder + "/a.zarr"
if not again:
    array = zarr.create_array(path, shape=(400, 400), chunks=(100, 100), dtype="f8")
    array[:] = numpy.arange(160_000.0).reshape(400, 400)
    array[7, 7] = -1
array = zarr.open_array(path, mode="r")
assert array[7, 7] == -1 and array[399, 399] == 159_999
'
library safetensors '
import numpy
from safetensors.numpy import load_file, save_file
path = folder + "/model.safetensors"
if not again:
    for step in range(2):
        save_file({"w": numpy.full((3_000_000,), step, "f4"), "b": numpy.ones(7)}, path)
found = load_file(path)
assert (found["w"] == 1).all() and len(found["w"]) == 3_000_000 and found["b"].sum() == 7
'

judged() (
    cd "$work" &&
        timeout 1500 "$fsx" -N "${WEFT_FSX_STEPS:-1000}" -S "$seed" -P "$work" "$mnt/fsx"
)
if [ -x "$fsx" ]; then
    seed=${WEFT_MOUNT_SEED:-$RANDOM}
    echo "# fsx: seed $seed (WEFT_MOUNT_SEED), ${WEFT_FSX_STEPS:-1000} steps (WEFT_FSX_STEPS)"
    check "fsx finds no byte that is not as it should be" judged
else
    skip "fsx" "$fsx is missing (scripts/setup.sh test)"
fi

many_writers() {
    remount --memory-target 512m || return 1
    "$PYTHON" - "$mnt/many" 200 <<'EOF' || return 1
import os, sys
folder, count = sys.argv[1], int(sys.argv[2])
os.mkdir(folder)
files = [open(f"{folder}/{index}", "wb", buffering=0) for index in range(count)]
for step in range(3):
    for index, file in enumerate(files):
        file.write(bytes([index]) * 1_000_000)
for file in files:
    file.close()
for index in range(0, count, 17):
    assert open(f"{folder}/{index}", "rb").read() == bytes([index]) * 3_000_000
EOF
    local peak
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$(daemon_id)/status")
    echo "at most $peak KiB were resident"
    [ "$peak" -le $((563 * 1024)) ] && rm -r "$mnt/many"
}
check "200 writers at once keep to --memory-target 512m" many_writers

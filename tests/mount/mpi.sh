# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# MPI programs on two hosts of a job, by `weft run --mount`. With `:shared-writes` they write one
# file: MPI-IO and parallel HDF5 under each MPI, and IOR. With and without it they make files in one
# tree: mdtest. Sourced by tests/mount/run.sh.

# shellcheck source=tests/mount/two_hosts.sh
. tests/mount/two_hosts.sh
ROOT=$PWD
# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh
hdf5=$PWD/.env/hdf5

# Weft as it is installed with the mount.
with_mount() {
    mkdir -p "$work/weft/bin" "$work/folder" && cp -r dist/lib "$work/weft/" &&
        cp dist/bin/weft "$work/weft/bin/" && cp "$WEFT_MOUNT" "$work/weft/bin/weft-mount"
}
# What stands behind the folder of --mount.
shares=:shared-writes
# job MPI PREFIX PROGRAM...: two ranks on each of two hosts, with the bucket at $work/folder.
job() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 AWS_ENDPOINT_URL=$there \
        WEFT_MPI_PATH=$ROOT/.env/mpi/$1 on a0 timeout 100 "$work/weft/bin/weft" run --quiet \
        --mpi "$1" --hosts a0,b1 --ppn 2 -n 4 --launcher "$agent" \
        --timeout 90 --mount "s3://data/$2:$work/folder$shares" -- "${@:3}"
}

mpi_io() { # mpi_io MPI
    build "$1" tests/mount/mpi_io.c && job "$1" "io-$1" "$work/mpi_io-$1" "$work/folder"
}

# Debian's HDF5 for Open MPI serves both versions of it, and that for MPICH also Intel MPI: they
# have one binary interface. It looks for the library by Debian's name.
build_hdf5() { # build_hdf5 MPI
    local kind=openmpi prefix=$ROOT/.env/mpi/$1 headers=$ROOT/.env/mpi/${1/intel/mpich} lib
    local libraries=$hdf5/usr/lib/x86_64-linux-gnu compiler=(cc -I "$headers/include") library=()
    [[ $1 == *openmpi ]] || kind=mpich
    if [ "$1" = debian-openmpi ]; then
        compiler=(mpicc.openmpi)
    else
        prefix=$(realpath "$prefix/lib") lib=$work/lib-$1
        mkdir -p "$lib" && ln -sf "$prefix/libmpi.so.12" "$lib/libmpich.so.12" || return 1
        library=(-L "$prefix" "-l:$(basename "$(ls "$prefix"/libmpi.so.[14][20])")"
            "-Wl,--allow-shlib-undefined,-rpath,$prefix:$lib")
    fi
    "${compiler[@]}" -O1 -DH5_USE_110_API -I "$hdf5/usr/include/hdf5/$kind" \
        -o "$work/hdf5_mpi-$1" tests/mount/hdf5_mpi.c "${library[@]}" \
        "$libraries/libhdf5_$kind.so.103" \
        "-Wl,--disable-new-dtags,-rpath,$libraries,-rpath-link,$libraries"
}
hdf5_mpi() { # hdf5_mpi MPI
    build_hdf5 "$1" && job "$1" "h5-$1" "$work/hdf5_mpi-$1" "$work/folder" &&
        read_as_h5 "h5-$1/parallel.h5"
}
# Another reader of HDF5 finds the same in what the store has.
read_as_h5() {
    local libraries=${MOUNT_PYTHON:-$PWD/.env/mount-programs/bin/python}
    "$libraries" -c 'import h5py' 2>/dev/null || { echo 'h5py is missing'; return 0; }
    on a0 "$PYTHON" - "$there" "$1" "$work/parallel.h5" <<'END' || return 1
import sys, boto3
boto3.client("s3", endpoint_url=sys.argv[1]).download_file("data", sys.argv[2], sys.argv[3])
END
    "$libraries" - "$work/parallel.h5" <<'END'
import sys, h5py, numpy
with h5py.File(sys.argv[1]) as file:
    for name, rows in ("plain", 64), ("chunked", 128):
        found = file[name][:]
        wanted = 10000.0 * numpy.arange(rows)[:, None] + numpy.arange(3001)
        assert found.shape == wanted.shape and (found == wanted).all(), name
END
}

# As IO500's ior-hard. With -C each rank reads what a rank of the other host wrote.
ior_hard_together() {
    job mpich ior "$work/weft/bin/weft" bench ior -w -W -r -R -C -t 47008 -b 47008 -s 30 \
        -o "$work/folder/hard"
}

# Rank 0 makes the folders of a tree, and ranks of both hosts make files and folders in them. With
# -N each rank looks at, reads and removes what a rank of the other host made.
mdtest_together() { # mdtest_together WORD
    local shares=$1 tree=("$work/weft/bin/weft" bench mdtest -n 14 -b 2 -z 2 -w 100 -e 100)
    job mpich "tree$1" "${tree[@]}" -i 3 -d "$work/folder/own" &&
        job mpich "tree$1" "${tree[@]}" -N 2 -d "$work/folder/others"
}

if ! reason=$("$TESTBED" check); then
    skip "MPI on two hosts" "$reason"
elif [ ! -x dist/bin/weft ]; then
    skip "MPI on two hosts" "dist/bin/weft is missing (make build)"
else
    begin_two_hosts
    agent=$("$TESTBED" "$bed" agent)
    check "Weft with its mount" with_mount
    for mpi in openmpi mpich intel debian-openmpi; do
        if [ ! -x "$(launcher_of "$mpi")" ]; then
            skip "$mpi" "it is not installed (scripts/setup.sh test)"
            continue
        fi
        check "MPI-IO from two hosts in one file, $mpi" mpi_io "$mpi"
        if [ -f "$hdf5/installed.txt" ]; then
            check "parallel HDF5 from two hosts in one file, $mpi" hdf5_mpi "$mpi"
        else
            skip "parallel HDF5, $mpi" "Debian's HDF5 is not in $hdf5 (scripts/setup.sh test)"
        fi
    done
    check "IOR's pieces of 47,008 bytes, read by the ranks of the other host" ior_hard_together
    check "mdtest in one tree of two hosts" mdtest_together ""
    check "mdtest in one tree of two hosts that share files" mdtest_together :shared-writes
    end_two_hosts
fi

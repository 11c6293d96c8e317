#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Brings a machine to the point where one tier of the Makefile works. Safe to run again: what is
# there stays, and a second call takes a second.
# Usage: scripts/setup.sh build|mount|peers|demo|test|exports|packages
#
#   build   a C linker, a Rust that is not older than Cargo.toml's rust-version, and the crates of
#           Cargo.lock
#   mount   build, with the newer Rust of mount/daemon/Cargo.toml
#   peers   mount, and what builds and measures other programs that mount buckets
#   demo    build, and three MPIs in virtual environments of their own under
#           .env/mpi/{openmpi,mpich,intel}
#   test    demo and mount, and Debian's own Open MPI, libfabric, MPI applications, and what makes
#           a network of hosts on one machine
#   exports build, and the code of AWS, ParallelCluster and Kubernetes that reads what weft export
#           makes, under .env/exports
#   packages build, and what makes and judges packages: cargo-deb in .env/packaging (minutes to
#           compile), lintian, and in .env/wheel zig and others with a wheel of Open MPI
#
# Packages are installed with apt when this runs as root on a Debian-like system. Otherwise it
# prints what is missing and exits with 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# retry COMMAND...: networks fail for a moment; three attempts with a growing pause.
attempts=3
retry() {
    local attempt
    for ((attempt = 1; attempt <= attempts; attempt++)); do
        "$@" && return 0
        say "attempt $attempt of $attempts failed: $*"
        [ "$attempt" = "$attempts" ] || sleep $((attempt * 5))
    done
    return 1
}

# --- Disk -----------------------------------------------------------------------------------------

# Measured: 5458 MiB in a new clone after all tests. And half as much again for what they write
# elsewhere.
test_space_mib=8192
# need_space MIB: a disk that fills up later fails each program that writes, after half an hour.
# Asks only before the first build: later most of it is there.
need_space() {
    local free_mib
    [ ! -d target/debug ] || return 0
    free_mib=$(df -Pm . | awk 'NR == 2 { print $4 }')
    [ "$free_mib" -ge "$1" ] ||
        die "$PWD has $free_mib MiB of free disk, and the first build with its tests needs $1" \
            "MiB. Free some, or clone to a larger disk, then run this again."
}

# --- Debian packages ------------------------------------------------------------------------------

package_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" \
    = installed ]; }

# need_packages PACKAGE...: installs those that are missing, in one apt call.
need_packages() {
    local missing=() package
    if ! command -v dpkg-query >/dev/null; then
        say "this is not a Debian-like system; expected are these Debian packages, or what your" \
            "system has instead: $*"
        return 0
    fi
    for package in "$@"; do
        package_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "packages are missing. Install them, then run this again:
  sudo apt-get update && sudo apt-get install --no-install-recommends -y ${missing[*]}"
    say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    retry with_new_lists "$log" install -y --no-install-recommends "${missing[@]}" ||
        die "apt-get install failed: ${missing[*]}"
    rm -f "$log"
}

wanted_attempts=3
# want_packages PACKAGE...: installs those that are missing, where that can be done; tests that need
# them skip otherwise.
want_packages() {
    if command -v dpkg-query >/dev/null && [ "$(id -u)" = 0 ]; then
        # In a subshell, since need_packages ends the script when it fails. Where some never came,
        # others hardly will, and a network that answers nothing takes minutes for each attempt.
        (attempts=$wanted_attempts && need_packages "$@") ||
            { wanted_attempts=1 && say "goes on without $*"; }
    else
        say "some tests want these packages, and skip without them: $*"
    fi
}

# with_new_lists LOG ARGUMENTS...: fetches the lists of packages first. Where one cannot be fetched
# `apt-get update` may go on with an old one or none, and succeed: so each attempt fetches them, and
# what follows says whether they are enough.
with_new_lists() {
    local log=$1
    shift
    apt_get "$log" update || say 'apt-get update failed; goes on with the lists that are there'
    apt_get "$log" "$@"
}

# apt_get LOG ARGUMENTS...: apt without questions and without noise, unless it fails.
apt_get() {
    local log=$1
    shift
    DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3 \
        "$@" >"$log" 2>&1 </dev/null ||
        { tail -n 20 "$log" >&2; return 1; }
}

# --- Rust -----------------------------------------------------------------------------------------

# need_rust MANIFEST WHO: the Rust that this Cargo.toml names, or a newer one, for WHO. Asks rustc
# too, since the two may come from different places.
need_rust() {
    local wanted name version advice
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$1")
    advice="Install Rust $wanted or newer (rustup is the usual way: rustup update stable; on Debian"
    advice+=" 12 also: apt-get install cargo-web), then run this again."
    for name in cargo rustc; do
        command -v "$name" >/dev/null || die "$name is not on the PATH. $advice"
        version=$("$name" --version | cut -d' ' -f2) || die "$name --version failed. $advice"
        printf '%s\n' "$wanted" "${version%%-*}" | sort -CV ||
            die "$name is $version, and $2 needs $wanted or newer. $advice"
    done
    # Fetching first keeps the network out of the builds and tests that follow.
    local fetched=.env/stamp/crates
    if ! cmp -s Cargo.lock "$fetched"; then
        say "fetching the crates of Cargo.lock"
        CARGO_NET_RETRY=5 retry cargo fetch --locked --quiet || die "cargo fetch --locked failed"
        mkdir -p "${fetched%/*}"
        cp Cargo.lock "$fetched"
    fi
}

# --- MPIs from the Python package index -----------------------------------------------------------

# new_environment FOLDER WORDS...: a Python environment in the place of what is there, with what pip
# installs by these words.
new_environment() {
    local folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "${folder%/*}"
    python3 -m venv "$folder" ||
        die "python3 -m venv failed. On Debian: apt-get install python3-venv"
    # Most of what comes is never imported; Python compiles the rest when it first does.
    retry "$folder/bin/python" -m pip --disable-pip-version-check --no-input --quiet install \
        --no-compile --retries 5 --timeout 60 "$@"
}

# need_pinned FOLDER LIST OPTION...: a Python environment in FOLDER that holds what the file LIST
# pins, installed by pip with these options.
need_pinned() {
    local folder=$1 list=$2
    shift 2
    if cmp -s "$list" "$folder/installed.txt"; then return 0; fi
    say "installing $list into $folder"
    new_environment "$folder" --only-binary :all: "$@" -r "$list" ||
        die "pip could not install $list"
    cp "$list" "$folder/installed.txt"
}

# need_mpi NAME: .env/mpi/NAME holds what scripts/mpi/NAME.txt pins.
need_mpi() {
    local folder=.env/mpi/$1 wanted=scripts/mpi/$1.txt
    # A Python that was upgraded since then may have left it without a program.
    "$folder/bin/python" -c '' 2>/dev/null || rm -f "$folder/installed.txt"
    need_pinned "$folder" "$wanted"
}

# need_mpi4py_source: mpi4py's own tests are only in its source distribution; they are unpacked,
# never built.
need_mpi4py_source() {
    local version folder
    version=$(sed -n 's/^mpi4py==//p' scripts/mpi/openmpi.txt)
    folder=.env/src/mpi4py-$version
    [ -f "$folder/test/main.py" ] && return 0
    say "fetching the tests of mpi4py $version"
    rm -rf .env/src/incoming
    mkdir -p .env/src/incoming
    retry .env/mpi/openmpi/bin/python -m pip --disable-pip-version-check --no-input \
        --quiet download --retries 5 --timeout 60 \
        --no-deps --no-binary mpi4py "mpi4py==$version" -d .env/src/incoming ||
            die "pip could not download mpi4py $version's source"
    tar -xzf ".env/src/incoming/mpi4py-$version.tar.gz" -C .env/src
    rm -rf .env/src/incoming
}

# need_tool NAME PACKAGE VERSION: a Python program in an environment of its own, .env/NAME.
need_tool() {
    local folder=.env/$1 package=$2 version=$3
    [ "$(cat "$folder/installed.txt" 2>/dev/null)" = "$version" ] && return 0
    say "installing $package $version into $folder"
    new_environment "$folder" "$package==$version" ||
        die "pip could not install $package $version"
    printf '%s\n' "$version" >"$folder/installed.txt"
}

# need_bucket_judges: clients of S3 and a second server, which judge the server of the tests.
need_bucket_judges() { need_pinned .env/bucket scripts/bucket.txt; }

# need_exports: what scripts/exports.txt pins, and no other dependencies: ParallelCluster would
# bring a compiler of JavaScript along.
need_exports() { need_pinned .env/exports scripts/exports.txt --no-deps; }

# need_mount_programs: libraries of Python that write on a mounted bucket.
need_mount_programs() { need_pinned .env/mount-programs scripts/mount-programs.txt; }

# need_mount_judge NAME VERSION SHA256: fsx, which reads and writes at random and knows what must be
# there, or pjdfstest, which knows what POSIX says of names and attributes. The sum is that of
# NAME-VERSION.crate, which holds the checksums of what it is built from.
need_mount_judge() {
    local name=$1 version=$2 folder=.env/mount-judges crate
    [ "$(cat "$folder/$name.txt" 2>/dev/null)" = "$version" ] && return 0
    say "compiling $name $version into $folder"
    # Without optimisation they compile in a third of the time. What they judge is slower.
    CARGO_PROFILE_DEV_DEBUG=0 retry cargo install --debug --quiet --locked \
        --root "$folder/incoming" "$name@$version" ||
        die "$name could not be installed"
    crate=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" \
        -name "$name-$version.crate" | head -n 1)
    printf '%s  %s\n' "$3" "$crate" | sha256sum --check --status ||
        die "$name-$version.crate is not the one that this script names"
    install -D "$folder/incoming/bin/$name" "$folder/bin/$name"
    rm -rf "$folder/incoming"
    printf '%s\n' "$version" >"$folder/$name.txt"
}

# want_unpacked FOLDER NAME PACKAGE...: Debian's packages, unpacked and not installed.
want_unpacked() {
    local folder=$1 name=$2 incoming=$1.incoming log package
    shift 2
    [ -f "$folder/installed.txt" ] && return 0
    command -v dpkg-deb >/dev/null && [ "$(id -u)" = 0 ] || return 0
    say "unpacking Debian's $* into $folder"
    log=$(mktemp)
    rm -rf "$folder" "$incoming"
    mkdir -p "$folder" "$incoming"
    # The lists may be there, and may be old.
    if (cd "$incoming" && { apt_get "$log" download "$@" ||
        retry with_new_lists "$log" download "$@"; }) &&
        (for package in "$incoming"/*.deb; do dpkg-deb -x "$package" "$folder" || exit; done); then
        printf '%s\n' "$@" >"$folder/installed.txt"
    else
        say "goes on without $name; tests that need it skip"
    fi
    rm -rf "$incoming" "$log"
}

# want_slurm: no daemon of it starts with the machine.
slurm_packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins)
want_slurm() { want_unpacked .env/slurm Slurm "${slurm_packages[@]}"; }

# want_hdf5: Debian's parallel HDF5 for Open MPI and for MPICH. Installed, it would bring Debian's
# MPICH along.
hdf5_packages=(libhdf5-openmpi-103-1 libhdf5-openmpi-dev libhdf5-mpich-103-1 libhdf5-mpich-dev
    libsz2 libaec0)
want_hdf5() { want_unpacked .env/hdf5 'HDF5' "${hdf5_packages[@]}"; }

# --- what makes packages --------------------------------------------------------------------------

cargo_deb_version=3.8.0
# Of cargo-deb-3.8.0.crate, which holds the checksums of what it is built from.
cargo_deb_sha256=201780f7056812fe4d8078b2772c1a222c56fa924cd2aafa1aaf74ff2777e188

need_cargo_deb() {
    local folder=.env/packaging crate
    [ "$(cat "$folder/cargo-deb.txt" 2>/dev/null)" = "$cargo_deb_version" ] && return 0
    say "compiling cargo-deb $cargo_deb_version into $folder; this takes minutes"
    retry cargo install --quiet --locked --root "$folder/incoming" \
        "cargo-deb@$cargo_deb_version" || die "cargo-deb could not be installed"
    crate=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" \
        -name "cargo-deb-$cargo_deb_version.crate" | head -n 1)
    printf '%s  %s\n' "$cargo_deb_sha256" "$crate" | sha256sum --check --status ||
        die "cargo-deb-$cargo_deb_version.crate is not the one that this script names"
    install -D "$folder/incoming/bin/cargo-deb" "$folder/bin/cargo-deb"
    rm -rf "$folder/incoming"
    printf '%s\n' "$cargo_deb_version" >"$folder/cargo-deb.txt"
}

# need_wheel_tools: what scripts/wheel.txt pins, and Open MPI's wheel for the check that installs
# both.
need_wheel_tools() {
    local folder=.env/wheel wanted=scripts/wheel.txt mpi
    if cmp -s "$wanted" "$folder/installed.txt"; then return 0; fi
    say "installing $wanted into $folder (400 MB, most of it zig)"
    new_environment "$folder" --only-binary :all: -r "$wanted" ||
        die "pip could not install $wanted"
    mpi=$(grep '^openmpi==' scripts/mpi/openmpi.txt)
    retry "$folder/bin/python" -m pip --disable-pip-version-check --no-input --quiet download \
        --retries 5 --timeout 60 --only-binary :all: "$mpi" -d "$folder/wheels" ||
        die "pip could not download $mpi"
    cp "$wanted" "$folder/installed.txt"
}

# --- the tiers ------------------------------------------------------------------------------------

tier=${1:-}
build_packages=(gcc libc6-dev make)
test_packages=(openmpi-bin libopenmpi-dev libfabric-dev libfabric-bin hpcc lammps gromacs
    iproute2 nftables procps tmux valgrind)

# A browser for the page of `weft bench compare`: 350 MB, some 20 seconds where the network is fast.
browser_packages=(chromium chromium-driver fonts-dejavu-core)
# For the benchmark with threads of Intel MPI.
openmp_packages=(libomp5-14)
# Programs in Fortran over Open MPI and Intel MPI.
fortran_packages=(gfortran)
# Readers of what `make install` installs. Not lmod: it cannot be installed beside
# environment-modules, and apt then installs none of them. packaging/check.sh tries it.
install_packages=(man-db environment-modules zsh fish)

# Programs that tests compare with or run over Weft: OpenFOAM with its examples (100 MB to fetch,
# 470 MB, some 20 seconds) and NetPIPE.
program_packages=(openfoam openfoam-examples netpipe-openmpi)

# Programs that read and write on a mounted bucket.
mount_packages=(rsync sqlite3)

# What builds Mountpoint's library, and what loads and compares mounts.
peer_packages=(cmake g++ libclang-dev libfuse-dev pkg-config fio s3fs)

python_packages() {
    # A Python that can make virtual environments may come from anywhere; Debian's needs a package
    # for it.
    python3 -c 'import venv, ensurepip' 2>/dev/null || printf '%s\n' python3 python3-venv
}

case $tier in
build | mount) packages=("${build_packages[@]}") ;;
peers) packages=("${build_packages[@]}" "${peer_packages[@]}") ;;
exports) mapfile -t packages < <(printf '%s\n' "${build_packages[@]}"; python_packages) ;;
demo) mapfile -t packages < <(printf '%s\n' "${build_packages[@]}"; python_packages) ;;
test) mapfile -t packages < <(printf '%s\n' "${build_packages[@]}" "${test_packages[@]}";
    python_packages) ;;
packages) mapfile -t packages < <(printf '%s\n' "${build_packages[@]}" binutils dpkg-dev;
    python_packages) ;;
*) say "usage: scripts/setup.sh build|mount|peers|demo|test|exports|packages"; exit 2 ;;
esac

if [ "$tier" = test ]; then need_space "$test_space_mib"; fi
need_packages "${packages[@]}"
if [ "$tier" = test ]; then
    want_packages "${browser_packages[@]}"
    want_packages "${program_packages[@]}"
    want_packages "${openmp_packages[@]}"
    want_packages "${fortran_packages[@]}"
    want_packages "${install_packages[@]}"
    want_packages "${mount_packages[@]}"
fi
case $tier in
test | mount | peers) need_rust mount/daemon/Cargo.toml 'the bucket mount (AWS'"'"'s SDK)' ;;
*) need_rust Cargo.toml 'Weft' ;;
esac
if [ "$tier" = exports ]; then need_exports; fi
if [ "$tier" = packages ]; then
    want_packages lintian
    need_cargo_deb
    need_wheel_tools
fi
if [ "$tier" = demo ] || [ "$tier" = test ]; then
    for name in openmpi mpich intel; do need_mpi "$name"; done
fi
if [ "$tier" = test ]; then
    need_mpi4py_source
    # Its stock OSU checks read our output. Later versions than 4.9.3 come without those checks.
    need_tool reframe reframe-hpc 4.9.3
    # Reads the output of weft bench ior.
    need_tool ior-parser ior-parser 0.1.1
    need_bucket_judges
    need_mount_programs
    need_mount_judge fsx 0.3.2 \
        72680bb1e43d40729d5f6e9de5bbe604820ff51e4707e109cb5082ec67d022a2
    need_mount_judge pjdfstest 0.2.2 \
        bb5e2bea16df357ae879d1585bedaffe5913ab8f45e874f623b0b2f5555c8376
    want_slurm
    want_hdf5
fi

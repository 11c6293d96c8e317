#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `--shm-size` of `weft run`, `weft exec` and job files: in a world whose /dev/shm has 64 MiB, each
# rank gets one of exactly the size asked for, shared by the ranks of its job and by nobody else; a
# host that refuses says why; nothing is left. As root, and as an ordinary user.
# Usage: tests/shm-size/run.sh [MPI...] (openmpi, mpich, intel, debian-openmpi)
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Half a minute.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# The small world: mounts and process numbers of its own, so that all that a job leaves is seen.
if [ "$(id -u)" = 0 ] && [ -z "${SMALL_WORLD:-}" ] &&
    unshare -m -p -f --mount-proc mount -t tmpfs -o size=64m tmpfs /dev/shm 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands
    SMALL_WORLD=1 exec unshare -m -p -f --kill-child --mount-proc \
        sh -c 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && "$0" "$@"' "$0" "$@"
fi
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
wanted=("$@")
begin_outside_jobs
SIZE=192m BYTES=$((192 << 20))
mkdir "$work/user" && chmod 755 "$work"

as_root() { (cd "$work" && "$@"); }
as_user() { # in a folder of that user
    if [ "$(id -u)" = 0 ]; then
        (cd "$work/user" && HOME=$work/user TMPDIR=$work/user \
            setpriv --reuid 65534 --regid 65534 --clear-groups "$@")
    else
        (cd "$work/user" && "$@")
    fi
}
[ "$(id -u)" != 0 ] || chown 65534:65534 "$work/user"

# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh

mpirun() { # mpirun USER MPI RANKS PROGRAM...
    local user=$1 mpi=$2 ranks=$3 options=()
    shift 3
    [[ $mpi == *openmpi ]] && options=(--oversubscribe)
    "as_$user" timeout 60 "$(launcher_of "$mpi")" "${options[@]}" -n "$ranks" "$@"
}

# Lines of processes beside this suite's own: keepers, ranks, launchers. Only the small world shows
# all that there are; elsewhere keepers are looked for.
strangers() {
    if [ -n "${SMALL_WORLD:-}" ]; then
        ps -e -o pid=,args= | grep -v -e ' ps ' -e ' grep ' -e ' awk ' -e run.sh -e ' sleep 0.05'
    else
        pgrep -u "$(id -u)" -af 'dev-shm keep'
    fi
}
nobody_left() { ! strangers; }

# tidy: nothing of a job is left: no process, and so no namespace; the world's /dev/shm is empty and
# as it was.
tidy() {
    wait_for 100 nobody_left && [ "$(grep -c ' /dev/shm ' /proc/self/mountinfo)" = "$mounts" ] && {
        [ -z "${SMALL_WORLD:-}" ] || [ "$(stat -f -c '%b %S' /dev/shm)" = '16384 4096' ]
    } && [ "$(find /dev/shm | sort)" = "$before" ]
}
mounts=$(grep -c ' /dev/shm ' /proc/self/mountinfo) before=$(find /dev/shm | sort)

fine() { grep -q '^fine: 3 ranks' "$work/out" && tidy >>"$work/out" 2>&1; }

by_run() { # by_run USER MPI TRANSPORT
    "as_$1" timeout 60 "$WEFT" run --mpi "$2" --transport "$3" --shm-size $SIZE -n 3 \
        "$work/ranks-$2" $BYTES 96 >"$work/out" 2>&1 && fine
}

by_exec() { # by_exec USER MPI
    mpirun "$1" "$2" 3 "$WEFT" exec --mpi "$2" --shm-size $SIZE -- \
        "$work/ranks-$2" $BYTES 96 >"$work/out" 2>&1 && fine
}

name='user namespaces and mounts'
as_user unshare -U -m --map-current-user true 2>"$work/out" && unshare -m true 2>>"$work/out"
can_user=$?
users=(user)
[ "$(id -u)" = 0 ] && users=(root user)
if [ $can_user != 0 ]; then
    skip_all "$name" "this host refuses them: $(tail -n 1 "$work/out")"
fi

any=
for mpi in openmpi mpich intel debian-openmpi; do
    is_wanted "$mpi" || continue
    if [ ! -x "$(launcher_of "$mpi")" ]; then
        skip "$mpi" 'it is not installed; scripts/setup.sh test installs it'
        continue
    elif ! build "$mpi" tests/shm-size/ranks.c >"$work/out" 2>&1; then
        skip "$mpi" 'its compiler or headers are not installed'
        continue
    fi
    any=${any:-$mpi}
    for user in "${users[@]}"; do
        transport=weft
        [ "$user" = user ] && transport=native
        by_run "$user" "$mpi" $transport
        report $? "weft run, as $user, over $transport, $mpi"
        by_exec "$user" "$mpi"
        report $? "weft exec, as $user, $mpi"
    done
done
[ -n "$any" ] || skip_all 'jobs' 'no MPI is there'

name='the same program ends by SIGBUS in 64 MiB'
if [ -n "${SMALL_WORLD:-}" ]; then
    as_user timeout 60 "$WEFT" run --mpi "$any" -n 3 "$work/ranks-$any" 0 96 >"$work/out" 2>&1
    [ $? != 0 ] && grep -qi 'bus error\|signal 7\|SIGBUS' "$work/out"
    report $? "$name"
    # What the ranks leave there is whole when they have ended, and no matter of the cases below.
    wait_for 100 nobody_left >/dev/null
    rm -f /dev/shm/weft-test-* /dev/shm/*segment*
else
    skip "$name" 'it takes root, who makes a small /dev/shm'
fi

# shellcheck source=tests/shm-size/cases.sh
. tests/shm-size/cases.sh
summary

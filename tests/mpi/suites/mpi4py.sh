# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# mpi4py's own tests, from its source distribution, in the same release as the installed mpi4py.
# They check every byte and every status, ask for MPI_THREAD_MULTIPLE, and stop at the first
# failure.
#
# Without --full only the modules that send messages and, on two ranks, those of one-sided
# communication run; with it all others do too, which mostly test the MPI library by itself. MPICH
# makes libfabric's reads, writes and atomics of one-sided communication; Open MPI uses memory of
# its own. Left out in both, with the reason:
#   spawn, dynproc         start or join processes while running; weft run starts a fixed number
#   testDistgraphcomm      on MPICH over weft: MPI_Dist_graph_create takes what MPI_Recv finds for
#                          what MPI_Probe found before, both with any source. MPICH keeps messages
#                          to oneself in a queue of its own, which its receive looks into first and
#                          its probe last, so this fails when the other ranks' messages are quick
#                          (it does over tcp too, now and then)
#   testRevoke             on Open MPI over weft: revoking a communicator works only in Open MPI's
#                          own message layer (ob1); over libfabric (cm) it does nothing, with any
#                          provider (seen with tcp)
#   TestWinCreateDynamic   on Intel MPI over weft, four tests that ask for the size of a dynamic
#                          window: it says -1 over each provider with one-sided communication
#                          (seen with shm, and with tcp if MPIR_CVAR_CH4_OFI_ENABLE_RMA is 1)
#   testGetFortranInfo     fails on the MPICH wheel without any message being sent: the wheel
#                          reports no Fortran logicals

MPI4PY_MESSAGES='test_(p2p|cco|comm|msgzero|msgspec|request|status|threads|util_pool|util_pkl5|rma'
MPI4PY_MESSAGES+='|win)'
# Three ranks on two cores wait for each other's turns, so that they get the modules which an odd
# number changes most.
MPI4PY_ODD='test_(p2p_buf|p2p_obj|cco_buf|cco_obj|cco_nb_buf|cco_vec|comm)'
# Intel MPI is MPICH's relative, and gets the collectives that wait, for time.
MPI4PY_COLLECTIVES='test_cco_(buf|obj)\.py'

mpi4py_run() {
    local mpi=$1 ranks=$2 seconds=$3 source=$4 name
    local exclude=(-e spawn -e dynproc -x testGetFortranInfo) include=()
    [ "$TRANSPORT-$mpi" = weft-mpich ] && exclude+=(-x testDistgraphcomm)
    [ "$TRANSPORT-$mpi" = weft-openmpi ] && exclude+=(-x testRevoke)
    [ "$TRANSPORT-$mpi" = weft-intel ] && for name in Memory Attributes GetAttr AttachDetach; do
        exclude+=(-x "*.TestWinCreateDynamic*.test$name")
    done
    if [ -n "${MPI4PY_ONLY:-}" ]; then
        include=(-i "$MPI4PY_ONLY")
    elif [ "$FULL" = no ]; then
        include=(-i "$MPI4PY_MESSAGES")
        [ "$ranks" = 3 ] && include=(-i "$MPI4PY_ODD")
        [ "$mpi" = intel ] && include=(-i "$MPI4PY_COLLECTIVES")
    fi
    cd "$source/test" || return 1
    local out=$WORK/mpi4py.out status
    PYTHONDONTWRITEBYTECODE=1 weft_run "$mpi" "$ranks" "$seconds" \
        "$ROOT/.env/mpi/$mpi/bin/python" -m mpi4py main.py --failfast --quiet "${exclude[@]}" \
        "${include[@]}" >"$out" 2>&1
    status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    # An empty selection would pass as well: every rank must have run its hundreds.
    local full
    full=$(grep -oE 'Ran [0-9]{3,} tests' "$out" |
        wc -l) # ranks write at the same time: two may stand on one line
    [ "$full" = "$ranks" ] || { echo "only $full of $ranks ranks ran hundreds of tests"; return 1; }
}

# The modules of one-sided communication, every access by datagrams.
mpi4py_by_datagrams() {
    FI_WEFT_ROUTE=srd MPI4PY_ONLY='test_(rma|rma_nb|win)' mpi4py_run "$1" 2 120 "$2"
}

mpi4py_suite() {
    local mpi ranks source seconds=300
    if [ "$FULL" = yes ]; then seconds=1200; fi
    source=$(find "$ROOT/.env/src" -maxdepth 1 -name 'mpi4py-*' -type d 2>/dev/null | head -n 1)
    for mpi in mpich openmpi intel; do
        mpi_is_here "$mpi" "mpi4py on $mpi" || continue
        if [ -z "$source" ]; then
            skip "mpi4py on $mpi" \
                'its source is not unpacked; scripts/setup.sh test does that'
            continue
        fi
        for ranks in 2 3; do
            # Three of Intel MPI take minutes, where MPICH's take the same ways.
            [ "$mpi-$ranks-$FULL" != intel-3-no ] || continue
            run_case "mpi4py, $ranks ranks, $mpi" "$seconds" \
                mpi4py_run "$mpi" "$ranks" "$seconds" "$source"
        done
        # Open MPI's one-sided communication has memory of its own.
        [ "$TRANSPORT-$mpi" = weft-mpich ] &&
            run_case "mpi4py one-sided, 2 ranks, $mpi, by datagrams" 120 \
                mpi4py_by_datagrams "$mpi" "$source"
    done
}

mpi4py_suite

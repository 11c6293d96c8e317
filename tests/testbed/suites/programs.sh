# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# MPI programs on 2 and on 4 hosts with 2 ranks each (on 4, two hosts share a rack), so that both
# shared memory and the network carry messages; with and without loss on the network. Weft's own
# benchmarks check every byte, mpi4py's tests every byte and status; IMB-MPI1 is about matching,
# progress and ends.

# shellcheck source=tests/mpi/imb_is_whole.sh
. tests/mpi/imb_is_whole.sh

# everywhere SECONDS MPI PROGRAM...: two ranks on every host of the testbed, over the transport that
# is tested.
everywhere() {
    local seconds=$1 mpi=$2 list must=() status
    shift 2
    list=$(bed hosts | paste -sd,)
    [ "$TRANSPORT" = weft ] && must=(--require-weft)
    # weft run makes a key, by which the hosts know each other.
    job "$list" "$seconds" "$mpi" --ppn "${RANKS_PER_HOST:-2}" --transport "$TRANSPORT" \
        "${must[@]}" -- "$@"
    status=$?
    nothing_is_left_on_hosts || return 1
    return $status
}

hosts_bench() {
    local mpi=$1 benchmark=$2 out=$WORK/bench.out status
    shift 2
    everywhere 50 "$mpi" "$WEFT" bench "$benchmark" "$@" >"$out"
    status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    tail -n 1 "$out" | grep -q 'Pass$' ||
        { echo 'no row says that its data were checked'; return 1; }
}

hosts_imb() {
    local mpi=$1 out=$WORK/imb.out
    shift
    everywhere 100 "$mpi" "$ROOT/.env/mpi/intel/bin/IMB-MPI1" -npmin 100 -msglog 0:16 \
        -iter 10,40,5 -time 0.1 -iter_policy off "$@" >"$out" 2>&1
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    imb_is_whole IMB-MPI1 "$out" "$@"
}

# hosts_mpi4py MPI MODULE: one module of mpi4py's own tests; tests/mpi/suites/mpi4py.sh says what is
# left out and why.
hosts_mpi4py() {
    local mpi=$1 module=$2 source out=$WORK/mpi4py.out status full ranks
    source=$(find "$ROOT/.env/src" -maxdepth 1 -name 'mpi4py-*' -type d 2>/dev/null | head -n 1)
    local exclude=(-e spawn -e dynproc -x testGetFortranInfo)
    [ "$TRANSPORT-$mpi" = weft-mpich ] && exclude+=(-x testDistgraphcomm)
    [ "$TRANSPORT-$mpi" = weft-openmpi ] && exclude+=(-x testRevoke)
    cd "$source/test" || return 1
    PYTHONDONTWRITEBYTECODE=1 everywhere "$MPI4PY_LIMIT" "$mpi" "$ROOT/.env/mpi/$mpi/bin/python" \
        -m mpi4py main.py --failfast --quiet "${exclude[@]}" -i "test_$module\\.py" \
        >"$out" 2>&1
    status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    ranks=$(($(bed hosts | wc -l) * 2))
    # Ranks write at the same time: two of these may stand on one line.
    full=$(grep -oE 'Ran [1-9][0-9]* tests?' "$out" | wc -l)
    [ "$full" = "$ranks" ] || { echo "only $full of $ranks ranks ran tests"; return 1; }
}

# Without a key and without trust in the network, another host is not talked to, and the user reads
# what to do. Intel's Hydra would wait for a rank that aborted until the time limit, which is not
# waited for here.
no_key_says_what_to_do() {
    local words='another host.*weft run.*FI_WEFT_JOB_KEY.*FI_WEFT_TRUST_NETWORK=1'
    local runner status host
    : >"$WORK/no-key"
    FI_WEFT_TRUST_NETWORK=0 job a0,b1 60 "$1" --ppn 1 -- \
        "$WEFT" bench latency -m 8:8 -i 3 -x 1 >"$WORK/no-key" 2>&1 &
    runner=$!
    waits_for "$WORK/no-key" "$words" 1 50
    for _ in $(seq 30); do
        kill -0 "$runner" 2>/dev/null || break
        sleep 0.1
    done
    signal_weft_run INT
    wait "$runner"
    status=$?
    cat "$WORK/no-key"
    # MPICH leaves its own segments behind when a job aborts; the cases that follow look for what
    # they leave themselves.
    for host in $(bed hosts); do bed host "$host" find /dev/shm -name 'mpich_shm_*' -delete; done
    [ "$status" != 0 ] && ! grep -q '^8 ' "$WORK/no-key" || { echo 'it ran'; return 1; }
    grep -q "$words" "$WORK/no-key"
}

encrypted() { FI_WEFT_ENCRYPT=1 hosts_bench "$@"; }

# Hosts that take jumbo frames, and paths between them that carry half of one: messages arrive, and
# nothing is cut in pieces for them.
narrower_paths() {
    local before after
    bed mtu all 4500
    before=$(bed fragments)
    hosts_bench "$1" latency -c -m 1:262144 -i 20 -x 2
    local status=$?
    after=$(bed fragments)
    bed mtu all 9000
    [ "$status" = 0 ] || return "$status"
    [ "$before" = "$after" ] || { echo "$((after - before)) pieces"; return 1; }
}

# With --full every module of mpi4py's tests is a case of its own: eight ranks on two processors
# take seconds for most, and minutes for those that call each collective with each root, count and
# type (test_cco_nb_vec: three minutes when nothing else runs, ten when something does).
MPI4PY_LIMIT=270
[ "$FULL" = no ] || MPI4PY_LIMIT=900
# What sends messages, largest parts last.
MPI4PY_MODULES=(msgspec msgzero status request threads comm comm_inter comm_topo util_pool
    util_pkl5 p2p_obj p2p_obj_matched p2p_buf_part p2p_buf_matched p2p_buf
    cco_obj cco_obj_inter cco_ngh_obj cco_ngh_buf cco_pr_ngh_buf cco_vec_inter cco_buf_inter \
        cco_pr_buf cco_buf cco_nb_buf cco_pr_vec cco_vec cco_nb_vec)

# programs_on WHAT: the programs of this run on the testbed that is there.
programs_on() {
    local mpi module what=$1 imb=(PingPong Sendrecv Allreduce) largest=8192 modules
    # With few processors, four ranks wait for each other's turns, so that each MPI gets another few
    # of the modules.
    local -A few=([mpich]=p2p_obj [openmpi]=cco_obj)
    if [ "$FULL" = yes ]; then
        imb=(PingPong PingPing Sendrecv Exchange Allreduce Alltoall Alltoallv Allgather Bcast
            Reduce_scatter Gather Scatter Barrier)
        largest=65536
        modules=("${MPI4PY_MODULES[@]}")
    fi
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "programs on $mpi" || continue
        if [ "$TRANSPORT-$what" = 'weft-2 hosts' ]; then
            run_case "without a key it says what to do, $mpi" 60 no_key_says_what_to_do "$mpi"
            RANKS_PER_HOST=1 run_case "bench latency, encrypted, $mpi" 60 \
                encrypted "$mpi" latency -c -m 1:65536 -i 20 -x 2
        fi
        if [[ $what == 4* ]]; then
            RANKS_PER_HOST=1 run_case "bench multi_lat, $what, $mpi" 60 \
                hosts_bench "$mpi" multi_lat -c -m 1:1048576 -i 20 -x 2
        else
            RANKS_PER_HOST=1 run_case "bench latency, $what, $mpi" 60 \
                hosts_bench "$mpi" latency -c -m 1:1048576 -i 20 -x 2
        fi
        run_case "bench allreduce, $what, $mpi" 60 \
            hosts_bench "$mpi" allreduce -c -m "4:$largest" -i 3 -x 1
    done
    for mpi in intel mpich; do
        has_mpi "$mpi" && wants "$mpi" || continue
        [ -x "$ROOT/.env/mpi/intel/bin/IMB-MPI1" ] ||
            { skip "imb, $what, $mpi" 'IMB-MPI1 is not installed'; continue; }
        [ "$FULL" = yes ] || [ "$mpi" = intel ] || continue
        run_case "imb, $what, $mpi" 110 hosts_imb "$mpi" "${imb[@]}"
    done
    for mpi in mpich openmpi; do
        has_mpi "$mpi" && wants "$mpi" || continue
        for module in "${modules[@]:-${few[$mpi]}}"; do
            run_case "mpi4py test_$module, $what, $mpi" "$MPI4PY_LIMIT" \
                hosts_mpi4py "$mpi" "$module"
        done
    done
}

programs_suite() {
    new_testbed || { skip programs 'the testbed could not be made'; return; }
    programs_on '2 hosts'
    if [ "$TRANSPORT" = weft ] && mpi_is_here mpich 'narrower paths on mpich'; then
        RANKS_PER_HOST=1 run_case 'bench latency, paths that carry less than the hosts, mpich' 60 \
            narrower_paths mpich
    fi
    bed loss all 0.1
    if [ "$FULL" = yes ]; then
        programs_on '2 hosts, 0.1 % loss'
    else
        mpi_is_here mpich 'loss on mpich' &&
            run_case 'bench allreduce, 2 hosts, 0.1 % loss, mpich' 60 \
                hosts_bench mpich allreduce -c -m 4:8192 -i 3 -x 1
        mpi_is_here openmpi 'loss on openmpi' &&
            run_case 'bench alltoall, 2 hosts, 0.1 % loss, openmpi' 60 \
                hosts_bench openmpi alltoall -c -m 1:8192 -i 3 -x 1
    fi
    remove_testbeds
    new_testbed --hosts 4 || { skip programs 'the testbed could not be made'; return; }
    if [ "$FULL" = yes ]; then
        programs_on '4 hosts'
        bed loss all 0.1
        programs_on '4 hosts, 0.1 % loss'
    else
        mpi_is_here openmpi '4 hosts on openmpi' &&
            run_case 'bench alltoall, 4 hosts, openmpi' 60 \
                hosts_bench openmpi alltoall -c -m 1:16384 -i 3 -x 1
        if mpi_is_here mpich '4 hosts on mpich'; then
            run_case 'bench allreduce, 4 hosts, mpich' 60 \
                hosts_bench mpich allreduce -c -m 4:16384 -i 3 -x 1
            # IMB-MPI1 comes with Intel MPI.
            [ ! -x "$ROOT/.env/mpi/intel/bin/IMB-MPI1" ] ||
                run_case 'imb, 4 hosts, mpich' 110 hosts_imb mpich PingPong Sendrecv Allreduce
            run_case 'mpi4py test_p2p_obj_matched, 4 hosts, mpich' 290 \
                hosts_mpi4py mpich p2p_obj_matched
        fi
    fi
    remove_testbeds
}

programs_suite

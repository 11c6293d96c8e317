# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Weft's own benchmarks with every received byte checked (-c): point to point with 2 ranks,
# collectives with 2 and with 8, on four MPIs. The sizes cross each protocol's border: inline,
# eager, rendezvous. Then the whole set once, shortly; what must be found or refused; and that other
# people's programs read the output.

bench_case() {
    local mpi=$1 ranks=$2 benchmark=$3
    shift 3
    run_case "bench ${BENCH_NAME:-$benchmark}, $ranks ranks, $mpi" 120 bench_run "$mpi" "$ranks" \
        "$benchmark" "$@"
}

# bench_run: the exit code says whether a check failed; that checks were made at all is seen in each
# benchmark's last row.
bench_run() {
    local mpi=$1 ranks=$2 benchmark=$3 out=$WORK/bench.out
    shift 3
    weft_run "$mpi" "$ranks" 120 "$WEFT" bench "$benchmark" "$@" >"$out"
    local status=$? wanted found
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    wanted=$(tr ',' '\n' <<<"$benchmark" | grep -cv '^barrier')
    # One verdict at least for each benchmark, and no row without one below a header that promises
    # it.
    found=$(awk '/^# Size.*Validation/ { new = 1 } new && /Pass$/ { n++; new = 0 }
        END { print n + 0 }' "$out")
    [ "$found" -ge "$wanted" ] ||
        { echo "$found of $wanted benchmarks say that their data were checked"; return 1; }
}

BENCH_COLLECTIVES=barrier,bcast,gather,gatherv,scatter,scatterv,allgather,allgatherv,alltoall
BENCH_COLLECTIVES+=,alltoallv,alltoallw,reduce,allreduce,reduce_scatter
BENCH_ONE_SIDED=put_latency,get_latency,put_bw,get_bw,put_bibw,acc_latency,get_acc_latency
BENCH_ONE_SIDED+=,fop_latency

# with PREFIX SUFFIX NAMES: each name between both.
with() { sed "s/,/$2,$1/g; s/^/$1/; s/\$/$2/" <<<"$3"; }

# bench_whole_set MPI: every benchmark there is, each in a moment, many in one job.
bench_whole_set() {
    local mpi=$1 short=(-c -m 8:32768 -i 3 -x 1 -u 1)
    BENCH_NAME='planned and threaded messages' bench_case "$mpi" 2 \
        latency_persistent,bw_persistent,bibw_persistent,latency_mp "${short[@]}" -W 8
    # Two threads share one core here; a few exchanges are enough.
    bench_case "$mpi" 2 latency_mt -c -m 8:1024 -i 2 -x 0 -t 2:2
    BENCH_NAME='blocking collectives' bench_case "$mpi" 3 \
        "$BENCH_COLLECTIVES,reduce_scatter_block" "${short[@]}"
    BENCH_NAME='non-blocking collectives' bench_case "$mpi" 3 \
        "$(with i '' "$BENCH_COLLECTIVES,reduce_scatter_block" | sed 's/^ibarrier,//')" \
        "${short[@]}" -t 3
    local persistent=$BENCH_COLLECTIVES
    # Intel MPI 2021.18 delivers nothing when a persistent gather, scatter or allgather is started a
    # second time, also from C.
    [ "$mpi" = intel ] &&
        persistent=$(sed "s/,gather,/,/; s/,scatter,/,/; s/,allgather,/,/" <<<"$persistent")
    BENCH_NAME='persistent collectives' bench_case "$mpi" 3 "$(with '' _persistent "$persistent")" \
        "${short[@]}"
    local between=allgather,allgatherv,alltoall,alltoallv,alltoallw
    BENCH_NAME='neighbourhood collectives' bench_case "$mpi" 4 \
        "$(with neighbor_ '' "$between"),$(with ineighbor_ '' "$between")" "${short[@]}" -N cart:2:1
}

# bench_one_sided MPI: windows may go past Weft inside a node, so this runs over whatever the MPI
# chooses.
bench_one_sided() {
    # shellcheck disable=SC2034 # weft_run reads CASE_TRANSPORT
    local mpi=$1 kind=mpi_long CASE_TRANSPORT=native
    # Open MPI 4.1.4's own window inside a node breaks down in a compare-and-swap of 8 bytes, also
    # from C.
    [ "$mpi" = debian-openmpi ] && kind=mpi_int
    BENCH_NAME='one-sided, flush' bench_case "$mpi" 2 "${BENCH_ONE_SIDED/put_bibw,/}" \
        -c -m 8:32768 -i 3 -x 1 -W 4
    BENCH_NAME='one-sided, fence' bench_case "$mpi" 2 "$BENCH_ONE_SIDED" -c -m 8:32768 -i 3 -x 1 \
        -W 4 -s fence -w create
    BENCH_NAME='one-sided, pscw' bench_case "$mpi" 2 "$BENCH_ONE_SIDED" -c -m 8:32768 -i 3 -x 1 \
        -W 4 -s pscw -w create
    bench_case "$mpi" 2 cas_latency -c -i 9 -x 1 -T "$kind"
    if [ "$FULL" = yes ]; then
        local synchronisation origin
        for synchronisation in lock flush_local lock_all; do
            for origin in create dynamic; do
                BENCH_NAME="one-sided, $synchronisation, $origin" bench_case "$mpi" 2 \
                    "${BENCH_ONE_SIDED/put_bibw,/}" \
                    -c -m 8:32768 -i 3 -x 1 -W 4 -s "$synchronisation" -w "$origin"
            done
        done
    fi
}

# exits CODE WORDS COMMAND...: the command's exit code and a part of what it says.
exits() {
    local code=$1 words=$2 status
    shift 2
    "$@" >"$WORK/exits" 2>&1
    status=$?
    cat "$WORK/exits"
    [ "$status" = "$code" ] || { echo "exit code $status instead of $code"; return 1; }
    grep -q -- "$words" "$WORK/exits" || { echo "nothing says '$words'"; return 1; }
}

# bench_finds_wrong_data: an MPI that loses the last element of each message, in one benchmark of
# each sort.
bench_finds_wrong_data() {
    local liar=$WORK/libliar.so benchmark
    mpicc.openmpi -shared -fPIC -O1 -o "$liar" tests/mpi/input/liar.c || return 1
    for benchmark in latency bw latency_persistent bcast ibcast allreduce put_latency get_latency \
        acc_latency; do
        CASE_TRANSPORT=native exits 1 'Fail$' weft_run debian-openmpi 2 60 \
            env WEFT_MPI_LIBRARY="$liar" "$WEFT" bench "$benchmark" -c -m 64:64 -i 3 -x 1 ||
            { echo "$benchmark believed it"; return 1; }
    done
}

# A rank that is killed ends the job with an error, and the rows before it are there.
bench_keeps_rows_of_a_killed_job() {
    local out=$WORK/killed.out job rank
    : >"$out"
    (weft_run debian-openmpi 2 60 "$WEFT" bench hello,latency -m 1:1 -i 2000000000 >"$out" 2>&1;
        echo "status $?" >>"$out") &
    job=$!
    wait_for 100 grep -q 'This is a test' "$out"
    for rank in $(case_processes); do
        if tr '\0' ' ' <"/proc/$rank/cmdline" |
            grep -q "^$WEFT bench hello"; then kill -KILL "$rank" && break; fi
    done
    wait "$job"
    cat "$out"
    grep -q 'This is a test with 2 processes' "$out" || { echo 'the row before is lost'; return 1; }
    grep -q '^status 0$' "$out" && { echo 'a killed rank went unnoticed'; return 1; }
    grep -q '^status ' "$out"
}

# bench_read_by_reframe: ReFrame's stock checks accept the output and find their figures in it.
bench_read_by_reframe() {
    WEFT=$WEFT HOME=$WORK "${REFRAME:-.env/reframe/bin/reframe}" -c tests/mpi/input/reframe \
        -r --prefix "$WORK/reframe" --nocolor || return 1
    [ "$(find "$WORK/reframe/output" -name 'rfm_job.out' | wc -l)" = 4 ]
}

# bench_read_by_ramble: a benchmark of each form of output, with tails as Ramble asks for by default
# and without.
bench_read_by_ramble() {
    local form benchmark kind options out=$WORK/ramble.out
    for form in latency:latency bw:bandwidth bibw:bandwidth multi_lat:latency allreduce:latency \
        put_latency:single mbw_mr:rate barrier:sole iallreduce:overlap hello:hello init:init; do
        benchmark=${form%%:*} kind=${form#*:} options=(-i 20 -x 2)
        case $kind in
        hello | init) options=() ;;
        sole) ;;
        *) options+=(-m 8:64) ;;
        esac
        CASE_TRANSPORT=native weft_run mpich 2 60 "$WEFT" bench "osu_$benchmark" "${options[@]}" \
            >"$out" || return 1
        python3 "$ROOT/tests/mpi/input/ramble.py" "$kind" "$out" 2 ||
            { echo "$benchmark is not read:"; cat "$out"; return 1; }
        case $kind in hello | init) continue ;; esac
        CASE_TRANSPORT=native weft_run mpich 2 60 "$WEFT" bench "osu_$benchmark" "${options[@]}" \
            -z >"$out" || return 1
        python3 "$ROOT/tests/mpi/input/ramble.py" "tail_$kind" "$out" 2 ||
            { echo "$benchmark -z is not read:"; cat "$out"; return 1; }
    done
}

# bench_beside_others: they measure the same thing, within a factor that even a busy machine keeps;
# agreement.py compares properly.
bench_beside_others() {
    local parts=(linked)
    command -v NPopenmpi >/dev/null && parts+=(netpipe)
    "$ROOT/tests/mpi/agreement.py" --json --quick --turns 3 --transport native \
        --mpi debian-openmpi "${parts[@]}" >"$WORK/beside" || return 1
    cat "$WORK/beside"
    python3 - "$WORK/beside" "${#parts[@]}" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len({row["what"] for row in rows}) == int(sys.argv[2]), rows
assert all(row["turns"] == 3 and 0.01 < row["ratio"] < 100 for row in rows), rows
PYTHON
}

# bench_keeps_its_time: ranks that wait for each other's turns on a processor repeat less, and all
# of them as often.
bench_keeps_its_time() {
    weft_run "$1" 5 60 "$WEFT" bench allreduce -m 4:64 -i 100000000 -f --size-time 0.2 \
        >"$WORK/time" || return 1
    cat "$WORK/time"
    awk '/^[0-9]/ { rows++; if ($5 < 2 || $5 > 1000000) bad++ } END { exit !(rows == 5 && !bad) }' \
        "$WORK/time"
}

bench_misuse() {
    export WEFT_MPI_LIBRARY=
    run_case 'bench refuses three ranks where two are needed' 30 exits 2 'exactly 2 ranks' \
        weft_run mpich 3 30 "$WEFT" bench put_bw
    run_case 'bench refuses an option without effect' 30 exits 2 'only one-sided' \
        weft_run mpich 2 30 "$WEFT" bench bw -w create
    run_case 'bench refuses accelerators' 30 exits 2 'only host memory' \
        "$WEFT" bench latency -d cuda
    run_case 'bench refuses an unknown name in a list' 30 exits 2 "called 'latncy'" \
        "$WEFT" bench bw,latncy
    run_case 'bench says which MPI it cannot bind' 30 exits 1 '/nonexistent/libmpi.so' \
        env WEFT_MPI_LIBRARY=/nonexistent/libmpi.so "$WEFT" bench hello
    run_case 'bench finds a full disk' 30 exits 1 'stdout cannot be written' \
        sh -c "exec '$WEFT' bench hello >/dev/full"
    unset WEFT_MPI_LIBRARY
}

bench_suite() {
    local mpi ranks size=4194304 iterations=20 collective=262144
    if [ "$FULL" = yes ]; then size=16777216 iterations=200 collective=1048576; fi
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "bench on $mpi" || continue
        bench_case "$mpi" 2 latency,bw,bibw -c -m "1:$size" -i "$iterations" -x 2
        for ranks in 2 8; do
            bench_case "$mpi" "$ranks" mbw_mr,multi_lat -c -m 1:65536 -i "$iterations" -x 2
            bench_case "$mpi" "$ranks" barrier -i 200 -x 2
            bench_case "$mpi" "$ranks" bcast,allreduce,alltoall,alltoallw -c -m "4:$collective" \
                -i 5 -x 1
        done
        bench_whole_set "$mpi"
        bench_one_sided "$mpi"
    done
    if mpi_is_here debian-openmpi 'wrong data'; then
        run_case 'bench finds wrong data' 120 bench_finds_wrong_data
    fi
    for mpi in openmpi mpich; do
        mpi_is_here "$mpi" "a size's time on $mpi" || continue
        run_case "bench keeps a size's time, $mpi" 60 bench_keeps_its_time "$mpi"
    done
    if mpi_is_here mpich 'bench misuse'; then bench_misuse; fi
    if mpi_is_here mpich 'bench read by ReFrame'; then
        if [ -x "${REFRAME:-.env/reframe/bin/reframe}" ]; then
            run_case 'bench read by ReFrame' 120 bench_read_by_reframe
        else
            skip 'bench read by ReFrame' \
                'ReFrame is not installed; scripts/setup.sh test installs it'
        fi
    fi
    if mpi_is_here mpich 'bench read by Ramble'; then
        run_case 'bench read by Ramble' 120 bench_read_by_ramble
    fi
    if mpi_is_here debian-openmpi 'bench beside others'; then
        run_case 'bench beside a linked program and NetPIPE' 120 bench_beside_others
    fi
    # Not with MPICH, whose own files in shared memory stay behind when a rank is killed.
    if mpi_is_here debian-openmpi 'a killed job'; then
        run_case 'bench keeps the rows of a killed job' 120 bench_keeps_rows_of_a_killed_job
    fi
}

bench_suite

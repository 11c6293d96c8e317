# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Intel's MPI Benchmarks, as a program that Weft's authors did not write: the whole of IMB-MPI1,
# every default benchmark in every group of ranks, and the heart of IMB-RMA. The wheel's programs
# are built without IMB's data checks, so they are about matching, progress and ends. They are
# linked to libmpi.so.12, which is Intel MPI and, by the common binary interface, also MPICH. Where
# WEFT_IMB_SOURCE names a tree of Intel's source, it is built with the data checks for all MPIs.

# shellcheck source=tests/mpi/imb_is_whole.sh
. tests/mpi/imb_is_whole.sh

IMB_BENCHMARKS=(Allgather Allgatherv Allreduce Alltoall Alltoallv Barrier Bcast Exchange Gather
    Gatherv PingPing PingPong Reduce Reduce_local Reduce_scatter Reduce_scatter_block Scatter
    Scatterv Sendrecv)

imb_run() {
    local mpi=$1 ranks=$2 seconds=$3 largest=$4 out=$WORK/imb.out
    weft_run "$mpi" "$ranks" "$seconds" "$ROOT/.env/mpi/intel/bin/IMB-MPI1" \
        -msglog "0:$largest" -iter 20,40,10 -time 0.2 -iter_policy off >"$out" 2>&1
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    imb_is_whole IMB-MPI1 "$out" "${IMB_BENCHMARKS[@]}"
}

IMB_REMOTE=(Unidir_put Unidir_get Bidir_put One_put_all All_get_all Put_local Accumulate
    Get_accumulate Fetch_and_op Compare_and_swap)

# One-sided communication. IMB-RMA ends a benchmark early when it takes too long, so only the tables
# are counted.
imb_remote_run() {
    local mpi=$1 ranks=$2 seconds=$3 out=$WORK/imb.out
    weft_run "$mpi" "$ranks" "$seconds" "$ROOT/.env/mpi/intel/bin/IMB-RMA" "${IMB_REMOTE[@]}" \
        -msglog 0:18 -iter 20,40,10 -time 0.2 -iter_policy off >"$out" 2>&1
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    imb_is_whole IMB-RMA "$out" "${IMB_REMOTE[@]}"
}

# imb_other_run MPI RANKS SECONDS PROGRAM BENCHMARK...: a program of the collection, some of its
# benchmarks, short messages.
imb_other_run() {
    local mpi=$1 ranks=$2 seconds=$3 program=$4 out=$WORK/imb.out
    shift 4
    weft_run "$mpi" "$ranks" "$seconds" "$ROOT/.env/mpi/intel/bin/$program" "$@" \
        -msglog 0:12 -iter 20,40,10 -time 0.2 -iter_policy off >"$out" 2>&1
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    imb_is_whole "$program" "$out" "$@"
}

IMB_NONBLOCKING=(Ibcast Iallgather Igather Iscatter Ialltoall Ireduce Iallreduce Ibarrier)

# Every message and every access by datagrams, as between hosts.
by_datagrams() { FI_WEFT_ROUTE=srd "$@"; }

# Threads of one process, each with its messages. IMB-MT wants libiomp5.so, which no wheel here
# brings; LLVM's OpenMP is the same library. Intel MPI with two threads a rank, all bound to one
# core each, does not come through the collective in any sensible time.
imb_threads_run() {
    local mpi=$1 out=$WORK/imb.out benchmark benchmarks=(PingPongMT)
    [ "$mpi" = intel ] || benchmarks+=(AllreduceMT)
    LD_LIBRARY_PATH=$WORK/openmp OMP_NUM_THREADS=2 weft_run "$mpi" 2 120 \
        "$ROOT/.env/mpi/intel/bin/IMB-MT" \
        "${benchmarks[@]}" -thread_level multiple -count 1,1024 -repeat 20 >"$out" 2>&1
    local status=$?
    cat "$out"
    rm -f /dev/shm/__KMP_REGISTERED_LIB_* \
        # LLVM's OpenMP leaves these where a program ends without unloading it
    [ "$status" = 0 ] || return "$status"
    for benchmark in "${benchmarks[@]}"; do
        grep -qi "^# Benchmarking $benchmark *\$" "$out" ||
            { echo "IMB-MT printed no table for $benchmark"; return 1; }
    done
}

imb_threads() {
    local mpi=$1 openmp
    openmp=$(ldconfig -p | sed -n 's/.*libomp\.so\.5 .*=> //p' | head -n 1)
    if [ -z "$openmp" ]; then
        skip "imb threads, $mpi" \
            'IMB-MT needs an OpenMP library (Debian: libomp5-14); scripts/setup.sh test installs it'
        return
    fi
    mkdir -p "$WORK/openmp"
    ln -sf "$openmp" "$WORK/openmp/libiomp5.so"
    run_case "imb threads, 2 ranks, $mpi" 120 imb_threads_run "$mpi"
}

# imb_build MPI: Intel's source with its checks of data, which the wheel's programs lack. Intel MPI
# runs what was built for MPICH.
imb_build() {
    local folder=$WORK/imb-$1 bin=$ROOT/.env/mpi/$1/bin/ suffix='' program
    [ ! -e "$folder/is_built" ] || return 0
    if [ "$1" = debian-openmpi ]; then bin='' suffix=.openmpi; fi
    rm -rf "$folder"
    cp -r "$WEFT_IMB_SOURCE" "$folder"
    for program in MPI1 NBC RMA EXT; do
        make -C "$folder/src_cpp" clean TARGET=$program
        make -j2 -C "$folder/src_cpp" TARGET=$program CC="${bin}mpicc$suffix" \
            CXX="${bin}mpicxx$suffix" CPPFLAGS=-DCHECK CFLAGS=-w CXXFLAGS=-w || return
        mv "$folder/src_cpp/IMB-$program" "$folder/"
    done
    touch "$folder/is_built"
}

# imb_has_no_defects LOG: the last column of a table is the largest difference that a rank found;
# there are such tables, and all their lines have 0. No rank reports an error.
imb_has_no_defects() {
    awk '/#repetitions/ { is_checked = $NF == "defects"; fields = NF; next }
        /time-out/ { late++ }
        is_checked && NF == fields && $1 ~ /^[0-9]+$/ {
            rows++
            if ($NF !~ /^0(\.0+)?$/) { print "defects:", $0; bad = 1 }
        }
        END { print rows + 0, "lines checked,", late + 0, "lengths left out for time"
            exit bad || rows < 20 }' "$1" || return
    # Ireduce_scatter_pure says so over every transport (docs/conformance.md).
    ! grep -a ': Error ' "$1" | grep -v 'Error Ireduce_scatter_pure,'
}

# imb_checked_run MPI RANKS PROGRAM: IMB checks the data of its tables, with Weft's collectives
# unless others are asked for. Lengths that take too long are left out.
imb_checked_run() {
    local mpi=$1 ranks=$2 out=$WORK/imb.out
    COLLECTIVES=${COLLECTIVES/#auto/weft} weft_run "$mpi" "$ranks" 120 \
        "$WORK/imb-${mpi/intel/mpich}/IMB-$3" \
        -npmin "$ranks" -msglog 0:20 -iter 4,8,2 -time 0.1 -iter_policy off >"$out" 2>&1
    local status=$?
    cat "$out"
    [ "$status" = 0 ] || return "$status"
    grep -q '^# All processes entering MPI_Finalize' "$out" ||
        { echo "IMB-$3 did not reach its end"; return 1; }
    imb_has_no_defects "$out"
}

imb_checked() {
    local mpi=$1 family=${1/intel/mpich} program ranks
    if [ -z "${WEFT_IMB_SOURCE:-}" ]; then
        skip "imb checked, $mpi" "the wheel's programs do not check data; set WEFT_IMB_SOURCE to \
a tree of github.com/intel/mpi-benchmarks"
        return
    fi
    mpi_is_here "$family" "imb checked, $mpi" || return
    if ! imb_build "$family" >"$LOGS/imb_build_$family.log" 2>&1; then
        not_ok "imb checked, $mpi: it does not build (see $LOGS/imb_build_$family.log)"
        return
    fi
    for program in MPI1 NBC RMA EXT; do
        for ranks in 2 3; do
            run_case "imb checked, $program, $ranks ranks, $mpi" 120 \
                imb_checked_run "$mpi" "$ranks" "$program"
        done
    done
    [ "$TRANSPORT" = weft ] && run_case "imb checked, EXT, 2 ranks, $mpi, by datagrams" 120 \
        by_datagrams imb_checked_run "$mpi" 2 EXT
}

# Nonblocking collectives and pairs of ranks.
imb_others() {
    local mpi=$1 bin=$ROOT/.env/mpi/intel/bin
    [ -x "$bin/IMB-NBC" ] && run_case "imb nonblocking, 4 ranks, $mpi" 120 \
        imb_other_run "$mpi" 4 120 IMB-NBC "${IMB_NONBLOCKING[@]}"
    [ -x "$bin/IMB-P2P" ] && run_case "imb pairs, 2 ranks, $mpi" 120 \
        imb_other_run "$mpi" 2 120 IMB-P2P PingPong Unirandom
    imb_threads "$mpi"
}

imb_suite() {
    local mpi largest2=22 largest8=16
    if [ "$FULL" = yes ]; then largest8=20; fi
    for mpi in intel mpich; do
        mpi_is_here "$mpi" "imb on $mpi" || continue
        [ -x "$ROOT/.env/mpi/intel/bin/IMB-MPI1" ] ||
            { skip "imb on $mpi" 'IMB-MPI1 comes with impi-devel, which is not installed';
                continue; }
        run_case "imb whole, 2 ranks, $mpi" 120 imb_run "$mpi" 2 120 "$largest2"
        run_case "imb whole, 8 ranks, $mpi" 180 imb_run "$mpi" 8 180 "$largest8"
        imb_others "$mpi"
        [ -x "$ROOT/.env/mpi/intel/bin/IMB-RMA" ] &&
            run_case "imb one-sided, 2 ranks, $mpi" 120 imb_remote_run "$mpi" 2 120
        [ -x "$ROOT/.env/mpi/intel/bin/IMB-RMA" ] &&
            run_case "imb one-sided, 4 ranks, $mpi" 120 imb_remote_run "$mpi" 4 120
        [ "$TRANSPORT" = weft ] || continue
        run_case "imb one-sided, 2 ranks, $mpi, by datagrams" 120 \
            by_datagrams imb_remote_run "$mpi" 2 120
        run_case "imb nonblocking, 4 ranks, $mpi, by datagrams" 120 \
            by_datagrams imb_other_run "$mpi" 4 120 IMB-NBC "${IMB_NONBLOCKING[@]}"
        run_case "imb pairs, 2 ranks, $mpi, by datagrams" 120 \
            by_datagrams imb_other_run "$mpi" 2 120 IMB-P2P PingPong Unirandom
    done
    for mpi in intel mpich openmpi debian-openmpi; do
        mpi_is_here "$mpi" "imb checked, $mpi" && imb_checked "$mpi"
    done
}

imb_suite

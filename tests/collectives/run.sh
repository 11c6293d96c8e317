#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Collectives that Weft serves (`weft run --collectives weft`): random calls on communicators that
# are split and freed, against the MPI's own results, under each MPI with 2, 3 and 8 ranks, by cache
# domain, and by several threads of a rank at the same time; programs in Fortran; other tools of the
# profiling interface; ranks that differ in counts or roots; a rank that is killed in or before each
# call; programs for the standard ABI, and without MPI.
#
#   tests/collectives/run.sh [SEED [CASES]]
#
# CASES are those of two ranks (default 600); three ranks have half of them, eight a fifteenth, each
# thread of several a fourth, and types of random shapes a sixth; those have the seed
# WEFT_SHAPES_SEED (default 1).
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Four minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/collectives/tools.sh
. tests/collectives/tools.sh
# shellcheck source=tests/collectives/differing.sh
. tests/collectives/differing.sh
need_weft
seed=${1:-$RANDOM} cases=${2:-600}
# Some MPIs are wrong themselves with types that few programs have; not with these.
shapes_seed=${WEFT_SHAPES_SEED:-1}

# job RANKS MPI [OPTION]... -- PROGRAM...: a job with Weft's collectives. The vector code of Open
# MPI 4.1 and 5 (op/avx) gives other results for unsigned numbers that overflow than its plain code
# and the other MPIs do, so its plain code is what we compare with (docs/collectives.md, clause 6).
job() {
    "$WEFT" run -n "$1" --mpi "$2" --collectives weft --timeout $((60 + cases / 20)) \
        --env OMPI_MCA_op=^avx "${@:3}" >"$work/out" 2>&1
}

# A job may take so long to end after its rank was killed. Far from the time limit of `job`; it
# takes a second or two.
ENDS_WITHIN_SECONDS=20

# dies MPI CALL WAY: the last of three ranks is killed, inside the call or before it (killed.c),
# when the others have been seen waiting. The others' calls fail, and only then does the job end, as
# one whose rank was killed.
dies() {
    local log=$work/log status ended place="$3 $2"
    rm -f "$log" "$log.known"
    job 3 "$1" -- "$work/killed-$1" "$2" "$3" "$log"
    status=$? ended=$(date +%s%N)
    { echo "exit code $status"; cat "$log"; } >>"$work/out" 2>&1
    # Who gives a block waits for its root only where it is read in place.
    if [ "$place" = 'inside gather' ]; then place='(inside|in the barrier behind) gather'; fi
    # The last of scan and exscan is not needed by the others.
    local waits="inside $2"
    case $3-$2 in
    inside-gather | before-gather | before-*scan) waits="(inside|in the barrier behind) $2" ;;
    esac
    [ $status = 137 ] && grep -aqE 'signal 9|SIGNAL: 9' "$work/out" &&
        [ "$(grep -cE "^rank [0-2] waits $waits\$" "$log")" = 2 ] &&
        [ "$(grep -cE "^rank 2 is killed $place at [0-9]+\$" "$log")" = 1 ] &&
        [ "$(grep -cE "^rank [01] .* $2: error other\$" "$log")" = 2 ] &&
        ! grep -q 'came back' "$log" &&
        ends_in_time "$(sed -n 's/.* is killed .* at //p' "$log")" "$ended"
}

# ends_in_time KILLED ENDED: nanoseconds.
ends_in_time() {
    echo "the job ended $((($2 - $1) / 1000000)) ms after the kill" >>"$work/out"
    [ "$2" -gt "$1" ] && [ $(($2 - $1)) -lt $((ENDS_WITHIN_SECONDS * 1000000000)) ]
}

# compiler MPI: its mpicc; Intel MPI runs what was built for MPICH.
compiler() {
    if [ "$1" = debian-openmpi ]; then
        command -v mpicc.openmpi
    else
        echo "$ROOT/.env/mpi/${1/intel/mpich}/bin/mpicc"
    fi
}

# build MPI SOURCE: the program for an MPI.
build() {
    "$(compiler "$1")" -O1 -o "$work/$2-$1" "$ROOT/tests/collectives/$2.c" -lm -lpthread \
        >"$work/out" 2>&1
}

# build_all MPI: the programs that need no other headers than the MPI's.
build_all() {
    local source
    for source in random killed barriers program long nonblocking lengths persistent uneven \
        unusual shapes differing alone places; do
        build "$1" $source || return
    done
}

# build_fortran MPI INTERFACE: fortran.F90 by one of its interfaces (H, MPI, F08).
build_fortran() {
    local intel=$ROOT/.env/mpi/intel compile
    case $1 in
    debian-openmpi) compile=(mpif90.openmpi) ;;
    # Modules for this compiler lie in a folder of its major version.
    intel) compile=(gfortran "-I$intel/include" "-L$intel/lib"
        "-I$(find "$intel/include/mpi/gfortran" -maxdepth 1 -name "$(gfortran -dumpversion).*")"
        -Wl,--no-as-needed -lmpifort -lmpi -Wl,--disable-new-dtags,-rpath,"$intel/lib") ;;
    *) return 1 ;;
    esac
    "${compile[@]}" -w -fallow-argument-mismatch "-DINTERFACE_$2" -o "$work/fortran-$1" \
        "$ROOT/tests/collectives/fortran.F90" >"$work/out" 2>&1
}

# count JSON CALL WAY: how many calls a job's record says went one way, weft or mpi. CALL `data` is
# every call but barriers.
count() {
    python3 -c 'import json, sys
record, name, way = sys.argv[1:]
calls = json.load(open(record))["summary"]["collectives"]
names = [name] if name != "data" else set(calls) - {"barrier"}
print(sum(calls.get(name, {}).get(way, 0) for name in names))' "$@"
}

# in_fortran MPI RANKS: all is right, and the four alltoalls of its 50 turns are served.
in_fortran() {
    job "$2" "$1" --json "$work/record" -- "$work/fortran-$1" || return
    grep -aq '^all is well$' "$work/out" || return
    [ "$(count "$work/record" alltoall weft)" -gt $(($2 * 100)) ]
}

# in_standard_abi MPI: all results are right in a program for the standard ABI, and its calls are
# served. A folder of MPICH's is built into it, as its mpicc_abi does.
in_standard_abi() {
    "$ROOT/.env/mpi/mpich/bin/mpicc_abi" -O1 -o "$work/random-standard" \
        "$ROOT/tests/collectives/random.c" -lm -lpthread >"$work/out" 2>&1 || return
    job 3 "$1" --json "$work/record" -- "$work/random-standard" $((cases / 3)) "$seed" || return
    grep -aq "^$((cases / 3)) cases are right, seed $seed\$" "$work/out" &&
        [ "$(count "$work/record" data weft)" -gt 0 ]
}

# without_waiting MPI RANKS: all results of calls that do not wait are right, and they are served.
# In 100 turns each rank draws each kind some 110 times, and some 70 of them are short enough to be
# served. The bound leaves room for any seed: 50 was too much for one.
without_waiting() {
    local call calls=(reduce allreduce gather allgather scatter alltoall reduce_scatter scan exscan)
    [[ $1 == *openmpi ]] || calls+=(bcast)
    job "$2" "$1" --json "$work/record" -- "$work/nonblocking-$1" 100 "$seed" || return
    grep -aq 'all is well' "$work/out" || return
    for call in "${calls[@]}"; do
        [ "$(count "$work/record" "$call" weft)" -gt $(($2 * 20)) ] ||
            { echo "$call is not served" >>"$work/out"; return 1; }
    done
}

# of_all_lengths MPI RANKS: calls that do not wait give the MPI's own results, and some are served.
# A seed may draw one kind never; of all kinds each has at least some 60 that are short enough.
of_all_lengths() {
    job "$2" "$1" --json "$work/record" -- "$work/lengths-$1" 40 "$seed" || return
    grep -aq "^40 turns are right, seed $seed\$" "$work/out" || return
    [ "$(count "$work/record" data weft)" -ge "$2" ]
}

# persistent MPI: persistent collectives are right, and none of them is Weft's.
persistent() {
    local call calls=(bcast reduce allreduce gather allgather scatter alltoall reduce_scatter scan
        exscan)
    job 2 "$1" --json "$work/record" -- "$work/persistent-$1" || return
    grep -aq '^all is well$' "$work/out" || return
    [ "$(count "$work/record" barrier weft)" -ge 120 ] || return
    for call in "${calls[@]}"; do
        [ "$(count "$work/record" "$call" weft)" = 0 ] ||
            { echo "$call was served" >>"$work/out"; return 1; }
    done
}

# of_own_lengths MPI: calls with a length for each rank. Those that wait are served, but gatherv and
# scatterv of two ranks under Open MPI; half of the allgathervs have 20 KB for each rank, too much
# for the segment, so that they are served only where they are read in place: from the first call on
# with --heap shared. Those that do not wait are the MPI's.
of_own_lengths() {
    local call given=0
    job 2 "$1" --heap shared --json "$work/record" -- "$work/uneven-$1" wait || return
    grep -aq '^all is well$' "$work/out" || return
    [[ $1 == *openmpi ]] || given=200
    for call in gather scatter; do
        [ "$(count "$work/record" $call weft)" = $given ] ||
            { echo "${call}v: not $given calls were served" >>"$work/out"; return 1; }
    done
    # Two calls a turn on each rank, of 50 short and 50 long turns.
    [ "$(count "$work/record" allgather weft)" -gt 300 ] ||
        { echo 'allgatherv is not read in place' >>"$work/out"; return 1; }
    # Alltoallv and alltoallw in place, once a turn on each rank; and of blocks that are too long
    # for the segment, which are served once they are read in place.
    [ "$(count "$work/record" alltoall weft)" -gt 600 ] ||
        { echo 'alltoallv is not served, or not read in place' >>"$work/out"; return 1; }
    # Long blocks that a rank must unpack.
    job 2 "$1" --json "$work/record" -- "$work/uneven-$1" unpack || return
    grep -aq '^all is well$' "$work/out" || return
    [ "$(count "$work/record" alltoall weft)-$(count "$work/record" alltoall mpi)" = 0-200 ] ||
        { echo 'long blocks that must be unpacked are served' >>"$work/out"; return 1; }
    job 2 "$1" --json "$work/record" -- "$work/uneven-$1" begin || return
    grep -aq '^all is well$' "$work/out" || return
    for call in gather scatter allgather alltoall reduce_scatter; do
        [ "$(count "$work/record" $call weft)" = 0 ] ||
            { echo "I${call}v was served" >>"$work/out"; return 1; }
    done
    [ "$(count "$work/record" barrier weft)" -ge 1200 ]
}

# on_one_core MPI: with `auto`, ranks that share a core leave gatherv and scatterv to the MPI, with
# the same results, but not alltoallv. Open MPI's ranks then leave all calls to it.
on_one_core() {
    local core call
    core=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
    taskset -c "$core" "$WEFT" run -n 2 --mpi "$1" --heap shared --timeout 60 \
        --json "$work/record" -- "$work/uneven-$1" wait >"$work/out" 2>&1 || return
    grep -aq '^all is well$' "$work/out" || return
    for call in gather scatter; do
        [ "$(count "$work/record" $call weft)-$(count "$work/record" $call mpi)" = 0-200 ] ||
            { echo "${call}v was served" >>"$work/out"; return 1; }
    done
    [ "$(count "$work/record" alltoall weft)" -gt 600 ]
}

# beside MPI CASE WAY: what else a process does (beside.c) does no harm, and the calls that do not
# wait, at least one on each rank, go one WAY.
beside() {
    local variables=()
    if [ "$2" = asked ]; then
        local memory=sm
        if [ "$1" = debian-openmpi ]; then memory=vader; fi
        variables=(--env OMPI_MCA_pml=ob1 --env OMPI_MCA_btl=self,$memory)
    fi
    job 2 "$1" "${variables[@]}" --json "$work/record" -- "$work/beside-$1" "$2" || return
    grep -aq '^all is well$' "$work/out" && [ "$(count "$work/record" scatter "$3")" -ge 2 ]
}

# unusual MPI CASE RANKS: what few programs do (unusual.c). A delete function that fails does not
# hide the MPI's end from Weft, which then reports the calls. Only MPICH may check no arguments.
# The MPI may put messages of calls that fail into the last line.
unusual() {
    job "$3" "$1" --json "$work/record" -- "$work/unusual-$1" "$2" &&
        grep -aq 'all is well' "$work/out" || return
    [ "$1" = mpich ] || ! grep -aq '^the MPI checks no arguments$' "$work/out" || return
    [ "$2" != failed ] || [ "$(count "$work/record" barrier weft)" = $(($3 * 8)) ]
}

# unusual_cases MPI: not those that the MPI itself does not survive: Open MPI 4.1 has no sessions,
# Open MPI 5 and Intel MPI 2021.18 end a program that begins one after MPI_Finalize, and Intel MPI
# one whose session is there before MPI_Init. MPICH kills other ranks at times if a delete function
# fails in MPI_Finalize. Only Intel MPI answers with an error where there is no place for a request.
unusual_cases() {
    echo environment freed refused below deleted deferred vetoed vetoed_once ended exit order bottom
    case $1 in
    openmpi) echo failed early late across ;;
    mpich) echo early late later across ;;
    intel) echo late across nowhere ;;
    debian-openmpi) echo failed spoilt sessionless ;;
    esac
}

is_there() {
    if [ "$1" = debian-openmpi ]; then
        command -v mpiexec.openmpi >/dev/null
    else
        [ -x "$ROOT/.env/mpi/$1/bin/mpiexec" ]
    fi
}

# served MPI: the messages of two ranks in 2,000 barriers: fewer than one for ten barriers where
# they are served, and at least one for each where they are not.
served() {
    local way messages
    for way in weft mpi; do
        "$WEFT" run -n 2 --mpi "$1" --collectives $way --timeout 60 --json "$work/record" -- \
            "$work/barriers-$1" >"$work/out" 2>&1 || return
        messages=$(python3 -c 'import json, sys
sent = json.load(open(sys.argv[1]))["summary"]["sent"]
print(sum(way.get("messages", 0) for way in sent.values()))' "$work/record") || return
        printf '%s messages with --collectives %s\n' "$messages" $way >>"$work/out"
        case $way in
        weft) [ "$messages" -lt 200 ] || return ;;
        mpi) [ "$messages" -ge 2000 ] || return ;;
        esac
    done
}

# named_beyond_ascii MPI: calls of a program are served although the kernel cuts its name, after 15
# bytes, in the middle of a letter.
named_beyond_ascii() {
    local program=$work/barriers-namedö-$1
    cp "$work/barriers-$1" "$program" &&
        job 2 "$1" --json "$work/record" -- "$program" || return
    [ "$(count "$work/record" barrier weft)" = 4000 ]
}

# alone MPI: calls on communicators of one rank do not count, neither as Weft's nor as the MPI's.
alone() {
    job 2 "$1" -- "$work/alone-$1" && grep -aq '^all is well$' "$work/out" &&
        grep -aq '^weft: 12 calls of collectives in shared memory (barrier 12)$' \
            "$work/out"
}

# places MPI RANKS: values with places and truth values of Fortran are right, and Weft's. An MPI
# without Fortran lacks four types. Of each type there are 200 calls that wait and 200 that do not;
# of the latter those without bytes, one in 250, are left to the MPI.
places() {
    job "$2" "$1" --json "$work/record" -- "$work/places-$1" "$seed" || return
    local types
    types=$(sed -n 's/^all is well, \([59]\) types$/\1/p' "$work/out")
    [ -n "$types" ] && [ "$(count "$work/record" allreduce weft)" -gt $((390 * types * $2)) ]
}

# calls_to_kill MPI: all under one MPI, and three under each of the others, by the seed.
calls_to_kill() {
    local calls=(barrier bcast reduce allreduce gather gatherv allgather allgatherv scatter scatterv
        alltoall alltoallv alltoallw reduce_scatter reduce_scatter_block scan exscan iallreduce
        iallgather ialltoall ireduce_scatter_block ibarrier)
    if [ "$1" = mpich ]; then
        echo "${calls[@]}"
    else
        echo "${calls[@]:seed % 19:3} ibarrier"
    fi
}

for mpi in openmpi mpich intel debian-openmpi; do
    if ! is_there "$mpi" || [ ! -x "$(compiler "$mpi")" ]; then
        skip "random collectives, $mpi" "$mpi or an mpicc for it is not installed"
        continue
    fi
    build_all "$mpi"
    status=$?
    if [ $status != 0 ]; then
        report $status "the programs of this test are built, $mpi"
        continue
    fi
    for shape in "2 $((cases))" "3 $((cases / 2))" "8 $((cases / 15))"; do
        read -r ranks some <<<"$shape"
        job "$ranks" "$mpi" -- "$work/random-$mpi" "$some" "$seed" &&
            grep -aq "^$some cases are right, seed $seed\$" "$work/out"
        report $? "$some random collectives, $ranks ranks, $mpi, seed $seed"
    done
    for shape in "3 2 $((cases / 6))" "8 3 $((cases / 15))"; do
        read -r ranks together some <<<"$shape"
        job "$ranks" "$mpi" --env WEFT_COLLECTIVES_DOMAIN_RANKS="$together" -- \
            "$work/random-$mpi" "$some" "$seed" &&
            grep -aq "^$some cases are right, seed $seed\$" "$work/out"
        report $? "$some random collectives by domains of $together, $ranks ranks, $mpi, seed $seed"
    done
    for shape in "2 3" "3 2"; do
        read -r ranks threads <<<"$shape"
        some=$((cases / 4))
        job "$ranks" "$mpi" -- "$work/random-$mpi" $some "$seed" "$threads" &&
            grep -aq "^$some cases are right, seed $seed\$" "$work/out"
        report $? "$some random calls of each of $threads threads, $ranks ranks, $mpi, seed $seed"
    done
    for ranks in 2 3; do
        some=$((cases / 6))
        job "$ranks" "$mpi" -- "$work/shapes-$mpi" $some "$shapes_seed" &&
            grep -aq "^$some turns are right, seed $shapes_seed\$" "$work/out"
        report $? "$some collectives of random types, $ranks ranks, $mpi, seed $shapes_seed"
    done
    for ranks in 2 3; do
        job "$ranks" "$mpi" -- "$work/program-$mpi" && grep -aq '^all is well$' "$work/out"
        report $? "what programs do around collectives, $ranks ranks, $mpi"
        grep -a '^sums: ' "$work/out" >>"$work/sums-$ranks"
    done
    for ranks in 2 3; do
        # With three its own allgather mixes up a block that one rank describes by a derived type.
        [ "$ranks-$mpi" != 3-intel ] || continue
        job $ranks "$mpi" -- "$work/long-$mpi" 12 && grep -aq '^all is well$' "$work/out"
        report $? "long data are read in place and right, $ranks ranks, $mpi"
    done
    for ranks in 2 8; do
        without_waiting "$mpi" $ranks
        report $? "calls that do not wait, $ranks ranks, $mpi, seed $seed"
    done
    for ranks in 5 7; do
        of_all_lengths "$mpi" $ranks
        report $? "calls that do not wait, of all lengths, $ranks ranks, $mpi, seed $seed"
    done
    for case in $(unusual_cases "$mpi"); do
        unusual "$mpi" "$case" 2 && unusual "$mpi" "$case" 3
        status=$? name="what few programs do: $case, $mpi"
        if [ $status = 0 ] && grep -aq '^the MPI checks no arguments$' "$work/out"; then
            skip "$name" 'this build of the MPI checks no arguments'
        else
            report $status "$name"
        fi
    done
    of_own_lengths "$mpi"
    report $? "blocks with lengths of their own, of calls that wait and that do not, $mpi"
    if [[ $mpi != *openmpi ]]; then
        on_one_core "$mpi"
        report $? "gatherv and scatterv of ranks that share a core are the MPI's, $mpi"
    fi
    name="persistent collectives are the MPI's own, $mpi"
    if [ "$mpi" = debian-openmpi ]; then
        skip "$name" 'Open MPI 4.1 has none'
    else
        persistent "$mpi"
        report $? "$name"
    fi
    if build "$mpi" beside; then
        case $mpi in *openmpi)
            beside "$mpi" asked mpi
            report $? "the MPI does not use the provider, and has its own calls, $mpi"
            ;;
        esac
        beside "$mpi" thread weft
        report $? "another thread that reads a queue does not go on with calls, $mpi"
        beside "$mpi" fork weft
        report $? "a child reads a queue of its own while calls are under way, $mpi"
        beside "$mpi" freed weft
        report $? "a request is freed before its call ends, $mpi"
    else
        skip "what a process does beside calls that do not wait, $mpi" \
            'the headers of libfabric are not installed'
    fi
    name="barriers are served, and without the library they are messages, $mpi"
    if [ "$mpi" = intel ]; then
        skip "$name" 'Intel MPI has barriers in shared memory of its own, over any transport'
    else
        served "$mpi"
        report $? "$name"
    fi
    named_beyond_ascii "$mpi"
    report $? "barriers are served whatever the program is called, $mpi"
    for ranks in 2 3; do
        places "$mpi" $ranks
        report $? "values with places, and truth values of Fortran, $ranks ranks, $mpi, seed $seed"
    done
    alone "$mpi"
    report $? "calls on communicators of one rank do not count, $mpi"
    for place in part library preloaded; do
        with_tool "$mpi" $place
        report $? "a tool of the profiling interface sees what Weft serves, $place, $mpi"
        past_weft "$mpi" $place
        report $? "a tool that hands no calls on is named, $place, $mpi"
    done
    differs "$mpi"
    report $? "ranks that differ in counts or roots are told, $mpi"
    for call in $(calls_to_kill "$mpi"); do
        for way in inside before; do
            dies "$mpi" "$call" $way
            report $? "a rank killed $way $call ends the others' calls, and the job, $mpi"
        done
    done
done

for interface in H MPI F08; do
    for mpi in debian-openmpi intel; do
        if ! is_there "$mpi" || ! build_fortran "$mpi" "$interface"; then
            skip "collectives in Fortran, $interface, $mpi" \
                "gfortran, $mpi or its modules for this compiler are not installed"
            continue
        fi
        for ranks in 2 3; do
            in_fortran "$mpi" $ranks
            report $? "collectives in Fortran, $interface, $ranks ranks, $mpi"
        done
    done
done

for ranks in 2 3; do
    cp "$work/sums-$ranks" "$work/out" 2>/dev/null && [ "$(sort -u "$work/out" | wc -l)" = 1 ]
    report $? "sums of floating point numbers have the same bits under all MPIs, $ranks ranks"
done

for mpi in mpich intel; do
    if is_there $mpi && [ -x "$ROOT/.env/mpi/mpich/bin/mpicc_abi" ]; then
        in_standard_abi $mpi
        report $? "random collectives in the standard ABI, $mpi, seed $seed"
    else
        skip "the standard ABI, $mpi" "$mpi or MPICH's mpicc_abi is not installed"
    fi
done

if is_there mpich; then
    job 2 mpich -- sh -c 'echo "$((6 * 7))"' && [ "$(grep -c '^42$' "$work/out")" = 2 ]
    report $? 'a program without MPI runs as ever'

    cc -shared -fPIC -DLIBRARY -o "$work/libonce.so" "$ROOT/tests/collectives/once.c" &&
        cc -o "$work/once" "$ROOT/tests/collectives/once.c" "$work/libonce.so" &&
        job 2 mpich -- "$work/once" && [ "$(grep -c '^constructed$' "$work/out")" = 2 ]
    report $? 'the libraries of a program without MPI are constructed once'

    printf 'int main(void) { return 0; }\n' | cc -static -x c -o "$work/static" - 2>"$work/out"
    job 2 mpich -- "$work/static"
    [ $? = 2 ] && grep -q 'is a static program' "$work/out"
    report $? 'a static program is refused, in words'
    "$WEFT" run -n 2 --mpi mpich --timeout 60 -- "$work/static" >"$work/out" 2>&1 &&
        [ "$(grep -c '^weft: note: .* is a static program' "$work/out")" = 1 ] &&
        "$WEFT" run -n 2 --mpi mpich --transport native -- "$work/static" >"$work/out" 2>&1 &&
        ! grep -q 'a static program' "$work/out"
    report $? 'with auto a static program runs, and one line says what it goes without'
else
    skip 'programs without MPI' 'mpich is not installed; scripts/setup.sh test installs it'
fi

summary

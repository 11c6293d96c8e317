# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Collectives between hosts (`weft run --collectives weft`): on each host the ranks meet in shared
# memory, and the first of each host talk to each other (docs/collectives.md, clause 6a).

# between LIST SECONDS MPI PROGRAM...: with Weft's collectives, on these hosts.
between() {
    local list=$1 seconds=$2 mpi=$3
    shift 3
    job "$list" "$seconds" "$mpi" --transport weft --require-weft --collectives weft \
        --env OMPI_MCA_op=^avx --json "$WORK/record" -- "$@"
}

# some_are_served: Weft served calls of the last job, not the MPI all of them. Which ones depends on
# the seed.
some_are_served() {
    python3 -c 'import json, sys
calls = json.load(open(sys.argv[1]))["summary"]["collectives"]
print(calls)
sys.exit(not sum(call["weft"] for call in calls.values()))' "$WORK/record"
}

# The same calls by the MPI give the same, on communicators that are split and freed.
random_between() {
    local mpi=$1 list=$2 program seed=$RANDOM
    program=$(program_for "$mpi" "$ROOT/tests/collectives/random.c") || return
    between "$list" 100 "$mpi" "$program" 60 "$seed" | tee "$WORK/random" || return
    grep -q "^60 cases are right, seed $seed\$" "$WORK/random" || return
    local status
    some_are_served
    status=$?
    nothing_is_left_on_hosts || return 1
    return $status
}

# What few programs do (unusual.c), on communicators whose leaders have one of their own.
unusual_between() {
    local mpi=$1 list=$2 case=$3 program
    program=$(program_for "$mpi" "$ROOT/tests/collectives/unusual.c") || return
    between "$list" 60 "$mpi" "$program" "$case" | tee "$WORK/unusual" || return
    grep -q '^all is well$' "$WORK/unusual" && some_are_served && nothing_is_left_on_hosts
}

# The last rank of all is killed in the call when all but the first wait in it, directly or through
# their leaders (killed.c). The launcher then ends the others.
killed_between() {
    local mpi=$1 list=$2 call=$3 program log=$WORK/log status last=2 host
    program=$(program_for "$mpi" "$ROOT/tests/collectives/killed.c") || return
    [ "$list" = a0:2,b1:1 ] || last=3
    rm -f "$log" "$log.known"
    between "$list" 100 "$mpi" "$program" "$call" inside "$log" at-once >"$WORK/killed" 2>&1
    status=$?
    cat "$WORK/killed" "$log"
    echo "exit code $status"
    # MPICH leaves its own segments behind when a job aborts.
    for host in $(bed hosts); do bed host "$host" find /dev/shm -name 'mpich_shm_*' -delete; done
    # By chance the launcher's agent on that host says so, or the one that lost its messages.
    [[ $status = 9 || $status = 255 ]] && ! grep -q -- '(--timeout)' "$WORK/killed" || return
    [ "$(grep -cE "^rank [1-9] waits inside $call\$" "$log")" = $last ] &&
        grep -qE "^rank $last is killed inside $call at [0-9]+\$" "$log" &&
        ! grep -q 'came back' "$log"
}

collectives_suite() {
    if [ "$TRANSPORT" != weft ]; then
        skip 'collectives' "they are Weft's, not those of $TRANSPORT"; return; fi
    new_testbed --hosts 4 || { skip 'collectives' 'the testbed could not be made'; return; }
    local mpi call
    for mpi in mpich openmpi; do
        mpi_is_here "$mpi" "collectives between hosts, $mpi" || continue
        run_case "collectives: random calls on 4 hosts, $mpi" 120 \
            random_between "$mpi" a0:2,b1:2,a2:2,b3:2
        run_case "collectives: random calls on 3 hosts with 1, 3 and 2 ranks, $mpi" 120 \
            random_between "$mpi" a0:1,b1:3,a2:2
        run_case "collectives: communicators are freed between hosts, $mpi" 70 \
            unusual_between "$mpi" a0:2,b1:2 freed
    done
    mpi_is_here mpich 'collectives: killed ranks between hosts, mpich' ||
        { remove_testbeds; return; }
    for call in barrier bcast allreduce; do
        run_case "collectives: a rank that is killed in $call ends the job, mpich" 110 \
            killed_between mpich a0:2,b1:2 "$call"
    done
    run_case "collectives: a leader that is killed in allreduce ends the job, mpich" 110 \
        killed_between mpich a0:2,b1:1 allreduce
    remove_testbeds
}

collectives_suite

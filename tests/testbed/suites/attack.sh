# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Somebody on the path who has no key (attacker.py) records what real processes say, and plays back,
# reflects, redirects, changes and forges while they talk: jobs of two MPIs with key and with
# encryption, and a server that is killed and started again at its address, with key, with
# encryption and without both. The jobs end with every byte right, nothing is lost, doubled or cut
# off, and a process that is nobody's remote gets nothing. WEFT_ATTACK_SEED sets the seed.

# Of attacker and messages; the log of each case has it.
ATTACK_SEED=${WEFT_ATTACK_SEED:-$RANDOM}

# attacked MAY COMMAND...: the command while somebody attacks; every attack must have been made.
attacked() {
    local may=$1 attacker status
    shift
    nsenter --net="/run/netns/$BED-s0" python3 tests/testbed/attacker.py --seed "$ATTACK_SEED" \
        --may "$may" h0 h2 >"$WORK/attacker" 2>&1 &
    attacker=$!
    "$@"
    status=$?
    kill -TERM $attacker
    wait $attacker || status=1
    cat "$WORK/attacker"
    awk '$1 == "attack" && $3 < 10 { print "too few:", $2; bad = 1 } END { exit bad || NR < 9 }' \
        "$WORK/attacker" || status=1
    return $status
}

# two_ranks MPI WORDS...: pair.c on two hosts, each rank of which must say that all came.
two_ranks() {
    local mpi=$1 status
    shift
    : >"$WORK/pair.a0" >"$WORK/pair.b1"
    FI_WEFT_DEAD_AFTER=1 job a0,b1 60 "$mpi" --ppn 1 --require-weft -- \
        "${INTO_FILE[@]}" "$WORK/pair" "$WORK/pair-$mpi" "$@" >"$WORK/launcher" 2>&1
    status=$?
    cat "$WORK"/pair.* "$WORK/launcher"
    echo "exit code $status"
    [ $status = 0 ] && [ "$(cat "$WORK"/pair.* | grep -cE '^rank [01]: all .*came')" = 2 ]
}

# Messages all the time; then each rank computes for longer than death takes.
a_job_is_right() { two_ranks "$1" exchange 5 "$ATTACK_SEED" && two_ranks "$1" compute 2; }

# with_a_bystander COMMAND...: a process on a2 with the same key and ports, to which nobody sends.
with_a_bystander() {
    local bystander status
    again_on a2 bystander bystander 0 "$(bed address a2)" 7000 "$(bed address b1)" 7000
    bystander=$!
    "$@"
    status=$?
    bed host a2 kill -TERM "$(cat "$WORK/bystander.pid")"
    wait $bystander || status=1
    cat "$WORK/bystander"
    grep -q '^the bystander got nothing' "$WORK/bystander" || status=1
    return $status
}

a_server_that_starts_again() {
    with_a_bystander a_server_is_killed_and_started_again b1
}

attack_suite() {
    local mpi
    if [ "$TRANSPORT" != weft ]; then
        skip attack "it is Weft's protocol, not that of $TRANSPORT"
        return
    fi
    # Datagrams are short enough for long packets, which come in pieces.
    new_testbed --hosts 3 --mtu 1500 || { skip attack 'the testbed could not be made'; return; }
    # One datagram is one packet then, also to who captures.
    for host in a0 b1 a2; do ip -n "$BED-$host" link set eth0 gso_max_segs 1; done
    for mpi in openmpi mpich; do
        mpi_is_here "$mpi" "attack on $mpi" || continue
        compile_with "$mpi" tests/testbed/pair.c "$WORK/pair-$mpi" ||
            { skip "attack on $mpi" 'its mpicc cannot compile here'; continue; }
        FI_WEFT_ENCRYPT=$([ $mpi = openmpi ] && echo 0 || echo 1) \
            run_case "attack: a job, $mpi" 90 attacked forge a_job_is_right "$mpi"
    done
    again_is_built || { skip 'attack: a server' "$AGAIN_NEEDS"; remove_testbeds; return; }
    run_case 'attack: a server starts again, with key' 100 \
        attacked forge a_server_that_starts_again
    FI_WEFT_ENCRYPT=1 run_case 'attack: a server starts again, encrypted' 100 \
        attacked forge a_server_that_starts_again
    AGAIN_KEY='' FI_WEFT_TRUST_NETWORK=1 run_case 'attack: a server starts again, without key' 100 \
        attacked replay a_server_that_starts_again
    remove_testbeds
}

attack_suite

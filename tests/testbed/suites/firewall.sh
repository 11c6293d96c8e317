# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Hosts whose firewalls do not let TCP through, by which Weft asks whether a silent host lives: one
# rejects it and the other drops it, or a switch on the way eats it with all ICMP. A rank that
# computes for longer than FI_WEFT_DEAD_AFTER is waited for, and a host that is gone is an error all
# the same, also when somebody answers in its name.

# Connections that the launchers already have go on; what is new meets the firewall.
FIREWALL_NEW='tcp dport != 22 tcp flags & (syn | ack) == syn'

# firewall_at HOST WORDS: in front of a host.
firewall_at() {
    nsenter --net="/run/netns/$BED-$1" nft "add table inet firewall
        add chain inet firewall c { type filter hook input priority 0; }
        add rule inet firewall c $FIREWALL_NEW $2"
}

# firewall_on KIND: and nobody connects any more, which is tried.
firewall_on() {
    case $1 in
    doors) firewall_at a0 'reject with icmpx type admin-prohibited' && firewall_at b1 drop ;;
    eat) nsenter --net="/run/netns/$BED-s0" nft "add rule inet weft fault $FIREWALL_NEW drop
            add rule inet weft fault ip protocol icmp drop" ;;
    none) return ;;
    esac || return 1
    is_closed a0 b1 && is_closed b1 a0
}

# is_closed FROM TO: nobody listens there, and not even that is said.
is_closed() {
    bed host "$1" python3 -c 'import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=0.3)
except ConnectionRefusedError:
    sys.exit("TCP goes through the firewall")
except OSError:
    pass' "$(bed address "$2")"
}

firewall_off() {
    local host
    for host in a0 b1; do
        nsenter --net="/run/netns/$BED-$host" nft delete table inet firewall 2>/dev/null
    done
    nsenter --net="/run/netns/$BED-s0" nft flush chain inet weft fault
}

# behind KIND MPI WORDS...: pair.c in the background once it says that it runs, behind a firewall.
# The job's process is in JOB, what the ranks say in WORK/pair.HOST.
behind() {
    local kind=$1 mpi=$2
    shift 2
    : >"$WORK/pair.a0" >"$WORK/pair.b1"
    FI_WEFT_DEAD_AFTER=1 job a0,b1 60 "$mpi" --ppn 1 --require-weft --host-timeout 50 -- \
        "${INTO_FILE[@]}" "$WORK/pair" "$WORK/pair-$mpi" "$@" >"$WORK/launcher" 2>&1 &
    JOB=$!
    waits_for "$WORK/pair.a0" 'under way' 1 40 && waits_for "$WORK/pair.b1" 'under way' 1 40 &&
        firewall_on "$kind"
}

who_computes_is_waited_for() {
    local kind=$1 mpi=$2 JOB closed status
    behind "$kind" "$mpi" compute 2.5
    closed=$?
    wait "$JOB"
    status=$?
    firewall_off
    cat "$WORK"/pair.* "$WORK/launcher"
    [ $closed$status = 00 ] && [ "$(cat "$WORK"/pair.* | grep -c 'all came while')" = 2 ]
}

# With a liar, who answers every connection attempt in the host's name: its word stands for ten
# times FI_WEFT_DEAD_AFTER at most.
who_is_gone_is_given_up() {
    local kind=$1 mpi=$2 most=$3 JOB status begin took liar=''
    if [ "$kind" = none ]; then
        nsenter --net="/run/netns/$BED-s0" python3 tests/testbed/attacker.py --seed 1 \
            --may replay --only do_shake h0 >"$WORK/attacker" 2>&1 &
        liar=$!
    fi
    behind "$kind" "$mpi" talk 20
    status=$?
    begin=$EPOCHREALTIME
    bed isolate b1
    [ $status = 0 ] && waits_for "$WORK/pair.a0" "$GIVEN_UP" 1 30
    status=$?
    took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", 1000 * (b - a) }')
    bed join b1
    firewall_off
    [ -z "$liar" ] || kill -TERM $liar
    # A launcher that was cut off from its other half takes a while to end by itself.
    signal_weft_run INT
    wait
    cat "$WORK"/pair.* "$WORK/launcher"
    echo "an error after $took ms"
    [ $status = 0 ] && [ "$took" -ge 900 ] && [ "$took" -le "$most" ]
}

# What a rank says when the other one is lost: the program's words, or MPICH's, whose errors of
# progress are fatal whatever the error handler.
GIVEN_UP='gives rank . up\|OFI poll failed'

firewall_suite() {
    local mpi kind
    if [ "$TRANSPORT" != weft ]; then
        skip firewall "it is Weft's care for remotes, not that of $TRANSPORT"
        return
    fi
    new_testbed || { skip firewall 'the testbed could not be made'; return; }
    for mpi in debian-openmpi mpich; do
        mpi_is_here "$mpi" "firewall on $mpi" || continue
        compile_with "$mpi" tests/testbed/pair.c "$WORK/pair-$mpi" ||
            { skip "firewall on $mpi" 'its mpicc cannot compile here'; continue; }
        for kind in doors eat; do
            # Which MPI waits behind a firewall makes no difference to Weft.
            [ "$FULL" = yes ] || [ $kind-"$mpi" = doors-debian-openmpi ] ||
                [ $kind-"$mpi" = eat-mpich ] || continue
            run_case "firewall: $kind, a rank computes, $mpi" 60 \
                who_computes_is_waited_for $kind "$mpi"
        done
    done
    mpi_is_here debian-openmpi 'firewall on debian-openmpi' && run_case \
        'firewall: eat, a host is gone, debian-openmpi' 70 \
        who_is_gone_is_given_up eat debian-openmpi 12000
    mpi_is_here mpich 'firewall on mpich' && run_case \
        'firewall: answered by a stranger, a host is gone, mpich' 70 \
        who_is_gone_is_given_up none mpich 25000
    remove_testbeds
}

firewall_suite

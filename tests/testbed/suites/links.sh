# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Two hosts joined by two cables, each with nets of its own: both carry, over IPv4 and IPv6, and
# when one is cut the other goes on. What is asserted is bytes on cables and what programs say,
# never time.

# cabled COMMAND...: runs it, and leaves in SENT the bytes that each cable has carried from a0
# meanwhile.
cabled() {
    local status
    bed counts >"$WORK/before"
    "$@"
    status=$?
    bed counts >"$WORK/after"
    SENT=$(paste "$WORK/before" "$WORK/after" | awk '{ printf "%d ", $5 - $2 }')
    echo "bytes from a0 on the cables: $SENT"
    return $status
}

# stream MPI WINDOWS: so many times 64 messages of 1 MiB, the last ones checked byte by byte.
stream() {
    job a0,b1 150 "$1" -n 2 --require-weft -- \
        "$WEFT" bench bw -c -m 1048576:1048576 -x 1 -i "$2"
}

# Of two equal cables each takes its share; a third stands for those that are loaded unevenly for a
# while on a busy machine.
both_carry() {
    local first second
    read -r first second <<<"$SENT"
    if [ $((first * 3)) -le "$second" ] || [ $((second * 3)) -le "$first" ]; then
        echo 'one cable carries nearly all'
        return 1
    fi
}

a_stream_takes_both() { cabled stream "$1" 2 && both_carry; }

only_the_named_one() {
    local first second
    FI_WEFT_IFACE=eth0 cabled stream "$1" 1 || return 1
    read -r first second <<<"$SENT"
    if [ "$first" -lt 64000000 ] || [ "$second" -gt 1000000 ]; then
        echo 'not all went over eth0'
        return 1
    fi
}

the_doctor_names_both() {
    bed host a0 "$WEFT" doctor >"$WORK/doctor"
    grep -E 'address +10\.77\.0\.2 \(eth0\) and 10\.79\.1\.1 \(eth1\)' "$WORK/doctor" ||
        { cat "$WORK/doctor"; return 1; }
    FI_WEFT_IFACE=eth0,eth9 bed host a0 "$WEFT" doctor >"$WORK/doctor"
    grep -A 2 'FI_WEFT_IFACE' "$WORK/doctor" | grep -q 'eth1'
}

# carried CABLE: the bytes that have left a0 on it.
carried() { bed counts | awk -v cable="$1" '$1 == cable { print $2 }'; }

# breaking MPI BREAK... : a stream, and the command when both cables have carried some of it.
breaking() {
    local mpi=$1 begin1 begin2 stream_status
    shift
    begin1=$(carried 1) begin2=$(carried 2)
    stream "$mpi" 8 >"$WORK/stream" 2>&1 &
    local job=$!
    until [ $(($(carried 1) - begin1)) -gt 20000000 ] &&
        [ $(($(carried 2) - begin2)) -gt 20000000 ]; do
        kill -0 $job 2>/dev/null || break
        sleep 0.05
    done
    "$@"
    at1=$(carried 1) at2=$(carried 2)
    wait $job
    stream_status=$?
    cat "$WORK/stream"
    echo "since it broke: $(($(carried 1) - at1)) and $(($(carried 2) - at2)) bytes"
    return $stream_status
}

# Where the machine stood still between the look and the cut, the stream may have ended by then:
# such a turn shows nothing.
a_cut_cable_is_no_error() {
    local turn status
    for turn in 1 2 3; do
        cut_cable "$1"
        status=$?
        [ $status = 3 ] || return $status
        echo "turn $turn: the cut came too late to show anything"
    done
    return 1
}

cut_cable() {
    local status
    breaking "$1" bed host a0 ip link set eth1 down
    status=$?
    bed host a0 ip link set eth1 up
    # The kernel forgets IPv6 addresses of a link that is down.
    bed host a0 ip addr add fd79:0:0:1::1/64 dev eth1 nodad 2>/dev/null
    [ "$status" = 0 ] || return "$status"
    [ $(($(carried 1) - at1)) -gt 50000000 ] || return 3
}

# Over the first one the hosts' launchers talk too; they bear this for ten seconds.
silent_for_a_while() {
    bed blackhole 1
    at2=$(carried 2)
    sleep 3
    meanwhile=$(($(carried 2) - at2))
    bed loss 1 0
}

a_silent_cable_is_no_error() {
    local meanwhile
    breaking "$1" silent_for_a_while || return 1
    echo "in the three seconds of silence: $meanwhile bytes on the other one"
    [ "$meanwhile" -gt 20000000 ] || { echo 'the other one did not carry on'; return 1; }
}

# The first address of each host is that of its cable to the other; libfabric's own program, since
# MPI launchers would have to speak IPv6 too.
pingpong6() {
    local folder status server
    folder=${WEFT_PROVIDER_DIR:-$(dirname "$WEFT")/../lib/weft}
    local settings=(env "FI_PROVIDER_PATH=$folder" "FI_WEFT_JOB_KEY=$(printf '5e%.0s' {1..32})")
    bed host b1 "${settings[@]}" FI_WEFT_IFACE=fd77:0:0:1::2,fd79:0:0:1::2 \
        fi_pingpong -B $PINGPONG_PORT -p weft -e rdm -I 60 -S 1048576 -c >"$WORK/server" 2>&1 &
    server=$!
    listens b1 $server $PINGPONG_PORT || { cat "$WORK/server"; return 1; }
    bed host a0 "${settings[@]}" FI_WEFT_IFACE=fd77:0:0:0::2,fd79:0:0:1::1 \
        fi_pingpong -P $PINGPONG_PORT -p weft -e rdm -I 60 -S 1048576 -c "$(bed address 1)"
    status=$?
    wait $server || status=$?
    [ "$status" = 0 ] || cat "$WORK/server"
    return "$status"
}

both_over_ipv6() { cabled pingpong6 && both_carry; }

# A cable of ordinary frames beside one of jumbo frames: by itself Weft leaves it out; where both
# are named datagrams are as long as the smaller one takes, and both carry.
cables_of_two_sizes() {
    local first second status
    bed mtu 2 1500
    cabled stream "$1" 1
    status=$?
    read -r first second <<<"$SENT"
    [ $status = 0 ] && [ "$second" -gt 1000000 ] && status=1
    [ $status = 0 ] && FI_WEFT_IFACE=eth0,eth1 cabled stream "$1" 1 && both_carry
    status=$?
    bed mtu 2 9000
    return $status
}

# Both hosts believe that the second cable takes jumbo frames, but it swallows them. What is lost is
# sent again over the first one, which from then on carries what is long.
a_cable_that_swallows_what_is_long() {
    local name status first second
    for name in a0 b1; do
        nsenter --net="/run/netns/$BED-$name" nft add rule inet weft fault \
            iifname eth1 meta length gt 1500 counter drop || return 1
    done
    cabled stream "$1" 2
    status=$?
    bed loss 2 0
    [ $status = 0 ] || return $status
    read -r first second <<<"$SENT"
    [ "$first" -gt $((second * 2)) ] ||
        { echo 'the cable that swallows was used all the same'; return 1; }
}

# b1_counts ECN: packets that came to it with that.
b1_counts() {
    nsenter --net="/run/netns/$BED-b1" nft list chain inet marks c |
        awk -v ecn="$1" '$0 ~ "ecn " ecn " " { for (at = 1; at < NF; at++)
            if ($at == "packets") sum += $(at + 1) } END { print sum + 0 }'
}

# Every packet with ECT, or one of WORDS, is marked on its way into b1. A network that marks them
# all is found out: most then leave without. Else they go on with it, and nothing is lost.
a_network_that_marks() {
    local mpi=$1 words=$2 status family ect not_ect
    nsenter --net="/run/netns/$BED-b1" nft "add table inet marks
        add chain inet marks c { type filter hook prerouting priority -300; }" || return 1
    for family in ip ip6; do
        nsenter --net="/run/netns/$BED-b1" nft "add rule inet marks c \
            meta l4proto udp $family ecn not-ect counter
            add rule inet marks c \
            meta l4proto udp $family ecn ect0 $words counter $family ecn set ce"
    done
    stream "$mpi" 2
    status=$?
    ect=$(b1_counts ect0) not_ect=$(b1_counts not-ect)
    nsenter --net="/run/netns/$BED-b1" nft delete table inet marks
    echo "packets with ECT that were marked: $ect; packets without: $not_ect"
    [ $status = 0 ] && [ "$ect" -gt 0 ] || return 1
    if [ -z "$words" ]; then [ "$not_ect" -gt "$ect" ]; fi
}

links_suite() {
    new_testbed --cables 2 || { skip 'links' 'the testbed could not be made'; return; }
    if [ "$TRANSPORT" != weft ]; then
        skip 'links' "they are Weft's, not those of $TRANSPORT"; return; fi
    local mpi
    run_case 'links: the doctor names both interfaces, and those that there are' 20 \
        the_doctor_names_both
    for mpi in mpich openmpi; do
        mpi_is_here "$mpi" "links on $mpi" || continue
        run_case "links: a stream takes both cables, $mpi" 180 a_stream_takes_both "$mpi"
    done
    mpi_is_here mpich 'links on mpich' || { remove_testbeds; return; }
    run_case 'links: FI_WEFT_IFACE keeps to one, mpich' 180 only_the_named_one mpich
    run_case 'links: cables of two sizes carry both, mpich' 180 cables_of_two_sizes mpich
    run_case 'links: a cable that swallows what is long is no error, mpich' 180 \
        a_cable_that_swallows_what_is_long mpich
    run_case 'links: a network that marks every packet is used without ECN, mpich' 180 \
        a_network_that_marks mpich ''
    run_case 'links: marks on some packets are no error, mpich' 180 \
        a_network_that_marks mpich 'numgen random mod 20 0'
    run_case 'links: a cable that is cut is no error, mpich' 180 a_cut_cable_is_no_error mpich
    run_case 'links: a cable that falls silent is no error, mpich' 180 \
        a_silent_cable_is_no_error mpich
    if command -v fi_pingpong >/dev/null; then
        run_case 'links: both cables over IPv6' 60 both_over_ipv6
    else
        skip 'links: both cables over IPv6' \
            'fi_pingpong is not installed (Debian: apt install libfabric-bin)'
    fi
    remove_testbeds
}

links_suite

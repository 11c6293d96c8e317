# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The testbed's own tests: what it says of its network is so. Nothing of Weft runs here.

# datagrams FROM TO ADDRESS COUNT: sends COUNT datagrams, each from a port of its own, and prints
# how many arrived. The receiver listens until all are sent, and a second more.
datagrams() {
    rm -f "$WORK/bound" "$WORK/all-sent"
    bed host "$2" python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
s.bind(("::", 7000))
open(sys.argv[1], "w").close()
s.settimeout(1)
count = 0
while True:
    over = os.path.exists(sys.argv[2])
    try:
        while True:
            count += s.recv(64) == b"x"
    except TimeoutError:
        if over:
            break
print(count)
' "$WORK/bound" "$WORK/all-sent" >"$WORK/arrived" &
    local receiver=$!
    until [ -e "$WORK/bound" ]; do sleep 0.05; kill -0 "$receiver" 2>/dev/null || return 1; done
    bed host "$1" python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
for number in range(int(sys.argv[2])):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind(("", 20000 + number % 2000))
        s.sendto(b"x", (sys.argv[1], 7000))
' "$3" "$4"
    touch "$WORK/all-sent"
    wait "$receiver"
    cat "$WORK/arrived"
}

# used_paths BEFORE AFTER LEAST: how many paths carried at least that many packets from the rack of
# a0.
used_paths() {
    paste "$1" "$2" | awk -v least="$3" '$5 - $2 >= least { used++ } END { print used + 0 }'
}

every_path_is_used() {
    local arrived address
    for address in "$(bed address 1)" "$(bed address 1 6)"; do
        bed counts >"$WORK/before"
        arrived=$(datagrams 0 1 "$address" 800)
        bed counts >"$WORK/after"
        cat "$WORK/after"
        [ "$arrived" = 800 ] || { echo "$arrived of 800 arrived at $address"; return 1; }
        [ "$(used_paths "$WORK/before" "$WORK/after" 100)" = 4 ] ||
            { echo "not every path carried 100 of 800 to $address"; return 1; }
    done
}

# With 2000 datagrams and a tenth lost on every path, 200 are expected, and 100 or 300 are seven
# standard deviations off.
loss_loses() {
    local arrived
    bed loss all 10
    arrived=$(datagrams 0 1 "$(bed address 1)" 2000)
    bed loss all 0
    echo "$arrived of 2000 arrived"
    [ "$arrived" -gt 1700 ] && [ "$arrived" -lt 1900 ] || return 1
    [ "$(datagrams 0 1 "$(bed address 1)" 500)" = 500 ] ||
        { echo 'some are lost after healing'; return 1; }
}

a_black_hole_swallows_its_path_alone() {
    local arrived
    bed blackhole 2
    arrived=$(datagrams 0 1 "$(bed address 1)" 800)
    bed loss 2 0
    echo "$arrived of 800 arrived"
    [ "$arrived" -gt 400 ] && [ "$arrived" -lt 760 ]
}

# An isolated host is not refused, it is silent.
isolation_is_silent() {
    bed isolate 1
    bed host 0 timeout 2 python3 -c 'import socket; socket.create_connection(("b1", 22))'
    [ $? = 124 ] || { bed join 1; echo 'an isolated host answered'; return 1; }
    bed join 1
    bed host 0 timeout 40 python3 -c 'import socket; socket.create_connection(("b1", 22))'
}

# A megabyte has 8 Mbit, and the first 128 KiB pass at once; on a busy machine it takes longer, but
# never less.
a_slow_path_is_slow() {
    local seconds
    bed rate all 8mbit
    seconds=$(stream_seconds)
    bed rate all 500mbit
    echo "1 MB took $seconds s at 8 Mbit/s"
    awk -v seconds="$seconds" 'BEGIN { exit !(seconds > 0.85) }'
}

stream_seconds() {
    bed host 0 python3 -c '
import socket, subprocess, sys, time
begin = time.monotonic()
subprocess.run([sys.argv[1], "b1", "cat >/dev/null"], input=bytes(1000000), check=True)
print(round(time.monotonic() - begin, 3))' "$AGENT"
}

a_small_mtu_is_told_to_the_sender() {
    bed mtu all 1500
    bed host 0 python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: IP_PMTUDISC_DO
s.connect((sys.argv[1], 7000))
mtu, end = 0, time.monotonic() + 20
while mtu != 1500 and time.monotonic() < end:
    try:
        s.send(bytes(4000))
    except OSError:
        pass
    time.sleep(0.01)
    mtu = s.getsockopt(socket.IPPROTO_IP, 14)  # IP_MTU
print("path MTU", mtu)
sys.exit(mtu != 1500)' "$(bed address 1)"
    local status=$?
    bed mtu all 9000
    return $status
}

hosts_are_apart() {
    [ "$(bed host 0 hostname) $(bed host 1 hostname)" = 'a0 b1' ] ||
        { echo 'hosts do not have their names'; return 1; }
    bed host 0 touch /dev/shm/mark
    bed host 1 test ! -e /dev/shm/mark || { echo 'two hosts share /dev/shm'; return 1; }
    bed host 0 rm /dev/shm/mark
    # It holds the name until its input ends.
    mkfifo "$WORK/held"
    bed host 0 python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind("\0mark")
print("bound", flush=True)
sys.stdin.read()' \
        <"$WORK/held" >"$WORK/holder" &
    exec 8>"$WORK/held"
    until grep -q bound "$WORK/holder"; do sleep 0.05; kill -0 $! || return 1; done
    bed host 1 python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("\0mark")' ||
        { echo 'two hosts share abstract sockets'; return 1; }
    exec 8>&-
    wait $!
    bed host 1 sh -c 'exit 7'
    [ $? = 7 ] || { echo 'an exit code was lost'; return 1; }
    bed host 0 "$AGENT" -x -o Some=thing b1 'hostname; exit 5' >"$WORK/agent"
    [ $? = 5 ] && [ "$(cat "$WORK/agent")" = b1 ] ||
        { echo 'the agent lost an exit code or output'; return 1; }
}

# Another one beside it, and nothing of it is left.
testbeds_stand_side_by_side() {
    local other left
    other=$("$TESTBED" up --owner $$ --direct) || return 1
    "$TESTBED" "$other" host 0 "$("$TESTBED" "$other" agent)" b1 hostname ||
        { "$TESTBED" "$other" down; return 1; }
    bed host 0 "$AGENT" b1 true || return 1
    "$TESTBED" "$other" host 1 sleep 97 &
    sleep 0.3
    "$TESTBED" "$other" down
    wait $!
    left=$(ip netns list | grep -c "^$other")
    [ "$left" = 0 ] && [ ! -e "/run/weft-testbed/$other" ] && bed host 0 "$AGENT" b1 true ||
        return 1
    # Its owner is not to be seen from another namespace of processes, and yet lives.
    other=$(unshare --pid --fork --mount-proc "$TESTBED" up --direct) || return 1
    "$TESTBED" "$other" down
    bed host 0 true || { echo 'who cannot see its owner has removed the testbed'; return 1; }
}

# mistaken WORDS -- ARGUMENTS: the command line is refused with 2 and these words.
mistaken() {
    local words=$1 text
    shift 2
    text=$("$TESTBED" "$@" 2>&1)
    [ $? = 2 ] && [[ $text == *"$words"* ]] || { echo "'$*' gave: $text"; return 1; }
}

mistakes_are_named() {
    mistaken 'from 1 to 64' -- up --paths 0 && mistaken 'unknown option' -- up --speed 1 &&
        mistaken "no testbed 'wt-x'" -- wt-x down &&
        mistaken "no path '9'" -- "$BED" loss 9 1 &&
            mistaken 'from 0 to 100' -- "$BED" loss 1 101 &&
                mistaken "no host '7'" -- "$BED" host 7 true
}

network_suite() {
    new_testbed || { skip 'network' 'the testbed could not be made'; return; }
    run_case 'testbed: hosts are apart' 60 hosts_are_apart
    run_case 'testbed: every path is used, over IPv4 and IPv6' 60 every_path_is_used
    run_case 'testbed: loss loses' 60 loss_loses
    run_case 'testbed: a black hole swallows its path alone' 60 a_black_hole_swallows_its_path_alone
    run_case 'testbed: isolation is silent' 60 isolation_is_silent
    run_case 'testbed: a slow path is slow' 60 a_slow_path_is_slow
    run_case 'testbed: a small MTU is told to the sender' 60 a_small_mtu_is_told_to_the_sender
    run_case 'testbed: two stand side by side' 60 testbeds_stand_side_by_side
    run_case 'testbed: mistakes are named' 60 mistakes_are_named
    remove_testbeds
}

network_suite

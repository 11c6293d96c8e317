# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What networks and processes do at their worst: datagrams changed, doubled and overtaken on their
# way, a rate that falls to a tenth, 64 processes that meet at once, a receiver that does not look
# for a while, processes that are stopped, a host that is gone, a server that is killed and started
# again. Every byte is checked by the programs; what the network did is counted by its switches.

# make_harsh: half a per cent of the datagrams have a byte changed (the switch corrects the
# checksum), one in fifty comes twice, one path is a tenth as fast as the others, so that all it
# carries is overtaken, and one in a thousand is lost.
make_harsh() {
    local s h
    bed rate 1 50mbit
    bed loss all 0.1
    for s in 0 1; do
        h=$((s == 0 ? 0 : 1))
        nsenter --net="/run/netns/$BED-s$s" nft "add rule inet weft fault oifname \"u*\" \
                meta l4proto udp numgen random mod 1000 < 5 counter @th,768,8 set 0x5a
            add table ip doubled
            add chain ip doubled c { type filter hook forward priority 1; }
            add rule ip doubled c oifname \"h$h\" \
                meta l4proto udp numgen random mod 1000 < 20 counter dup to $(bed address $h)" ||
            return 1
    done
}

# struck TABLE: how many packets the switches have changed or doubled.
struck() {
    local s
    for s in 0 1; do nsenter --net="/run/netns/$BED-s$s" nft list table "$@"; done |
        grep -E '@th|dup to' |
        sed -n 's/.*counter packets \([0-9]*\) .*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'
}

survives() {
    local mpi=$1 changed doubled
    job a0,b1 60 "$mpi" --ppn 2 --require-weft -- "$WEFT" bench alltoall -c -m 1:65536 -i 5 -x 1 ||
        return 1
    job a0,b1 60 "$mpi" --ppn 1 --require-weft -- "$WEFT" bench bw -c -m 1048576:1048576 -i 1 -x 0 \
        || return 1
    changed=$(struck inet weft) doubled=$(struck ip doubled)
    echo "$changed datagrams were changed, $doubled doubled"
    [ "$changed" -gt 20 ] && [ "$doubled" -gt 20 ]
}

# 64 processes, each of which speaks to all others at once: 32 to a host, so that 1024 pairs meet
# over the network.
all_meet_at_once() {
    job a0,b1 100 "$1" --ppn 32 --require-weft -- "$WEFT" bench alltoall -c -m 8:8 -i 2 -x 0
}

# The receiver computes for a second and a half while messages of every form come in, and then takes
# them all, in order.
unpolled_program() {
    cat <<'PYTHON'
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
lengths = [100] * 200 + [5_000] * 40 + [40_000] * 30 + [1_000_000] * 12
text = [bytes([(number * 7 + length) % 251]) * length for number, length in enumerate(lengths)]
if world.rank == 0:
    world.recv(source=1)
    MPI.Request.Waitall([world.Isend(one, dest=1, tag=5) for one in text])
else:
    world.send(None, dest=0)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    for number, one in enumerate(text):
        got = bytearray(len(one))
        world.Recv(got, source=0, tag=5)
        assert got == one, f"message {number}"
    assert not world.iprobe(source=0), "one too many"
    print("all", len(text), "messages came once, whole and in order")
PYTHON
}

nobody_looks() {
    # Where hosts see it, whose /tmp is their own.
    unpolled_program >"$LOGS/unpolled.py"
    job a0,b1 60 "$1" --ppn 1 --require-weft -- "$ROOT/.env/mpi/$1/bin/python" "$LOGS/unpolled.py" \
        >"$WORK/unpolled" 2>&1
    local status=$?
    cat "$WORK/unpolled"
    [ "$status" = 0 ] && grep -q '^all 282 messages' "$WORK/unpolled"
}

# Two ranks answer each other. Each always waits for the other by name, so that whoever is cut off,
# at whatever moment, has something to wait for.
cut_off_program() {
    cat <<'PYTHON'
from mpi4py import MPI
world = MPI.COMM_WORLD
other, mine, theirs = 1 - world.rank, bytearray(65_536), bytearray(65_536)
begin, told = MPI.Wtime(), False
while MPI.Wtime() < begin + 40:
    world.Sendrecv(mine, dest=other, recvbuf=theirs, source=other)
    if not told and MPI.Wtime() > begin + 0.3:
        told = True
        print(f"rank {world.rank} is under way\n", end="", flush=True)
PYTHON
}

# Two seconds are what FI_WEFT_DEAD_AFTER asks for; what comes on top is the MPI's own way of
# telling, and a busy machine's. The rank on this side must say it.
a_host_that_is_gone_is_an_error() {
    local mpi=$1 job begin=0 took status
    cut_off_program >"$LOGS/cut_off.py"
    : >"$WORK/gone.a0" >"$WORK/gone.b1"
    FI_WEFT_DEAD_AFTER=2 job a0,b1 60 "$mpi" --ppn 1 --require-weft --host-timeout 50 -- \
        "${INTO_FILE[@]}" "$WORK/gone" "$ROOT/.env/mpi/$mpi/bin/python" "$LOGS/cut_off.py" \
        >"$WORK/launcher" 2>&1 &
    job=$!
    waits_for "$WORK/gone.a0" 'is under way' 1 40 &&
        waits_for "$WORK/gone.b1" 'is under way' 1 40 && begin=$EPOCHREALTIME && bed isolate b1 &&
        waits_for "$WORK/gone.a0" 'Connection reset by peer' 1 30
    status=$?
    took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", 1000 * (b - a) }')
    bed join b1
    signal_weft_run INT
    wait $job
    cat "$WORK"/gone.* "$WORK/launcher"
    echo "an error after $took ms"
    [ $status = 0 ] && [ "$took" -ge 1900 ] && [ "$took" -le 12000 ]
}

# Both ranks are stopped for longer than FI_WEFT_DEAD_AFTER, as a batch system does that suspends a
# job. The first one to come back finds that it has not heard of the other for that long.
stopped_program() {
    cat <<'PYTHON'
import os, sys
from mpi4py import MPI
world, folder = MPI.COMM_WORLD, sys.argv[1]
other, mine, theirs = 1 - world.rank, bytearray(65_536), bytearray(65_536)
with open(f"{folder}/pid-{world.rank}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename(file.name, f"{folder}/pid-{world.rank}")
while not theirs[0]:
    mine[0] = world.rank == 0 and os.path.exists(f"{folder}/over")
    world.Sendrecv(mine, dest=other, recvbuf=theirs, source=other)
    if mine[0]:
        break
print(f"rank {world.rank} is through\n", end="", flush=True)
PYTHON
}

two_that_are_stopped_go_on() {
    local mpi=$1 folder=$LOGS/stopped job first second
    rm -rf "$folder" && mkdir -p "$folder" && stopped_program >"$folder/program.py" &&
        : >"$WORK/stopped"
    FI_WEFT_DEAD_AFTER=1 job a0,b1 60 "$mpi" --ppn 1 --require-weft -- \
        "$ROOT/.env/mpi/$mpi/bin/python" "$folder/program.py" "$folder" >"$WORK/stopped" 2>&1 &
    job=$!
    until [ -s "$folder/pid-0" ] && [ -s "$folder/pid-1" ]; do sleep 0.1; kill -0 $job ||
        { cat "$WORK/stopped"; return 1; }; done
    first=$(cat "$folder/pid-0") second=$(cat "$folder/pid-1")
    sleep 0.5
    bed host b1 kill -STOP "$second" && sleep 0.2 && bed host a0 kill -STOP "$first" && sleep 2.5 &&
        bed host a0 kill -CONT "$first" && sleep 0.3 && bed host b1 kill -CONT "$second" &&
            sleep 0.5 && touch "$folder/over"
    wait $job
    local status=$?
    cat "$WORK/stopped"
    [ $status = 0 ] && [ "$(grep -c 'is through' "$WORK/stopped")" = 2 ]
}

# A network that becomes ten times slower between two messages, with less buffer than before: what
# the sender's window remembers of better days would drown it. What is dropped tells; the times of
# the last nine messages only show that the network was slow.
slower_program() {
    cat <<'PYTHON'
import os, sys, time
from mpi4py import MPI
world, folder = MPI.COMM_WORLD, sys.argv[1]
block, answer = bytearray(1 << 20), bytearray(8)

def message():
    begin = time.monotonic()
    if world.rank == 0:
        world.Send(block, dest=1)
        world.Recv(answer, source=1)
    else:
        world.Recv(block, source=0)
        world.Send(answer, dest=0)
    return 1000 * (time.monotonic() - begin)

for _ in range(60):
    message()
if world.rank == 0:
    open(f"{folder}/ready", "w").close()
    while not os.path.exists(f"{folder}/slower"):
        time.sleep(0.01)
    print("ms:", *(f"{message():.0f}" for _ in range(9)), flush=True)
else:
    for _ in range(9):
        message()
PYTHON
}

# dropped_on_paths: packets from a0 that found a path's buffer full since its rate was set last.
dropped_on_paths() {
    local p sum=0
    for p in 1 2 3 4; do
        sum=$((sum + $(nsenter --net="/run/netns/$BED-s0" tc -s qdisc show dev "u$p" |
            sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')))
    done
    echo $sum
}

# Nine messages of 1 MiB are 1062 packets of 9000 bytes. At a tenth of the rate each takes 42 ms,
# and the first one less, since the buffers take some of it in. Fourteen runs on a busy machine lost
# 8 to 55 packets. A build whose window never shrinks loses 640 to 2037, with times as these.
a_rate_that_falls_to_a_tenth() {
    local mpi=$1 folder=$LOGS/slower job dropped status host
    rm -rf "$folder" && mkdir -p "$folder" && slower_program >"$folder/program.py" || return 1
    # One datagram is one packet then.
    for host in a0 b1; do ip -n "$BED-$host" link set eth0 gso_max_segs 1; done
    job a0,b1 60 "$mpi" --ppn 1 --require-weft -- \
        "$ROOT/.env/mpi/$mpi/bin/python" "$folder/program.py" "$folder" >"$folder/said" 2>&1 &
    job=$!
    until [ -e "$folder/ready" ]; do sleep 0.05; kill -0 $job ||
        { cat "$folder/said"; return 1; }; done
    bed buffer all 65536 && bed rate all 50mbit && touch "$folder/slower"
    wait $job
    status=$?
    dropped=$(dropped_on_paths)
    cat "$folder/said"
    echo "packets dropped: $dropped of 1062"
    [ $status = 0 ] && [ "$dropped" -le 200 ] || return 1
    awk '$1 == "ms:" { rows++; for (at = 3; at <= NF; at++) sum += $at }
        END { exit !(rows == 1 && sum >= 8 * 35) }' "$folder/said" ||
        { echo 'the network did not become slower'; return 1; }
}

started_again() {
    again_is_built || { skip 'harsh: a server that is started again' "$AGAIN_NEEDS"; return; }
    run_case 'harsh: a server is killed and started again, and says so' 100 \
        a_server_is_killed_and_started_again b1
    run_case 'harsh: a server is killed and started again, and its client names it again' 100 \
        a_server_is_killed_and_started_again b1 mute
    run_case 'harsh: a server on the same host is killed and started again, and named again' 100 \
        a_server_is_killed_and_started_again a0 mute
}

# On a testbed of its own, whose rates nobody sets back.
slower_suite() {
    mpi_is_here mpich 'slower on mpich' || return
    new_testbed || { skip 'harsh: the rate falls' 'the testbed could not be made'; return; }
    run_case 'harsh: the rate falls to a tenth between two messages, mpich' 70 \
        a_rate_that_falls_to_a_tenth mpich
    remove_testbeds
}

harsh_suite() {
    if [ "$TRANSPORT" != weft ]; then
        skip 'harsh' "these are Weft's, not those of $TRANSPORT"; return; fi
    slower_suite
    new_testbed || { skip 'harsh' 'the testbed could not be made'; return; }
    started_again
    mpi_is_here mpich 'harsh on mpich' || { remove_testbeds; return; }
    run_case 'harsh: a host that is gone is an error after the time that was set, mpich' 90 \
        a_host_that_is_gone_is_an_error mpich
    run_case 'harsh: two that are stopped for longer than death takes go on, mpich' 70 \
        two_that_are_stopped_go_on mpich
    run_case 'harsh: nobody looks for a second and a half, mpich' 70 nobody_looks mpich
    run_case 'harsh: 64 processes meet at once, mpich' 110 all_meet_at_once mpich
    make_harsh ||
        { skip 'harsh: changed and doubled' 'the kernel cannot double packets (nft_dup)';
            remove_testbeds; return; }
    run_case 'harsh: changed, doubled, overtaken and lost, mpich' 130 survives mpich
    remove_testbeds
}

harsh_suite

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Several hosts on one machine, joined by equal-cost paths that the kernel picks by addresses and
# ports, as a switch does.
#
#   testbed.sh check                     prints why no testbed can be made here, and exits with 1,
#                                        or nothing
#   testbed.sh up [OPTIONS]              makes one and prints its name; remove it with `down`
#       --hosts N      hosts a0 b1 a2 b3 ...; even ones hang in one rack, odd ones in the other
#                      (default 2)
#       --paths P      equal-cost paths between the racks (default 4)
#       --rate RATE    of each path in each direction, as tc(8) writes it, or none (default 500mbit)
#       --mtu BYTES    of every link (default 9000)
#       --direct       two hosts, one veth pair, no switch and no limit
#       --cables N     two hosts, N veth pairs of this rate, each with nets of its own: eth0, eth1
#                      and so on; a path is a cable then
#       --owner PID    when this process is gone, the next `up` removes the testbed (default: it
#                      stays until `down`)
#   testbed.sh NAME down                 removes it, with every process in it
#   testbed.sh NAME hosts                their names, one a line
#   testbed.sh NAME address H [6]        the address of host H
#   testbed.sh NAME host H COMMAND...    runs a command on host H, with this environment and in this
#                                        folder
#   testbed.sh NAME agent                path of a script that does what ssh does, from host to host
#   testbed.sh NAME loss PATH PERCENT    drops that share at random; PATH is a number from 1, or
#                                        all; 0 heals
#   testbed.sh NAME blackhole PATH       drops everything, silently; `loss PATH 0` heals
#   testbed.sh NAME rate PATH RATE       changes a path's rate
#   testbed.sh NAME delay PATH TIME      lets every packet wait so long, as tc(8) writes it (10ms);
#                                        needs a kernel with netem
#   testbed.sh NAME buffer PATH BYTES    how much a path holds back before it drops (default: what
#                                        it carries in 5 ms, and a burst of 128 kB); what it lets
#                                        through at once is then 16 kB. Needs an MTU below that
#   testbed.sh NAME flow-limit MBIT      drops what a flow (addresses and ports) sends beyond this
#                                        rate, and a burst of 128 kB, as some clouds do; 0 ends that
#   testbed.sh NAME mtu PATH BYTES
#   testbed.sh NAME counts               packets that left on each path: PATH FROM_A FROM_B (of
#                                        cables: bytes)
#   testbed.sh NAME fragments            into how many pieces the switches have cut packets that
#                                        were too long for a path
#   testbed.sh NAME isolate H            host H hears and is heard no more, without a word; `join H`
#                                        ends that
#   testbed.sh NAME kill H               ends every process of host H, as a crash does
#
# Every host has network, name, process numbers, /dev/shm, /etc/hosts, TMPDIR, System V memory and,
# as far as they go, processors of its own; the rest of the file system is shared. IPv4 is
# 10.77.H.2, IPv6 fd77:0:0:H::2. Names are unique, so that testbeds can stand side by side. Needs
# root, iproute2, nftables, Python 3.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATE=${WEFT_TESTBED_STATE:-/run/weft-testbed}
# What a flow may send at once where flows are limited.
FLOW_BURST_BYTES=128000

die() { printf 'testbed.sh: %s\n' "$*" >&2; exit 2; }

# --- what is needed -------------------------------------------------------------------------------

cmd_check() {
    local tool
    [ "$(id -u)" = 0 ] ||
        { echo 'making network namespaces needs root; start it as root (sudo)'; return 1; }
    for tool in ip tc nft unshare nsenter taskset python3; do
        command -v "$tool" >/dev/null && continue
        echo "$tool is not installed (Debian: apt install iproute2 nftables util-linux python3)"
        return 1
    done
    unshare --net --uts --ipc --mount --pid --fork true 2>/dev/null ||
        { echo "this machine does not let root make namespaces; a container needs" \
            "CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)"; return 1; }
    unshare --net nft 'add table inet probe
        add chain inet probe c { type filter hook forward priority 0; }
        add rule inet probe c numgen random mod 10000 < 1 drop' 2>/dev/null ||
        { echo 'the kernel has no nf_tables, or not its numgen'; return 1; }
    unshare --net sh -c 'ip link add name w type veth peer name v &&
        tc qdisc add dev w root tbf rate 1mbit burst 32kb latency 5ms' 2>/dev/null ||
        { echo 'the kernel has no veth, or no tbf'; return 1; }
}

# --- making ---------------------------------------------------------------------------------------

host_name() { if [ $(($1 % 2)) = 0 ]; then echo "a$1"; else echo "b$1"; fi; }
address4() { echo "10.77.$1.2"; }
address6() { echo "fd77:0:0:$1::2"; }

# in_ns NAMESPACE COMMAND...: in a network namespace, everything else being the caller's.
in_ns() { nsenter --net="/run/netns/$NAME-$1" "${@:2}"; }

prepare_ns() {
    ip -n "$NAME-$1" link set lo up
    # The settings of new devices come from `default`; without duplicate detection an IPv6 address
    # is usable at once.
    in_ns "$1" sh -c 'cd /proc/sys/net/ipv6/conf
        for of in default all; do echo 0 >$of/accept_dad; done' 2>/dev/null || true
}

make_switch() {
    ip netns add "$NAME-$1"
    prepare_ns "$1"
    in_ns "$1" sh -c 'cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding
        echo 1 >ipv4/fib_multipath_hash_policy; echo 1 >ipv6/fib_multipath_hash_policy'
    make_faults "$1" forward
}

# make_faults NAMESPACE HOOK: an empty chain for the rules that make faults.
make_faults() {
    in_ns "$1" nft "add table inet weft
        add chain inet weft fault { type filter hook $2 priority 0; }"
}

# processors_of H: this machine's processors, dealt out to the hosts, so that one that polls takes
# no time from another where there are enough, and every program sees how many it really has.
processors_of() {
    taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
        while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done |
        awk -v h="$1" -v hosts="$HOSTS" '{ all[NR - 1] = $1 }
            END {
                for (i = h % NR; i < NR; i += hosts) list = list (list == "" ? "" : ",") all[i]
                print list
            }'
}

# make_host H: its first process keeps the namespaces, and ends everything in them when it ends.
make_host() {
    local name
    name=$(host_name "$1")
    mkdir -p "$DIR/tmp" "$DIR/$name.tmp"
    # shellcheck disable=SC2016 # the inner shell expands
    setsid env TMPDIR="$DIR/tmp" taskset -c "$(processors_of "$1")" \
        unshare --net --uts --ipc --mount --pid --fork --mount-proc --propagation private \
        --kill-child sh -c '
        mount -t sysfs sysfs /sys && mount -t tmpfs -o mode=1777,size=50% tmpfs /dev/shm &&
            mount --bind "$1/etc-hosts" /etc/hosts &&
            mount --bind "$1/$2.tmp" "$1/tmp" || exit 1
        echo "$2" >/proc/sys/kernel/hostname
        exec python3 "$3" serve "$1/$2.socket"' sh "$DIR" "$name" "$here/host.py" \
        </dev/null >"$DIR/$name.log" 2>&1 9>&- &
    echo $! >"$DIR/$name.holder"
    local inner=''
    for _ in $(seq 3000); do
        [ -S "$DIR/$name.socket" ] && inner=$(cat "/proc/$!/task/$!/children" 2>/dev/null) &&
            [ -n "$inner" ] && break
        kill -0 $! 2>/dev/null || break
        sleep 0.02
    done
    [ -n "$inner" ] || { cat "$DIR/$name.log" >&2; die "host $name did not start"; }
    echo "${inner// /}" >"$DIR/$name.init"
    ip netns attach "$NAME-$name" "${inner// /}"
    prepare_ns "$name"
}

# attach_host H: a cable to the switch of its rack.
attach_host() {
    local h=$1 name switch=s$(($1 % 2))
    name=$(host_name "$h")
    ip link add eth0 mtu "$MTU" netns "$NAME-$name" type veth \
        peer name "h$h" mtu "$MTU" netns "$NAME-$switch"
    give_address "$name" "$h"
    ip -n "$NAME-$switch" addr add "10.77.$h.1/24" dev "h$h"
    ip -n "$NAME-$switch" addr add "fd77:0:0:$h::1/64" dev "h$h" nodad
    ip -n "$NAME-$switch" link set "h$h" up
    ip -n "$NAME-$name" route add default via "10.77.$h.1"
    ip -n "$NAME-$name" -6 route add default via "fd77:0:0:$h::1"
}

give_address() {
    ip -n "$NAME-$1" addr add "$(address4 "$2")/24" dev eth0
    ip -n "$NAME-$1" addr add "$(address6 "$2")/64" dev eth0 nodad
    ip -n "$NAME-$1" link set eth0 up
}

make_paths() {
    local p s h hops4=('' '') hops6=('' '')
    for p in $(seq "$PATHS"); do
        ip link add "u$p" mtu "$MTU" netns "$NAME-s0" type veth \
            peer name "u$p" mtu "$MTU" netns "$NAME-s1"
        for s in 0 1; do
            ip -n "$NAME-s$s" addr add "10.78.$p.$((s + 1))/30" dev "u$p"
            ip -n "$NAME-s$s" addr add "fd78:0:0:$p::$((s + 1))/64" dev "u$p" nodad
            ip -n "$NAME-s$s" link set "u$p" up
            hops4[s]+=" nexthop via 10.78.$p.$((2 - s))"
            hops6[s]+=" nexthop via fd78:0:0:$p::$((2 - s))"
        done
        set_rate "$p" "$RATE"
    done
    for h in $(seq 0 $((HOSTS - 1))); do
        s=$((1 - h % 2))
        # shellcheck disable=SC2086 # several words each
        ip -n "$NAME-s$s" route add "10.77.$h.0/24" ${hops4[s]}
        # shellcheck disable=SC2086
        ip -n "$NAME-s$s" -6 route add "fd77:0:0:$h::/64" ${hops6[s]}
    done
}

number() {
    if [[ $2 =~ ^[0-9]+$ ]] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then return; fi
    die "$1 is '$2'; it must be a whole number from $3 to $4"
}

cmd_up() {
    HOSTS=2 PATHS=4 RATE=500mbit MTU=9000 DIRECT=no CABLES=0
    local owner='' h reason
    while [ $# -gt 0 ]; do
        case $1 in
        --direct) DIRECT=yes; shift; continue ;;
        --hosts | --paths | --cables | --rate | --mtu | --owner) [ $# -gt 1 ] ||
            die "$1 needs a value" ;;
        *) die "unknown option $1; see the head of $0" ;;
        esac
        case $1 in
        --hosts) number "$1" "$2" 1 64; HOSTS=$2 ;;
        --paths) number "$1" "$2" 1 64; PATHS=$2 ;;
        --cables) number "$1" "$2" 1 16; CABLES=$2 DIRECT=yes ;;
        --mtu) number "$1" "$2" 1280 65535; MTU=$2 ;;
        --owner) number "$1" "$2" 1 4194304; owner=$2 ;;
        --rate) RATE=$2 ;;
        esac
        shift 2
    done
    reason=$(cmd_check) || { printf 'testbed.sh: %s\n' "$reason" >&2; exit 1; }
    mkdir -p "$STATE"
    sweep
    DIR=$(mktemp -d "$STATE/wt-XXXXXX")
    chmod 755 "$DIR"
    NAME=${DIR##*/}
    trap 'cmd_down' EXIT
    [ -z "$owner" ] || printf '%s\n' "$owner $(start_of "$owner")" "$(processes_of "$owner")" \
        >"$DIR/owner"
    [ "$DIRECT" = no ] || HOSTS=2
    write_names
    for h in $(seq 0 $((HOSTS - 1))); do make_host "$h"; done
    if [ "$DIRECT" = yes ]; then
        connect_directly
    else
        make_switch s0
        make_switch s1
        for h in $(seq 0 $((HOSTS - 1))); do attach_host "$h"; done
        make_paths
    fi
    trap - EXIT
    echo "$NAME"
}

# Two hosts and one cable; both addresses lie in one net.
connect_directly() {
    ip link add eth0 mtu "$MTU" netns "$NAME-a0" type veth \
        peer name eth0 mtu "$MTU" netns "$NAME-b1"
    give_address a0 0
    give_address b1 1
    [ "$CABLES" = 0 ] || connect_cables
    ip -n "$NAME-a0" route add "$(address4 1)/32" dev eth0
    ip -n "$NAME-b1" route add "$(address4 0)/32" dev eth0
    ip -n "$NAME-a0" -6 route add "$(address6 1)/128" dev eth0
    ip -n "$NAME-b1" -6 route add "$(address6 0)/128" dev eth0
}

# Further cables beside the first, each with a net of its own, and the rate of them all.
connect_cables() {
    local c h name
    echo "$CABLES" >"$DIR/cables"
    for c in $(seq 0 $((CABLES - 1))); do
        [ "$c" = 0 ] || ip link add "eth$c" mtu "$MTU" netns "$NAME-a0" type veth \
            peer name "eth$c" mtu "$MTU" netns "$NAME-b1"
        for h in 0 1; do
            name=$(host_name "$h")
            if [ "$c" != 0 ]; then
                ip -n "$NAME-$name" addr add "10.79.$c.$((h + 1))/24" dev "eth$c"
                ip -n "$NAME-$name" addr add "fd79:0:0:$c::$((h + 1))/64" dev "eth$c" nodad
                ip -n "$NAME-$name" link set "eth$c" up
            fi
        done
        set_rate $((c + 1)) "$RATE"
    done
    # A filter on the way out would tell the sender; what is lost here is lost on its way.
    for name in a0 b1; do make_faults "$name" input; done
}

# A path is a link between the switches, or a cable between the hosts: its device, where it ends,
# and which packets are at its end.
is_cabled() { [ -f "$DIR/cables" ]; }
device_of() { if is_cabled; then echo "eth$(($1 - 1))"; else echo "u$1"; fi; }
ends_of_paths() { if is_cabled; then echo a0 b1; else echo s0 s1; fi; }
side_of_paths() { if is_cabled; then echo iifname; else echo oifname; fi; }

write_names() {
    local h
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$DIR/etc-hosts"
    for h in $(seq 0 $((HOSTS - 1))); do
        host_name "$h" >>"$DIR/names"
        printf '%s %s\n' "$(address4 "$h")" "$(host_name "$h")" >>"$DIR/etc-hosts"
        printf '%s %s-6\n' "$(address6 "$h")" "$(host_name "$h")" >>"$DIR/etc-hosts"
    done
    write_agent
}

# The agent takes what the launchers of Open MPI, MPICH and Intel MPI give to ssh.
write_agent() {
    cat >"$DIR/agent" <<AGENT
#!/bin/sh
# As ssh: [OPTIONS] HOST COMMAND..., from one host of a testbed to another.
while :; do
    case \${1-} in
    -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
[ \$# -ge 2 ] || { echo "agent: usage: agent [OPTIONS] HOST COMMAND" >&2; exit 255; }
host=\${1#*@}
shift
exec python3 "$here/host.py" shell "\$host" "\$@"
AGENT
    chmod 755 "$DIR/agent"
}

# --- removing -------------------------------------------------------------------------------------

# start_of PID: when a process started, in ticks; nothing when it is gone.
start_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# processes_of PID: its namespace of processes.
processes_of() { readlink "/proc/$1/ns/pid"; }

# sweep: testbeds whose owner has gone without a word. Process numbers come again, start times do
# not. An owner in another namespace of processes cannot be looked for from here.
sweep() {
    local folder pid start namespace
    for folder in "$STATE"/wt-*; do
        [ -f "$folder/owner" ] || continue
        namespace=
        { read -r pid start; read -r namespace; } <"$folder/owner" || true
        [ "$namespace" = "$(processes_of self)" ] || continue
        [ -n "$start" ] && [ "$(start_of "$pid")" = "$start" ] && continue
        # Somebody else may remove it at the same time.
        "$0" "${folder##*/}" down || true
    done
}

cmd_down() {
    local file pid
    for file in "$DIR"/*.init; do
        [ -f "$file" ] || continue
        read -r pid <"$file"
        kill -KILL "$pid" 2>/dev/null || true
    done
    for file in "$DIR"/*.holder; do
        [ -f "$file" ] || continue
        read -r pid <"$file"
        kill -KILL "$pid" 2>/dev/null || true
    done
    for file in /run/netns/"$NAME"-*; do
        [ -e "$file" ] && ip netns del "${file##*/}"
    done
    rm -rf "$DIR"
}

# --- using ----------------------------------------------------------------------------------------

# host_of WORD: the name of a host given by number or name.
host_of() {
    local name=$1
    if [[ $name =~ ^[0-9]+$ ]]; then name=$(host_name "$name"); fi
    grep -qx -- "$name" "$DIR/names" ||
        die "there is no host '$1' in $NAME; there are: $(tr '\n' ' ' <"$DIR/names")"
    echo "$name"
}

cmd_host() {
    local name
    name=$(host_of "$1")
    shift
    [ $# -gt 0 ] || die 'host needs a command'
    exec env TMPDIR="$DIR/tmp" python3 "$here/host.py" enter "$DIR/$name.socket" "$@"
}

# paths_of WORD: the numbers of the paths meant.
paths_of() {
    local all
    if is_cabled; then
        all=$(seq "$(cat "$DIR/cables")")
    else
        all=$(ip -n "$NAME-s0" -o link show 2>/dev/null | sed -n 's/^[0-9]*: u\([0-9]*\)@.*/\1/p')
    fi
    [ -n "$all" ] || die "$NAME has no paths (it was made with --direct)"
    if [ "$1" = all ]; then echo "$all"; return; fi
    grep -qx -- "$1" <<<"$all" ||
        die "there is no path '$1' in $NAME; there are: $(tr '\n' ' ' <<<"$all")and all"
    echo "$1"
}

cmd_loss() {
    local p s rule list
    list=$(paths_of "$1")
    awk -v p="$2" 'BEGIN { exit !(p ~ /^[0-9.]+$/ && p >= 0 && p <= 100) }' ||
        die "loss is '$2'; it must be a percentage from 0 to 100"
    for p in $list; do
        for s in $(ends_of_paths); do
            forget_rules "$s" "$(side_of_paths) \"$(device_of "$p")\""
            rule=$(awk -v p="$2" 'BEGIN {
                n = int(p * 10000 + 0.5)
                if (n >= 1000000) print "counter drop"
                else if (n > 0) printf "numgen random mod 1000000 < %d counter drop", n
            }')
            [ -z "$rule" ] ||
                in_ns "$s" nft "add rule inet weft fault $(side_of_paths) $(device_of "$p") $rule"
        done
    done
}

# forget_rules SWITCH TEXT: removes the rules that contain the text.
forget_rules() {
    local handle
    for handle in $(in_ns "$1" nft -a list chain inet weft fault |
        sed -n "s/.*$2 .*# handle //p"); do
        in_ns "$1" nft delete rule inet weft fault handle "$handle"
    done
}

# set_rate PATH RATE, set_delay PATH TIME
set_rate() { echo "$2" >"$DIR/rate-$1"; shape "$1"; }
set_delay() { echo "$2" >"$DIR/delay-$1"; shape "$1"; }

set_buffer() { echo "$2" >"$DIR/buffer-$1"; shape "$1"; }

# shape PATH: gives it the rate, the buffer and the delay that were set last. A delayed packet waits
# in netem, before the rate; the limit is more packets than any rate here can delay.
shape() {
    local s device rate=none delay='' parent bucket=(burst 128kb latency 5ms)
    device=$(device_of "$1")
    [ ! -f "$DIR/rate-$1" ] || rate=$(cat "$DIR/rate-$1")
    [ ! -f "$DIR/delay-$1" ] || delay=$(cat "$DIR/delay-$1")
    [ ! -f "$DIR/buffer-$1" ] || bucket=(burst 16kb limit "$(cat "$DIR/buffer-$1")")
    for s in $(ends_of_paths); do
        in_ns "$s" tc qdisc del dev "$device" root 2>/dev/null || true
        parent=(root)
        if [ -n "$delay" ]; then
            in_ns "$s" tc qdisc add dev "$device" root handle 1: netem delay "$delay" \
                limit 100000 ||
                die 'a delay needs a kernel with netem (CONFIG_NET_SCH_NETEM); leave it out here'
            parent=(parent 1:1)
        fi
        [ "$rate" = none ] || in_ns "$s" tc qdisc add dev "$device" "${parent[@]}" \
            tbf rate "$rate" "${bucket[@]}"
    done
}

cmd_rate() { local p list; list=$(paths_of "$1"); for p in $list; do set_rate "$p" "$2"; done; }
cmd_delay() { local p list; list=$(paths_of "$1"); for p in $list; do set_delay "$p" "$2"; done; }

cmd_buffer() {
    local p list
    list=$(paths_of "$1")
    number 'the buffer' "$2" 16384 1000000000
    for p in $list; do set_buffer "$p" "$2"; done
}

# Both switches forward every packet; the first one that sees a flow polices it. It counts packets,
# not bytes: the bucket of a limit of bytes holds a whole second besides its burst
# (net/netfilter/nft_limit.c), one of packets just its burst. So each counts as full, and hosts send
# single ones.
cmd_flow_limit() {
    local s h family mtu segments=1
    is_cabled && die "$NAME has no switch that could limit flows (it was made with --cables)"
    number 'the limit' "$1" 0 1000000
    mtu=$(ip -n "$NAME-s0" -o link show dev h0 | sed 's/.* mtu \([0-9]*\) .*/\1/')
    [ "$1" != 0 ] || segments=65535
    while read -r h; do
        ip -n "$NAME-$h" link set eth0 gso_max_segs $segments
    done <"$DIR/names"
    for s in s0 s1; do
        in_ns "$s" nft 'add table inet police; delete table inet police'
        [ "$1" != 0 ] || continue
        in_ns "$s" nft 'add table inet police
            add chain inet police c { type filter hook forward priority 5; }'
        for family in ip ip6; do
            in_ns "$s" nft "add set inet police of_$family { type $([ $family = ip ] &&
                echo ipv4_addr || echo ipv6_addr) . inet_service . inet_service
                    flags dynamic; size 65535; timeout 60s; }
                add rule inet police c iifname \"h*\" meta l4proto { tcp, udp } \
                    add @of_$family { $family saddr . th sport . th dport \
                    limit rate over $(($1 * 125000 / mtu + 1))/second \
                    burst $((FLOW_BURST_BYTES / mtu)) packets } counter drop"
        done
    done
}

cmd_mtu() {
    local p s list
    list=$(paths_of "$1")
    number 'the MTU' "$2" 1280 65535
    for p in $list; do
        for s in $(ends_of_paths); do ip -n "$NAME-$s" link set "$(device_of "$p")" mtu "$2"; done
    done
}

cmd_fragments() {
    local s
    for s in 0 1; do
        # The names of the counters stand on the line above theirs.
        # shellcheck disable=SC2016 # awk expands
        in_ns "s$s" awk '$1 == "Ip:" && !n { n = split($0, names); next }
            $1 == "Ip:" { for (i = 1; i <= n; i++) if (names[i] == "FragCreates") print $i }' \
            /proc/net/snmp
    done | awk '{ sum += $1 } END { print sum }'
}

cmd_counts() {
    local p s list column=11
    list=$(paths_of all)
    # A veth pair hands whole trains of joined datagrams over, and counts each as one packet.
    if is_cabled; then column=10; fi
    for p in $list; do
        printf '%s' "$p"
        # shellcheck disable=SC2016 # awk expands
        for s in $(ends_of_paths); do
            printf ' %s' "$(in_ns "$s" awk -v name="$(device_of "$p"):" -v column=$column \
                '$1 == name { print $column }' /proc/net/dev)"
        done
        echo
    done
}

cmd_isolate() {
    local name h
    name=$(host_of "$1")
    h=${name:1}
    in_ns "s$((h % 2))" nft "add rule inet weft fault iifname h$h counter drop
        add rule inet weft fault oifname h$h counter drop"
}

cmd_join() {
    local name h
    name=$(host_of "$1")
    h=${name:1}
    forget_rules "s$((h % 2))" "ifname \"h$h\""
}

# A crash: the first process of the namespace goes, and the kernel ends all others.
cmd_kill() { local name; name=$(host_of "$1"); kill -KILL "$(cat "$DIR/$name.init")"; }

case ${1:-} in
check) cmd_check; exit ;;
up) shift; cmd_up "$@"; exit ;;
'' | -h | --help) sed -n '3,48s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
NAME=$1 DIR=$STATE/$1
if ! [[ $NAME =~ ^wt-[A-Za-z0-9]+$ ]] ||
    ! [ -d "$DIR" ]; then die "there is no testbed '$NAME'; \`up\` prints the name"; fi
shift
case ${1:-} in
down) cmd_down ;;
hosts) cat "$DIR/names" ;;
address) name=$(host_of "${2:-}");
    if [ "${3:-4}" = 6 ]; then address6 "${name:1}"; else address4 "${name:1}"; fi ;;
agent) echo "$DIR/agent" ;;
counts | fragments) "cmd_$1" ;;
flow-limit) [ $# -ge 2 ] || die 'flow-limit needs a rate in Mbit/s'; cmd_flow_limit "$2" ;;
host | isolate | join | kill) [ $# -ge 2 ] ||
    die "$1 needs a host"; verb=$1; shift; "cmd_$verb" "$@" ;;
blackhole) cmd_loss "${2:-}" 100 ;;
loss | rate | delay | buffer | mtu) [ $# -ge 3 ] ||
    die "$1 needs a path and a value"; verb=$1; shift; "cmd_$verb" "$@" ;;
*) die "unknown verb '${1:-}'; see the head of $0" ;;
esac

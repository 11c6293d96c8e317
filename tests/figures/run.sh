#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench figures` quickly: a figure of each kind is on the page, beside the published numbers;
# one that cannot be made says why. Takes some 40 seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
weft=${WEFT:-dist/bin/weft}
# shellcheck source=tests/reports.sh
. tests/reports.sh

# exits CODE COMMAND...: what it says is kept.
exits() {
    local expected=$1 code
    shift
    "$@" >"$work/said" 2>"$work/talk"
    code=$?
    [ "$code" = "$expected" ] || { echo "it exits with $code: $(cat "$work/talk")"; return 1; }
}

measured() { grep -q 'published and here' "$1" && ! grep -q 'not measured' "$1"; }
nothing_left() { [ -z "$(find "$work" -maxdepth 1 -name 'weft-ior-*')" ]; }

if command -v mpiexec >/dev/null || command -v mpiexec.openmpi >/dev/null; then
    check 'a measured and a simulated figure are made' \
        exits 0 "$weft" bench figures shared-memory incast --quick --out "$work/made"
    check 'the page has the measured figure' grep -q '<figure id="shared-memory">' \
        "$work/made/index.html"
    check 'the page has the simulated figure' grep -q '<figure id="incast">' "$work/made/index.html"
    check 'the figures are SVG files' test -s "$work/made/shared-memory.svg" \
        -a -s "$work/made/incast.svg"
    check 'published numbers stand beside those from here' \
        grep -q '<th scope="col">.*on this machine' "$work/made/index.html"
    check 'IOR by processes is made' exits 0 "$weft" bench figures ior --quick --files "$work" \
        --out "$work/ior"
    check 'its claims are measured' measured "$work/ior/index.html"
    check 'IOR leaves no files behind' nothing_left
    if tests/testbed/testbed.sh check >/dev/null; then
        check 'a path that fails is shown on two hosts' \
            exits 0 "$weft" bench figures path-failure --quick --out "$work/hosts"
        check 'with the longest pause of both' measured "$work/hosts/index.html"
    else
        skip 'two hosts' "$(tests/testbed/testbed.sh check)"
    fi
else
    skip 'what needs measuring' 'no MPI is installed'
fi
check 'a figure that cannot be made fails' exits 1 "$weft" bench figures cma-latency \
    --quick --mpi /nowhere/mpiexec --out "$work/lost"
check 'and says why on the page' grep -q 'Could not be made here' "$work/lost/index.html"
check 'an unknown figure is wrong usage' exits 2 "$weft" bench figures nonsense --out "$work/none"
summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft soak` over both routes, under faults, from one seed, so that a change is judged by the same
# schedule each time. Seed 103 still finds a hang (docs/reliability.md). What it does: docs/soak.md.
#
#   WEFT                 the weft command (default: dist/bin/weft)
#   WEFT_PROVIDER_DIR    folder of libweft-fi.so (default: dist/lib/weft)
#   WEFT_SOAK_MINUTES    how long in all (default: 3, a third for each of shm, srd, both)
#   WEFT_SOAK_SEED       the seed (default: 101)
#   WEFT_SOAK_FAULTS     the faults (default: all but close and firewall: docs/reliability.md)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
weft=$(realpath -m "${WEFT:-dist/bin/weft}")
folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
minutes=${WEFT_SOAK_MINUTES:-3}
seed=${WEFT_SOAK_SEED:-101}
faults=loss,duplication,reordering,corruption,replay,paths,pause,suspend,kill,fork,away,deaf,lazy
# shellcheck source=tests/reports.sh
. tests/reports.sh

if [ ! -x "$weft" ] || [ ! -f "$folder/libweft-fi.so" ]; then
    skip 'soak' "there is no $weft or no $folder/libweft-fi.so; make build"
    summary
    exit
fi
if ! /sbin/ldconfig -p | grep 'libfabric\.so\.1 ' >/dev/null; then
    skip 'soak' 'libfabric is not installed (Debian: libfabric1)'
    summary
    exit
fi
part=$(awk -v all="$minutes" 'BEGIN { print all / 3 }')
limit_s=$(awk -v all="$minutes" 'BEGIN { printf "%d", 20 * all + 400 }')

# soak ROUTE: a hang is found by the soak itself; the limit only guards against one of its own.
soak() {
    timeout "$limit_s" "$weft" soak --minutes "$part" --seed "$seed" --route "$1" \
        --faults "${WEFT_SOAK_FAULTS:-$faults}" --provider-dir "$folder"
}

refuses() {
    local status
    "$weft" soak --faults rain
    status=$?
    [ $status = 2 ]
}

check 'soak: wrong words are refused with exit code 2' refuses
for route in shm srd both; do
    soak "$route" >"$work/out" 2>&1
    status=$?
    [ $status = 0 ] || sed 's/^/    | /' "$work/out" | cut -c 1-600
    report $status "soak: seed $seed, route $route, $part minutes, nothing found"
done
summary

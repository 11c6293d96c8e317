#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft soak` over each route, under all faults, from fixed seeds, so that each change is judged by
# the same schedules. What it does: docs/soak.md. A finding is printed with the command that
# repeats it.
#
#   WEFT                 the weft command (default: dist/bin/weft)
#   WEFT_PROVIDER_DIR    folder of libweft-fi.so (default: dist/lib/weft)
#   WEFT_SOAK_MINUTES    how long in all (default: 3, a third for each of shm, srd, both)
#   WEFT_SOAK_SEED       one seed for all routes (default: two for each, below)
#   WEFT_SOAK_TODAY      1: the seed of the day besides, the date as a number, UTC (default: 0)
#   WEFT_SOAK_FAULTS     the faults (default: all)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
weft=$(realpath -m "${WEFT:-dist/bin/weft}")
folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
minutes=${WEFT_SOAK_MINUTES:-3}
faults=${WEFT_SOAK_FAULTS:-all}
declare -A seeds=([shm]='102 201' [srd]='101 211' [both]='103 221')
today=
[ "${WEFT_SOAK_TODAY:-0}" = 0 ] || today=$(date -u +%Y%m%d)
# shellcheck source=tests/reports.sh
. tests/reports.sh

if [ ! -x "$weft" ] || [ ! -f "$folder/libweft-fi.so" ]; then
    skip_all 'soak' "there is no $weft or no $folder/libweft-fi.so; make build"
fi
if ! /sbin/ldconfig -p | grep 'libfabric\.so\.1 ' >/dev/null; then
    skip_all 'soak' 'libfabric is not installed (Debian: libfabric1)'
fi

# of_minutes SHARE [SECONDS]: that share of a route's time, less what has passed.
of_minutes() {
    awk -v all="$minutes" -v share="$1" -v past="${2:-0}" 'BEGIN {
        left = share * all / 3 - past / 60
        print (left > 0.1 ? left : 0.1)
    }'
}

# soak ROUTE SEED MINUTES: a hang is found by the soak itself; the limit only guards against one of
# its own. The time is asked for between jobs.
soak() {
    local limit_s status
    limit_s=$(awk -v part="$3" 'BEGIN { printf "%d", 60 * part + 2000 }')
    timeout "$limit_s" "$weft" soak --minutes "$3" --seed "$2" --route "$1" \
        --faults "$faults" --provider-dir "$folder" >"$work/out" 2>&1
    status=$?
    [ $status = 0 ] || sed 's/^/    | /' "$work/out" | cut -c 1-600
    report $status "soak: seed $2, route $1, $3 minutes, nothing found"
}

refuses() {
    local status
    "$weft" soak --faults rain
    status=$?
    [ $status = 2 ]
}

check 'soak: wrong words are refused with exit code 2' refuses
for route in shm srd both; do
    begin=$SECONDS
    read -ra list <<<"${WEFT_SOAK_SEED:-${seeds[$route]}} $today"
    for at in "${!list[@]}"; do
        share=$(awk -v at="$at" -v count="${#list[@]}" 'BEGIN { print (at + 1) / count }')
        soak "$route" "${list[$at]}" "$(of_minutes "$share" $((SECONDS - begin)))"
    done
done
summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Hundreds of processes of one host make contact (tests/scale/ranks.c): 256 that all meet rank 0,
# and 64 that all meet one another. About 20 seconds on two idle cores.
#
#   WEFT_PROVIDER_DIR   folder of libweft-fi.so (default: dist/lib/weft)
#   tests/scale/run.sh --full   512 around rank 0, and 256 that all meet, too: minutes
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
# shellcheck source=tests/reports.sh
. tests/reports.sh
unset "${!FI_WEFT_@}" FI_LOG_LEVEL

meet() {
    if timeout 600 "$work/ranks" "$1" "$2" >"$work/result" 2>"$work/talk"; then
        ok "ranks that meet: $(tail -n 1 "$work/result")"
    else
        not_ok "ranks that meet: $1, $2: $(tail -n 1 "$work/result"); $(grep -am1 . "$work/talk")"
    fi
}

[ -f "$folder/libweft-fi.so" ] ||
    skip_all 'ranks that meet' "there is no $folder/libweft-fi.so; make build"
[ "$(ulimit -v)" = unlimited ] ||
    skip_all 'ranks that meet' "addresses are limited (ulimit -v $(ulimit -v))"
if ! cc -std=gnu11 -O2 -Wall -Wextra -Werror -o "$work/ranks" tests/scale/ranks.c -lfabric \
    2>"$work/build"; then
    skip_all 'ranks that meet' \
        "ranks.c does not build (Debian: libfabric-dev): $(head -n 1 "$work/build")"
fi
export FI_PROVIDER_PATH=$folder FI_PROVIDER=weft
meet 256 star
meet 64 all
if [ "${1:-}" = --full ]; then
    meet 512 star
    meet 256 all
fi
summary

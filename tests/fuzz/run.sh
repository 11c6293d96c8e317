#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Random libfabric calls against the built provider, from a fixed seed and from one of the moment,
# some seconds each.
#
#   WEFT_PROVIDER_DIR   folder of libweft-fi.so (default: dist/lib/weft)
#   WEFT_FUZZ_SECONDS   how long for each seed (default: 8)
#   tests/fuzz/run.sh --sanitize   builds a provider of its own with AddressSanitizer first, which
#                                  takes a minute more
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
seconds=${WEFT_FUZZ_SECONDS:-8}
# shellcheck source=tests/reports.sh
. tests/reports.sh
unset "${!FI_WEFT_@}" FI_PROVIDER FI_LOG_LEVEL
options=()

# The sanitizer is in the compiler but not yet promised by its stable releases.
sanitize() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    if ! RUSTC_BOOTSTRAP=1 \
        RUSTFLAGS=-Zsanitizer=address cargo build --quiet --locked --target "$host" \
        --target-dir target/sanitize -p weft-provider >"$work/build" 2>&1; then
        skip_all 'random calls' "no provider with AddressSanitizer: $(tail -n 1 "$work/build")"
    fi
    folder=$work/provider
    mkdir "$folder"
    cp "target/sanitize/$host/debug/libweft_fi.so" "$folder/libweft-fi.so"
    options=(-fsanitize=address)
    # libfabric itself keeps memory until the process ends.
    export ASAN_OPTIONS=detect_leaks=0
}

[ "${1:-}" = --sanitize ] && sanitize
[ -f "$folder/libweft-fi.so" ] ||
    skip_all 'random calls' "there is no $folder/libweft-fi.so; make build"
if ! cc "${options[@]}" -O1 -g -Wall -Wextra -o "$work/calls" tests/fuzz/*.c -lfabric \
    2>"$work/build"; then
    skip_all 'random calls' \
        "tests/fuzz does not build (Debian: libfabric-dev): $(head -n 1 "$work/build")"
fi
export FI_PROVIDER_PATH=$folder
for seed in 1 "$(date +%s)"; do
    if timeout $((seconds + 300)) "$work/calls" --seed "$seed" --seconds "$seconds" \
        >"$work/result" 2>"$work/talk"; then
        ok "random calls: $(tail -n 1 "$work/result")"
    else
        reason=$(grep -am1 -E 'ERROR|panicked|signal' "$work/talk")
        not_ok "random calls: $(tail -n 1 "$work/result"); $reason"
    fi
done
summary

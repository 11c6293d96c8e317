#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The laws of the crates with unsafe code, once more under what sees undefined behaviour: Miri (an
# interpreter that knows Rust's rules of aliasing and of data races), AddressSanitizer and
# ThreadSanitizer.
#
#   tests/sanitizers/run.sh [miri|address|thread]...   only these
#
# Miri and ThreadSanitizer need a nightly toolchain of Rust with the components miri and rust-src,
# which nothing here installs:
#   rustup toolchain install nightly --component miri --component rust-src
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-target}/sanitize
crates=(-p weft-memory -p weft-ring)

# run NAME COMMAND...: a case that passes if every test in it does.
run() {
    local name=$1 count
    shift
    if timeout 900 "$@" >"$work/result" 2>&1; then
        count=$(awk '/^test result:/ { p += $4; i += $8 }
            END { print p + 0 " laws, " i + 0 " left out" }' "$work/result")
        ok "$name: $count"
    else
        not_ok "$name"
        grep -aE '^(error|test .*FAILED|==[0-9]+==|WARNING: ThreadSanitizer|SUMMARY)|panicked' \
            "$work/result" | head -n 12
    fi
}

# What Miri has no system call for is marked so in the tests. Buffers of the process are never
# freed, on purpose.
miri() {
    if cargo +nightly miri --version >/dev/null 2>&1; then
        MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance" \
            run miri cargo +nightly miri test --locked --target-dir "$target/miri" --lib \
            "${crates[@]}"
    else
        skip miri "no nightly toolchain with Miri; $0 says at its head how to get it"
    fi
}

# In the compiler, but not yet promised by its stable releases.
address() {
    local test=(cargo test --locked --target "$host" --target-dir "$target/address" --lib
        "${crates[@]}" -p weft-os -p weft-shm)
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address
    if "${test[@]}" --no-run >"$work/build" 2>&1; then
        ASAN_OPTIONS=detect_leaks=0 run address "${test[@]}"
    else
        skip address "does not build here: $(grep -am1 '^error' "$work/build")"
    fi
    unset RUSTC_BOOTSTRAP RUSTFLAGS
}

# The standard library is built with it too: what it does not see, it takes for a race.
thread() {
    local test=(cargo +nightly test --locked -Zbuild-std --target "$host"
        --target-dir "$target/thread" --lib "${crates[@]}" -p weft-shm)
    export RUSTFLAGS=-Zsanitizer=thread
    if "${test[@]}" --no-run >"$work/build" 2>&1; then
        run thread "${test[@]}"
    else
        skip thread \
            "no nightly toolchain with rust-src that builds it: $(grep -am1 '^error' "$work/build")"
    fi
    unset RUSTFLAGS
}

[ $# -gt 0 ] || set -- miri address thread
for kind in "$@"; do
    case $kind in
        miri | address | thread) "$kind" ;;
        *)
            printf 'sanitizers: no %s here; known: miri, address, thread\n' "$kind" >&2
            exit 2
            ;;
    esac
done
summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The models of the shared-memory queues and of the hand-over between the ranks of a collective,
# through every interleaving of their sides (crate loom). They are built with `--cfg loom`, in a
# folder of their own, since everything changes with it. Ends with `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Optimized, since there are many interleavings; not across crates, which takes longer than it
# saves.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
RUSTFLAGS='--cfg loom' cargo test --release --locked --quiet -p weft-ring \
    -p weft-collectives --lib --target-dir target/loom -- models no_chunk >"$log" 2>&1
status=$?
read -r passed failed < <(
    awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log"
)
if [ "$status" != 0 ] || [ "$passed" = 0 ]; then
    tail -n 40 "$log"
    [ "$failed" = 0 ] && failed=1
    echo "not ok - the models of crates/ring and crates/collectives ended with status $status"
else
    echo "ok - $passed models of crates/ring and crates/collectives hold through every interleaving"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What `make check` runs: nothing here starts an MPI program. Every check runs even when an earlier
# one failed, so that one call shows all there is to fix; the exit code is 1 when any failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
failed=()

check() {
    local name=$1
    shift
    local begin=$SECONDS
    printf -- '-- %s\n' "$name"
    "$@" || failed+=("$name")
    printf '# %s: %s s\n' "$name" $((SECONDS - begin))
}

check 'formatting' cargo fmt --all --check
check 'clippy' cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
check 'structure' cargo test --locked --quiet -p weft-structure
# The readers are this project's developers, and the stories in lib.rs name private modules.
export RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links'
check 'documentation' \
    cargo doc --workspace --no-deps --document-private-items --locked --quiet

if [ ${#failed[@]} -gt 0 ]; then
    printf 'check: failed: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2
    exit 1
fi
echo 'check: all passed'

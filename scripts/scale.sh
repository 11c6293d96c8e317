#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What many ranks cost inside a node: a message beside 10,000 that wait, polling with 256 remotes
# that are silent, the memory of 192 endpoints that are all in contact. Usage: scripts/scale.sh
# [--quick] [FILE]; --quick leaves the memory out, which takes most of a minute. Prints, and writes
# the same to FILE. Called by `make bench`; docs/lab/2026-11-22-crowds.md says what the figures
# mean.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=no
if [ "${1:-}" = --quick ]; then quick=yes; shift; fi

measure() {
    echo 'A message one way among others; aim: a ratio of at most 1.2'
    cargo run --release --locked --quiet -p weft-endpoint --example long_queues 10000 101
    printf '\nAn empty round and a message by connected remotes, of which one is active; '
    printf 'aim: the cost follows the active ones\n'
    cargo run --release --locked --quiet -p weft-shm --example many_remotes
    [ "$quick" = no ] || return 0
    printf '\nMemory of a node; aim: at most 512 MiB resident\n'
    cargo test --release --locked --quiet -p weft-shm --test scale -- --ignored --nocapture 2>&1 |
        grep -E 'resident|panicked|KiB'
}

if [ -n "${1:-}" ]; then
    mkdir -p "$(dirname "$1")"
    measure | tee "$1"
else
    measure
fi

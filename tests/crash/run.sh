#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# One of two processes is killed at each numbered step of the shared-memory protocols
# (docs/testing.md). The steps exist only in a build with `--cfg crash_points`, in a folder of its
# own. A minute or two; WEFT_CRASH_ALL=1 kills at every step of every scenario, four minutes. Ends
# with `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/own_shm.sh
. tests/own_shm.sh
own_dev_shm tests/crash/run.sh "$@"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

RUSTFLAGS='--cfg crash_points' cargo test --locked --quiet -p weft-shm --test crash \
    --target-dir target/crash -- --nocapture >"$log" 2>&1
status=$?
if [ "$status" = 0 ] && summary=$(grep -E '^[0-9]+ runs, killed at' "$log"); then
    printf 'ok - %s: the survivor goes on, nothing is left behind, ' "$summary"
    echo 'the address can be taken over'
    echo '1 passed, 0 failed, 0 skipped'
else
    tail -n 20 "$log"
    echo "not ok - $(grep -E '^step ' "$log" | tail -n 1) (status $status)"
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
fi

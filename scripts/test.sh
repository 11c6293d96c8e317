#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What `make test` runs, after set-up and build: every Rust test of the workspace but the rules
# about the tree, which are in `make check`; then each suite in tests/*/run.sh. A suite prints its
# own lines and ends with `N passed, N failed, N skipped`; the last line here is the sum over all,
# alone on its line. It is also written to report/test-summary.txt. `# NAME: N s` says how long each
# took.
#
#   scripts/test.sh --build   only builds the Rust tests
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
cargo_test=(cargo test --workspace --exclude weft-structure --locked)
if [ "${1:-}" = --build ]; then exec "${cargo_test[@]}" --quiet --no-run; fi
passed=0 failed=0 skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

add() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

# run_cargo: the numbers come from the `test result:` lines, one for each test binary.
run_cargo() {
    local begin=$SECONDS status counts
    local told='^(test .* FAILED$|test result: FAILED|error|warning: unused|failures:|----|thread )'
    printf -- '-- cargo test\n'
    "${cargo_test[@]}" --no-fail-fast 2>&1 | tee "$log/cargo" | grep -E "$told"
    status=${PIPESTATUS[0]}
    counts=$(awk '/^test result:/ { p += $4; f += $6; i += $8 }
        END { print p + 0, f + 0, i + 0 }' "$log/cargo")
    # shellcheck disable=SC2086 # three numbers, meant to be split
    add $counts
    if [ "$status" != 0 ] && [ "$(cut -d' ' -f2 <<<"$counts")" = 0 ]; then
        tail -n 40 "$log/cargo" >&2
        add 0 1 0 # it did not build, or a test process died without a result line
    fi
    printf 'cargo test: %s passed, %s failed, %s skipped\n' $counts
    printf '# cargo test: %s s\n' $((SECONDS - begin))
}

# run_suite SCRIPT: a suite that ends without its summary line counts as one failure.
run_suite() {
    local begin=$SECONDS last
    printf -- '-- %s\n' "$1"
    "$1" | tee "$log/suite"
    local status=${PIPESTATUS[0]}
    last=$(tail -n 1 "$log/suite")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        add "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
        if [ "$status" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then add 0 1 0; fi
    else
        printf 'not ok - %s ended with status %s and without its summary line\n' "$1" "$status"
        add 0 1 0
    fi
    printf '# %s: %s s\n' "$1" $((SECONDS - begin))
}

run_cargo
for suite in tests/*/run.sh; do
    [ -x "$suite" ] && run_suite "$suite"
done

mkdir -p report
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped" |
    tee report/test-summary.txt
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

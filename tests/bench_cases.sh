# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of the suites that run one `weft bench` command on real MPIs. Sourced by their run.sh in the project's root; afterwards the
# working folder is a new one, WORK, that is removed at the end, and WEFT is the command. A case leaves its stdout in `out` and its
# stderr in `err`.

WEFT=${WEFT:-$PWD/dist/bin/weft}
# shellcheck disable=SC2016 # a name in quotes
[ -x "$WEFT" ] || { printf 'run.sh: %s is missing; run `make build` first\n' "$WEFT" >&2; exit 2; }
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0 skipped=0
cd "$WORK" || exit 1

# verdict NAME STATUS: counts a case; what it printed is shown if it failed.
verdict() {
    if [ "$2" = 0 ]; then
        printf 'ok - %s\n' "$1"
        passed=$((passed + 1))
    else
        printf 'not ok - %s\n' "$1"
        sed 's/^/    /' out err
        failed=$((failed + 1))
    fi
}

# skip WORDS
skip() {
    printf 'skip - %s\n' "$1"
    skipped=$((skipped + 1))
}

has() { grep -Eq -- "$1" "${2:-out}"; }

# summary: the last line, and the exit code of the suite.
summary() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
}

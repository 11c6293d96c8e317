# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases whose output is kept in a file and shown if they fail. Sourced by the run.sh of such suites in the project's root; `work` is then
# a new folder that is removed at the end, and what a case prints goes to $work/out.

passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

report() { # report STATUS NAME
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        printf 'ok - %s\n' "$2"
    else
        failed=$((failed + 1))
        printf 'not ok - %s\n' "$2"
        tail -n 12 "$work/out" | cut -c 1-170 | sed 's/^/    | /'
    fi
}

skip() { # skip NAME WHY
    skipped=$((skipped + 1))
    printf 'skip - %s: %s\n' "$1" "$2"
}

# summary: the last line, and the exit code of the suite.
summary() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
}

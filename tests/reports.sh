# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How suites report their cases. Sourced by their run.sh in the project's root; `work` is then a new
# folder that is removed at the end (a suite with more to tidy sets a trap of its own and removes it
# too).

passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() { # ok NAME
    passed=$((passed + 1))
    printf 'ok - %s\n' "$1"
}

not_ok() { # not_ok NAME
    failed=$((failed + 1))
    printf 'not ok - %s\n' "$1"
}

skip() { # skip NAME WHY
    skipped=$((skipped + 1))
    printf 'skip - %s: %s\n' "$1" "$2"
}

report() { # report STATUS NAME: what the case printed to $work/out is shown if it failed
    if [ "$1" = 0 ]; then
        ok "$2"
    else
        not_ok "$2"
        tail -n 20 "$work/out" | cut -c 1-200 | sed 's/^/    | /'
    fi
}

check() { # check NAME COMMAND...
    local name=$1
    shift
    "$@" >"$work/out" 2>&1
    report $? "$name"
}

# summary: the last line, and the exit code of the suite.
summary() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
}

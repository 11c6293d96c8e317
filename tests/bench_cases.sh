# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of the suites that run one `weft bench` command on real MPIs. Sourced by their run.sh in the
# project's root; afterwards the working folder is a new one, WORK, that is removed at the end, and
# WEFT is the command. A case leaves its stdout in `out` and its stderr in `err`.

WEFT=${WEFT:-$PWD/dist/bin/weft}
# shellcheck disable=SC2016 # a name in quotes
[ -x "$WEFT" ] || { printf 'run.sh: %s is missing; run `make build` first\n' "$WEFT" >&2; exit 2; }
# shellcheck source=tests/reports.sh
. tests/reports.sh
WORK=$work
cd "$WORK" || exit 1

# verdict NAME STATUS: counts a case; what it printed is shown if it failed.
verdict() {
    if [ "$2" = 0 ]; then
        ok "$1"
    else
        not_ok "$1"
        sed 's/^/    | /' out err
    fi
}

# nobody_runs WORDS: no process with these words in its command line is left; the last ones have a
# while to go.
nobody_runs() {
    for _ in $(seq 100); do
        pgrep -f -- "$1" >>err || return 0
        sleep 0.1
    done
    return 1
}

has() { grep -Eq -- "$1" "${2:-out}"; }

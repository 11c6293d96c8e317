#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What `make test` runs, after set-up and build: every Rust test of the workspace but the rules
# about the tree, which are in `make check`; then each suite in tests/*/run.sh. A suite prints its
# own lines and ends with `N passed, N failed, N skipped`; the last line here is the sum over all,
# alone on its line. It is also written to report/test-summary.txt. `# NAME: N s, computed M s` says
# how long each took, and how long its processes computed. The suites in `beside` mostly wait for
# time limits, or have none; they run beside the others, and what they print is shown when these
# have ended. Then those in `alone` run, which compare times.
#
#   scripts/test.sh --build   only builds the Rust tests, and with them the programs of mount/
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
cargo_test=(cargo test --workspace --exclude weft-structure --locked)
if [ "${1:-}" = --build ]; then
    exec "${cargo_test[@]}" --quiet --no-run
fi
passed=0 failed=0 skipped=0
log=$(mktemp -d)

# descendants ID: the processes that this one started, and those that they did, parents first.
descendants() {
    local id
    for id in $(pgrep -P "$1"); do
        printf '%s\n' "$id"
        descendants "$id"
    done
}

# What this script starts has this in its environment, also where the process that started it is
# gone.
mark=RUN_BY_TEST_SH=$$-$RANDOM
export "${mark?}"
# Each once: a second signal may end a suite while it tidies up.
under_way() {
    {
        descendants $$
        (unset RUN_BY_TEST_SH && grep -lszx "$mark" /proc/[0-9]*/environ) | cut -d/ -f3
    } | sort -u
}

# living ID...: those that go on. Who has ended may wait long for a parent that asks for its status.
living() {
    local id
    for id; do
        grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$id/status" && printf '%s\n' "$id"
    done
}

# end_all: where this script is interrupted. Who starts others hears of it first and starts no more;
# suites tidy up then. What goes on for longer than that may take is killed. A second signal comes
# from whoever is impatient, or from make, which passes on the one that its group has had.
end_all() {
    local all left pause
    trap '' HUP INT TERM
    # shellcheck disable=SC2086 # several numbers
    if [ "$is_done" = no ]; then
        all=$(under_way)
        kill $all
        for ((pause = 0; pause < 200; pause++)); do
            left=$(living $all)
            [ -n "$left" ] || break
            sleep 0.1
        done
        # With those that began while the others heard of it.
        for ((pause = 0; pause < 5; pause++)); do
            left=$(living $left $(under_way))
            [ -n "$left" ] || break
            kill -KILL $left
        done
    fi 2>/dev/null
    is_done=yes
    rm -rf "$log"
}
is_done=no
trap end_all EXIT
# By name, and not only through EXIT: a second signal that comes before the others are passed over
# begins it anew.
trap 'end_all; exit 129' HUP
trap 'end_all; exit 130' INT
trap 'end_all; exit 143' TERM

# begin COMMAND...: in the background and in a process group of its own: what is in this one's group
# gets Ctrl-C before this script can end it, or, in the background, passes over SIGINT also where a
# test sends it.
begin() {
    set -m
    "$@" </dev/null &
    set +m
}

# held COMMAND...: runs it, and hears a signal while it does. A shell that waits for a command in
# the foreground hears of none before that has ended.
held() {
    begin "$@"
    wait $!
}

add() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

# measured FILE COMMAND...: runs it, then writes into FILE its status, how many seconds it took and
# how many its processes computed. In a shell of its own: `times` counts all children that a shell
# has had.
measured() (
    begin=$SECONDS
    "${@:2}"
    status=$?
    times >"$1"
    computed=$(awk 'NR == 2 { split($0, t, /[ms ]+/)
        printf "%d", 60 * (t[1] + t[3]) + t[2] + t[4] }' "$1")
    printf '%s %s %s\n' "$status" $((SECONDS - begin)) "$computed" >"$1"
)

cargo_tests() {
    local told='^(test .* FAILED$|test result: FAILED|error|warning: unused|failures:|----|thread )'
    measured "$log/ended-cargo" "${cargo_test[@]}" --no-fail-fast 2>&1 | tee "$log/cargo" |
        grep -E "$told"
}

# run_cargo: the numbers come from the `test result:` lines, one for each test binary.
run_cargo() {
    local status seconds computed counts
    printf -- '-- cargo test\n'
    held cargo_tests
    read -r status seconds computed <"$log/ended-cargo"
    counts=$(awk '/^test result:/ { p += $4; f += $6; i += $8 }
        END { print p + 0, f + 0, i + 0 }' "$log/cargo")
    # shellcheck disable=SC2086 # three numbers, meant to be split
    add $counts
    if [ "$status" != 0 ] && [ "$(cut -d' ' -f2 <<<"$counts")" = 0 ]; then
        tail -n 40 "$log/cargo" >&2
        add 0 1 0 # it did not build, or a test process died without a result line
    fi
    # shellcheck disable=SC2086 # three numbers, meant to be split
    printf 'cargo test: %s passed, %s failed, %s skipped\n' $counts
    printf '# cargo test: %s s, computed %s s\n' "$seconds" "$computed"
}

# judge SCRIPT: counts what the suite printed into $log/NAME. A suite that ends without its summary
# line counts as one failure.
judge() {
    local last status=unknown seconds=0 computed=0
    read -r status seconds computed <"$log/ended-${1//\//-}"
    last=$(tail -n 1 "$log/${1//\//-}")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        add "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
        if [ "$status" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then add 0 1 0; fi
    else
        printf 'not ok - %s ended with status %s and without its summary line\n' "$1" "$status" |
            tee -a "$log/${1//\//-}"
        add 0 1 0
    fi
    printf '# %s: %s s, computed %s s\n' "$1" "$seconds" "$computed"
}

shown() { measured "$log/ended-${1//\//-}" "$1" | tee "$log/${1//\//-}"; }

run_suite() {
    printf -- '-- %s\n' "$1"
    held shown "$1"
    judge "$1"
}

# scripts NAME...: of these suites.
scripts() { printf 'tests/%s/run.sh\n' "$@"; }

# lane SCRIPT...: one after another, beside the rest.
lane() {
    local suite
    for suite; do
        # Who kills a process group of ours reaches neither the lanes nor their suites.
        kill -0 $$ 2>/dev/null || return
        measured "$log/ended-${suite//\//-}" "$suite" >"$log/${suite//\//-}"
    done
}

# show_beside SCRIPT: what it printed, once its lane has ended.
show_beside() {
    printf -- '-- %s, beside the others\n' "$1"
    cat "$log/${1//\//-}"
    judge "$1"
}

# The suites of one line run one after another. What they wait for only says that something hangs;
# loom, the sanitizers and crash compute, and the soak takes what it gets for three minutes.
# The testbed and the mount ask for more processor than others (nice): one follows the other.
beside=(
    'testbed mount provider bucket-server'
    'jobs loom sanitizers crash soak fuzz'
)
alone='compare instructions'
started=()
for names in "${beside[@]}"; do
    # shellcheck disable=SC2046,SC2086 # several names, meant to be split
    begin lane $(scripts $names)
    started+=($!)
done
run_cargo
for suite in tests/*/run.sh; do
    name=${suite#tests/}
    [[ " ${beside[*]} $alone " == *" ${name%/run.sh} "* ]] ||
        { [ -x "$suite" ] && run_suite "$suite"; }
done
wait "${started[@]}"
# shellcheck disable=SC2086 # several names, meant to be split
for suite in $(scripts ${beside[*]}); do show_beside "$suite"; done
for suite in $(scripts $alone); do run_suite "$suite"; done

# Once more together, since what stands above is long.
if [ "$failed" != 0 ]; then
    printf -- '-- failed\n'
    sed -n 's/^test \(.*\) \.\.\. FAILED$/cargo test: \1/p' "$log/cargo"
    grep '^not ok' "$log"/tests-*-run.sh | sed "s,^$log/tests-,tests/,; s,-run.sh:not ok - ,: ,"
fi
is_done=yes
mkdir -p report
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped" |
    tee report/test-summary.txt
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The driver's own tests: a case that fails, hangs, or leaves a process or a file behind must be
# found. Runs first and takes seconds.

# Before it is another program, it has no mark.
leave_process() {
    setsid sleep 97 &
    until grep -qsz "^sleep" "/proc/$!/cmdline"; do sleep 0.05; done
}
leave_shared_memory() { touch "/dev/shm/weft-driver-test-$$"; }
hang() { sleep 98; }
fail() { return 3; }

# finds WHAT SECONDS FUNCTION WORDS: runs the made-up case aside, so that it is not counted, and
# looks for WORDS in the verdict.
finds() {
    local verdict
    verdict=$(LEFT_PATIENCE=2 run_case "made-up $1" "$2" "$3")
    if grep -q "^not ok - made-up $1 .*$4" <<<"$verdict"; then
        ok "driver finds $1"
    else
        not_ok "driver finds $1: the verdict was: $verdict"
    fi
}

finds 'an exit code' 5 fail 'exit code 3'
finds 'a process left behind' 5 leave_process 'processes left: .*sleep 97'
finds 'a file left in shared memory' 5 leave_shared_memory \
    'left in /dev/shm: /dev/shm/weft-driver-test'
rm -f "/dev/shm/weft-driver-test-$$"
finds 'a case that hangs' -29 hang 'or 1 s in all'

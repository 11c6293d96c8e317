# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# scripts/test.sh is ended while a suite runs, and another one beside it. Sourced by run.sh.

# suite NAME: in the copy. It says its number, tidies up at its end, and waits for a process that
# has one of its own.
suite() {
    mkdir -p "$copy/tests/$1"
    cat >"$copy/tests/$1/run.sh" <<'SUITE'
#!/usr/bin/env bash
name=$(basename "$(dirname "$0")")
trap 'echo "$name" >>tidied' EXIT
python3 - "$name" <<'PYTHON'
import os, signal, subprocess, sys
name = sys.argv[1]
# As weft run does it: SIGINT and SIGTERM become an exit code.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: sys.exit(130))
child = subprocess.Popen(["sleep", "1000"])
with open(name + ".new", "w") as file:
    print(os.getpid(), child.pid, file=file)
os.rename(name + ".new", name + ".processes")
child.wait()
PYTHON
echo "$name" >>went-on
SUITE
    chmod +x "$copy/tests/$1/run.sh"
}

# make_copy: the script, a cargo that builds and tests nothing, a suite that runs alone, and one for
# each lane.
make_copy() {
    copy=$work/copy
    rm -rf "$copy"
    mkdir -p "$copy/scripts" "$copy/bin" "$copy/tmp"
    cp scripts/test.sh "$copy/scripts"
    printf '#!/bin/sh\necho "test result: ok. 1 passed; 0 failed; 0 ignored"\n' >"$copy/bin/cargo"
    chmod +x "$copy/bin/cargo"
    suite top
    suite testbed
    suite jobs
}

all_run() {
    local name
    for name in top testbed jobs; do [ -e "$copy/$name.processes" ] || return 1; done
}

# is_over: also who is not reaped yet has ended.
is_over() { [ ! -e "/proc/$1" ] || grep -q '^State:\s*Z' "/proc/$1/status"; }

# ends_all SIGNAL CODE [GROUP]: the signal goes to the script alone, or as Ctrl-C sends it to the
# whole group; then once more. A shell cannot hear what was ignored where it began.
ends_all() {
    local script code id
    make_copy
    set -m
    (cd "$copy" && PATH=$copy/bin:$PATH TMPDIR=$copy/tmp \
        exec env --default-signal=HUP,INT,TERM scripts/test.sh) &
    script=$!
    set +m
    wait_for 100 all_run || { kill "$script"; return 1; }
    kill -"$1" -- "${3:+-}$script"
    kill -"$1" -- "${3:+-}$script" 2>/dev/null
    wait_for 100 is_over "$script" || { kill -KILL "$script"; return 1; }
    wait "$script"
    code=$?
    [ "$code" = "$2" ] || { echo "exit code $code, not $2"; return 1; }
    # shellcheck disable=SC2013 # numbers
    for id in $(cat "$copy"/*.processes); do
        wait_for 10 is_over "$id" || { ps -o pid,ppid,args "$id"; return 1; }
    done
    [ ! -e "$copy/went-on" ] || { echo 'a suite went on'; return 1; }
    [ "$(sort "$copy/tidied" | tr '\n' ' ')" = 'jobs testbed top ' ] ||
        { echo "these tidied up: $(cat "$copy/tidied")"; return 1; }
    [ -z "$(ls "$copy/tmp")" ] || { ls -R "$copy/tmp"; return 1; }
}

# ended SIGNAL CODE [GROUP]: what a script left that did not end all is ended here.
ended() {
    local status
    ends_all "$@"
    status=$?
    # shellcheck disable=SC2046 # numbers
    [ "$status" = 0 ] || kill $(cat "$copy"/*.processes) 2>/dev/null
    return "$status"
}
check 'SIGTERM to scripts/test.sh ends all suites and what they started' ended TERM 143
check 'Ctrl-C does, too' ended INT 130 group
check 'a terminal that is closed does, too' ended HUP 129

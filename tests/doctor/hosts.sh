# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft doctor --hosts` on two hosts (tests/testbed/testbed.sh). Sourced by run.sh.

TESTBED=$ROOT/tests/testbed/testbed.sh
if ! reason=$("$TESTBED" check); then
    skip 'two hosts' "$reason"
elif ! BED=$("$TESTBED" up --owner $$ --direct 2>"$work/out"); then
    report 1 'two hosts'
else
    trap '"$TESTBED" "$BED" down; rm -rf "$work"' EXIT
    on_hosts() {
        timeout 60 "$TESTBED" "$BED" host a0 "$WEFT" doctor --quick \
            --launcher "$("$TESTBED" "$BED" agent)" "$@"
    }
    both_are_alike() {
        on_hosts --hosts a0,b1 --json >"$work/json"
        python3 - "$work/json" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
assert [one["host"] for one in found["hosts"]] == ["a0", "b1"], found["hosts"]
for one in found["hosts"]:
    assert not one["unreachable"] and one["counts"]["ok"] > 10, one
assert found["exit_code"] < 2, found["exit_code"]
PYTHON
    }
    check 'two hosts: each has its checks' both_are_alike
    they_differ() {
        "$TESTBED" "$BED" host b1 ip link set eth0 mtu 1400
        on_hosts --hosts a0,b1 >"$work/text"
        [ $? = 1 ] && cat "$work/text" && grep -q 'MTU.*1400' "$work/text"
    }
    check 'two hosts: another MTU on one is shown' they_differ
    one_is_gone() {
        "$TESTBED" "$BED" kill b1
        on_hosts --hosts a0,b1 --host-timeout 5 >"$work/text" 2>&1
        [ $? = 2 ] && cat "$work/text" && grep -q 'b1' "$work/text"
    }
    check 'two hosts: one that is away is named' one_is_gone
    "$TESTBED" "$BED" down
    trap 'rm -rf "$work"' EXIT
fi

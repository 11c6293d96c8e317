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
(reach,) = found["reach"]
assert (reach["from"], reach["to"], reach["came"]) == ("a0", "b1", 64), reach
PYTHON
    }
    # A machine that stands still for a second may lose a datagram for good.
    check 'two hosts: each has its checks' in_three both_are_alike
    datagrams_are_dropped() {
        "$TESTBED" "$BED" host b1 sh -c 'nft add table inet t &&
            nft "add chain inet t c { type filter hook input priority 0; }" &&
            nft add rule inet t c meta l4proto udp drop'
        on_hosts --hosts a0,b1 >"$work/text"
        local status=$?
        "$TESTBED" "$BED" host b1 nft delete table inet t
        [ $status = 2 ] && cat "$work/text" &&
            grep -q 'a0 to b1: datagrams came back over 0 of 64 flows; .*let UDP pass' "$work/text"
    }
    check 'two hosts: a firewall between them is found' datagrams_are_dropped
    # Nobody is at that address; that it is named shows that the variables came along.
    bucket_on_each() {
        AWS_ENDPOINT_URL=http://127.0.0.1:9 AWS_SECRET_ACCESS_KEY=hidden on_hosts --hosts a0,b1 \
            --bucket s3://data >"$work/text"
        [ $? = 2 ] && cat "$work/text" && ! grep -q hidden "$work/text" &&
            [ "$(grep -c 'store: 127.0.0.1:9 is not reached' "$work/text")" = 2 ]
    }
    check 'two hosts: each looks for a bucket by the variables from here' bucket_on_each
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

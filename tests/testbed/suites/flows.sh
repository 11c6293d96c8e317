# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A network that limits each flow (addresses and ports), as some clouds do: a link of 200 Mbit/s, a
# fourth of it for a flow. Slow enough for two busy processors. What is asserted is what the switch
# counts, and a rate that only several flows can have together.

# The limit of a flow, in Mbit/s.
FLOW_MBIT=50

# stream_rate: MB/s of 20 messages of 1 MiB over Weft, warmed up by as many.
stream_rate() {
    job a0,b1 120 mpich -n 2 --require-weft -- \
        "$WEFT" bench bw -m 1048576:1048576 -W 5 -i 4 -x 4 --json >"$WORK/bw" || return 1
    python3 -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
print(max(row["value"] for row in rows if row["type"] == "row"))' "$WORK/bw"
}

# flows_seen: flows over IPv4 that the switch of a0 knows.
flows_seen() {
    nsenter --net="/run/netns/$BED-s0" nft -j list set inet police of_ip |
        python3 -c 'import json, sys
sets = [entry["set"] for entry in json.load(sys.stdin)["nftables"] if "set" in entry]
print(sum(len(entry.get("elem", [])) for entry in sets))'
}

# dropped: packets that the limit has dropped at the switch of a0.
dropped() {
    nsenter --net="/run/netns/$BED-s0" nft list chain inet police c |
        awk '{ for (at = 1; at < NF; at++) if ($at == "packets" && $(at - 1) == "counter")
            sum += $(at + 1) } END { print sum + 0 }'
}

# 40 messages of 1 MiB are 29,000 packets. Without many flows three of four that are sent are lost;
# a flow alone has 6 MB/s, the link 25.
many_flows_fill_the_link() {
    local rate flows lost
    bed flow-limit $FLOW_MBIT
    rate=$(stream_rate) || return 1
    flows=$(flows_seen) lost=$(dropped)
    echo "MB/s: $rate of 25; flows: $flows; packets beyond the limit: $lost of 29000"
    [ "$flows" -ge 32 ] || { echo 'these are few flows'; return 1; }
    [ "$lost" -le 3000 ] || { echo 'the limit dropped much'; return 1; }
    awk -v rate="$rate" -v one=$FLOW_MBIT 'BEGIN { exit !(rate > 1.2 * one / 8) }' ||
        { echo 'many flows are hardly more than one'; return 1; }
}

# the_doctor_says WORDS: of one flow and of 8.
the_doctor_says() {
    bed host a0 "$WEFT" doctor --hosts a0,b1 --flows --quick --launcher "$AGENT" \
        >"$WORK/doctor" 2>&1
    cat "$WORK/doctor"
    grep -q "a0 to b1: one flow .*, 8 flows .*: $1" "$WORK/doctor"
}

the_doctor_measures_flows() {
    bed flow-limit $FLOW_MBIT
    in_three the_doctor_says 'the network limits each flow' || return 1
    bed flow-limit 0
    in_three the_doctor_says 'one flow takes the whole bandwidth'
}

flows_suite() {
    if [ "$TRANSPORT" != weft ]; then
        skip 'flows' "they are Weft's, not those of $TRANSPORT"; return; fi
    mpi_is_here mpich 'flows on mpich' || return
    new_testbed --paths 1 --rate 200mbit --mtu 1500 ||
        { skip 'flows' 'the testbed could not be made'; return; }
    run_case 'flows: where the network limits each, many fill the link, mpich' 180 \
        in_three many_flows_fill_the_link
    run_case 'flows: the doctor measures whether the network limits each' 90 \
        the_doctor_measures_flows
    remove_testbeds
}

flows_suite

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads the output of `weft bench` as Ramble's application for the OSU benchmarks does, by
expressions of the same strictness: the head of the table says which columns there are, with the
spaces between them, and every line of numbers must have just these. Exit code 0 when all is found.

    ramble.py KIND FILE RANKS        KIND: latency single bandwidth rate overlap sole, each also
                                     with tail_ before; init hello"""

import re
import sys

NUMBER = r"[0-9.]+"
TAIL_LATENCY = [f"P{percent} Tail Lat(us)" for percent in (50, 90, 99)]
TAIL_BANDWIDTH = [f"P{percent} Tail BW(MB/s)" for percent in (50, 90, 99)]
# What stands before each column in the head: any space, or exactly that many.
KINDS = {
    "latency": (["Size", "Avg Latency(us)"], [], None),
    "single": (["Size", "Latency (us)"], [], None),
    "tail_single": (["Size", "Latency (us)"], TAIL_LATENCY, None),
    "tail_latency": (["Size", "Avg Latency(us)"], TAIL_LATENCY, None),
    "bandwidth": (["Size", "Bandwidth (MB/s)"], [], None),
    "tail_bandwidth": (["Size", "Bandwidth (MB/s)"], TAIL_BANDWIDTH, 1),
    "rate": (["Size", "MB/s", "Messages/s"], [], None),
    "tail_rate": (["Size", "MB/s", "Messages/s"], TAIL_BANDWIDTH, 1),
    "overlap": (["Size", "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"], [], None),
    "tail_overlap": (["Size", "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"],
    TAIL_LATENCY, 2),
    "sole": (["Avg Latency(us)"], [], None),
    "tail_sole": (["Avg Latency(us)"], TAIL_LATENCY, None),
}
INIT = rf"nprocs: (\d+), min: ({NUMBER}) ms, max: ({NUMBER}) ms, avg: ({NUMBER}) ms"
HELLO = r"This is a test with (\d+) processes"


def head(columns, tails, spaces):
    between = r"\s+" if spaces is None else " " * spaces
    text = r"\s+".join(map(re.escape, columns)) + "".join(between + re.escape(tail)
        for tail in tails)
    return re.compile(rf"#\s+{text}\s*$")


def rows(columns, tails):
    count = len(columns) + len(tails)
    first = rf"\s*({NUMBER})" if columns[0] != "Size" else r"\s*([0-9]+)"
    return re.compile(first + rf"\s+({NUMBER})" * (count - 1) + r"\s*$")


def main(kind, path, ranks):
    lines = open(path).read().splitlines()
    if kind in ("init", "hello"):
        found = [match for line in lines
            if (match := re.search(INIT if kind == "init" else HELLO, line))]
        assert found and found[0][1] == ranks, f"no line of {kind} with {ranks} processes"
        return
    columns, tails, spaces = KINDS[kind]
    heads = [at for at, line in enumerate(lines) if head(columns, tails, spaces).match(line)]
    assert len(heads) == 1, f"{len(heads)} heads of {kind}"
    others = [name for name, other in KINDS.items() if name != kind
        and any(head(*other).match(line) for line in lines)]
    assert not others, f"also the heads of {others}"
    assert any(re.search(r"# OSU.*Test v[0-9.]+", line) for line in lines), "no name and version"
    data = [line for line in lines[heads[0] + 1:] if line.strip() and not line.startswith("#")]
    assert data, "no rows"
    for line in data:
        match = rows(columns, tails).match(line)
        assert match, f"not a row: {line}"
        assert all(float(value) >= 0 for value in match.groups()), line
    if columns[0] == "Size":
        # The sizes are the contexts that figures belong to: each once, ascending.
        sizes = [int(line.split()[0]) for line in data]
        assert sizes == sorted(set(sizes)), sizes
    if columns[0] == "Size" or kind.endswith("latency"):
        assert any(re.fullmatch(r"# Datatype: \S+\.", line) for line in lines), "no datatype"


if __name__ == "__main__":
    main(*sys.argv[1:])

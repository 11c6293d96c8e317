# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes a made-up comparison, the same every time, into FOLDER/runs.jsonl: two MPIs, one with a
name that would break a page if it were not escaped, over Weft (also as a plain mpirun starts it),
the native transport and TCP. The figures mean nothing. Usage: fixture.py FOLDER"""

import json
import math
import random
import sys

NASTY = "</script><img src=x onerror=\"document.title='broken'\">"
SIZES = [0] + [2**power for power in range(23)]
FACTORS = {"weft": 0.8, "native": 1.0, "weft+plain": 0.9, "tcp": 9.0}
# How much longer than its median block a run takes on the mean.
MEANS = {"weft": 1.2, "native": 1.01, "weft+plain": 1.1, "tcp": 1.01}
ROUNDS = 7


def latency(transport, size):
    return FACTORS[transport] * (
        0.2 + size / 9000 + 0.5 * (1 / (1 + math.exp(-(math.log2(size + 1) - 14)))))


def rows(workload, transport, noise):
    benchmark, ranks = workload
    if benchmark == "barrier":
        figures = [(0, latency(transport, 8) * 1.7 * math.log2(ranks) * noise)]
    elif benchmark == "bw":
        figures = [(size, size / latency(transport, size) / 1.2 / noise) for size in SIZES[1:]]
    else:
        figures = [(size, latency(transport, size) * ranks / 2 * noise) for size in SIZES]
    slower = 1 / MEANS[transport] if benchmark == "bw" else MEANS[transport]
    return [{"size_bytes": size, "value": value * slower, "median": value}
            for size, value in figures]


def main(folder):
    draw = random.Random(1)
    workloads = [("latency", 2), ("bw", 2), ("barrier", 2), ("barrier", 4), ("allreduce", 4)]
    configurations = [(mpi, transport) for mpi in ("openmpi", NASTY) for transport in FACTORS]
    lines = [
        {"type": "environment", "weft": "0.1.0", "unix_seconds": 1795296215,
        "host": "made-up <host>", "command": ["weft", "bench", "compare"],
         "machine": {"processor": "Some CPU", "core_count": 2, "kernel": "6.1",
         "memory_bytes": 8 << 30},
         "cores": {"numbers": [0, 1], "shared_caches": ["L3 unified 32768K"],
         "own_caches": ["L2 unified 1024K"]}},
        {"type": "matrix", "rounds": ROUNDS, "repeat_scale": 1,
        "left_out": ["intel over weft: not <found>"],
         "configurations": [{"mpi": mpi, "transport": transport, "hosts": "",
                             "launch": "mpiexec -n 2"} for mpi, transport in configurations],
         "benchmarks": [{"benchmark": name, "ranks": ranks, "hosts": ""}
                        for name, ranks in workloads],
         "commands": [
         {"mpi": mpi, "transport": transport, "benchmark": name, "ranks": ranks, "hosts": "",
         "command": f"weft run -n {ranks} -- weft bench {name}"}
                      for name, ranks in workloads for mpi, transport in configurations]},
    ]
    for turn in range(ROUNDS):
        for name, ranks in workloads:
            for mpi, transport in configurations:
                slow = turn == 3 and name == "latency" and transport == "tcp"
                speed = {"copy_ns": 130000 * draw.uniform(0.97, 1.03) * (2 if slow else 1),
                    "handover_ns": 80 * draw.uniform(0.95, 1.05)}
                lines.append({"type": "run", "mpi": mpi, "transport": transport, "benchmark": name,
                              "ranks": ranks, "hosts": "", "round": turn,
                              "attempt": 0, "unix_seconds": 1795296215 + turn, "wall_seconds": 0.5,
                              "before": speed, "after": speed,
                              "mpi_version": "Some MPI 1.0", "library": "/nowhere/libmpi.so",
                              "rows": rows((name, ranks), transport, draw.lognormvariate(0, 0.08))})
    with open(f"{folder}/runs.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether `weft bench` measures what other programs measure on the same transport, in turns. Not
timed by `make test`; wants a quiet machine.

    tests/mpi/agreement.py [--turns N] [--transport T] [--mpi NAME]... [--quick] [--json] PART...

Parts: linked   the loop of `weft bench latency` in C, linked to the MPI directly
                (tests/mpi/input/latency.c): what binding at run time costs
       imb      IMB-MPI1 PingPong and Uniband beside latency and bw, on Intel MPI and MPICH
       netpipe  NetPIPE (Debian's netpipe-openmpi) beside latency, on Debian's Open MPI. It shows
                the best of its trials, so that the median of blocks is put beside it, and not the
                mean, and gives two digits where a message takes less than a microsecond

Every turn runs each program once, every other turn backwards. Ratios (weft bench over the other)
are medians of the turns' ratios. Their interval goes from the k-th least to the k-th greatest
ratio, and the confidence shown is exact (docs/report.md, the formulas): 95 % or more from 6 turns
on, less with fewer. Exit code 0 when all ran, 1 when something failed or is missing."""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFT = os.environ.get("WEFT", str(ROOT / "dist/bin/weft"))
LIMIT_SECONDS = 60
# The confidence that is aimed at, as in tools/statistics/src/interval.rs.
CONFIDENCE = 0.95


class Missing(Exception):
    """A program or an MPI that is not installed."""


def wheel(mpi):
    folder = ROOT / f".env/mpi/{mpi}"
    if not (folder / "bin/mpiexec").exists():
        raise Missing(f"{mpi} is not installed; scripts/setup.sh test installs it")
    return folder


def run(mpi, transport, program):
    """Output of a program of two ranks."""
    must = ["--require-weft"] if transport == "weft" else []
    words = [WEFT, "run", "-n", "2", "--mpi", mpi, "--transport", transport, "--timeout",
        str(LIMIT_SECONDS), "--quiet", *must, "--", *program]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def ours(benchmark, iterations, warm_up, sizes):
    """weft bench, by the median of its blocks or, for others' means, by its mean."""
    program = [WEFT, "bench", benchmark, "--json", "-i", str(iterations), "-x", str(warm_up), "-m",
        f"{min(sizes)}:{max(sizes)}"]

    def measure(mpi, transport, key):
        rows = [json.loads(line) for line in run(mpi, transport, program).splitlines()
            if line.startswith("{")]
        return {row["size_bytes"]: row[key] for row in rows if row["type"] == "row"
            and row["size_bytes"] in sizes}

    return measure


def linked(mpi, folder, iterations, warm_up, sizes):
    """The same loop in C."""
    binary, source = folder / f"latency-{mpi}", ROOT / "tests/mpi/input/latency.c"
    if mpi == "debian-openmpi":
        words = ["mpicc.openmpi", "-O3", source, "-o", binary]
    else:
        # Not by the wheels' own mpicc: Intel's looks for its headers elsewhere.
        root = wheel(mpi)
        words = ["cc", "-O3", f"-I{root}/include", source, "-o", binary, f"-L{root}/lib",
            f"-Wl,-rpath,{root}/lib", "-lmpi"]
    if not shutil.which(words[0]):
        raise Missing(f"{words[0]} is not installed")
    built = subprocess.run(words, capture_output=True, text=True)
    if built.returncode != 0:
        raise Missing(f"latency.c cannot be built for {mpi}: {built.stderr[-300:]}")

    def measure(transport):
        text = run(mpi, transport, [str(binary), str(iterations), str(warm_up), *map(str, sizes)])
        rows = [line.split() for line in text.splitlines() if re.fullmatch(r"\d+ [\d.]+", line)]
        return {int(size): float(value) for size, value in rows}

    return measure


def imb(benchmark, iterations, sizes):
    """A table of IMB-MPI1: size, repetitions, microseconds or not, MB/s."""
    binary = ROOT / ".env/mpi/intel/bin/IMB-MPI1"
    if not binary.exists():
        raise Missing("IMB-MPI1 is not installed; scripts/setup.sh test installs it")

    def measure(mpi, transport, lengths):
        options = ["-msglen", str(lengths), "-iter", str(iterations), "-iter_policy", "off",
            "-time", "20"]
        text = run(mpi, transport, [str(binary), benchmark, *options])
        rows = [line.split() for line in text.splitlines()
            if re.fullmatch(r"\s*\d+(\s+[\d.]+)+\s*", line)]
        # PingPong: bytes, repetitions, t[usec], Mbytes/sec. Uniband: bytes, repetitions,
        # Mbytes/sec, Msg/sec.
        return {int(row[0]): float(row[2]) for row in rows if int(row[0]) in sizes}

    return measure


def netpipe(folder, sizes):
    """NetPIPE writes seconds of one way, size by size."""
    binary = shutil.which("NPopenmpi")
    if not binary:
        raise Missing("NetPIPE is not installed (Debian: apt install netpipe-openmpi)")

    def measure(transport):
        found = {}
        for size in sizes:
            out = folder / "netpipe.out"
            # One size, without its neighbours: -l and -u are the ends, -p 0 leaves out the sizes a
            # little off.
            run("debian-openmpi", transport,
                [binary, "-o", str(out), "-l", str(size), "-u", str(size), "-p", "0", "-n", "4000"])
            for line in out.read_text().splitlines():
                length, _, seconds = line.split()[:3]
                if int(length) == size:
                    found[size] = float(seconds) * 1e6
        return found

    return measure


def in_turns(turns, programs):
    """{name: {size: [figure of each turn]}}"""
    found = {name: {} for name in programs}
    for turn in range(turns):
        names = list(programs) if turn % 2 == 0 else list(reversed(programs))
        for name in names:
            for size, value in programs[name]().items():
                found[name].setdefault(size, []).append(value)
        print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
    return found


def confidence(count, rank):
    """How surely the rank-th least and the rank-th greatest of so many values enclose the median:
    1 - 2 P(B < rank), B binomial with count and 1/2."""
    return 1 - 2 * sum(math.comb(count, below) for below in range(rank)) / 2**count


def interval(values):
    """Median, the ends of its interval, and the confidence of that."""
    count, rank = len(values), 1
    while 2 * rank < count and confidence(count, rank + 1) >= CONFIDENCE:
        rank += 1
    ordered = sorted(values)
    sure = confidence(count, rank)
    return statistics.median(ordered), ordered[rank - 1], ordered[-rank], sure


def compare(found, first, second, what, unit):
    """A row for each size that both measured."""
    rows = []
    for size in sorted(found[first]):
        one, other = found[first][size], found[second].get(size, [])
        if len(one) == len(other):
            ratios = [left / right for left, right in zip(one, other)]
            ratio, low, high, sure = interval(ratios)
            rows.append({
                "what": what, "bytes": size, "unit": unit, "turns": len(one),
                "weft": statistics.median(one), "weft_spread": [min(one), max(one)],
                "other": statistics.median(other), "other_spread": [min(other), max(other)],
                "ratio": ratio, "low": low, "high": high, "confidence": sure,
            })
    return rows


def table_row(row):
    """A row of the table in docs/benchmarks.md."""
    def spread(side):
        low, high = row[f"{side}_spread"]
        return f"{row[side]:.3f} ({low:.3f} to {high:.3f})"

    ratio = f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
    return (f"| {row['what']} | {row['bytes']} | {spread('weft')} {row['unit']} | "
            f"{spread('other')} | {ratio} | {100 * row['confidence']:.1f} % |")


def part_linked(arguments, folder):
    sizes, iterations = [8, 4096], 2000 if arguments.quick else 40000
    for mpi in arguments.mpi or ["openmpi", "mpich", "intel"]:
        bench = ours("latency", iterations, iterations // 10, sizes)
        c_loop = linked(mpi, folder, iterations, iterations // 10, sizes)
        programs = {"weft": lambda: bench(mpi, arguments.transport, "median"),
            "c": lambda: c_loop(arguments.transport)}
        yield from compare(in_turns(arguments.turns, programs), "weft", "c", f"linked C, {mpi}",
            "us")


def part_imb(arguments, folder):
    sizes, iterations = [8, 1024, 65536, 1048576], 50 if arguments.quick else 500
    lengths = folder / "lengths"
    lengths.write_text("".join(f"{size}\n" for size in sizes))
    for mpi in arguments.mpi or ["intel", "mpich"]:
        wheel(mpi)
        for benchmark, name, unit in (("latency", "PingPong", "us"), ("bw", "Uniband", "MB/s")):
            count = iterations if benchmark == "latency" else max(iterations // 10, 10)
            bench, other = ours(benchmark, count, count // 5, sizes), imb(name, count, sizes)
            programs = {"weft": lambda: bench(mpi, arguments.transport, "value"),
                "imb": lambda: other(mpi, arguments.transport, lengths)}
            yield from compare(in_turns(arguments.turns, programs), "weft", "imb",
                f"IMB {name}, {mpi}", unit)


def part_netpipe(arguments, folder):
    sizes = [8, 1024, 65536]
    bench, other = ours("latency", 4000, 400, sizes), netpipe(folder, sizes)
    programs = {"weft": lambda: bench("debian-openmpi", arguments.transport, "median"),
        "netpipe": lambda: other(arguments.transport)}
    yield from compare(in_turns(arguments.turns, programs), "weft", "netpipe",
        "NetPIPE, debian-openmpi", "us")


PARTS = {"linked": part_linked, "imb": part_imb, "netpipe": part_netpipe}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--transport", default="weft", choices=["weft", "native", "tcp"])
    parser.add_argument("--mpi", action="append",
        choices=["debian-openmpi", "openmpi", "mpich", "intel"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.turns < 1:
        parser.error(f"--turns is {arguments.turns}; it must be 1 or more")
    failed = False
    if not arguments.json:
        print("| beside | bytes | weft bench | the other | ratio | confidence |", flush=True)
        print("|---" * 6 + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for part in arguments.parts:
            try:
                for row in PARTS[part](arguments, pathlib.Path(folder)):
                    print(json.dumps(row) if arguments.json else table_row(row), flush=True)
            except (Missing, RuntimeError) as reason:
                print(f"agreement.py: {part}: {reason}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

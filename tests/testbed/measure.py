#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Weft between hosts, beside what MPIs do over TCP, on the testbed. Not part of `make test`: it
wants a quiet machine.

    tests/testbed/measure.py [--rounds N] [--out FILE] [--weft MPI] [--only NAME]... PART...

Parts, each on a testbed of its own: clean (4 paths of 500 Mbit/s), cable (an unlimited veth pair),
loss (1 % on all paths), hole (one path drops everything from the middle of a stream on, and
heals), slow (one path at a tenth of its rate), hog (another process wants the processor of one of
the two ranks all the time). In each round every configuration (an MPI with a transport) runs once,
one after the other; what counts is the median over the rounds. The figures go to FILE (default
report/between-nodes.json), where those of other parts stay, and the table to standard output.
Configurations: weft (under MPICH 5, or what --weft names), weft-open-mpi, and over TCP: ucx (MPICH
5), open-mpi (btl/tcp), libfabric (Intel MPI).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTBED = str(ROOT / "tests/testbed/testbed.sh")
WEFT = os.environ.get("WEFT", str(ROOT / "dist/bin/weft"))
# Time limit of one run, in seconds: peers may not end under loss.
LIMIT_SECONDS = 20
CONFIGURATIONS = {
    "weft": ("mpich", "weft"),
    "weft-open-mpi": ("openmpi", "weft"),
    "ucx": ("mpich", "native"),
    "open-mpi": ("openmpi", "tcp"),
    "libfabric": ("intel", "tcp"),
}
LATENCY = ["bench", "latency", "-m", "8:8", "-i", "3000", "-x", "200", "-z50,99,99.9,100"]
BANDWIDTH = ["bench", "bw", "-m", "1048576:1048576", "-i", "6", "-x", "2", "-W", "64"]


class Bed:
    """A testbed for the time of a `with`."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        up = [TESTBED, "up", "--owner", str(os.getpid()), *self.options]
        self.name = subprocess.run(up, check=True, capture_output=True, text=True).stdout.strip()
        self.agent = self.tell("agent")
        return self

    def __exit__(self, *_):
        self.tell("down")

    def tell(self, *words):
        return subprocess.run([TESTBED, self.name, *words], check=True, capture_output=True,
            text=True).stdout.strip()

    def job(self, configuration, program, limit=LIMIT_SECONDS):
        mpi, transport = CONFIGURATIONS[configuration]
        # The host keeps its ranks to its own processors; an MPI that bound them would count those
        # of the whole machine.
        run = [WEFT, "run", "--hosts", "a0,b1", "-n", "2", "--mpi", mpi, "--transport", transport,
            "--quiet", "--bind", "none"]
        run += ["--launcher", self.agent, "--timeout", str(limit), "--", *program]
        return subprocess.Popen([TESTBED, self.name, "host", "0", *run], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)


def columns(text):
    """The last row of a benchmark's table, by the names above it; None where there is none."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [float(word) for word in rows[-1]] if rows else None


def bench(bed, configuration, arguments):
    job = bed.job(configuration, [WEFT, *arguments])
    out, error = job.communicate()
    # A job that was ended says so among its rows.
    row = columns(out) if job.returncode == 0 else None
    if row is None:
        return {"failed": f"not in {LIMIT_SECONDS} s" if job.returncode == 124
            else f"exit code {job.returncode}: {error[-300:]}"}
    if arguments[1] == "latency":
        return {"latency_us": row[1], "p50_us": row[2], "p99_us": row[3], "p99.9_us": row[4],
            "worst_us": row[5]}
    return {"bandwidth_mb_s": row[1]}


def bandwidth(bed, configuration):
    return bench(bed, configuration, BANDWIDTH)


def latency_and_bandwidth(bed, configuration):
    return {**bench(bed, configuration, LATENCY), **bandwidth(bed, configuration)}


# Turns of milliseconds decide here, so that few messages say as much as many.
SHORT_LATENCY = ["bench", "latency", "-m", "8:8", "-i", "400", "-x", "50", "-z50,99,99.9,100"]
HOG = "import pathlib, sys\nwhile pathlib.Path(sys.argv[1]).exists():\n    sum(range(200000))\n"


def beside_a_hog(bed, configuration):
    """The second host's processors go round between its rank and programs that only compute, one
    for each."""
    with tempfile.NamedTemporaryFile(dir=ROOT / "report") as mark:
        own = bed.tell("host", "1", "nproc")
        command = [TESTBED, bed.name, "host", "1", "timeout", "60", "python3", "-c", HOG, mark.name]
        hogs = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(int(own))]
        found = {**bench(bed, configuration, SHORT_LATENCY), **bench(bed, configuration, BANDWIDTH)}
    for hog in hogs:
        hog.wait()
    return found


def stream(bed, configuration, seconds, meanwhile):
    """Runs the probe and calls `meanwhile` with a clock once the stream flows; returns what it saw,
    or why not."""
    mpi = CONFIGURATIONS[configuration][0]
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready"
        program = [str(ROOT / f".env/mpi/{mpi}/bin/python"), str(ROOT / "tests/testbed/probe.py"),
            str(seconds), "65536", str(ready)]
        job = bed.job(configuration, program, limit=seconds + 15)
        while not ready.exists() and job.poll() is None:
            time.sleep(0.01)
        seen = meanwhile(time.perf_counter()) if job.poll() is None else {}
        out, error = job.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if job.returncode != 0 or not lines:
        return {"failed": f"exit code {job.returncode}: {error[-300:]}"}
    return {**json.loads(lines[-1]), **seen}


def rate(seen, first_ms, last_ms):
    """MB/s between two moments."""
    step = seen["step_ms"]
    part = seen["bytes"][int(first_ms // step) : int(last_ms // step)]
    return sum(part) / (len(part) * step * 1000) if part else 0.0


def prepared_cut(bed, path):
    """Makes a path swallow everything when called. What it takes to start programs is spent before:
    on two processors it would itself stop the stream for some milliseconds."""
    rule = f"add rule inet weft fault oifname u{path} counter drop\n"
    command = ["nft", "-f", "-"]
    waiting = [
        subprocess.Popen(["nsenter", f"--net=/run/netns/{bed.name}-s{switch}", *command],
        stdin=subprocess.PIPE, text=True) for switch in (0, 1)
    ]

    def cut():
        for process in waiting:
            process.communicate(rule)

    return cut


def hole(bed, configuration):
    """Path 1 drops everything between 1 s and 2.5 s of the stream."""
    cut = prepared_cut(bed, 1)

    def meanwhile(zero):
        time.sleep(1)
        cut_ms = (time.perf_counter() - zero) * 1000
        cut()
        time.sleep(1.5)
        bed.tell("loss", "1", "0")
        healed = packets(bed)
        healed_at = time.perf_counter()
        while packets(bed) < healed + 20 and time.perf_counter() < healed_at + 3:
            time.sleep(0.02)
        used = packets(bed) >= healed + 20
        return {"cut_ms": cut_ms, "healed_use_ms": (time.perf_counter() - healed_at) * 1000 if used
            else None}

    seen = stream(bed, configuration, 6, meanwhile)
    bed.tell("loss", "1", "0")
    if "failed" in seen:
        return seen
    # The cut itself takes some tens of milliseconds to be in place.
    after = [pause for at, pause in seen["pauses_ms"]
        if seen["cut_ms"] - 5 <= at <= seen["cut_ms"] + 1400]
    before = [pause for at, pause in seen["pauses_ms"] if at < seen["cut_ms"] - 5]
    whole = rate(seen, 100, seen["cut_ms"] - 10)
    back = next(
        (at - seen["cut_ms"]
        for at in range(int(seen["cut_ms"]) + 10, int(seen["cut_ms"]) + 1400, 10)
                 if rate(seen, at, at + 100) >= 0.9 * 0.75 * whole), None)
    return {"stall_ms": max(after, default=0.0), "stall_before_ms": max(before, default=0.0),
        "before_mb_s": whole,
            "during_mb_s": rate(seen, seen["cut_ms"] + 300, seen["cut_ms"] + 1300), "back_ms": back,
            "healed_use_ms": seen["healed_use_ms"]}


def packets(bed):
    """Packets that left on path 1 from the sender's rack."""
    return int(bed.tell("counts").splitlines()[0].split()[1])


PARTS = {
    "clean": ([], None, latency_and_bandwidth),
    "cable": (["--direct"], None, latency_and_bandwidth),
    "loss": ([], ("loss", "all", "1"), latency_and_bandwidth),
    "slow": ([], ("rate", "1", "50mbit"), bandwidth),
    "hole": ([], None, hole),
    "hog": ([], None, beside_a_hog),
}


def run_part(part, configurations, rounds):
    options, fault, measure = PARTS[part]
    runs = {configuration: [] for configuration in configurations}
    with Bed(*options) as bed:
        if fault:
            bed.tell(*fault)
        for number in range(rounds):
            for configuration in configurations:
                found = measure(bed, configuration)
                runs[configuration].append(found)
                line = f"{part} {number + 1}/{rounds} {configuration}: {found}"
                print(line, file=sys.stderr, flush=True)
    return runs


def summary(runs):
    """Median, least and greatest of each figure, and how many runs failed."""
    figures = {}
    for name in sorted({name for run in runs for name in run if name != "failed"}):
        values = [run[name] for run in runs if run.get(name) is not None]
        if values:
            figures[name] = {"median": statistics.median(values), "least": min(values),
                "greatest": max(values)}
    return {"runs": len(runs), "failed": sum("failed" in run for run in runs), **figures}


def table(parts):
    lines = ["| part | figure | " + " | ".join(CONFIGURATIONS) + " |"]
    lines.append("|---|---|" + "---|" * len(CONFIGURATIONS))
    for part, found in parts.items():
        names = sorted(
            {name for one in found.values() for name in one["summary"]
            if isinstance(one["summary"][name], dict)})
        for name in names:
            cells = []
            for configuration in CONFIGURATIONS:
                one = found.get(configuration, {}).get("summary", {})
                cell = one.get(name)
                text = "-"
                if cell:
                    spread = f"{cell['least']:.1f} to {cell['greatest']:.1f}"
                    text = f"{cell['median']:.1f} ({spread})"
                cells.append(
                    text + (f", {one['failed']} of {one['runs']} failed" if one.get("failed")
                    else ""))
            lines.append(f"| {part} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART",
        help="; ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "report/between-nodes.json")
    parser.add_argument("--weft", default="mpich",
        choices=["mpich", "openmpi", "intel", "debian-openmpi"], help="the MPI that runs over Weft")
    parser.add_argument("--only", action="append", choices=CONFIGURATIONS)
    arguments = parser.parse_args()
    CONFIGURATIONS["weft"] = (arguments.weft, "weft")
    configurations = arguments.only or list(CONFIGURATIONS)
    parts = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for part in arguments.parts:
        for configuration, runs in run_part(part, configurations, arguments.rounds).items():
            one = {"mpi": CONFIGURATIONS[configuration][0], "runs": runs, "summary": summary(runs)}
            parts.setdefault(part, {})[configuration] = one
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(parts, indent=1) + "\n")
    print(table(parts))


if __name__ == "__main__":
    main()

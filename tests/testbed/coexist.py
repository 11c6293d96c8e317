#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How a Weft stream and another flow share one bottleneck, on the testbed. Not part of `make test`:
it takes minutes.

    tests/testbed/coexist.py [--rounds N] [--rate MBIT] [--seconds S] [--out FILE] [CASE]...

A CASE is FIRST:SECOND:BUFFER. FIRST and SECOND are weft, a congestion control of the kernel (cubic,
bbr, reno), or none; BUFFER is deep (1 MB), middle (200 kB), shallow (45 kB: 30 packets) or a number
of bytes. FIRST runs from host a0 to b1, SECOND from a2 to b3; both cross one link of MBIT (default
400). Each begins alone in every other round, so that neither is always the one that was there
before. What counts is the bytes that the link carried of each, from 2 s after both ran on.

Prints the share of FIRST in what was carried, and how much of the link was used: the median of the
rounds with the least and the greatest. Needs root, as testbed.sh does; it says so where it cannot.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from measure import Bed, ROOT, TESTBED, WEFT

HERE = ROOT / "tests/testbed"
BUFFERS = {"deep": 1_000_000, "middle": 200_000, "shallow": 45_000}
# Until a flow that joined has its pace.
SETTLE_SECONDS = 2
# For programs to start on a busy machine.
START_SECONDS = 20
# A round in which the machine stood still, or a flow ended early, is done again, so often at most.
TRIES = 4
STOOD_STILL_SECONDS = 0.3
DEFAULT_CASES = [f"weft:{other}:{buffer}" for buffer in BUFFERS
    for other in ("cubic", "bbr", "weft")]


class Spoilt(Exception):
    """A round that says nothing."""


class Link(Bed):
    """Four hosts, two of them on each side of one link."""

    def __init__(self, megabits):
        super().__init__("--hosts", "4", "--paths", "1", "--mtu", "1500", "--rate",
            f"{megabits}mbit")
        self.megabits = megabits

    def __enter__(self):
        check = subprocess.run([TESTBED, "check"], capture_output=True, text=True)
        if check.returncode:
            sys.exit(f"skip: {check.stdout.strip()}")
        super().__enter__()
        for host in ("a0", "b1", "a2", "b3"):
            # The link sees single packets, as a switch does, not joined ones.
            subprocess.run(["ip", "-n", f"{self.name}-{host}", "link", "set", "eth0",
                "gso_max_segs", "1"], check=True)
        self.nft("add table inet count")
        self.nft("add chain inet count c { type filter hook forward priority 10; }")
        for source in (0, 2):
            self.nft(f"add rule inet count c ip saddr {self.address(source)} counter")
        return self

    def nft(self, words):
        inside = ["nsenter", f"--net=/run/netns/{self.name}-s0"]
        return subprocess.run([*inside, "nft", *words.split()], check=True, capture_output=True,
            text=True).stdout

    def address(self, host):
        return f"10.77.{host}.2"

    def carried(self):
        """Bytes that came from a0 and from a2, and when that was."""
        text = self.nft("list chain inet count c")
        return time.monotonic(), [int(bytes) for bytes in re.findall(r"bytes (\d+)", text)]

    def on(self, host, *command, **more):
        return subprocess.Popen([TESTBED, self.name, "host", host, *command], text=True, **more)


class Flow:
    """One flow, from `source` to the host after it."""

    def __init__(self, link, kind, source, seconds, folder):
        self.ready = pathlib.Path(folder) / f"ready{source}"
        names = [f"a{source}", f"b{source + 1}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        if kind == "weft":
            run = [WEFT, "run", "--hosts", ",".join(names), "-n", "2", "--mpi", "mpich",
                "--require-weft", "--quiet", "--bind", "none", "--launcher", link.agent,
                "--timeout", str(seconds + START_SECONDS), "--",
                str(ROOT / ".env/mpi/mpich/bin/python"), str(HERE / "probe.py"), str(seconds),
                str(1 << 20), str(self.ready)]
            self.parts = [link.on(names[0], *run, **quiet)]
        elif kind == "none":
            self.ready.touch()
            self.parts = []
        else:
            script = ["python3", str(HERE / "traffic.py")]
            self.parts = [link.on(names[1], *script, "take", "5001", **quiet),
                link.on(names[0], *script, "give", link.address(source + 1), "5001", kind,
                str(seconds), **quiet)]
            self.ready.touch()

    def wait_ready(self):
        end = time.monotonic() + START_SECONDS
        while not self.ready.exists():
            if time.monotonic() > end or any(part.poll() for part in self.parts):
                raise Spoilt("a flow did not start")
            time.sleep(0.02)

    def wait(self):
        for part in self.parts:
            _, error = part.communicate()
            if part.returncode:
                raise Spoilt(f"a flow ended with {part.returncode}: {error[-300:]}")

    def end(self):
        for part in self.parts:
            if part.returncode is None:
                part.terminate()
                part.wait()


def share(link, kinds, first, seconds):
    """Bytes of both flows in `seconds`; `first` is the one that begins."""
    with tempfile.TemporaryDirectory(dir=ROOT / "report") as folder:
        flows = {}
        # The one that begins runs alone for a while, and ends after the other.
        for index in (first, 1 - first):
            lasts = seconds + SETTLE_SECONDS * (3 if index == first else 2)
            flows[index] = Flow(link, kinds[index], 2 * index, lasts, folder)
            try:
                flows[index].wait_ready()
                time.sleep(SETTLE_SECONDS)
            except Spoilt:
                for flow in flows.values():
                    flow.end()
                raise
        begin, before = link.carried()
        time.sleep(seconds - 1)
        end, after = link.carried()
        try:
            for flow in flows.values():
                flow.wait()
        finally:
            for flow in flows.values():
                flow.end()
    if end - begin > seconds - 1 + STOOD_STILL_SECONDS:
        raise Spoilt(f"the machine stood still for {end - begin - seconds + 1:.1f} s")
    return [(b - a) / (end - begin) / 1e6 for a, b in zip(before, after)]


def share_again(link, kinds, first, seconds):
    for _ in range(TRIES):
        try:
            return share(link, kinds, first, seconds)
        except Spoilt as spoilt:
            print(f"again: {spoilt}", file=sys.stderr, flush=True)
    sys.exit(f"{TRIES} rounds were spoilt")


def run_case(link, case, rounds, seconds):
    first, second, buffer = case.split(":")
    link.tell("buffer", "1", str(BUFFERS.get(buffer, buffer)))
    found = []
    for number in range(rounds):
        rates = share_again(link, (first, second), number % 2, seconds)
        found.append(rates)
        print(f"{case} {number + 1}/{rounds}: {rates[0]:.1f} and {rates[1]:.1f} MB/s",
            file=sys.stderr, flush=True)
    parts = [a / max(a + b, 1e-9) for a, b in found]
    used = [(a + b) * 8 / link.megabits for a, b in found]
    middle = statistics.median
    print(f"| {case} | {middle(parts):.2f} ({min(parts):.2f} to {max(parts):.2f}) "
        f"| {middle(used):.2f} ({min(used):.2f} to {max(used):.2f}) |", flush=True)
    return {"rates_mb_s": found, "share": parts, "used": used}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=DEFAULT_CASES, metavar="CASE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "report/coexist.json")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    found = {}
    print("| case | share of the first | link used |\n|---|---|---|", flush=True)
    with Link(arguments.rate) as link:
        for case in arguments.cases:
            found[case] = run_case(link, case, arguments.rounds, arguments.seconds)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

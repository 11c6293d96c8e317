#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the results of a comparison into README.md: the table between its two marks, and docs/figures/one-node.svg. `make readme` calls it.

    scripts/readme-results.py FOLDER      FOLDER is what `weft bench compare --benchmarks latency,bw --out FOLDER` left
    scripts/readme-results.py --check     whether README.md has both marks and a table between them; changes nothing

Figures are medians over the rounds; a ratio is Weft under an MPI over that MPI's own transport with its 95 % interval, in which a machine that
changes its speed shows. Nothing is left out: where Weft is behind, the table says so."""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- results: written by scripts/readme-results.py -->", "<!-- end of results -->"
SIZES = [8, 512, 4096, 32768, 262144, 2097152]
NAMES = {"openmpi": "Open MPI 5", "mpich": "MPICH", "intel": "Intel MPI", "debian-openmpi": "Open MPI 4.1"}


def size_name(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def cells(results, benchmark, mpi, transport):
    rows = [row for row in results if (row["benchmark"], row["mpi"], row["transport"]) == (benchmark, mpi, transport) and row["ranks"] == 2]
    return {row["size_bytes"]: row for row in rows}


def table(summary):
    lines = ["| | " + " | ".join(map(size_name, SIZES)) + " |", "|---" * (len(SIZES) + 1) + "|"]
    mpis = [mpi for mpi in NAMES if any(row["mpi"] == mpi and row["transport"] == "weft" for row in summary["results"])]
    for benchmark, title in (("latency", "latency, us"), ("bw", "bandwidth, MB/s")):
        for mpi in mpis:
            ours, own = (cells(summary["results"], benchmark, mpi, transport) for transport in ("weft", "native"))
            pick = lambda rows, show: " | ".join(show(rows[size]) if rows.get(size) else "-" for size in SIZES)
            median = lambda row: f"{digits(row['figure']['median'])}"
            ratio = lambda row: "{value:.2f} ({low:.2f} to {high:.2f})".format(**row["ratio_to_own"]) if row["ratio_to_own"] else "-"
            lines.append(f"| **{title}**, {NAMES[mpi]} over Weft | {pick(ours, median)} |")
            lines.append(f"| over its own transport | {pick(own, median)} |")
            lines.append(f"| ratio | {pick(ours, ratio)} |")
    return "\n".join(lines)


def text(summary):
    here = summary["environment"]
    machine = here["machine"]
    cores = ", ".join(map(str, here["cores"]["numbers"]))
    kind = f"a virtual machine with {machine['core_count']} cores" if machine["hypervisor"] else f"a machine with {machine['core_count']} cores"
    confidence = 100 * max(row["figure"]["interval"]["confidence"] for row in summary["results"])
    return (
        f"One node, two ranks, each pinned to a core of its own (cores {cores}) of {kind}, {machine['processor']}, Linux {machine['kernel']}. "
        f"Medians of {summary['rounds']} rounds in which all MPIs and transports took turns. The ratio is Weft under that MPI over the MPI's own "
        f"transport, with its {confidence:.0f} % interval: below 1 Weft is ahead in latency, above 1 in bandwidth. {len(summary['excluded'])} runs do not count, because the "
        f"machine's speed around them was another.\n\n{table(summary)}\n\n"
        "![Latency and bandwidth by message size, Weft and each MPI's own transport](docs/figures/one-node.svg)\n\n"
        "Again on another machine: `make readme`."
    )


def parts():
    whole = README.read_text()
    if whole.count(BEGIN) != 1 or whole.count(END) != 1:
        sys.exit(f"readme-results.py: {README} must have each of these lines once: {BEGIN} and {END}")
    before, rest = whole.split(BEGIN)
    inside, after = rest.split(END)
    return before, inside, after


def main(argument):
    before, inside, after = parts()
    if argument == "--check":
        sys.exit(0 if "| ratio |" in inside else "readme-results.py: there is no table between the marks of README.md")
    folder = pathlib.Path(argument)
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError) as reason:
        sys.exit(f"readme-results.py: {folder / 'summary.json'} cannot be read: {reason}. `weft bench compare --out {folder}` writes it")
    README.write_text(before + BEGIN + "\n" + text(summary) + "\n" + END + after)
    shutil.copyfile(folder / "compare.svg", ROOT / "docs/figures/one-node.svg")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

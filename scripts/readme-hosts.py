#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the tables of a message between two hosts, in README.md and in docs/between-nodes.md, from
docs/figures/between-hosts.json. `make readme-hosts` calls it.

    scripts/readme-hosts.py FOLDER    takes the figures from what `weft bench compare --testbed
                                      direct,mtu=1500 --testbed direct,mtu=9000 --benchmarks latency
                                      --out FOLDER` left, and writes the tables
    scripts/readme-hosts.py           writes the tables from the figures that are there
    scripts/readme-hosts.py --check   whether the tables say what the figures say

Nothing is left out: where Weft is behind, the tables say so."""

import math
import pathlib
import re
import sys

from readme_tables import (Tables, figures_with, filled, median_us, ratio_of, rests_on, size_name,
                           summary_of, words_of)

NAME = "readme-hosts.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures/between-hosts.json"
BEGIN = "<!-- between hosts: written by scripts/readme-hosts.py -->"
END = "<!-- end of between hosts -->"
SIZES = [8, 1024, 8192, 16384, 65536, 262144, 1048576]
MTUS = (1500, 9000)


def digits(value):
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def mtu_of(testbed):
    """That of one cable without a limit; None of another network."""
    words = (testbed or "").split(",")
    known = re.search(r"mtu=(\d+)", testbed or "")
    return int(known[1]) if words[0] == "direct" and known and "rate=" not in testbed else None


def row_of(result):
    """What is kept of one figure: Weft's time, and what it is of the same MPI's TCP."""
    return {
        "mpi": result["mpi"], "over": result["baseline"], "mtu": mtu_of(result["testbed"]),
        "size_bytes": result["size_bytes"], "weft_us": median_us(result, "figure"),
        "tcp_us": median_us(result, "baseline"), **ratio_of(result),
    }


def is_wanted(result):
    return (result["benchmark"] == "latency" and result["transport"] == "weft"
            and result["ratio_to_native"] is not None and result["size_bytes"] in SIZES
            and mtu_of(result["testbed"]) in MTUS)


def figures_of(summary):
    rows = [row_of(result) for result in summary["results"] if is_wanted(result)]
    found = {(row["mtu"], row["size_bytes"]) for row in rows}
    missing = [f"{size} B at an MTU of {mtu}" for mtu in MTUS for size in SIZES
               if (mtu, size) not in found]
    if missing:
        sys.exit(f"{NAME}: nothing was measured over Weft and over TCP for "
                 + ", ".join(missing))
    return figures_with(summary, rows)


def span(values, show):
    return f"{show(min(values))} to {show(max(values))}"


def of(figures, mtu, size, field):
    rows = [row for row in figures["rows"] if (row["mtu"], row["size_bytes"]) == (mtu, size)]
    return [field(row) for row in rows]


def times(figures, mtu, size):
    return span(of(figures, mtu, size, lambda row: row["weft_us"]), digits) + " us"


def to_best(figures, mtu, size):
    """By MPI, Weft's time over the least time that any MPI's TCP takes."""
    least = min(of(figures, mtu, size, lambda row: row["tcp_us"]))
    return dict(of(figures, mtu, size, lambda row: (row["mpi"], row["weft_us"] / least)))


def to_same(figures, mtu, size):
    """By MPI, Weft's time over that of the same MPI's TCP."""
    return dict(of(figures, mtu, size, lambda row: (row["mpi"], row["ratio"]["value"])))


def cell(by_mpi):
    return f"{min(by_mpi.values()):.2f}-{max(by_mpi.values()):.2f}"


def means(figures, mtu, ratios_of):
    """By MPI, the geometric mean over the sizes."""
    sizes = [ratios_of(figures, mtu, size) for size in SIZES]
    return {mpi: math.exp(math.fsum(math.log(one[mpi]) for one in sizes) / len(sizes))
            for mpi in sizes[0]}


def how(figures):
    """How much the figures rest on, in some sentences."""
    count = len({row["mpi"] for row in figures["rows"]})
    return (f"Each cell has the smallest and the largest value of {count} MPIs. A ratio to the "
            f"same MPI's TCP is the median {rests_on(figures)} *Best TCP* is, at each size, the "
            f"TCP with the least median of those of all {count} MPIs.")


def short(figures):
    """README's: the ratios alone."""
    lines, sentences = [], []
    for mtu in MTUS:
        for name, ratios_of in ((f"MTU {mtu}", to_same), ("to best TCP", to_best)):
            cells = [cell(ratios_of(figures, mtu, size)) for size in SIZES]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        sentences.append(
            f"At an MTU of {mtu} the geometric mean over the sizes is "
            f"{cell(means(figures, mtu, to_same))} of the same MPI's TCP and "
            f"{cell(means(figures, mtu, to_best))} of the best TCP.")
    head = "| | " + " | ".join(map(size_name, SIZES)) + " |"
    return "\n".join([filled(" ".join([how(figures), *sentences])), "", head,
                      "|" + "---|" * (len(SIZES) + 1), *lines])


def full(figures):
    """docs/between-nodes.md: Weft's own times, too."""
    heads = [f"MTU {mtu}: over TCP | over the best TCP | Weft" for mtu in MTUS]
    lines = [filled(how(figures)), "", "| | " + " | ".join(heads) + " |",
             "|" + "---|" * (3 * len(MTUS) + 1)]
    for size in SIZES:
        words = [f"{cell(to_same(figures, mtu, size))} | {cell(to_best(figures, mtu, size))} | "
                 f"{times(figures, mtu, size)}" for mtu in MTUS]
        lines.append(f"| {size_name(size)} | " + " | ".join(words) + " |")
    words = [" | ".join(cell(means(figures, mtu, ratios_of)) for ratios_of in (to_same, to_best))
             + " |" for mtu in MTUS]
    lines.append("| geometric mean | " + " | ".join(words) + " |")
    return "\n".join(lines)


PAGES = ((ROOT / "README.md", short), (ROOT / "docs/between-nodes.md", full))


def main(words):
    Tables(NAME, FIGURES, BEGIN, END).write(
        words, lambda folder: figures_of(summary_of(folder, NAME)), PAGES,
        "`make readme-hosts` writes it")


if __name__ == "__main__":
    main(words_of(__doc__))

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


def ratios(figures, mtu, size):
    return span(of(figures, mtu, size, lambda row: row["ratio"]["value"]), lambda v: f"{v:.2f}")


def times(figures, mtu, size):
    return span(of(figures, mtu, size, lambda row: row["weft_us"]), digits) + " us"


def how(figures):
    """How much the figures rest on, in some sentences."""
    count = len({row["mpi"] for row in figures["rows"]})
    return (f"Each cell has the smallest and the largest value of {count} MPIs. A ratio is the "
            f"median {rests_on(figures)}")


def short(figures):
    """README's: the ratios alone."""
    head = "| | " + " | ".join(map(size_name, SIZES)) + " |"
    lines = [f"| MTU {mtu} | " + " | ".join(
        ratios(figures, mtu, size).replace(" to ", "-") for size in SIZES) + " |" for mtu in MTUS]
    return "\n".join([filled(how(figures)), "", head, "|" + "---|" * (len(SIZES) + 1), *lines])


def full(figures):
    """docs/between-nodes.md: Weft's own times, too."""
    cells = [f"MTU {mtu}: over TCP | Weft" for mtu in MTUS]
    lines = [filled(how(figures)), "", "| | " + " | ".join(cells) + " |",
             "|" + "---|" * (2 * len(MTUS) + 1)]
    for size in SIZES:
        words = [f"{ratios(figures, mtu, size)} | {times(figures, mtu, size)}" for mtu in MTUS]
        lines.append(f"| {size_name(size)} | " + " | ".join(words) + " |")
    return "\n".join(lines)


PAGES = ((ROOT / "README.md", short), (ROOT / "docs/between-nodes.md", full))


def main(words):
    Tables(NAME, FIGURES, BEGIN, END).write(
        words, lambda folder: figures_of(summary_of(folder, NAME)), PAGES,
        "`make readme-hosts` writes it")


if __name__ == "__main__":
    main(words_of(__doc__))

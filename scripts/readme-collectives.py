#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the tables of collectives inside a host, in README.md and in docs/collectives-results.md,
from docs/figures/collectives.json. `make readme-collectives` calls it.

    scripts/readme-collectives.py FOLDER    takes the figures from what `weft bench compare
                                            --transport weft,native --benchmarks barrier,bcast,...
                                            --out FOLDER` left, and writes the tables
    scripts/readme-collectives.py           writes the tables from the figures that are there
    scripts/readme-collectives.py --check   whether the tables say what the figures say

Nothing is left out: where Weft is behind, the tables say so."""

import math
import pathlib
import sys

from readme_tables import (Tables, figures_with, filled, median_us, ratio_of, rests_on, size_name,
                           summary_of, words_of)

NAME = "readme-collectives.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures/collectives.json"
BEGIN = "<!-- collectives: written by scripts/readme-collectives.py -->"
END = "<!-- end of collectives -->"
MPIS = {"openmpi": "Open MPI 5", "debian-openmpi": "Open MPI 4.1", "mpich": "MPICH",
        "intel": "Intel MPI"}
CALLS = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall")
LARGEST_BYTES = 1 << 20


def row_of(result):
    """What is kept of one figure: Weft's time, and what it is of the MPI's own."""
    return {
        "mpi": result["mpi"], "call": result["benchmark"], "rank_count": result["ranks"],
        "size_bytes": result["size_bytes"], "weft_us": median_us(result, "figure"),
        "native_us": median_us(result, "baseline"), **ratio_of(result),
    }


def is_wanted(result, core_count):
    """Only where each rank has a core: what ranks that share cores wait for is the scheduler."""
    size = result["size_bytes"]
    return (result["benchmark"] in CALLS and result["transport"] == "weft"
            and result["ranks"] <= core_count
            and result["mpi"] in MPIS and result["ratio_to_native"] is not None
            and not result["hosts"] and not result.get("testbed")
            and (result["benchmark"] == "barrier" or 8 <= size <= LARGEST_BYTES))


def figures_of(summary):
    core_count = summary["environment"]["machine"]["core_count"]
    rows = [row_of(result) for result in summary["results"] if is_wanted(result, core_count)]
    counts = sorted({row["rank_count"] for row in rows}) or [2]
    found = {(row["mpi"], row["rank_count"], row["call"]) for row in rows}
    missing = [f"{call} of {count} ranks under {MPIS[mpi]}" for mpi in MPIS for count in counts
               for call in CALLS if (mpi, count, call) not in found]
    if missing:
        sys.exit(f"{NAME}: nothing was measured over Weft and over the MPI's own transport for "
                 + ", ".join(missing))
    return figures_with(summary, rows)


def rows_of(figures, mpi, rank_count, call):
    return [row for row in figures["rows"]
            if (row["mpi"], row["rank_count"], row["call"]) == (mpi, rank_count, call)]


def mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def cell(figures, mpi, rank_count, call):
    """The geometric mean over the sizes, and the largest ratio."""
    values = [row["ratio"]["value"] for row in rows_of(figures, mpi, rank_count, call)]
    return f"{mean(values):.2f}" + (f" ({max(values):.2f})" if len(values) > 1 else "")


def rank_counts(figures):
    return sorted({row["rank_count"] for row in figures["rows"]})


def sizes(figures):
    return sorted({row["size_bytes"] for row in figures["rows"] if row["call"] != "barrier"})


def how(figures):
    """What a figure is, and how much it rests on."""
    return ("A ratio is Weft's time over the time of the MPI's own transport, the median "
            f"{rests_on(figures)}")


def short(figures):
    """README's: a row for each MPI and number of ranks."""
    lines = [filled(how(figures) + " Each cell has the geometric mean of the ratios at "
                    f"{len(sizes(figures))} sizes from {size_name(sizes(figures)[0])} to "
                    f"{size_name(sizes(figures)[-1])}, and in parentheses the largest of them."),
             "", "| Weft / native | ranks | " + " | ".join(CALLS) + " |",
             "|" + "---|" * (len(CALLS) + 2)]
    for mpi, name in MPIS.items():
        for count in rank_counts(figures):
            words = " | ".join(cell(figures, mpi, count, call) for call in CALLS)
            lines.append(f"| {name} | {count} | {words} |")
    return "\n".join(lines)


def one(figures, mpi, rank_count, call, size):
    """A ratio with its interval, and Weft's time."""
    for row in rows_of(figures, mpi, rank_count, call):
        if row["size_bytes"] == size or call == "barrier":
            ratio = row["ratio"]
            return (f"{ratio['value']:.2f} ({ratio['low']:.2f}-{ratio['high']:.2f}), "
                    f"{row['weft_us']:.3g} us")
    return ""


def full(figures):
    """docs/collectives-results.md: each size, with intervals and Weft's times."""
    lines = [filled(how(figures))]
    for mpi, name in MPIS.items():
        for count in rank_counts(figures):
            lines += ["", f"### {name}, {count} ranks", "",
                      "Barrier: " + one(figures, mpi, count, "barrier", 0) + ".", "",
                      "| | " + " | ".join(CALLS[1:]) + " |", "|" + "---|" * len(CALLS)]
            lines += [f"| {size_name(size)} | " + " | ".join(
                one(figures, mpi, count, call, size) for call in CALLS[1:]) + " |"
                for size in sizes(figures)]
    return "\n".join(lines)


PAGES = ((ROOT / "README.md", short), (ROOT / "docs/collectives-results.md", full))


def main(words):
    Tables(NAME, FIGURES, BEGIN, END).write(
        words, lambda folder: figures_of(summary_of(folder, NAME)), PAGES,
        "`make readme-collectives` writes it")


if __name__ == "__main__":
    main(words_of(__doc__))

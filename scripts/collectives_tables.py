# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tables of collectives inside a host, from a file of figures that is made of a comparison. Used by
readme-collectives.py and readme-shared-cores.py, which say which ranks and calls they want."""

import math
import sys

from readme_tables import (digits, figures_with, filled, median_us, ratio_of, rests_on,
                           size_name)

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


def is_wanted(result):
    """Whether it is of a call inside a host, and of the sizes that the tables have."""
    size = result["size_bytes"]
    return (result["transport"] == "weft"
            and result["mpi"] in MPIS and result["ratio_to_native"] is not None
            and not result["hosts"] and not result.get("testbed")
            and (result["benchmark"] == "barrier" or 8 <= size <= LARGEST_BYTES))


def figures_of(summary, calls, has_ranks, script, may_lack=()):
    """Those of these calls; `has_ranks` says of which numbers of ranks, given that of cores, and
    `may_lack` which MPI, number of ranks and call may have none."""
    core_count = summary["environment"]["machine"]["core_count"]
    rows = [row_of(result) for result in summary["results"]
            if is_wanted(result) and result["benchmark"] in calls
            and has_ranks(result["ranks"], core_count)]
    counts = sorted({row["rank_count"] for row in rows}) or [2]
    found = {(row["mpi"], row["rank_count"], row["call"]) for row in rows}
    missing = [f"{call} of {count} ranks under {MPIS[mpi]}" for mpi in MPIS for count in counts
               for call in calls if (mpi, count, call) not in found.union(may_lack)]
    if missing:
        sys.exit(f"{script}: nothing was measured over Weft and over the MPI's own transport for "
                 + ", ".join(missing))
    return figures_with(summary, rows)


def calls_of(figures):
    """In the order of the tables."""
    found = {row["call"] for row in figures["rows"]}
    return [call for call in (*CALLS, "alltoallw") if call in found]


def rows_of(figures, mpi, rank_count, call):
    return [row for row in figures["rows"]
            if (row["mpi"], row["rank_count"], row["call"]) == (mpi, rank_count, call)]


def mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def cell(figures, mpi, rank_count, call):
    """The geometric mean over the sizes, and the largest ratio."""
    values = [row["ratio"]["value"] for row in rows_of(figures, mpi, rank_count, call)]
    if not values:
        return "none"
    return digits(mean(values)) + (f" ({digits(max(values))})" if len(values) > 1 else "")


def rank_counts(figures):
    return sorted({row["rank_count"] for row in figures["rows"]})


def sizes(figures):
    return sorted({row["size_bytes"] for row in figures["rows"] if row["call"] != "barrier"})


def how(figures):
    """What a figure is, and how much it rests on."""
    return ("A ratio is Weft's time over the time of the MPI's own transport, the median "
            f"{rests_on(figures)}")


def short(figures):
    """A row for each MPI and number of ranks."""
    calls = calls_of(figures)
    lines = [filled(how(figures) + " Each cell has the geometric mean of the ratios at "
                    f"{len(sizes(figures))} sizes from {size_name(sizes(figures)[0])} to "
                    f"{size_name(sizes(figures)[-1])}, and in parentheses the largest of them."),
             "", "| Weft / native | ranks | " + " | ".join(calls) + " |",
             "|" + "---|" * (len(calls) + 2)]
    for mpi, name in MPIS.items():
        for count in rank_counts(figures):
            words = " | ".join(cell(figures, mpi, count, call) for call in calls)
            lines.append(f"| {name} | {count} | {words} |")
    return "\n".join(lines)


def one(figures, mpi, rank_count, call, size):
    """A ratio with its interval, and Weft's time."""
    for row in rows_of(figures, mpi, rank_count, call):
        if row["size_bytes"] == size or call == "barrier":
            ratio = row["ratio"]
            value, low, high = (digits(ratio[name]) for name in ("value", "low", "high"))
            interval = f" ({low}-{high})" if ratio["confidence"] > 0 else ""
            return f"{value}{interval}, {row['weft_us']:.3g} us"
    return "none"


def full(figures):
    """Each size, with intervals and Weft's times."""
    return filled(how(figures)) + "\n" + by_size(figures)


def by_size(figures):
    """A table for each MPI and number of ranks."""
    lines, calls = [], [call for call in calls_of(figures) if call != "barrier"]
    for mpi, name in MPIS.items():
        for count in rank_counts(figures):
            lines += ["", f"### {name}, {count} ranks", "",
                      "Barrier: " + one(figures, mpi, count, "barrier", 0) + ".", "",
                      "| | " + " | ".join(calls) + " |", "|" + "---|" * (len(calls) + 1)]
            lines += [f"| {size_name(size)} | " + " | ".join(
                one(figures, mpi, count, call, size) for call in calls) + " |"
                for size in sizes(figures)]
    return "\n".join(lines)

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


def mean_and_largest(values):
    """The geometric mean of ratios at several sizes, and the largest of them."""
    if not values:
        return "none"
    return digits(mean(values)) + (f" ({digits(max(values))})" if len(values) > 1 else "")


def cell(figures, mpi, rank_count, call):
    return mean_and_largest([row["ratio"]["value"]
                             for row in rows_of(figures, mpi, rank_count, call)])


def cell_of_means(figures, mpi, rank_count, call):
    """The same of the ratios of the runs' means."""
    return mean_and_largest([row["of_means"] for row in rows_of(figures, mpi, rank_count, call)])


def best_to_best(figures, rank_count, call):
    """At each size, the least of the MPIs' times over Weft over the least of their own times."""
    rows = [row for row in figures["rows"]
            if (row["rank_count"], row["call"]) == (rank_count, call)]
    return [min(row["weft_us"] for row in alike) / min(row["native_us"] for row in alike)
            for alike in ([row for row in rows if row["size_bytes"] == size]
                          for size in sorted({row["size_bytes"] for row in rows}))]


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
    """Means over the sizes, then each size, with intervals and Weft's times."""
    return "\n".join([short(figures), means_and_best(figures), by_size(figures)])


def means_and_best(figures):
    """The table of `short` of the runs' means, and the best of the MPIs beside each other."""
    calls, lines = calls_of(figures), []
    for mpi, name in MPIS.items():
        for count in rank_counts(figures):
            words = " | ".join(cell_of_means(figures, mpi, count, call) for call in calls)
            lines.append(f"| {name}, means | {count} | {words} |")
    for count in rank_counts(figures):
        cells = [mean_and_largest(best_to_best(figures, count, call)) for call in calls]
        lines.append(f"| best / best | {count} | " + " | ".join(cells) + " |")
    words = ("In this table the rows *means* have the same of the runs' means, which include rare "
             "long calls. *Best / best* is, at each size, the shortest time that a call takes over "
             "Weft under any MPI, over the shortest that it takes over any MPI's own transport, "
             "both medians. The times are kept to 0.01 us, so a ratio of times of 0.1 us may be "
             "wrong by 10 %.")
    head = "| Weft / native | ranks | " + " | ".join(calls) + " |"
    return "\n".join(["", filled(words), "", head, "|" + "---|" * (len(calls) + 2), *lines])


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

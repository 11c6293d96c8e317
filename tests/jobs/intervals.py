#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The figures of against-sbatch.sh: medians with their 95 % intervals.

intervals.py FILE

Each line of FILE is a kind and its values. The first line of each kind is left out. An interval is
that of order statistics: the two values of a sorted list between which the median lies with at
least 95 %, whatever the distribution (Conover, Practical Nonparametric Statistics, 3.2). With fewer
than 6 values there is none.
"""

import math
import statistics
import sys

COLUMNS = ("submit to MPI_Init, s", "8 B, us", "1 MiB, MB/s")


def interval(values):
    """The k-th smallest and the k-th greatest value, with the greatest k that keeps 95 %."""
    values = sorted(values)
    count, outside, k = len(values), 0.0, 0
    while k < count // 2:
        outside += 2 * math.comb(count, k) / 2**count
        if outside > 0.05:
            break
        k += 1
    return (values[k - 1], values[count - k]) if k else (-math.inf, math.inf)


def in_words(values):
    low, high = interval(values)
    return f"{statistics.median(values):.4g} ({low:.4g} to {high:.4g})"


def main():
    runs = {}
    for line in open(sys.argv[1]):
        kind, *values = line.split()
        runs.setdefault(kind, []).append([float(value) for value in values])
    runs = {kind: rows[1:] for kind, rows in runs.items()}
    others = [kind for kind in runs if kind != "weft"]
    print(f"{len(runs['weft'])} rounds; medians (95 % intervals of the medians)")
    for column, name in enumerate(COLUMNS):
        of = {kind: [row[column] for row in rows] for kind, rows in runs.items()}
        for kind, values in of.items():
            print(f"{name}, {kind}: {in_words(values)}")
        for kind in others:
            ratios = [ours / theirs for ours, theirs in zip(of["weft"], of[kind])]
            print(f"{name}, weft over {kind}, in pairs: {in_words(ratios)}")
        if column == 0 and "hand" in of:
            above = [ours - 1.05 * hand for ours, hand in zip(of["weft"], of["hand"])]
            print(f"{name}, weft less 1.05 of hand, in pairs: {in_words(above)}")


main()

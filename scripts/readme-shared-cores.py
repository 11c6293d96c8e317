#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the tables of collectives of ranks that share cores, in docs/collectives-results.md, from
docs/figures/collectives-shared-cores.json. `make readme-shared-cores` calls it.

    scripts/readme-shared-cores.py FOLDER    takes the figures from what `weft bench compare
                                             --transport weft,native --benchmarks barrier,bcast,...
                                             -n 4,8 --out FOLDER` left, and writes the tables
    scripts/readme-shared-cores.py           writes the tables from the figures that are there
    scripts/readme-shared-cores.py --check   whether the tables say what the figures say

Nothing is left out: where Weft is behind, the tables say so."""

import pathlib

import collectives_tables
from collectives_tables import figures_of, full
from readme_tables import Tables, summary_of, words_of

NAME = "readme-shared-cores.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures/collectives-shared-cores.json"
BEGIN = "<!-- shared cores: written by scripts/readme-shared-cores.py -->"
END = "<!-- end of shared cores -->"
CALLS = (*collectives_tables.CALLS, "alltoallw")


# MPICH's own takes longer than the 60 seconds that a run may.
MAY_LACK = {("mpich", 8, "allreduce")}
PAGES = ((ROOT / "docs/collectives-results.md", full),)


def measured(folder):
    """Only where ranks are more than cores."""
    return figures_of(
        summary_of(folder, NAME), CALLS, lambda ranks, cores: ranks > cores, NAME, MAY_LACK)


def main(words):
    Tables(NAME, FIGURES, BEGIN, END).write(
        words, measured, PAGES, "`make readme-shared-cores` writes it")


if __name__ == "__main__":
    main(words_of(__doc__))

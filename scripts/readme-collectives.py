#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the tables of collectives inside a host, in README.md and in docs/collectives-results.md,
from docs/figures/collectives.json. `make readme-collectives` calls it.

    scripts/readme-collectives.py FOLDER    takes the figures from what `weft bench compare
                                            --transport weft,native --benchmarks barrier,bcast,...
                                            --out FOLDER` left, and writes the tables
    scripts/readme-collectives.py           writes the tables from the figures that are there
    scripts/readme-collectives.py --check   whether the tables say what the figures say

Each rank has a core; readme-shared-cores.py writes the tables of ranks that share cores. Nothing is
left out: where Weft is behind, the tables say so."""

import pathlib

from collectives_tables import CALLS, figures_of, full, short
from readme_tables import Tables, summary_of, words_of

NAME = "readme-collectives.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures/collectives.json"
BEGIN = "<!-- collectives: written by scripts/readme-collectives.py -->"
END = "<!-- end of collectives -->"
PAGES = ((ROOT / "README.md", short), (ROOT / "docs/collectives-results.md", full))


def measured(folder):
    """Only where each rank has a core: what ranks that share cores wait for is the scheduler."""
    return figures_of(summary_of(folder, NAME), CALLS, lambda ranks, cores: ranks <= cores, NAME)


def main(words):
    Tables(NAME, FIGURES, BEGIN, END).write(
        words, measured, PAGES, "`make readme-collectives` writes it")


if __name__ == "__main__":
    main(words_of(__doc__))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Holds the runs of a comparison against each other: transports under one MPI may differ in what
carries the messages, and in nothing else. Reads what `weft bench compare --dry-run --json` printed
from stdin; every difference that is not permitted is a line, and the exit code is then 1.
docs/report.md names every difference that is. Usage: alike.py < MATRIX"""

import collections
import json
import pathlib
import shlex
import sys

# What chooses the transport, for each family of MPIs.
CHOICE = {
    "openmpi": {"OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_btl", "OMPI_MCA_osc",
                "OMPI_MCA_mtl_ofi_provider_include", "OMPI_MCA_opal_common_ofi_provider_include"},
    "mpich": {"MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL", "UCX_TLS"},
    "intel": {"I_MPI_FABRICS", "I_MPI_OFI_PROVIDER", "I_MPI_OFI_LIBRARY_INTERNAL"},
}
PROVIDER = {"FI_PROVIDER", "FI_PROVIDER_PATH"}
# Weft's libraries for ranks: the heap, a part of how Weft carries long messages, and collectives.
LIBRARIES = {"WEFT_HEAP", "WEFT_COLLECTIVES", "LD_PRELOAD"}
# Both have rules for collectives, or neither; which file it is may differ.
RULES = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
USES_RULES = "OMPI_MCA_coll_tuned_use_dynamic_rules"
# Words of `weft run` that may differ.
WORDS = {"--transport", "--plain", "--require-weft"}


class Launch:
    """A printed line: variables, and the words of the launcher."""

    def __init__(self, line):
        words = shlex.split(line)
        assert words[0] == "env", line
        self.variables, self.words = {}, []
        words = words[1:]
        while words:
            word = words.pop(0)
            if word == "-u":
                self.variables[words.pop(0)] = None
            elif not self.words and "=" in word:
                name, value = word.split("=", 1)
                self.variables[name] = value
            elif word == "/usr/bin/env":
                # Before the program: variables of the ranks alone.
                while "=" in words[0]:
                    name, value = words.pop(0).split("=", 1)
                    self.variables[name] = value
            else:
                self.words.append(word)

    def other(self, base):
        """Names of variables with another value."""
        names = self.variables.keys() | base.variables.keys()
        return {name for name in names if self.variables.get(name) != base.variables.get(name)}


def run_words(command):
    """What `weft run` is told, without what may differ."""
    words = shlex.split(command)
    kept = []
    while words:
        word = words.pop(0)
        if word in WORDS:
            if word == "--transport":
                words.pop(0)
            continue
        kept.append(word)
    return kept


def family(mpi):
    return next(name for name in CHOICE if name in mpi)


def compare(case, ours, base):
    """Differences between two runs that should differ in their transport alone."""
    permitted = CHOICE[family(case[0])] | PROVIDER | LIBRARIES
    one, two = Launch(ours["launch"]), Launch(base["launch"])
    other = one.other(two)
    if RULES in one.variables and RULES in two.variables:
        other.discard(RULES)
    complaints = [f"{name}: {one.variables.get(name)} and {two.variables.get(name)}"
                  for name in sorted(other - permitted)]
    if one.words != two.words:
        complaints.append(f"words of the launcher: {one.words} and {two.words}")
    if run_words(ours["command"]) != run_words(base["command"]):
        complaints.append(f"words of weft run: {ours['command']} and {base['command']}")
    return complaints


def compare_plain(plain, full):
    """Differences between plain and full: the libraries and the rules, and nothing else."""
    one, two = Launch(plain["launch"]), Launch(full["launch"])
    permitted = LIBRARIES | {RULES, USES_RULES}
    complaints = [f"{name} differs" for name in sorted(one.other(two) - permitted)]
    ours = (*LIBRARIES, RULES)
    return complaints + [f"{name} is set" for name in ours if one.variables.get(name)]


def main():
    cases = collections.defaultdict(dict)
    for run in json.load(sys.stdin)["commands"]:
        case = (run["mpi"], run["benchmark"], run["ranks"], run["hosts"])
        cases[case][run["transport"]] = run
    complaints, compared = [], 0
    for case, runs in cases.items():
        for transport, run in runs.items():
            carrier, _, variant = transport.partition("+")
            pairs = []
            if carrier != "native":
                alike = runs.get("native+" + variant) if variant else None
                # A plain native run is left out where it is the same as the full one.
                pairs.append(("native", alike or runs.get("native"), compare))
            if variant == "plain":
                pairs.append((carrier, runs.get(carrier), None))
            for name, base, how in pairs:
                if base is None:
                    continue
                found = how(case, run, base) if how else compare_plain(run, base)
                complaints += [f"{case}: {transport} and {name}: {one}" for one in found]
                compared += 1
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/report.md"
    named = set().union(*CHOICE.values()) | PROVIDER | LIBRARIES | {RULES}
    text = page.read_text()
    complaints += [f"docs/report.md does not name {name}" for name in sorted(named)
                   if name not in text]
    if compared < 2:
        complaints.append(f"only {compared} pairs of runs to compare")
    print("\n".join(complaints) or f"{compared} pairs differ in their transport alone")
    sys.exit(1 if complaints else 0)


main()

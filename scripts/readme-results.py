#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the results of a comparison: the short table between README's two marks, docs/results.md
and docs/figures/one-node.svg. `make readme` calls it.

    scripts/readme-results.py FOLDER    FOLDER is what `weft bench compare --benchmarks latency,bw
                                        --out FOLDER` left
    scripts/readme-results.py --print short|full FOLDER    prints README's section or
                                                           docs/results.md, and writes nothing
    scripts/readme-results.py --check   whether README.md has both marks and a table between them

Nothing is left out: where Weft is behind, the table says so."""

import pathlib
import shutil
import sys

from readme_tables import filled, parts_of, size_name, summary_of

NAME = "readme-results.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "docs/results.md"
FIGURE = ROOT / "docs/figures/one-node.svg"
BEGIN = "<!-- results: written by scripts/readme-results.py -->"
END = "<!-- end of results -->"
SIZES = [8, 512, 4096, 32768, 262144, 2097152]
NAMES = {"openmpi": "Open MPI 5", "mpich": "MPICH", "intel": "Intel MPI",
         "debian-openmpi": "Open MPI 4.1"}
BENCHMARKS = (("latency", "Latency, us", "smaller is better, and below 1 Weft is ahead"),
              ("bw", "Bandwidth, MB/s", "greater is better, and above 1 Weft is ahead"))
WEFT, PLAIN, NATIVE = "weft", "weft+plain", "native"


def digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percent(confidence):
    return f"{100 * confidence:.1f} %"


def cells(results, benchmark, mpi, transport):
    """The results of two ranks on this machine, by size."""
    key = (benchmark, mpi, transport)
    return {row["size_bytes"]: row for row in results
            if (row["benchmark"], row["mpi"], row["transport"]) == key
            and row["ranks"] == 2 and not row["hosts"]}


def middle(side):
    """A median, and the mean behind it."""
    return f"{digits(side['median'])} ({digits(side['mean'])})"


HEAD = "| size | started by | Weft | native | Weft / native | confidence | means |"
RULE = "|---:|---|---:|---:|---:|---:|---:|"


def line(size, started_by, row):
    """One configuration of Weft over its baseline at one size."""
    ratio = row["ratio_to_native"]
    of = ratio["of_medians"]
    words = [size, started_by, middle(ratio["figure"]), middle(ratio["baseline"]),
             f"**{of['value']:.2f}** [{of['low']:.2f} to {of['high']:.2f}]",
             percent(of["confidence"]), f"{ratio['of_means']['value']:.2f}"]
    return "| " + " | ".join(words) + " |"


def rows(ours, plain, sizes):
    """For each size Weft under `weft run`, and under a plain mpirun where that was measured."""
    lines = []
    for size in sizes:
        lines.append(line(size_name(size), "`weft run`", ours[size]))
        if size in plain:
            lines.append(line("", "`mpirun`", plain[size]))
    return lines


def tables(summary):
    text = []
    results = [row for row in summary["results"] if row["ratio_to_native"]]
    for benchmark, title, good in BENCHMARKS:
        for mpi, name in NAMES.items():
            ours, plain = (cells(results, benchmark, mpi, one) for one in (WEFT, PLAIN))
            sizes = [size for size in SIZES if size in ours]
            if sizes:
                text += [f"**{title}, {name}**: {good}", "", HEAD, RULE,
                         *rows(ours, plain, sizes), ""]
    if not text:
        sys.exit("readme-results.py: nothing was measured over Weft and over the native transport")
    return "\n".join(text).rstrip()


def excluded(summary):
    count, runs = len(summary["excluded"]), summary["run_count"]
    if count == 0:
        return f"0 of {runs} runs were excluded: the machine kept its speed."
    were = "was" if count == 1 else "were"
    return f"{count} of {runs} runs {were} excluded: the machine's speed changed during them."


def machine_and_rounds(summary):
    """Where and how it was measured, in a sentence each."""
    here = summary["environment"]
    machine = here["machine"]
    cores = " and ".join(map(str, here["cores"]["numbers"]))
    kind = "a virtual machine" if machine["hypervisor"] else "a machine"
    return (
        f"Two ranks on one node, each bound to a core of its own (cores {cores}), on {kind} with "
        f"{machine['core_count']} cores ({machine['processor']}, Linux {machine['kernel']}). "
        f"In {summary['rounds']} rounds all MPIs and transports took turns. {excluded(summary)}")


def short_row(title, row_of_size):
    """One configuration of Weft over its baseline, at every size."""
    found = []
    for size in SIZES:
        ratio = row_of_size[size]["ratio_to_native"] if size in row_of_size else None
        found.append(f"{ratio['of_medians']['value']:.2f} ({ratio['of_means']['value']:.2f})"
                     if ratio else "")
    return f"| {title} | " + " | ".join(found) + " |"


def short_table(summary):
    """README's: ratios only, a row for each MPI."""
    lines = ["| Weft / native | " + " | ".join(map(size_name, SIZES)) + " |",
             "|---|" + "---:|" * len(SIZES)]
    results = [row for row in summary["results"] if row["ratio_to_native"]]
    for benchmark, title, _ in BENCHMARKS:
        for mpi, name in NAMES.items():
            ours, plain = (cells(results, benchmark, mpi, one) for one in (WEFT, PLAIN))
            if ours:
                lines.append(short_row(f"**{title.split(',')[0].lower()}**, {name}", ours))
            if plain:
                lines.append(short_row("the same, started by `mpirun`", plain))
    return "\n".join(lines)


def short(summary):
    """README's section."""
    paragraphs = [
        machine_and_rounds(summary),
        "*Native* is the MPI's own transport. Each figure is the median of the ratios round "
        "by round, with the ratio of the means in parentheses. Weft is ahead where latency is "
        "below 1 and bandwidth above 1. In rows with `mpirun` the MPI's own launcher started "
        "the ranks; then they have no shared heap, and the kernel copies long messages.",
    ]
    prose = "\n\n".join(map(filled, paragraphs))
    return (f"{prose}\n\n{short_table(summary)}\n\n"
            "![Latency and bandwidth by message size](docs/figures/one-node.svg)\n\n"
            "Microseconds, MB/s, and the interval and confidence of each ratio are in\n"
            "[docs/results.md](docs/results.md). To measure on another machine: `make readme`.")


def full(summary):
    """docs/results.md."""
    paragraphs = [
        machine_and_rounds(summary),
        "*Native* is the MPI's own transport, the baseline. Each side has two figures, both "
        "medians over the rounds. The first takes each run's middle block of iterations, "
        "which hides rare events. The second, in parentheses, takes each run's mean over all "
        "iterations.",
        "*Weft / native* is the median of the ratios round by round. The true ratio lies in "
        "the interval in brackets; *confidence* says with what probability. *Means* is the "
        "same ratio of the means. Both figures of a row are from the rounds of its ratio.",
        "In rows with `mpirun` the MPI's own launcher started the ranks, with only the "
        "settings that make the MPI use Weft (`weft run --plain`). Then the ranks have no "
        "shared heap, and the kernel copies long messages.",
        "How it is measured: [report.md](report.md). `make readme` writes this page.",
    ]
    prose = "\n\n".join(map(filled, paragraphs))
    return (f"# Results inside a node\n\n{prose}\n\n"
            "![Latency and bandwidth by message size](figures/one-node.svg)\n\n"
            f"The bands in the figure are P10 to P90 over the rounds.\n\n{tables(summary)}\n")


def main(words):
    if words == ["--check"]:
        _, inside, _ = parts_of(README, BEGIN, END, NAME)
        missing = f"{NAME}: there is no table between README's marks"
        sys.exit(0 if "|---" in inside else missing)
    folder = pathlib.Path(words[-1])
    summary = summary_of(folder, NAME)
    if words[0] == "--print":
        print({"short": short, "full": full}[words[1]](summary))
        return
    before, _, after = parts_of(README, BEGIN, END, NAME)
    README.write_text(before + BEGIN + "\n" + short(summary) + "\n" + END + after)
    RESULTS.write_text(full(summary))
    shutil.copyfile(folder / "compare.svg", FIGURE)


def understood(words):
    printing = len(words) == 3 and words[0] == "--print" and words[1] in ("short", "full")
    return printing or (len(words) == 1 and words[0] != "--print")


if __name__ == "__main__":
    if not understood(sys.argv[1:]):
        sys.exit(__doc__)
    main(sys.argv[1:])

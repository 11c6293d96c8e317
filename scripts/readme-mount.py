#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes the tables of the bucket mount and its peers, in README.md and in docs/mount.md, from
docs/figures/bucket-mount.json.

    scripts/readme-mount.py FOLDER    takes the figures from what `weft bench mount --out FOLDER`
                                      left on this machine, and writes the tables
    scripts/readme-mount.py --add=FOLDER    the same of the loads that were measured there; the
                                      figures of all others stay
    scripts/readme-mount.py           writes the tables from the figures that are there
    scripts/readme-mount.py --check   whether the tables say what the figures say

Nothing is left out: where Weft is behind, the tables say so."""

import os
import pathlib
import platform
import re
import statistics
import sys

from readme_tables import Tables, filled, read, words_of

NAME = "readme-mount.py"
ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures/bucket-mount.json"
BEGIN = "<!-- bucket mount: written by scripts/readme-mount.py -->"
END = "<!-- end of bucket mount -->"
PEERS = {"mountpoint": "Mountpoint", "s3fs": "s3fs", "rclone": "rclone", "local": "the local disk"}
# These run a load of their own in the place of others.
NAMES_FOR_A_MINUTE = {"weft-ttl": "weft", "mountpoint-ttl": "mountpoint"}
ASYNC = "-async"
# The unit of a load, and what it does.
LOADS = {
    "list": ("s", "`ls -l` of 100,000 keys of one folder"),
    "list-again": ("s", "the same again, while all names are known"),
    "find": ("s", "`find` over 16,000 files in 16 folders"),
    "stream": ("MB/s", "reading 1 GiB in order"),
    "write": ("MB/s", "writing 512 MiB in order"),
    "random": ("MB/s", "16 readers of 128 KiB anywhere in 4 GiB"),
    "cached": ("MB/s", "4 readers of 128 KiB that were read before"),
    "page-cache": ("MB/s", "the same, and the kernel still has the bytes"),
    "files-2": ("MB/s", "2 readers of a file of 128 MiB each"),
    "files-8": ("MB/s", "8 readers of a file of 128 MiB each"),
    "fio-read": ("MB/s", "fio reads 1 GiB in order"),
    "fio-write": ("MB/s", "fio writes 512 MiB in order, then fsync"),
    "ior-write-2": ("MB/s", "IOR: 2 ranks write a file of 128 MiB each"),
    "ior-write-8": ("MB/s", "IOR: 8 ranks write a file of 128 MiB each"),
    "ior-read-2": ("MB/s", "IOR: 2 ranks read a file of 128 MiB each"),
    "ior-read-8": ("MB/s", "IOR: 8 ranks read a file of 128 MiB each"),
    "unpack-100": ("s", "`tar` unpacks 100 files of 4 KiB"),
    "unpack-100-async": ("s", "the same with `--publish async`"),
    "unpack": ("s", "`tar` unpacks 500 files of 4 KiB"),
    "unpack-async": ("s", "the same with `--publish async`"),
    "unpack-10000-async": ("s", "10,000 files with `--publish async`"),
}


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return re.search(r"model name\s*:\s*(.*)", text)[1].strip()


def place_of(run):
    """The row of a run, and the program whose column it belongs to."""
    load, peer = run["load"], run["peer"]
    if peer == "weft" + ASYNC:
        return load + ASYNC, "weft"
    return load, NAMES_FOR_A_MINUTE.get(peer, peer)


def figures_of(folder, are_all=True):
    runs = read(folder / "runs.json", NAME, f"`weft bench mount --out {folder}` writes it")
    failed = [run for run in runs if run["failure"] or run["figure"] is None]
    if failed:
        sys.exit(f"{NAME}: {len(failed)} of {len(runs)} runs failed; the first: {failed[0]}")
    rows = {}
    for run in sorted(runs, key=lambda run: run["round"]):
        load, peer = place_of(run)
        row = rows.setdefault((load, peer), {
            "load": load, "peer": peer, "figures": [], "cut_count": 0})
        row["figures"].append(round(run["figure"], 3))
        row["cut_count"] += run["is_cut"]
    missing = [load for load in LOADS if (load, "weft") not in rows]
    if missing and are_all:
        sys.exit(f"{NAME}: Weft was not measured with {', '.join(missing)}")
    return {"processor": processor(), "core_count": os.cpu_count(),
            "kernel": platform.release(), "rows": list(rows.values())}


def with_more(figures, more):
    """Those of a part of the loads take the place of the same loads' earlier ones."""
    for name in ("processor", "core_count"):
        if figures[name] != more[name]:
            sys.exit(f"{NAME}: the figures are of another machine ({figures[name]}, and here "
                     f"{more[name]}); measure all loads")
    loads = {row["load"] for row in more["rows"]}
    kept = [row for row in figures["rows"] if row["load"] not in loads]
    return {**figures, "rows": kept + more["rows"]}


def peers_of(figures):
    """Those that were measured, in the order of the columns."""
    measured = {row["peer"] for row in figures["rows"]}
    return [peer for peer in PEERS if peer in measured]


def row_of(figures, load, peer):
    # The others have no such way of publishing: theirs is the load itself.
    load = load if peer == "weft" else load.removesuffix(ASYNC)
    return next((row for row in figures["rows"] if (row["load"], row["peer"]) == (load, peer)),
                None)


def short_number(value):
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def times_as_fast(figures, load, peer):
    """In how many times the peer's speed Weft does the load, round by round."""
    ours, theirs = row_of(figures, load, "weft"), row_of(figures, load, peer)
    pairs = zip(ours["figures"], theirs["figures"])
    speeds = [theirs / ours if LOADS[load][0] == "s" else ours / theirs for ours, theirs in pairs]
    # A peer that did not finish is slower than its figure says.
    least = "over " if theirs["cut_count"] else ""
    return least, speeds


def ratio_cell(figures, load, peer, spread):
    if row_of(figures, load, peer) is None:
        return "-"
    least, speeds = times_as_fast(figures, load, peer)
    middle = f"{least}{short_number(statistics.median(speeds))}"
    return middle if not spread else (
        f"{middle} ({short_number(min(speeds))} to {short_number(max(speeds))})")


def figure_cell(figures, load, peer):
    row = row_of(figures, load, peer)
    if row is None:
        return "-"
    unit, values = LOADS[load][0], row["figures"]
    least = ("over " if unit == "s" else "under ") if row["cut_count"] else ""
    return f"{least}{short_number(statistics.median(values))} {unit}"


def how(figures):
    counts = sorted({len(row["figures"]) for row in figures["rows"]})
    rounds = " to ".join(str(count) for count in {counts[0]: 0, counts[-1]: 0})
    return (
        f"Medians of {rounds} rounds, in which the programs took turns, each on a fresh mount "
        f"({figures['processor']}, {figures['core_count']} cores, Linux {figures['kernel']}). The "
        "S3 server ran on the same machine. It waited 30 ms before each answer, and sent at most "
        "90 MB/s over a connection and 800 MB/s in all when large files were read or written. It "
        "did not wait where data was read before, and with files of 128 MiB.")


def table(figures, heads, cells):
    head = "| | " + " | ".join(heads) + " |"
    measured = [load for load in LOADS if row_of(figures, load, "weft")]
    lines = [f"| {LOADS[load][1]} | " + " | ".join(cells(load)) + " |" for load in measured]
    return "\n".join([filled(how(figures)), "", head, "|---" + "|---:" * len(heads) + "|", *lines])


def short(figures):
    """README's: Weft's figure, and how many times the speed of each peer that is."""
    peers = peers_of(figures)
    heads = ["Weft", *(f"Weft's speed / {PEERS[peer]}'s" for peer in peers)]
    return table(figures, heads, lambda load: [
        figure_cell(figures, load, "weft"),
        *(ratio_cell(figures, load, peer, False) for peer in peers)])


def full(figures):
    """docs/mount.md: each peer's own figure, and the spread of the ratios."""
    peers = peers_of(figures)
    heads = ["Weft"]
    for peer in peers:
        heads += [PEERS[peer], f"Weft's speed / {PEERS[peer]}'s, smallest to largest"]
    return table(figures, heads, lambda load: [figure_cell(figures, load, "weft"), *(
        cell for peer in peers for cell in (figure_cell(figures, load, peer),
                                            ratio_cell(figures, load, peer, True)))])


PAGES = ((ROOT / "README.md", short), (ROOT / "docs/mount.md", full))


def main(words):
    tables, hint = Tables(NAME, FIGURES, BEGIN, END), "`scripts/readme-mount.py FOLDER` writes it"
    if words and words[0].startswith("--add="):
        folder = pathlib.Path(words.pop().removeprefix("--add="))
        tables.write_figures(with_more(read(FIGURES, NAME, hint), figures_of(folder, False)))
    tables.write(words, figures_of, PAGES, hint)


if __name__ == "__main__":
    main(words_of(__doc__))

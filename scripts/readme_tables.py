# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the scripts that write tables of measurements have in common: a comparison's summary, a file
of figures and the tables that are written from it, text between two marks of a page, lines no wider
than the others."""

import json
import pathlib
import re
import sys
import textwrap
from typing import NamedTuple

COLUMNS = 100
SCHEMA = 3


def size_name(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def filled(words):
    """Lines of a paragraph; what stands in backquotes stays on one line."""
    kept = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\u00a0"), words)
    lines = textwrap.fill(kept, COLUMNS, break_on_hyphens=False, break_long_words=False)
    return lines.replace("\u00a0", " ")


def parts_of(page, begin, end, script):
    """What stands before the first mark, between both, and behind the second."""
    whole = page.read_text()
    if whole.count(begin) != 1 or whole.count(end) != 1:
        sys.exit(f"{script}: {page} must have each of these lines once: {begin} and {end}")
    before, rest = whole.split(begin)
    inside, after = rest.split(end)
    return before, inside, after


def read(path, script, hint):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as reason:
        sys.exit(f"{script}: {path} cannot be read: {reason}. {hint}")


def summary_of(folder, script):
    """That of a comparison which left its files in this folder."""
    path = folder / "summary.json"
    summary = read(path, script, f"`weft bench compare --out {folder}` writes it")
    if summary.get("schema") != SCHEMA:
        sys.exit(f"{script}: {path} has schema {summary.get('schema')}, this script reads "
                 f"{SCHEMA}; `weft bench compare --render --out {folder}` writes it anew")
    return summary


def rounded(number):
    """To three digits behind the point; a small one to three that count."""
    return round(number, 3) if number >= 0.1 else float(f"{number:.3g}")


def ratio_of(result):
    """What is kept of the ratio of a result of a comparison to the same MPI's other transport."""
    ratio = result["ratio_to_native"]
    return {
        "ratio": {name: rounded(ratio["of_medians"][name])
                  for name in ("value", "low", "high", "confidence")},
        "of_means": rounded(ratio["of_means"]["value"]),
    }


def median_us(result, side):
    """That of the `figure`, or of the `baseline` that it is compared with."""
    return round(result["ratio_to_native"][side]["median"], 2)


def figures_with(summary, rows):
    """A file of figures: on what and how often a comparison measured, and these rows."""
    machine = summary["environment"]["machine"]
    return {
        "processor": machine["processor"], "core_count": machine["core_count"],
        "kernel": machine["kernel"], "rounds": summary["rounds"], "run_count": summary["run_count"],
        "excluded_count": len(summary["excluded"]), "rows": rows,
    }


def digits(ratio):
    """With two digits behind the point; a small one with two that count."""
    return f"{ratio:.2f}" if ratio >= 0.095 or ratio == 0 else f"{ratio:.2g}"


def rounds_of(figures):
    """How many rounds the ratios are of, fewer where runs were excluded; and how many are of few.
    The interval from the smallest to the largest of n rounds has a confidence of 1 - 2^(1-n)."""
    rounds = figures["rounds"]
    confidences = [row["ratio"]["confidence"] for row in figures["rows"]]
    if min(confidences) > 1 - 2 ** (2 - rounds):
        return f"{rounds} rounds", ""
    few = sum(confidence <= 0.5 for confidence in confidences)
    some = f" {few} of {len(confidences)} ratios are of one or two rounds." if few else ""
    return f"up to {rounds} rounds", some


def rests_on(figures):
    """How much the ratios rest on, in sentences that go on behind `the median`."""
    width = max((row["ratio"]["high"] - row["ratio"]["low"]) / row["ratio"]["value"]
                for row in figures["rows"])
    rounds, few = rounds_of(figures)
    return (
        f"of {rounds} ({figures['processor']} with {figures['core_count']} cores).{few} "
        f"{figures['excluded_count']} of {figures['run_count']} runs were excluded: the "
        "machine's speed changed during them. The widest interval of a ratio, its highest value "
        f"minus its lowest, is {width:.2f} times the ratio.")


class Tables(NamedTuple):
    """Tables between two marks of pages, written by a script from a file of figures."""
    script: str
    figures: pathlib.Path
    begin: str
    end: str

    def write_figures(self, figures):
        """A row a line, so that a change can be read."""
        rows = ",\n".join("  " + json.dumps(row) for row in figures["rows"])
        head = json.dumps({**figures, "rows": []}, indent=1)
        self.figures.write_text(head.replace('"rows": []', f'"rows": [\n{rows}\n ]') + "\n")

    def put(self, page, text, checks):
        """This text between the marks of a page; if it only checks, ends where another is there."""
        before, _, after = parts_of(page, self.begin, self.end, self.script)
        new = f"{before}{self.begin}\n{text}\n{self.end}{after}"
        if not checks:
            page.write_text(new)
        elif new != page.read_text():
            sys.exit(f"{self.script}: the table of {page} is not that of {self.figures}; "
                     f"`scripts/{self.script}` writes it")

    def write(self, words, measured, pages, hint):
        """What the words of the command line ask for: new figures from the folder that they name,
        and the text that each page's function makes of the figures; or `--check`. `measured` makes
        figures of a folder, `hint` says who else writes the file of figures."""
        if len(words) == 1 and words[0] != "--check":
            self.write_figures(measured(pathlib.Path(words[0])))
        figures = read(self.figures, self.script, hint)
        for page, text in pages:
            self.put(page, text(figures), words == ["--check"])


def words_of(usage):
    """The command line of a script that takes a folder, `--check` or nothing; ends with how it is
    used where it is asked for that, or gets more."""
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(usage)
    return sys.argv[1:]

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

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a reader of README's results, of docs/results.md and of the page must find there: how many
runs were excluded of how many and why, the true confidence, means beside medians, figures that a
reader may divide, Weft without `weft run`, and no word that only this project knows.
Usage: words.py FOLDER, which holds the reports of the made-up comparison."""

import html
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Words that a newcomer would have to ask about.
UNKNOWN = r"conten[d]er|discipline|\blegs?\b|\baims?\b|entrant|does not count|do not count"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    return float(re.match(r"[*]*([0-9.]+)", text)[1])


def check_prose(section):
    """How many runs were excluded, no word to ask about, no long line but in tables."""
    prose = re.sub(r"\s+", " ", section)
    assert " 2 of 280 runs were excluded: the machine's speed changed" in prose, prose[:600]
    assert not re.search(UNKNOWN, section), re.search(UNKNOWN, section)
    prose_lines = [line for line in section.splitlines() if not line.startswith("|")]
    longest = max(prose_lines, key=len)
    assert len(longest) <= 100, f"{len(longest)} columns: {longest}"


def check_short(section):
    """README's section: a row with and without `weft run` for each MPI, means beside medians."""
    check_prose(section)
    rows = [cells(line)[1:] for line in section.splitlines() if re.search(r"\d \(\d", line)]
    plain = [line for line in section.splitlines() if "started by `mpirun` |" in line]
    assert len(rows) == 2 * len(plain) > 0, section
    for cell in (cell for row in rows for cell in row if cell):
        assert re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d\)", cell), cell


def check_full(section):
    """docs/results.md: words, lines, and rows whose figures give their ratio."""
    check_prose(section)
    rows = [cells(line) for line in section.splitlines()
            if re.match(r"\|.*`(weft run|mpirun)`", line)]
    assert sum("`mpirun`" in row for row in rows) == sum("`weft run`" in row for row in rows) > 0
    for _, _, weft, native, ratio, sure, means in rows:
        # 7 rounds; in none of these runs was one excluded.
        assert sure == "98.4 %", sure
        assert abs(number(weft) / number(native) / number(ratio) - 1) < 0.15, (weft, native, ratio)
        of_means = [float(re.search(r"\(([0-9.]+)\)", side)[1]) for side in (weft, native)]
        assert abs(of_means[0] / of_means[1] / float(means) - 1) < 0.15, (weft, native, means)
        assert abs(float(means) / number(ratio) - 1) > 0.02, "means are those of the medians"


def check_page(text):
    for words in ("2 of 280 runs were excluded: the machine's speed changed", "98.4 %",
                  "P10 to P90", "to native, means", "ratio of means",
                  "solid: medians, dashed: means", "Weft, plain"):
        assert words in text, f"the page does not say: {words}"
    assert not re.search(UNKNOWN, text), re.search(UNKNOWN, text)
    assert "95 %" not in text, "the page claims a confidence that is not that of its rounds"


def check_summary(summary):
    assert (len(summary["excluded"]), summary["run_count"]) == (2, 280)
    for row in summary["results"]:
        ratio = row["ratio_to_native"]
        assert row["figure"]["mean"]["value"] > 0
        if row["transport"] != "native":
            rounds = ratio["of_medians"]["rounds"]
            assert ratio["of_medians"]["confidence"] == 1 - 2 ** (1 - rounds), ratio
            assert ratio["figure"]["mean"] != ratio["figure"]["median"]


def main(folder):
    for kind, check in (("short", check_short), ("full", check_full)):
        script = [sys.executable, str(ROOT / "scripts/readme-results.py"), "--print", kind]
        check(subprocess.check_output([*script, str(folder)], text=True))
    page = (folder / "index.html").read_text()
    # What is read: no style, no script, no command lines.
    shown = re.sub(r"<(style|script|pre)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S)
    check_page(html.unescape(shown))
    check_summary(json.loads((folder / "summary.json").read_text()))


main(pathlib.Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests of scripts that write tables have in common: such a script with pages and figures
of its own, what it says when it ends, and a made-up comparison. Used by hosts.py, collectives.py
and mounts.py."""

import importlib.util
import io
import pathlib
import sys
from contextlib import redirect_stderr

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def script_in(folder, name):
    """The script, with pages and figures in a folder of their own."""
    sys.path.insert(0, str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("script", SCRIPTS / name)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.FIGURES = folder / "figures.json"
    readme = getattr(script, "short", script.full)
    script.PAGES = ((folder / "README.md", readme), (folder / "page.md", script.full))
    for page, _ in script.PAGES:
        page.write_text(f"before\n{script.BEGIN}\nwhat stood there\n{script.END}\nafter\n")
    return script


def says(script, words):
    """What it says when it ends with an error; None if it does not."""
    try:
        with redirect_stderr(io.StringIO()):
            script.main(words)
    except SystemExit as end:
        return str(end.code)
    return None


def check_the_check(script, old, new):
    """The pages are found right, and wrong where one of them says `new` instead of `old`; then they
    can be written again from the figures."""
    assert says(script, ["--check"]) is None
    page = script.PAGES[1][0]
    right = page.read_text()
    assert old in right, right
    page.write_text(right.replace(old, new))
    assert "is not that of" in says(script, ["--check"])
    assert says(script, []) is None and page.read_text() == right


def ratio(value):
    """Of a result, and its interval."""
    return {"figure": {"median": 10 * value, "mean": 11 * value},
            "baseline": {"median": 10.0, "mean": 10.0},
            "of_medians": {"value": value, "low": value - 0.1, "high": value + 0.1,
                           "confidence": 0.938},
            "of_means": {"value": 1.1 * value}}


def summary_with(results):
    """That of a comparison with these results, of 5 rounds, with 2 of 80 runs excluded."""
    machine = {"processor": "made up", "core_count": 2, "kernel": "6.1"}
    return {"schema": 3, "rounds": 5, "run_count": 80, "excluded": [{}, {}], "results": results,
            "environment": {"machine": machine}}


def texts(script):
    """Those of both pages; what stands around the marks is left, and both say what they rest on."""
    both = [page.read_text() for page, _ in script.PAGES]
    for text in both:
        assert text.startswith("before\n") and text.endswith("\nafter\n")
        assert "what stood there" not in text
        assert "5 rounds" in text and "2 of 80 runs were excluded" in text.replace("\n", " "), text
        assert "9.0" not in text, text
    return both

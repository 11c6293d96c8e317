# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the tests of scripts that write tables have in common: such a script with pages and figures
of its own, and what it says when it ends. Used by hosts.py and mounts.py."""

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
    script.PAGES = ((folder / "README.md", script.short), (folder / "page.md", script.full))
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

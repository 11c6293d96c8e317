# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What scripts/readme-mount.py makes of made-up runs of `weft bench mount`: the cells of both
tables, how it says that a run was ended at the limit, which runs it refuses, and that it notices a
table which does not say what the figures say. Usage: mounts.py FOLDER, which it fills."""

import json
import pathlib
import sys

from tables import check_the_check, says, script_in


def run(load, peer, number, figure, **changes):
    return {"load": load, "peer": peer, "round": number, "figure": figure, "is_cut": False,
            "failure": None, **changes}


def runs(script):
    """Weft does each load at 400 to 600 MB/s, or in 4 to 6 s, and Mountpoint always at 250 MB/s, or
    in 10 s; where files are published later, Weft needs a tenth. s3fs only lists, and never
    to the end. There is no rclone. Rounds come out of order."""
    made = []
    for load, (unit, _) in script.LOADS.items():
        ours, theirs = ((4, 5, 6), 10) if unit == "s" else ((400, 500, 600), 250)
        ttl = "-ttl" if load == "list-again" else ""
        for number in (2, 0, 1):
            if load.endswith("-async"):
                made.append(run(load.removesuffix("-async"), "weft-async", number,
                                ours[number] / 10))
                continue
            made += [run(load, f"weft{ttl}", number, ours[number]),
                     run(load, f"mountpoint{ttl}", number, theirs)]
    return made + [run("list", "s3fs", number, 60, is_cut=True) for number in range(3)]


def main(folder):
    folder.mkdir(exist_ok=True)
    script = script_in(folder, "readme-mount.py")
    made = runs(script)
    (folder / "runs.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = [page.read_text() for page, _ in script.PAGES]
    for text in (readme, page):
        assert text.startswith("before\n") and text.endswith("\nafter\n")
        assert "what stood there" not in text and "Medians of 3 rounds" in text, text
        prose = [line for line in text.splitlines() if not line.startswith("|")]
        assert max(map(len, prose)) <= 100, text
    assert "folder | 5 s | 2 | over 12 |\n" in readme, readme
    assert "reading 1 GiB in order | 500 MB/s | 2 | - |\n" in readme, readme
    assert "folder | 5 s | 10 s | 2 (1.67 to 2.5) | over 60 s | over 12 (10 to 15) |" in page, page
    assert "in order | 500 MB/s | 250 MB/s | 2 (1.6 to 2.4) | - | - |\n" in page, page
    # Files that are published later have the same peer as those that are published at once, and
    # none where no peer was measured.
    assert "4 KiB | 5 s | 2 | - |\n" in readme, readme
    assert "the same with `--publish async` | 0.5 s | 20 | - |\n" in readme, readme
    assert "10,000 files with `--publish async` | 0.5 s | - | - |\n" in readme, readme
    assert "are known | 5 s | 2 | - |\n" in readme, readme
    assert "rclone" not in readme + page
    check_the_check(script, "1.6 to 2.4", "1.8 to 2.4")
    more = [run("find", "weft", number, 8) for number in range(3)]
    (folder / "runs.json").write_text(json.dumps(more))
    assert says(script, [f"--add={folder}"]) is None
    page = script.PAGES[1][0].read_text()
    assert "16 folders | 8 s | - | - | - | - |\n" in page, page
    assert "in order | 500 MB/s | 250 MB/s | 2 (1.6 to 2.4) | - | - |\n" in page, page
    (folder / "runs.json").write_text(json.dumps([*made, run("list", "rclone", 0, None)]))
    assert f"1 of {len(made) + 1} runs failed" in says(script, [str(folder)])
    made = [one for one in made if (one["load"], one["peer"]) != ("write", "weft")]
    (folder / "runs.json").write_text(json.dumps(made))
    assert "Weft was not measured with write" in says(script, [str(folder)])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What scripts/readme-hosts.py makes of a made-up comparison: which results it takes, the cells of
both tables, and that it notices a table which does not say what the figures say.
Usage: hosts.py FOLDER, which it fills."""

import json
import pathlib
import sys

from tables import says, script_in


def result(mpi, testbed, size, value, **changes):
    figure = {"median": 10 * value, "mean": 11 * value}
    ratio = {"figure": figure, "baseline": {"median": 10.0, "mean": 10.0},
             "of_medians": {"value": value, "low": value - 0.1, "high": value + 0.1,
                            "confidence": 0.938},
             "of_means": {"value": 1.1 * value}}
    return {"benchmark": "latency", "transport": "weft", "mpi": mpi, "baseline": "tcp",
            "testbed": testbed, "size_bytes": size, "ratio_to_native": ratio, **changes}


def summary(script):
    """At each size one MPI is ahead and one behind; what must not be taken would be far away."""
    results = []
    for mtu in script.MTUS:
        bed = f"direct,mtu={mtu}"
        for place, size in enumerate(script.SIZES):
            results += [result("openmpi", bed, size, 0.5 + place / 100),
                        result("mpich", bed, size, 1.5),
                        result("mpich", bed, size, 9.0, transport="weft+plain"),
                        result("mpich", bed, size, 9.0, benchmark="bw"),
                        result("mpich", f"direct,rate=1gbit,mtu={mtu}", size, 9.0),
                        result("mpich", f"paths=4,rate=none,mtu={mtu}", size, 9.0)]
        results.append(result("mpich", bed, 512, 9.0))
    machine = {"processor": "made up", "core_count": 2, "kernel": "6.1"}
    return {"schema": 3, "rounds": 5, "run_count": 80, "excluded": [{}, {}], "results": results,
            "environment": {"machine": machine}}


def main(folder):
    folder.mkdir(exist_ok=True)
    script = script_in(folder, "readme-hosts.py")
    made = summary(script)
    (folder / "summary.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = [page.read_text() for page, _ in script.PAGES]
    for text in (readme, page):
        assert text.startswith("before\n") and text.endswith("\nafter\n")
        assert "what stood there" not in text
        assert "5 rounds" in text and "2 of 80 runs were excluded" in text.replace("\n", " "), text
        assert "9.0" not in text and max(map(len, text.splitlines())) <= 100, text
    assert "| MTU 1500 | 0.50-1.50 | 0.51-1.50 | 0.52-1.50 |" in readme, readme
    assert "| 64 KiB | 0.54 to 1.50 | 5.4 to 15 us | 0.54 to 1.50 | 5.4 to 15 us |" in page, page
    assert says(script, ["--check"]) is None
    script.PAGES[1][0].write_text(page.replace("0.54 to", "0.45 to"))
    assert "is not that of" in says(script, ["--check"])
    assert says(script, []) is None and script.PAGES[1][0].read_text() == page
    made["results"] = [one for one in made["results"] if one["size_bytes"] != 8192]
    (folder / "summary.json").write_text(json.dumps(made))
    assert "8192 B at an MTU of 1500" in says(script, [str(folder)])
    script.PAGES[0][0].write_text("no marks")
    assert "must have each of these lines once" in says(script, ["--check"])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What scripts/readme-collectives.py makes of a made-up comparison: which results it takes, the
cells of both tables, and that it notices a table which does not say what the figures say.
Usage: collectives.py FOLDER, which it fills."""

import json
import pathlib
import sys

from tables import ratio, says, script_in, summary_with, texts


def result(mpi, call, size, value, **changes):
    return {"benchmark": call, "transport": "weft", "mpi": mpi, "hosts": "", "ranks": 2,
            "size_bytes": size, "ratio_to_native": ratio(value), **changes}


def summary(script):
    """Each mean is 1, with one size ahead and one behind; what must not be taken is far away."""
    results = []
    for mpi in script.MPIS:
        for call in script.CALLS:
            if call == "barrier":
                results.append(result(mpi, call, 0, 0.25))
                continue
            results += [result(mpi, call, 8, 0.5), result(mpi, call, 1 << 20, 2.0),
                        result(mpi, call, 4, 9.0), result(mpi, call, 2 << 20, 9.0),
                        result(mpi, call, 8, 9.0, transport="weft+plain"),
                        result(mpi, call, 8, 9.0, hosts="a,b"),
                        result(mpi, call, 8, 9.0, ranks=4),
                        result(mpi, call, 8, 9.0, testbed="direct")]
    results += [result("openmpi", "latency", 8, 9.0), result("debian-mpich", "bcast", 8, 9.0)]
    return summary_with(results)


def main(folder):
    folder.mkdir(exist_ok=True)
    script = script_in(folder, "readme-collectives.py")
    made = summary(script)
    (folder / "summary.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = texts(script)
    assert "2 sizes from 8 B to 1 MiB" in readme.replace("\n", " "), readme
    assert "| Open MPI 4.1 | 2 | 0.25 | 1.00 (2.00) | 1.00 (2.00) |" in readme, readme
    assert "Barrier: 0.25 (0.15-0.35), 2.5 us." in page, page
    assert "| 1 MiB | 2.00 (1.90-2.10), 20 us | 2.00 (1.90-2.10), 20 us |" in page, page
    assert says(script, ["--check"]) is None
    script.PAGES[1][0].write_text(page.replace("0.25 (0.15", "0.24 (0.15"))
    assert "is not that of" in says(script, ["--check"])
    assert says(script, []) is None and script.PAGES[1][0].read_text() == page
    made["results"] = [row for row in made["results"]
                       if (row["mpi"], row["benchmark"]) != ("mpich", "reduce")]
    (folder / "summary.json").write_text(json.dumps(made))
    assert "reduce of 2 ranks under MPICH" in says(script, [str(folder)])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

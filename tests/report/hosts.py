# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What scripts/readme-hosts.py makes of a made-up comparison: which results it takes, the cells of
both tables, and that it notices a table which does not say what the figures say.
Usage: hosts.py FOLDER, which it fills."""

import json
import pathlib
import sys

from tables import check_the_check, ratio, says, script_in, summary_with, texts


def result(mpi, testbed, size, value, **changes):
    return {"benchmark": "latency", "transport": "weft", "mpi": mpi, "baseline": "tcp",
            "testbed": testbed, "size_bytes": size, "ratio_to_native": ratio(value), **changes}


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
    return summary_with(results)


def check_the_best(script):
    """A slower TCP of one MPI changes no ratio to the best, and a mean is one of ratios."""
    figures = {"rows": [
        {"mpi": mpi, "mtu": 1500, "size_bytes": size, "weft_us": 6.0, "tcp_us": tcp_us,
         "ratio": {"value": 6.0 / tcp_us}}
        for size, least in zip(script.SIZES, (3.0, *[12.0] * (len(script.SIZES) - 1)))
        for mpi, tcp_us in (("mpich", least), ("intel", 60.0))]}
    assert script.to_best(figures, 1500, 8) == {"mpich": 2.0, "intel": 2.0}
    assert script.to_same(figures, 1500, 8) == {"mpich": 2.0, "intel": 0.1}
    found = script.means(figures, 1500, script.to_best)["intel"]
    assert abs(found - (2.0 * 0.5 ** 6) ** (1 / 7)) < 1e-9, found


def main(folder):
    folder.mkdir(exist_ok=True)
    script = script_in(folder, "readme-hosts.py")
    made = summary(script)
    (folder / "summary.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = texts(script)
    assert max(len(line) for line in (readme + page).splitlines()) <= 100, readme + page
    assert "| MTU 1500 | 0.50-1.50 | 0.51-1.50 | 0.52-1.50 |" in readme, readme
    assert ("| 64 KiB | 0.54-1.50 | 0.54-1.50 | 5.4 to 15 us "
            "| 0.54-1.50 | 0.54-1.50 | 5.4 to 15 us |") in page, page
    check_the_best(script)
    check_the_check(script, "0.54-", "0.45-")
    made["results"] = [one for one in made["results"] if one["size_bytes"] != 8192]
    (folder / "summary.json").write_text(json.dumps(made))
    assert "8192 B at an MTU of 1500" in says(script, [str(folder)])
    script.PAGES[0][0].write_text("no marks")
    assert "must have each of these lines once" in says(script, ["--check"])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

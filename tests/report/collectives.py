# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What scripts/readme-collectives.py and scripts/readme-shared-cores.py make of a made-up
comparison: which results they take, the cells of their tables, and that they notice a table which
does not say what the figures say. Usage: collectives.py FOLDER, which it fills."""

import json
import pathlib
import sys

from tables import check_the_check, ratio, says, script_in, summary_with, texts


def result(mpi, call, size, value, **changes):
    return {"benchmark": call, "transport": "weft", "mpi": mpi, "hosts": "", "ranks": 2,
            "size_bytes": size, "ratio_to_native": ratio(value), **changes}


def summary(script, mpis, ranks, other_ranks):
    """Each mean is 1, with one size ahead and one behind; what must not be taken is far away."""
    results = []
    for mpi in mpis:
        for call in script.CALLS:
            if call == "barrier":
                results.append(result(mpi, call, 0, 0.25, ranks=ranks))
                continue
            results += [result(mpi, call, 8, 0.5, ranks=ranks),
                        result(mpi, call, 1 << 20, 2.0, ranks=ranks),
                        result(mpi, call, 4, 9.0, ranks=ranks),
                        result(mpi, call, 2 << 20, 9.0, ranks=ranks),
                        result(mpi, call, 8, 9.0, ranks=ranks, transport="weft+plain"),
                        result(mpi, call, 8, 9.0, ranks=ranks, hosts="a,b"),
                        result(mpi, call, 8, 9.0, ranks=other_ranks),
                        result(mpi, call, 8, 9.0, ranks=ranks, testbed="direct")]
    results += [result("openmpi", "latency", 8, 9.0, ranks=ranks),
                result("debian-mpich", "bcast", 8, 9.0, ranks=ranks)]
    return summary_with(results)


def check_the_best():
    """The best over Weft and the best of the MPIs' own may be of two MPIs."""
    from collectives_tables import best_to_best
    figures = {"rows": [
        {"mpi": mpi, "call": "bcast", "rank_count": 2, "size_bytes": size, "weft_us": weft_us,
         "native_us": native_us}
        for size in (8, 16)
        for mpi, weft_us, native_us in (("mpich", 3.0, 9.0), ("intel", 5.0, 4.0 * size))]}
    assert best_to_best(figures, 2, "bcast") == [3.0 / 9.0, 3.0 / 9.0]
    figures["rows"][1]["native_us"] = 2.0
    assert best_to_best(figures, 2, "bcast") == [1.5, 3.0 / 9.0]


def check(folder, name, ranks, other_ranks):
    folder.mkdir(parents=True, exist_ok=True)
    script = script_in(folder, name)
    from collectives_tables import MPIS  # Its folder is known only now.
    made = summary(script, MPIS, ranks, other_ranks)
    (folder / "summary.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = texts(script)
    assert "2 sizes from 8 B to 1 MiB" in readme.replace("\n", " "), readme
    assert f"| Open MPI 4.1 | {ranks} | 0.25 | 1.00 (2.00) | 1.00 (2.00) |" in readme, readme
    assert f"### MPICH, {ranks} ranks" in page, page
    assert "Barrier: 0.25 (0.15-0.35), 2.5 us." in page, page
    assert "| 1 MiB | 2.00 (1.90-2.10), 20 us | 2.00 (1.90-2.10), 20 us |" in page, page
    assert f"| Intel MPI, means | {ranks} | " in page, page
    check_the_best()
    check_the_check(script, "0.25 (0.15", "0.24 (0.15")
    made["results"] = [row for row in made["results"]
                       if (row["mpi"], row["benchmark"]) != ("mpich", "reduce")]
    (folder / "summary.json").write_text(json.dumps(made))
    assert f"reduce of {ranks} ranks under MPICH" in says(script, [str(folder)])


def check_sparse(folder):
    """Few rounds, small ratios, and a call that may lack figures."""
    folder.mkdir(parents=True, exist_ok=True)
    script = script_in(folder, "readme-shared-cores.py")
    from collectives_tables import MPIS  # Its folder is known only now.
    made = summary(script, MPIS, 8, 2)
    made["results"] = [row for row in made["results"]
                       if (row["mpi"], row["benchmark"]) != ("mpich", "allreduce")]
    for row in made["results"]:
        if (row["mpi"], row["benchmark"], row["ranks"]) == ("mpich", "reduce", 8):
            row["ratio_to_native"] = ratio(0.00057)
            row["ratio_to_native"]["of_medians"].update(low=0.00057, high=0.00057, confidence=0.0)
    (folder / "summary.json").write_text(json.dumps(made))
    assert says(script, [str(folder)]) is None
    readme, page = texts(script)
    words = readme.replace("\n", " ")
    assert "of up to 5 rounds (made up with 2 cores). 2 of 50 ratios" in words, readme
    assert "| MPICH | 8 | 0.25 | 1.00 (2.00) | 0.00057 (0.00057) | none |" in words, readme
    assert " | 0.00057, 0.01 us | none | " in page, page


def main(folder):
    check_sparse(folder / "sparse")
    check(folder / "own", "readme-collectives.py", 2, 4)
    check(folder / "shared", "readme-shared-cores.py", 4, 2)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

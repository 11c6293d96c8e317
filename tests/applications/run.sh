#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench app` with Debian's programs, one quick run over Weft and one over the MPI's own
# transport each: they run, the results agree, the figures are there. A program that is missing is
# explained. Takes a minute on two quiet cores.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
weft=$(realpath "${WEFT:-dist/bin/weft}")
# shellcheck source=tests/reports.sh
. tests/reports.sh
make_bare

# agrees PROGRAM FILE FIGURE [OPTION...]: its runs over both transports agree and report the figure.
agrees() {
    local program=$1 file=$2 figure=$3 rest=("${@:4}") shown="$1${4:+ $4 $5}" place=$work
    [ "$program" != openfoam ] || place=$bare
    if ! command -v "$file" >/dev/null; then skip "$program" "it is not installed"; return; fi
    if ! command -v mpiexec.openmpi >/dev/null; then
        skip "$program" "it needs Debian's Open MPI, which is not installed"; return; fi
    if TMPDIR=$place "$weft" bench app "$program" --quick --rounds 1 --transports weft,native \
        --timeout 200 --json "${rest[@]}" >"$work/rows" 2>"$work/talk"; then
        ok "$shown runs over weft and native and agrees"
    else
        not_ok "$shown runs over weft and native and agrees: $(cat "$work/talk")"
        return
    fi
    reports_figure "$figure" native >"$work/out" 2>&1
    report $? "$shown reports $figure for both"
}

# between_hosts: two hosts that weft makes, and removes.
between_hosts() {
    TMPDIR=$work "$weft" bench app lammps --testbed direct --quick --rounds 1 --timeout 200 --json \
        >"$work/rows" && reports_figure timesteps/s tcp || return 1
    python3 -c '
import json, sys
header = json.loads(open(sys.argv[1]).readline())
assert header["place"] == "testbed direct,mtu=9000", header' "$work/rows"
}

# three_transports: Weft with its collectives, Weft without, and native; each has both figures.
three_transports() {
    "$weft" bench app ft --quick --rounds 1 --transports weft,weft+mpi,native --json \
        >"$work/rows" || return 1
    python3 - "$work/rows" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows[0]["transports"] == ["weft", "weft+mpi", "native"], rows[0]
commands = rows[0]["commands"]
assert ["--collectives mpi" in command for command in commands] == [False, True, False], commands
for name in ("communication", "whole job"):
    found = [row["summary"]["median"] for row in rows[1:] if row["name"] == name]
    assert len(found) == 3 and all(value > 0 for value in found), (name, found)
PYTHON
}

# reports_figure UNIT OTHER: the rows agree and have this figure for weft and the other transport.
reports_figure() {
    python3 - "$work/rows" "$1" "$2" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows[0]["agree"] is True and rows[0]["result_lines"] > 4, rows[0]
of_unit = [row for row in rows[1:] if row["unit"] == sys.argv[2]]
found = {row["transport"]: row["summary"]["median"] for row in of_unit}
assert set(found) == {"weft", sys.argv[3]} and all(value > 0 for value in found.values()), found
PYTHON
}

# explained PROGRAM PACKAGE: where nothing is installed.
explained() {
    local code
    PATH=$work/nowhere "$weft" bench app "$1" >/dev/null 2>"$work/talk"
    code=$?
    if [ "$code" = 1 ] && grep -q "apt install.* $2" "$work/talk"; then
        ok "a missing $1 is explained, and the exit code is 1"
    else
        not_ok "a missing $1 is explained, and the exit code is 1: it is $code: $(cat "$work/talk")"
    fi
}

explained hpcc hpcc
explained gromacs gromacs
explained openfoam openfoam
"$weft" bench app namd >/dev/null 2>"$work/talk"
code=$?
if [ "$code" = 2 ] && grep -q 'hpcc, lammps, gromacs, openfoam, ft, is' "$work/talk"; then
    ok 'an unknown program is wrong usage'
else
    not_ok "an unknown program is wrong usage: $code"
fi
agrees lammps lmp timesteps/s
agrees lammps lmp timesteps/s --case water
if why=$(tests/testbed/testbed.sh check) && command -v lmp >/dev/null &&
    command -v mpiexec.openmpi >/dev/null; then
    check 'lammps runs between two hosts over weft and tcp and agrees' between_hosts
else
    skip 'lammps between two hosts' "${why:-lammps or Open MPI of Debian is not installed}"
fi
agrees gromacs gmx_mpi ns/day
agrees openfoam icoFoam runs/day
if command -v icoFoam >/dev/null && command -v mpiexec.openmpi >/dev/null; then
    mkdir "$work/a b"
    check 'OpenFOAM in a folder with a space: the reason and what helps' ends 1 \
        'name a folder without in TMPDIR' env TMPDIR="$work/a b" "$weft" bench app openfoam --quick
else
    skip 'OpenFOAM in a folder with a space' 'OpenFOAM or Open MPI of Debian is not installed'
fi
if [ -d /usr/share/doc/openfoam-examples/examples ]; then
    agrees openfoam simpleFoam runs/day --case pitzdaily
    agrees openfoam snappyHexMesh runs/day --case motorbike
else
    skip 'OpenFOAM pitzDaily and motorBike' 'openfoam-examples is not installed'
fi
agrees hpcc hpcc Gflop/s
agrees is mpiexec.openmpi Mop/s
if command -v mpiexec.openmpi >/dev/null; then
    check 'ft with the collectives of Weft and of the MPI and over native' three_transports
else
    skip 'ft over three transports' "Debian's Open MPI is not installed"
fi
check 'folders of the runs are gone' \
    test -z "$(find "$work" "$bare" -maxdepth 1 -name 'weft-app-*')"
summary

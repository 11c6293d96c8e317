#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench ior` on real MPIs and real files. Usage: tests/ior/run.sh
#
# WEFT names another weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
PARSER=${IOR_PARSER:-$PWD/.env/ior-parser/bin/ior_parser}
# shellcheck source=tests/bench_cases.sh
. tests/bench_cases.sh

# ior RANKS MPI ARGUMENTS..., and for one rank without a launcher: alone ARGUMENTS...
ior() { bench "$1" native "$2" ior "${@:3}"; }
alone() { bench_alone ior "$@"; }

# The command line of the published run of Mountpoint for S3, with smaller blocks. Its rows are read
# as a parser of IOR would.
published() {
    ior 4 "$1" -r -w -v -F -o=S@S@S -b=8m -i=1 -t=2m -a=POSIX --posix.odirect &&
        has '^IOR-4[^:]*: MPI Coordinated Test of Parallel I/O$' &&
            has '^access +: file-per-process$' &&
        awk '$1 == "write" && NF == 11 && $5 == "8192" && $2 > 0 { w = 1 }
             $1 == "read" && NF == 11 && $2 > 0 { r = 1 }
             $1 == "write" && NF == 27 && $11 == "NA" && $23 == 8388608 { s = 1 }
             END { exit !(w && r && s) }' out &&
        has '^remove +- ' && has '^Max Write: [0-9.]+ MiB/sec \([0-9.]+ MB/sec\)$' &&
            has '^Finished +: ' && [ -z "$(ls S.* 2>/dev/null)" ]
}
for mpi in openmpi mpich intel; do
    published "$mpi"
    verdict "$mpi: the published command line prints the published layout" $?
done

if [ -x "$PARSER" ]; then
    # The public package ior-parser reads the text and finds what was asked for and measured.
    ior 2 mpich -r -w -v -F -o=S -b=8m -t=2m -i=3 && "$PARSER" --json out >parsed &&
        python3 - <<'EOF' >>err 2>&1
import json
found = json.load(open("parsed"))
text = json.dumps(found)
rows = [line.split() for line in open("out") if line.startswith(("write", "read"))]
summary = {row[0]: float(row[3]) for row in rows if len(row) == 27}
assert set(summary) == {"write", "read"}, rows
def numbers(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, (int, float)):
        yield value
found = list(numbers(found))
for mean in summary.values():
    assert any(abs(one - mean) < 0.01 for one in found), (mean, text)
assert 8 << 20 in found and 2 << 20 in found, text
EOF
    verdict "ior-parser finds sizes and mean bandwidths in the text" $?
else
    skip ior-parser "$PARSER is missing; scripts/setup.sh test installs it"
fi

ior 3 mpich -w -W -r -R -b 256k -t 16k -s 3 -z -Z -i 2 -e -g -l random -O summaryFormat=JSON
python3 - <<'EOF' >>err 2>&1
import json
found = json.load(open("out"))
rows = [row["access"] for repetition in found["tests"][0]["Results"] for row in repetition]
assert rows == ["write", "read"] * 2, rows
assert {"operation", "bwMaxMIB", "OPsMax", "MeanTime", "numTasks"} <= found["summary"][0].keys()
assert found["tests"][0]["Parameters"]["numTasks"] == 3
EOF
verdict "a shared file in random order comes back right, and JSON has IOR's keys" $?

ior 2 mpich -w -k -F -b 64k -t 8k -o kept &&
    ior 2 mpich -r -R -C -Q 1 -k -F -b 64k -t 8k -o kept -O summaryFormat=CSV &&
    [ "$(grep -c '^read,' out)" = 1 ]
verdict "what one run kept another reads, each task its neighbour's" $?

printf 'X' | dd of=kept.00000001 bs=1 seek=20000 conv=notrunc status=none
ior 2 mpich -r -R -k -F -b 64k -t 8k -o kept
[ $? = 1 ] && has 'Incorrect data on kept.00000001: 1 words, the first at byte 20000' err
verdict "a changed byte is found where it is, exit code 1" $?

alone -r -o missing -b 64k -t 8k
[ $? = 1 ] && has 'cannot open missing.*write it first' err
verdict "a missing file is told with what to do, exit code 1" $?

for bad in '-b 3m -t 2m:multiple of the transfer' '-a S3:POSIX alone' '-Cq%:no option -%' \
    '-b many:such as 8' '-M 4:not offered' '-f none:cannot be read'; do
    # shellcheck disable=SC2086 # the words of a command line
    alone ${bad%%:*}
    [ $? = 2 ] && has "${bad#*:}" err
    verdict "bad usage is explained, exit code 2: ${bad%%:*}" $?
done

printf '%s\n' 'IOR START' blockSize=64k transferSize=8k filePerProc=1 RUN segmentCount=2 RUN \
    'IOR STOP' >script
ior 2 mpich -f script && [ "$(grep -c '^write ' out)" = 4 ]
verdict "a script runs each of its tests" $?

alone -w -D 1 -b 16g -t 4k -o slow -O stoneWallingWearOut=0 &&
    awk '$1 == "write" && NF == 27 && $11 == 1 && $12 < 16384 { found = 1 } END { exit !found }' out
verdict "a deadline ends a write, and the summary counts what was written" $?

timeout 100 "$WEFT" bench ior -w -b 64k -t 8k -o full >/dev/full 2>err
[ $? = 1 ] && has 'results cannot be written' err
verdict "results that cannot be written are an error" $?

if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016 # expanded inside
    unshare -m bash -c 'mount -t tmpfs -o size=1m none "$1" && cd "$1" &&
        exec timeout 200 "$2" bench ior -w -b 4m -t 64k' _ "$WORK" "$WEFT" \
        >"$WORK.out" 2>"$WORK.err"
    status=$?
    cp "$WORK.out" out && cp "$WORK.err" err && rm -f "$WORK.out" "$WORK.err"
    [ "$status" = 1 ] && has 'No space left.*make room' err
    verdict "a full file system is told with what to do, exit code 1" $?
else
    skip "a full file system" "needs root and mount namespaces"
fi

# A rank that is killed takes the others with it, and the rows before are there.
ior 2 mpich -w -v -i 1000000 -b 1m -t 256k -o killed -F &
run=$!
kill_a_rank 'bench ior -w -v -i 1000000 -b 1m -t 256k -o killed -F' has '^write '
wait "$run"
status=$?
[ "$status" != 0 ] && [ "$status" != 124 ] && has '^write ' && nobody_runs '-t 256k -o killed -F'
verdict "a killed rank ends the run with an error, and the rows before it are printed" $?

summary

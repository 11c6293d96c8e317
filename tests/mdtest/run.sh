#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft bench mdtest` on real MPIs and real files. Usage: tests/mdtest/run.sh
#
# WEFT names another weft command.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/bench_cases.sh
. tests/bench_cases.sh

# mdtest RANKS MPI ARGUMENTS..., and for one rank without a launcher: alone ARGUMENTS...
mdtest() { bench "$1" native "$2" mdtest "${@:3}"; }
alone() { bench_alone mdtest "$@"; }

# read_rates OPERATIONS...: whether the table, read as parsers of mdtest's output do, has each
# operation with a rate above 0.
read_rates() {
    python3 - "$@" <<'PYTHON' >>err 2>&1
import re, sys
text = open("out").read()
assert re.search(r"^-- started at \d\d/\d\d/\d{4} \d\d:\d\d:\d\d --$", text, re.M)
assert re.search(r"^mdtest-\S+ was launched with \d+ total task\(s\) on \d+ node\(s\)$", text, re.M)
assert re.search(r"^-- finished at \d\d/\d\d/\d{4} \d\d:\d\d:\d\d --$", text, re.M)
head = re.search(r"^SUMMARY rate: \(of \d+ iterations\)$", text, re.M)
table = text[head.end():].split("SUMMARY")[0]
rows = re.findall(r"^   (\w+ \w+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$", table, re.M)
found = {name: [float(one) for one in numbers] for name, *numbers in rows}
for name in sys.argv[1:]:
    most, least, mean, _ = found[name]
    assert most >= mean >= least > 0, (name, found[name])
PYTHON
}

every="Directory creation,Directory stat,Directory rename,Directory removal,File creation"
every+=",File stat,File read,File removal,Tree creation,Tree removal"
IFS=, read -ra EVERY <<<"$every"

for mpi in openmpi mpich intel; do
    mdtest 4 "$mpi" -n 21 -z 2 -b 2 -i 3 -w 100 -e 100 -X -N 1 -d all &&
        has '^4 tasks, 84 files/directories$' && has '^Nodemap: 1111$' &&
            read_rates "${EVERY[@]}" && [ -z "$(ls -A all)" ]
    status=$?
    if [ "$status" != 0 ] && has 'not here' err; then
        skip "$mpi" "it is not installed"
        continue
    fi
    verdict "$mpi: all phases on the neighbour's items, and nothing is left" "$status"
done

mdtest 3 mpich -I 5 -z 1 -b 3 -L -u -F -w 3901 -e 3901 -X -y -R7 -d a@b@c -i 2 -P -v &&
    has '^3 tasks, 45 files$' && has '^SUMMARY time: \(of 2 iterations\)$' && ! has 'Directory' &&
    [ "$(grep -Ec '^V-1:   File stat +: +[0-9.]+ sec, +[0-9.]+ ops/sec$' out)" = 2 ] &&
    read_rates 'File creation' 'File stat' 'File read' 'File removal' 'Tree creation' \
        'Tree removal' &&
        [ -z "$(find a b c -mindepth 1)" ]
verdict "a tree for each task in three places, files in leaves alone, with times" $?

last=kept/test-dir.0-0/mdtest_tree.0/file.mdtest.1.5
mdtest 2 mpich -C -n 6 -F -w 64 -d kept &&
    [ "$(find kept -name 'file.mdtest.*' | sort | tail -1)" = $last ] &&
    mdtest 2 mpich -T -E -n 6 -F -w 64 -e 64 -X -d kept && read_rates 'File stat' 'File read' &&
        has '^   File creation +0.000'
verdict "what one run keeps another looks at" $?

printf 'X' |
    dd of=kept/test-dir.0-0/mdtest_tree.0/file.mdtest.1.3 bs=1 seek=20 conv=notrunc status=none
mdtest 2 mpich -E -n 6 -F -w 64 -e 64 -X -d kept
[ $? = 1 ] && has 'file.mdtest.1.3 differs from what was written, first at byte 20' err &&
    has '^   File read +[1-9]'
verdict "a changed byte is found where it is, exit code 1" $?

mdtest 2 mpich -C -n 6 -F -d kept
[ $? = 1 ] && has 'mdtest_tree.0: File exists.*an earlier run left it' err
verdict "a tree of an earlier run is not overwritten, exit code 1" $?

mdtest 2 mpich -r -n 6 -F -d kept && [ -z "$(ls -A kept)" ]
verdict "-r removes what a run kept" $?

alone -T -n 3 -d missing
[ $? = 1 ] && has 'cannot stat missing/.*create it first' err &&
    has '^SUMMARY rate: \(of 0 iterations\)$'
verdict "missing items are told with what to do, exit code 1" $?

mdtest 3 mpich -n 4 -F -S -w 16 -e 16 -X -d same && [ -z "$(ls -A same)" ] &&
    mdtest 3 mpich -n 4 -c -u -t -d first && [ -z "$(ls -A first)" ] &&
    mdtest 4 mpich -n 4 -f 2 -l 4 -s 2 -d some && has '^2 tasks, 8 f' && has '^4 tasks, 16 f'
verdict "shared files, one task that makes all, and runs with fewer tasks" $?

mdtest 2 mpich -C -F -n 100000000 -W 1 -x limit -u -d much && read_rates 'File creation' &&
    [ "$(find much -name 'file.*' | wc -l)" = $((2 * $(sed -n 's/^files //p' limit))) ] &&
    mdtest 2 mpich -T -r -F -n 100000000 -x limit -u -d much && [ -z "$(ls -A much)" ]
name="a deadline ends creation with as many items for each task, and a later run knows how many"
verdict "$name" $?

mdtest 2 mpich -n 10 -w 8 -e 8 -i 2 -d json --json
python3 - <<'PYTHON' >>err 2>&1
import json
found = json.load(open("out"))
assert found["complete"] is True and len(found["tests"]) == 1
test = found["tests"][0]
assert (test["tasks"], test["items"], test["iterations"], len(test["results"])) == (2, 20, 2, 20)
for row in test["results"]:
    assert abs(row["ops_per_second"] - row["count"] / row["seconds"]) < 1e-6 * row["ops_per_second"]
first = test["summary"][0]
assert first["operation"] == "Directory creation" and first["rate"]["max"] > 0
PYTHON
verdict "JSON has each phase of each iteration and the summary" $?

for bad in '-n 1 -I 1:give one of the two' '-n 3 -b 2 -z 2:7 folders' '-n 1 -a S3:POSIX alone' \
    '-n 1 -q:no option -q' '-w 1:give -n' '-n 1 -g:not offered'; do
    # shellcheck disable=SC2086 # the words of a command line
    alone ${bad%%:*}
    [ $? = 2 ] && has "${bad#*:}" err
    verdict "bad usage is explained, exit code 2: ${bad%%:*}" $?
done

alone -n 1 -d /proc/nowhere
[ $? = 1 ] && has 'cannot make the folder /proc/nowhere' err
verdict "a place that cannot be written is told, exit code 1" $?

timeout 100 "$WEFT" bench mdtest -n 1 -d full >/dev/full 2>err
[ $? = 1 ] && has 'results cannot be written' err
verdict "results that cannot be written are an error" $?

if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016 # expanded inside
    unshare -m bash -c 'mkdir small && mount -t tmpfs -o size=4m none small &&
        exec timeout 200 "$1" run -n 2 --mpi mpich --transport native -- \
            "$1" bench mdtest -v -n 50 -w 100k -e 1k -d small' _ "$WEFT" >out 2>err
    [ $? = 1 ] && has 'No space left on device.*make room' err &&
        has 'stopped in iteration 0' err &&
        has '^V-1:   Directory removal ' && has '^   Directory creation +[1-9]' &&
            has '^   File creation +0.000'
    verdict "a full disk ends the run on all ranks, and what was measured is printed, exit code 1" \
        $?
else
    skip "a full disk" "needs root and mount namespaces"
fi

# A rank that is killed takes the others with it, and what was measured before is there.
mdtest 3 mpich -v -F -C -n 100000000 -d killed &
run=$!
kill_a_rank 'bench mdtest -v -F -C -n 100000000 -d killed' \
    test -e killed/test-dir.0-0/mdtest_tree.0/file.mdtest.2.5
wait "$run"
status=$?
[ "$status" != 0 ] && [ "$status" != 124 ] && has '^V-1:   Tree creation ' &&
    nobody_runs '-n 100000000 -d killed'
verdict "a killed rank ends the run with an error, and what was measured before is printed" $?

summary

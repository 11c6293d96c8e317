#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The page of `weft bench compare` in a real browser: a made-up comparison is rendered, then opened,
# sorted, saved, darkened, made narrow and printed in headless Chromium. Screenshots are left in
# report/report-test/ for a look. Takes one to two minutes on two cores. `run.sh PAGE` opens an
# existing page instead.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
shots=report/report-test
weft=${WEFT:-dist/bin/weft}
# shellcheck source=tests/reports.sh
. tests/reports.sh

# limits AGAINST MOST: a threshold for latency.
limits() {
    printf '{"thresholds":[{"benchmark":"latency","against":"%s","at_most":%s}]}' "$1" "$2" \
        >"$work/limits.json"
}

# rendered: a page, its tables and its pictures from a journal, without measuring; the exit code
# says what crossed a threshold.
rendered() {
    local code
    python3 tests/report/fixture.py "$work" || { not_ok 'a comparison is made up'; return; }
    if "$weft" bench compare --render --out "$work" >"$work/text" 2>"$work/talk"; then
        ok 'reports are written anew from a journal'
    else
        not_ok "reports are written anew from a journal: $(tail -n 3 "$work/talk")"
        return
    fi
    local file
    for file in index.html summary.json results.csv junit.xml compare.svg; do
        if [ -s "$work/$file" ]; then ok "$file is there"; else not_ok "$file is there"; fi
    done
    if python3 -c 'import sys, xml.dom.minidom as dom; [dom.parse(path) for path in sys.argv[1:]]' \
        "$work/junit.xml" "$work/compare.svg"; then
        ok 'JUnit and SVG are well-formed XML'
    else
        not_ok 'JUnit and SVG are well-formed XML'
    fi
    if grep -q 'geometric mean' "$work/text" && grep -q 'at most 0.8' "$work/text"; then
        ok 'the table of goals is printed'
    else
        not_ok 'the table of goals is printed'
    fi
    check "what README and the page say is complete" python3 tests/report/words.py "$work"
    # A journal of an earlier version, with the words of that time.
    sed -e 's/"type": "run"/"type": "turn"/' -e 's/"configurations":/"entrants":/' \
        -e 's/"benchmarks":/"disciplines":/' \
        "$work/runs.jsonl" >"$work/old.jsonl"
    limits "previous" 1
    check 'a journal of an earlier version is read' "$weft" bench compare --render --out "$work" \
        --thresholds "$work/limits.json" --previous "$work/old.jsonl"
    limits "native" 0.5
    "$weft" bench compare --render --out "$work" --thresholds "$work/limits.json" >/dev/null \
        2>"$work/talk"
    code=$?
    if [ "$code" = 1 ] &&
        grep -q 'worse than allowed: openmpi over weft: latency, 2 ranks' "$work/talk"; then
        ok 'a crossed threshold is named, and the exit code is 1'
    else
        not_ok "a crossed threshold is named, and the exit code is 1: it is $code"
    fi
}

# browse PAGE: its lines are counted here.
browse() {
    local line
    if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
        skip 'the page in a browser' \
            'chromium or chromedriver is not installed; scripts/setup.sh test installs both'
        return
    fi
    while IFS= read -r line; do
        case $line in
        'ok - '*) ok "${line#ok - }" ;;
        'not ok - '*) not_ok "${line#not ok - }" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done < <(timeout 300 python3 tests/report/browser.py "$1" "$shots" 2>&1 ||
        echo "not ok - the browser checks end with status $?")
}

if [ $# = 1 ]; then
    browse "$1"
else
    rendered
    check "README's table stands between its marks" scripts/readme-results.py --check
    check 'the tables between hosts are made of a comparison' \
        python3 tests/report/hosts.py "$work/hosts"
    check 'the tables between hosts say what their figures say' scripts/readme-hosts.py --check
    check 'the tables of collectives are made of a comparison' \
        python3 tests/report/collectives.py "$work/collectives"
    check 'the tables of collectives say what their figures say' \
        scripts/readme-collectives.py --check
    check 'the tables of ranks that share cores say what their figures say' \
        scripts/readme-shared-cores.py --check
    check 'the tables of mounts are made of their runs' \
        python3 tests/report/mounts.py "$work/mounts"
    check 'the tables of mounts say what their figures say' scripts/readme-mount.py --check
    [ ! -s "$work/index.html" ] || browse "$work/index.html"
fi
summary

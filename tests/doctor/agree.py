# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whether what `weft doctor` says agrees with itself and with what a test expects.

    agree.py JSON TEXT EXIT-CODE EXPECTED...

Every check has what its state needs; counts, verdict, exit code and, if it is not empty, the text
say the same. EXPECTED is
CHECK=STATUS=PATTERN: there is a check whose name begins so, of that status (or one of several with
| between them), and the pattern is found in what is said of it."""

import json
import re
import sys

LABELS = {"ok": "ok", "not_tried": "not tried", "warn": "warn", "fail": "fail"}
NEEDED = {"ok": [], "not_tried": ["how"], "warn": ["fix"], "fail": ["fix"]}
CODES = {"ok": 0, "warn": 1, "fail": 2}


def agree(found, text, code):
    counts = dict.fromkeys(LABELS, 0)
    lines = text.splitlines()
    for check in found["checks"]:
        status, name = check["status"], check["name"]
        counts[status] += 1
        for field in ["value", "why", *NEEDED[status]]:
            assert check[field], f"{name} is {status} and has no {field}: {check}"
        for field in {"how", "fix"} - set(NEEDED[status]):
            assert not check[field], f"{name} is {status} and has a {field}: {check}"
        label = re.compile(rf"{LABELS[status]} +{re.escape(name)} ")
        is_said = any(label.match(line) for line in lines)
        assert is_said or not lines, f"the text does not say {status} of {name}"
    assert counts == found["counts"], (counts, found["counts"])
    worst = "fail" if counts["fail"] else "warn" if counts["warn"] else "ok"
    assert found["status"] == worst and found["exit_code"] == CODES[worst] == code, (worst, code)
    if not lines:
        return
    last = lines[-1]
    said = [int(number) for number in re.findall(r"\d+", last)]
    order = ["ok", "warn", "fail", "not_tried"]
    assert said == [sum(counts.values()), *(counts[one] for one in order)], (last, counts)
    assert ("does not work" in last) == (worst == "fail"), last


def expect(found, wanted):
    name, statuses, pattern = wanted.split("=", 2)
    named = [check for check in found["checks"] if check["name"].startswith(name)]
    for check in named:
        said = " ".join(check[field] for field in ("value", "limit", "why", "fix", "how"))
        if check["status"] in statuses.split("|") and re.search(pattern, said):
            return
    assert False, f"no check {wanted}: {json.dumps(named, indent=1)}"


def main(json_path, text_path, code, *expected):
    found = json.load(open(json_path))
    agree(found, open(text_path).read(), int(code))
    for wanted in expected:
        expect(found, wanted)


main(*sys.argv[1:])

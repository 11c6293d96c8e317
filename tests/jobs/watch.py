#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Looks for keys of jobs in the command lines and environments of all processes, again and again
until it gets SIGTERM. Ends with 1 where a key stands on a command line, or in the environment of a
process that is not of that key's job, or where no rank had one.

watch.py REPORT
"""

import os
import signal
import sys
import time

KEY = b"FI_WEFT_JOB_KEY="
JOB = b"SLURM_JOB_ID="


def read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it has ended
        return []


def value(environment, name):
    return next((one[len(name):] for one in environment if one.startswith(name)), b"")


def main():
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    command_lines, environments = set(), {}
    while True:
        is_last = bool(ending)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid():
                continue
            command_lines.add(tuple(read(pid, "cmdline")))
            environment = read(pid, "environ")
            if environment:
                environments[tuple(environment)] = environment
        if is_last:
            break
        time.sleep(0.005)
    report(sys.argv[1], command_lines, environments.values())


def report(path, command_lines, environments):
    keys = {}  # by key: the job
    for environment in environments:
        key = value(environment, KEY)
        if key:
            keys.setdefault(key, set()).add(value(environment, JOB))
    found = []
    for key, jobs in keys.items():
        if len(jobs) != 1 or b"" in jobs:
            found.append(f"a key is in environments of jobs {sorted(jobs)}")
        for line in command_lines:
            if any(key in word for word in line):
                found.append(f"a key is on the command line of {line[0]}")
        for environment in environments:
            if any(key in one and not one.startswith(KEY) for one in environment):
                found.append("a key is in another variable")
    if not keys:
        found.append("no process has a key")
    with open(path, "w") as file:
        print(f"{len(command_lines)} command lines, {len(keys)} keys", *found, sep="\n", file=file)
    sys.exit(bool(found))


main()

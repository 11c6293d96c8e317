#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a program whose MPI was told by hand to use Weft, and says what Weft carried of it.

Usage: carried.py LEAST COMMAND... Exit code: the command's, or 1 if fewer than LEAST operations
went through Weft. weft run hears the same reports (FI_WEFT_REPORT) of the jobs that it starts
itself.
"""

import json
import os
import socket
import subprocess
import sys


def main() -> int:
    least, command = int(sys.argv[1]), sys.argv[2:]
    name = f"weft-carried-{os.getpid()}"
    hears = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    hears.bind("\0" + name)
    hears.listen(1024)
    hears.setblocking(False)
    status = subprocess.run(command, env={**os.environ, "FI_WEFT_REPORT": name},
        check=False).returncode
    carried: dict[str, int] = {}
    while True:
        try:
            connection, _ = hears.accept()
        except BlockingIOError:
            break
        with connection, connection.makefile() as words:
            report = json.load(words)
        for way, count in report.get("sent", {}).items():
            carried[way] = carried.get(way, 0) + count["messages"]
    used = {way: count for way, count in carried.items() if count}
    print("carried by Weft:", ", ".join(f"{way} {count}" for way, count in used.items())
        or "nothing")
    if status == 0 and sum(used.values()) < least:
        print(f"fewer than {least} operations went through Weft")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

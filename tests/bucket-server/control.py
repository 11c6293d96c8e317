#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One request without signature, for the control path of weft-bucket-server; prints the answer.

control.py URL [METHOD [JSON]]
"""

import sys
import urllib.request


def main():
    url = sys.argv[1]
    method = sys.argv[2] if len(sys.argv) > 2 else "GET"
    body = sys.argv[3] if len(sys.argv) > 3 else None
    data = body.encode() if body else None
    request = urllib.request.Request(url, data=data, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        sys.stdout.write(answer.read().decode())


if __name__ == "__main__":
    main()

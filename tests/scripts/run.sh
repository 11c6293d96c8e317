#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The scripts of scripts/ where something comes in between: scripts/test.sh is ended while suites
# run; the network fails while scripts/setup.sh fetches, Rust is too old or the disk too small. In
# copies of the project that hold made-up programs and suites. Seconds.
# Usage: tests/scripts/run.sh [ended|setup]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
wanted=("$@")

for cases in ended setup; do
    # shellcheck source=/dev/null
    is_wanted "$cases" && . "tests/scripts/$cases.sh"
done
summary

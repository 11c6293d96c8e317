#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The scripts of scripts/ where something comes in between: scripts/test.sh is ended while suites
# run. In copies of the project that hold made-up programs and suites. Seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
wanted=("$@")

if is_wanted ended; then
    # shellcheck source=tests/scripts/ended.sh
    . tests/scripts/ended.sh
fi
summary

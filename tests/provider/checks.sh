# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Checks of the built provider by libfabric programs. Sourced by the run.sh of such suites in the
# project's root: sets `folder`, the provider's, for libfabric too, and `work`, a folder that is
# removed at the end.

folder=$(realpath -m "${WEFT_PROVIDER_DIR:-dist/lib/weft}")
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_PROVIDER_PATH=$folder
unset "${!FI_WEFT_@}" FI_PROVIDER FI_LOG_LEVEL

ok() { printf 'ok %s\n' "$1"; passed=$((passed + 1)); }
not_ok() { printf 'not ok %s: %s\n' "$1" "$2"; failed=$((failed + 1)); }
skip() { printf 'skip %s: %s\n' "$1" "$2"; skipped=$((skipped + 1)); }

# listens PROCESS PORT: until somebody listens at this TCP port here; false when the process is gone
# before.
listens() {
    local hex
    hex=$(printf ':%04X 0*:0000 0A ' "$2")
    # All is read: who is left by grep -q ends with a signal, and that is no success here.
    until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep " [0-9A-F]*$hex" >/dev/null; do
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.05
    done
}

finish() {
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
    exit
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Starts and ends the S3 server of the tests. Sourced after tests/reports.sh; the suite's trap must
# call stop_bucket_server if it sets one of its own.

bucket_server_process=

# need_bucket_server: BUCKET_SERVER is the command, built if it is not there.
need_bucket_server() {
    BUCKET_SERVER=${BUCKET_SERVER:-${CARGO_TARGET_DIR:-target}/debug/weft-bucket-server}
    [ -x "$BUCKET_SERVER" ] && return
    cargo build --locked --quiet -p weft-bucket-server && [ -x "$BUCKET_SERVER" ] && return
    printf 'run.sh: %s is missing, and could not be built\n' "$BUCKET_SERVER" >&2
    exit 2
}

# start_bucket_server OPTIONS...: BUCKET_URL is then its endpoint.
start_bucket_server() {
    "$BUCKET_SERVER" "$@" >"$work/url" 2>"$work/server" &
    bucket_server_process=$!
    trap 'stop_bucket_server; rm -rf "$work"' EXIT
    bucket_server_is_there() { [ -s "$work/url" ]; }
    wait_for 100 bucket_server_is_there || { cat "$work/server" >&2; exit 2; }
    BUCKET_URL=$(head -n 1 "$work/url")
}

stop_bucket_server() {
    [ -n "$bucket_server_process" ] || return 0
    kill "$bucket_server_process" 2>/dev/null
    wait "$bucket_server_process" 2>/dev/null
    bucket_server_process=
}

# control METHOD PATH [JSON]: the server's control path, as faults, counters, objects.
control() {
    python3 tests/bucket-server/control.py "$BUCKET_URL/-/$2" "$1" "${@:3}"
}

# faults JSON: sets these, and leaves the others.
faults() { control POST faults "$1" >/dev/null; }

# no_faults: those of the start.
no_faults() { control DELETE faults >/dev/null; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The S3 server of the tests, before boto3: first the laws that every S3 server keeps, which moto
# has to keep as well where it can, then its faults and counters.
# Usage: tests/bucket-server/run.sh
#
# BUCKET_SERVER names another weft-bucket-server, BUCKET_PYTHON another Python with boto3 and moto.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/ports.sh
. tests/ports.sh
PYTHON=${BUCKET_PYTHON:-$PWD/.env/bucket/bin/python}
export AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret AWS_EC2_METADATA_DISABLED=true

"$PYTHON" -c 'import boto3' 2>/dev/null ||
    skip_all "the S3 server of the tests" "boto3 is not in $PYTHON (scripts/setup.sh test)"
# shellcheck source=tests/bucket-server/server.sh
. tests/bucket-server/server.sh
need_bucket_server

# laws NAME COMMAND...: counts the lines that a Python judge prints.
laws() {
    local line name=$1
    shift
    "$@" >"$work/laws" 2>&1
    while IFS= read -r line; do
        case $line in
        'ok - '*) ok "$name: ${line#ok - }" ;;
        'not ok - '*) not_ok "$name: ${line#not ok - }" ;;
        *' passed, '*) ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <"$work/laws"
    tail -n 1 "$work/laws" | grep -q ' passed, ' || not_ok "$name: every law was asked"
}

# laws_of_a_store URL: those of the mount's store, over the SDK. Built as scripts/test.sh does: for
# one package alone cargo would choose other features, and compile AWS's SDK once more.
laws_of_a_store() {
    WEFT_STORE_URL=$1 WEFT_STORE_WITHOUT=$store_known AWS_REGION=us-east-1 \
        cargo test --workspace --exclude weft-structure --locked --quiet --test conformance \
        server_of_others | tee "$work/laws"
    [ "${PIPESTATUS[0]}" = 0 ] && grep -q '^test result: ok. 1 passed' "$work/laws"
}

start_bucket_server --bucket conform --bucket faults
laws weft "$PYTHON" tests/bucket-server/conform.py "$BUCKET_URL"
laws faults "$PYTHON" tests/bucket-server/faults.py "$BUCKET_URL"
stop_bucket_server

# What moto 5.2.5 does not do as S3: it takes any key, checks no checksums, has no conditions on
# copies and only one on completions, and says other codes.
known=the_older_list_gives_the_same,parts_make_an_object,completion_keeps_its_conditions
known+=,wrong_completions_are_refused,copies_keep_metadata_and_the_conditions_on_their_source
known+=,copies_keep_the_conditions_on_their_destination,wrong_keys_are_refused
known+=,checksums_are_verified_kept_and_given_back
store_known=copies,copy-targets,uploads,completions
port=$(free_ports 1)
"$PYTHON" -m moto.server -H 127.0.0.1 -p "$port" >"$work/moto" 2>&1 &
moto=$!
moto_is_there() {
    "$PYTHON" tests/bucket-server/control.py "http://127.0.0.1:$port/conform" PUT \
        >"$work/out" 2>&1
}
if wait_for 60 moto_is_there; then
    laws moto "$PYTHON" tests/bucket-server/conform.py "http://127.0.0.1:$port" --without "$known"
    check "moto: the laws of a store" laws_of_a_store "http://127.0.0.1:$port"
else
    skip "moto" "it did not start: $(tail -n 1 "$work/moto")"
fi
kill "$moto" 2>/dev/null
wait "$moto" 2>/dev/null

check "wrong usage exits with 2 and says what is wrong" \
    ends 2 "unknown field" "$BUCKET_SERVER" --faults '{"first_byte": 30}'
check "a port in use exits with 1 and is named" \
    ends 1 "cannot listen on 127.0.0.1:1x" "$BUCKET_SERVER" --listen 127.0.0.1:1x

summary

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The laws of a store (mount/s3/tests/conformance.rs) before S3 servers of others, versitygw and
# s3s-fs: alone, and with what stands in for the conditions that they lack. tests/bucket-server has
# moto.
# Usage: tests/stores/run.sh [NAME]...
#
# The servers are no part of `make test`: `make check-stores` builds them into .env/stores/bin.
# Without them the cases are skipped. STORES names another folder, LAWS the compiled tests in place
# of cargo's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# `wanted` is read by is_wanted.
# shellcheck disable=SC2034
wanted=("$@")
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/ports.sh
. tests/ports.sh
STORES=${STORES:-.env/stores/bin}
read -ra LAWS <<<"${LAWS:-cargo test --locked --quiet -p weft-s3 --test conformance --}"
PYTHON=${BUCKET_PYTHON:-$PWD/.env/bucket/bin/python}
export AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret AWS_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null
export AWS_SHARED_CREDENTIALS_FILE=/dev/null
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

port=$(free_ports 1)
url=http://127.0.0.1:$port

laws() { # laws WITHOUT [LACKS]: as the suite's variables have it
    local -a lacks=()
    [ $# -lt 2 ] || lacks=("WEFT_STORE_LACKS=$2")
    env WEFT_STORE_URL="$url" WEFT_STORE_WITHOUT="$1" "${lacks[@]}" "${LAWS[@]}" \
        server_of_others --nocapture
}

bucket_is_there() { # and it is made first
    "$PYTHON" - "$url" <<'EOF'
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
if "conform" not in [one["Name"] for one in s3.list_buckets()["Buckets"]]:
    s3.create_bucket(Bucket="conform")
EOF
}

# before NAME COMMAND...: a case before a server that has nothing in it yet, in $work/data.
before() {
    local name=$1
    shift
    rm -rf "$work/data" && mkdir "$work/data"
    "$STORES/$server_name" "${server_options[@]}" >"$work/said" 2>&1 &
    server=$!
    if wait_for 100 bucket_is_there >"$work/why" 2>&1; then
        check "$name" "$@"
    else
        not_ok "$name" && cat "$work/why" "$work/said"
    fi
    kill "$server"
    wait "$server" 2>/dev/null
    server=
}

# judge NAME ALONE LACKS HELPED OPTIONS...: laws that the server is known not to keep by itself,
# conditions that it is to be found to lack (none: that is not judged), and laws that it does not
# keep with those stood in for.
judge() {
    local alone=$2 lacks=$3 helped=$4
    server_name=$1
    server_options=("${@:5}")
    is_wanted "$server_name" || return 0
    if ! [ -x "$STORES/$server_name" ]; then
        skip "$server_name" "it is not in $STORES; make check-stores builds it"
        return 0
    fi
    before "$server_name keeps the laws, but for: ${alone:-none}" laws "$alone"
    [ -n "$lacks" ] || return 0
    before "$server_name, with $lacks stood in for, keeps the laws, but for: ${helped:-none}" \
        laws "$helped" "$lacks"
}

# versitygw 1.8.0 takes no bytes for a key that ends in `/`, heeds no conditions on the target of a
# copy, and gives a wrong CRC64NVME for what the law of uploads makes (a part that was sent twice,
# another one that was copied, numbers with a gap), which the SDK notices.
export ROOT_ACCESS_KEY=weft ROOT_SECRET_KEY=weft-secret
judge versitygw objects,listings,copy-targets,uploads CopyObject objects,listings,uploads \
    --quiet --port "127.0.0.1:$port" posix "$work/data"

# s3s-fs 0.14.1 keeps no conditions on DeleteObject and none on the target of a copy, takes no bytes
# for a key that ends in `/`, and wants the parts of an upload without gaps in their numbers.
judge s3s-fs objects,listings,deletes,copy-targets,uploads '' '' \
    --port "$port" --access-key weft --secret-key weft-secret "$work/data"

summary

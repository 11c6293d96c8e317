# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft doctor --bucket` on the S3 server of the tests. Sourced by run.sh.

# shellcheck source=tests/bucket-server/server.sh
. "$ROOT/tests/bucket-server/server.sh"
mounter=${WEFT_MOUNT:-${CARGO_TARGET_DIR:-target}/debug/weft-mount}
if [ ! -c /dev/fuse ] || [ "$(id -u)" != 0 ]; then
    skip bucket 'there is no /dev/fuse, or this is not root'
else
    need_bucket_server
    [ -x "$mounter" ] || cargo build --locked --quiet -p weft-daemon
    mkdir -p "$work/mounting/bin"
    cp -r "$(dirname "$WEFT")/../lib" "$work/mounting/" 2>/dev/null
    cp "$WEFT" "$work/mounting/bin/weft" && cp "$mounter" "$work/mounting/bin/weft-mount"
    start_bucket_server --bucket data
    with_bucket() { # with_bucket NAME=VALUE... -- BUCKET
        local variables=()
        while [ "$1" != -- ]; do variables+=("$1"); shift; done
        # Its own folder for what is temporary: others may run a doctor, too.
        env TMPDIR="$work/mounting" AWS_ENDPOINT_URL="$BUCKET_URL" AWS_REGION=us-east-1 \
            AWS_EC2_METADATA_DISABLED=true \
            AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/none AWS_MAX_ATTEMPTS=1 \
            AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret "${variables[@]}" \
            "$work/mounting/bin/weft" doctor --quick --bucket "$2" --json
    }
    # found NAME EXPECTED... -- VARIABLES... -- BUCKET
    found() {
        local expected=() status
        while [ "$1" != -- ]; do expected+=("$1"); shift; done
        shift
        with_bucket "$@" >"$work/json" 2>"$work/errors"
        status=$?
        : >"$work/text"
        cat "$work/errors"
        ! grep -rq weft-secret "$work/json" "$work/errors" &&
            python3 tests/doctor/agree.py "$work/json" "$work/text" "$status" "${expected[@]}" &&
            ! ls -d "$work"/mounting/weft-doctor-* 2>/dev/null
    }
    check 'bucket: one with nothing in it' found 'store=ok=answered' \
        "store's clock=ok=this host is" 'credentials=ok=AWS_ACCESS_KEY_ID' \
        'bucket=ok=nothing in it' -- -- s3://data
    control POST objects '{"bucket": "data", "count": 3, "prefix": "a", "size": 4194304}' \
        >/dev/null
    check 'bucket: it is listed, and a file read' found 'bucket=ok=3 names, 4.0 MiB read in order' \
        -- -- s3://data
    check 'bucket: one that is not there' found 'bucket=fail=.' -- -- s3://other
    check 'bucket: another secret' found 'bucket=fail=.' -- AWS_SECRET_ACCESS_KEY=wrong -- s3://data
    check 'bucket: nobody at the address' found 'store=fail=not reached' 'bucket=fail=.' -- \
        AWS_ENDPOINT_URL=http://127.0.0.1:9 -- s3://data
    check 'bucket: no name of one' found 'bucket=fail=s3://BUCKET' -- -- data
    stop_bucket_server
fi

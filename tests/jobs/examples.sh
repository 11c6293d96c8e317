# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The files of examples/jobs under Slurm, as they stand; the programs that they name are on the
# PATH. Sourced by run.sh.

from_file() { # from_file FILE OPTIONS...
    PATH=$(dirname "$WEFT"):$PATH submit --spec "$ROOT/examples/jobs/$1" "${plain[@]}" "${@:2}" &&
        weft wait "$id" >"$work/out" 2>&1
    local status=$?
    cat "$work/said" >>"$work/out"
    weft logs "$id" >>"$work/out" 2>&1 && [ $status = 0 ] && grep -q '^8  *[0-9]' "$work/out"
}
from_file osu-latency.yaml
report $? 'the example of osu_latency on two nodes'
from_file shared-memory.json -n 2 &&
    submit --spec "$ROOT/examples/jobs/shared-memory.json" "${plain[@]}" -n 2 -- \
        df -m --output=size /dev/shm && weft wait "$id" >"$work/out" 2>&1 &&
    weft logs "$id" >"$work/out" 2>&1 && [ "$(grep -c '^ *4096$' "$work/out")" = 2 ]
report $? "the example of AWS Batch, and each rank has a /dev/shm of 4096 MiB"

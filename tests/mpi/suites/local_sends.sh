# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Sends that are local, as the standard has it: two ranks send each other 2,000 messages, wait
# outside MPI for one another, and only then receive (tests/mpi/standard/local_sends.c). Over Weft
# by both routes; --transport native and tcp for comparison. There only the nonblocking calls, which
# alone must be local: over the MPIs' own transports MPI_Send waits for its receiver after some
# hundred messages, and Open MPI's MPI_Bsend too.

LOCAL_COUNT=2000 LOCAL_BYTES=8,1024,4096,8192

# local_run MPI ROUTE CALLS BYTES: FI_WEFT_ROUTE is nothing to other transports.
local_run() {
    local folder
    folder=$(mktemp -d "$WORK/files.XXXX")
    FI_WEFT_ROUTE=$2 weft_run "$1" 2 60 "$WORK/local_sends-$1" "$folder" "$3" "$LOCAL_COUNT" "$4"
}

local_suite() {
    local mpi log calls=isend,issend
    [ "$TRANSPORT" != weft ] || calls=isend,send,bsend,issend
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "local sends on $mpi" || continue
        log=report/mpi-tests/local_sends-$mpi.log
        if ! compile_with "$mpi" tests/mpi/standard/local_sends.c "$WORK/local_sends-$mpi" \
            >"$log" 2>&1; then
            skip "local sends on $mpi" "its mpicc cannot compile here; see $log"
            continue
        fi
        run_case "local sends, $calls, $mpi" 60 local_run "$mpi" auto "$calls" "$LOCAL_BYTES"
        [ "$TRANSPORT" = weft ] || continue
        run_case "local sends by datagrams, $mpi" 60 local_run "$mpi" srd "$calls" 8,8192
    done
}

local_suite

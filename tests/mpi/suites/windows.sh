# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Open MPI's windows over Weft: BTL ofi below osc/rdma, which turns MPI_Put, MPI_Get and the atomics
# into fi_write, fi_read and fi_atomic. weft run leaves windows to other components of Open MPI, so
# its own mpirun starts these, as a user would by hand (docs/conformance.md). The only transports
# allowed are Weft and the one to oneself, and Weft must have carried the operations. Every byte is
# checked (-c).

WINDOWS_LATENCIES=put_latency,get_latency,acc_latency,get_acc_latency,fop_latency,cas_latency
WINDOWS_BANDWIDTHS=put_bw,get_bw

# windows_run MPI LEAST ARGUMENTS...: weft bench, and at least so many operations through Weft.
windows_run() {
    local mpi=$1 least=$2 prefix=/usr launcher include=mtl_ofi_provider_include
    shift 2
    local settings=(--mca pml cm --mca mtl ofi --mca btl 'ofi,self' --mca osc rdma
        --mca btl_ofi_mode 0)
    launcher=/usr/bin/mpirun.openmpi
    if [ "$mpi" = openmpi ]; then
        prefix=$ROOT/.env/mpi/openmpi include=opal_common_ofi_provider_include
        launcher=$prefix/bin/mpirun
        export WEFT_MPI_LIBRARY=$prefix/lib/libmpi.so.40
        settings+=(--map-by ':OVERSUBSCRIBE' -x WEFT_MPI_LIBRARY)
    else
        settings+=(--oversubscribe)
    fi
    [ "$(id -u)" != 0 ] || settings+=(--allow-run-as-root)
    settings+=(--mca "$include" weft -x FI_PROVIDER=weft
        -x "FI_PROVIDER_PATH=$(dirname "$(dirname "$WEFT")")/lib/weft" -x FI_WEFT_REPORT)
    PATH=$prefix/bin:$PATH tests/mpi/carried.py "$least" timeout 100 "$launcher" -n 2 \
        "${settings[@]}" "$WEFT" bench "$@" -c
}

windows_suite() {
    local mpi origin
    for mpi in debian-openmpi openmpi; do
        mpi_is_here "$mpi" "windows on $mpi" || continue
        for origin in create dynamic; do
            run_case "windows, latencies, $origin, $mpi" 110 \
                windows_run "$mpi" 200 "$WINDOWS_LATENCIES" -m 8:65536 -i 10 -x 2 -w "$origin"
        done
        run_case "windows, bandwidths, fence, $mpi" 110 \
            windows_run "$mpi" 200 "$WINDOWS_BANDWIDTHS" -m 8:65536 -i 3 -x 1 -W 8 -s fence \
            -w create
    done
}

if [ "$TRANSPORT" = weft ]; then windows_suite; fi

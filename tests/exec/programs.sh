# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The MPIs of the suites, and programs built for them. Sourced by suites that have ROOT and `work`.

# launcher_of MPI: its path, whether or not it is installed.
launcher_of() {
    if [ "$1" = debian-openmpi ]; then
        echo /usr/bin/mpirun.openmpi
    else
        echo "$ROOT/.env/mpi/$1/bin/mpiexec"
    fi
}

# build MPI [SOURCE]: the program for that MPI, as WORK/NAME-MPI; by default exchange.c. Intel MPI
# and MPICH have one binary interface.
build() {
    local prefix=$ROOT/.env/mpi/$1 headers=$ROOT/.env/mpi/${1/intel/mpich} library=libmpi.so.12
    local source=${2:-tests/exec/exchange.c} program
    program=$work/$(basename "$source" .c)-$1
    [ "$1" = openmpi ] && library=libmpi.so.40
    if [ "$1" = debian-openmpi ]; then
        mpicc.openmpi -O1 -o "$program" "$source"
    else
        prefix=$(realpath "$prefix/lib")
        cc -O1 -I "$headers/include" -o "$program" "$source" -L "$prefix" \
            "-l:$library" -Wl,--enable-new-dtags,-rpath,"$prefix"
    fi
}

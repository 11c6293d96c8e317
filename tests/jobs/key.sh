# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Where the key of a job is, and where it is not: watch.py looks at every process of this machine
# from before the job until after it. Sourced by run.sh.

# Files that anything could have left it in, this suite's memory and Slurm's state among them.
key_in_files() { grep -rlF -f - "$work" "${OWN_SPACE:-$work}" /dev/shm . <<<"$1" 2>/dev/null; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

watched() { # watched MPI WAY: a job on two nodes, two ranks each
    local key watch status=1
    rm -rf "$work/phase" && mkdir "$work/phase"
    python3 "$ROOT/tests/jobs/watch.py" "$work/watched" &
    watch=$!
    all_exchange() { [ "$(find "$work/phase" -name 'exchanged-*' | wc -l)" = 4 ]; }
    submit -N 2 --ppn 2 ${2:+--pmi "$2"} -- "$work/phases-$1" run "$work/phase" &&
        wait_for 100 all_exchange >"$work/out" && {
        key=$(pgrep -f "^$work/phases-$1" | head -n 1)
        key=$(tr '\0' '\n' <"/proc/$key/environ" | sed -n 's/^FI_WEFT_JOB_KEY=//p')
        # What another user of the machine can read: command lines, and no environment.
        as_nobody cat /proc/[0-9]*/{cmdline,environ} >"$work/of-others" 2>/dev/null
        [ ${#key} = 64 ] && grep -q phases "$work/of-others" &&
            ! grep -qF -f - "$work/of-others" <<<"$key" && [ -z "$(key_in_files "$key")" ]
        status=$?
        key_in_files "$key" | sed 's/^/the key is in /' >>"$work/out"
    }
    weft cancel --wait "$id" >>"$work/out" 2>&1
    kill -TERM "$watch"
    wait "$watch" && [ $status = 0 ] && [ -z "$(key_in_files "$key")" ]
    status=$?
    cat "$work/watched" >>"$work/out"
    return $status
}
for mpi in "${built[@]}"; do
    # For time: where the suite is asked for nothing else, one MPI of each interface, pmix and pmi2.
    [[ " openmpi $any " == *" $mpi "* ]] || [ ${#wanted[@]} != 0 ] || continue
    (cd "$ROOT" && build "$mpi" tests/jobs/phases.c) >"$work/out" 2>&1
    for way in '' mpirun; do
        [ "$mpi" = "$any" ] || [ -z "$way" ] || [ ${#wanted[@]} != 0 ] || continue
        watched "$mpi" "$way"
        report $? "the key is in the job's environments, and nowhere else, $mpi${way:+ by $way}"
    done
done

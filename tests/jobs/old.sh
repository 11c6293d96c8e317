# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `weft submit` on Slurms that are too old, and how they list their PMIs. They are scripts that give
# the answers of those versions as their users have published them, since none of these Slurms
# runs on a Debian of today. Sourced by run.sh; takes $program.

old=$work/old
mkdir "$old"
printf '#!/bin/sh\n[ "$1" = --version ] && exec cat "%s/version"\ntouch "%s/queued"\n' \
    "$old" "$old" >"$old/sbatch"
printf '#!/bin/sh\ncase $1 in --version) cat "%s/version" ;; *) cat "%s/list" >&2 ;; esac\n' \
    "$old" "$old" >"$old/srun"
chmod +x "$old/sbatch" "$old/srun"
long_ago() { env PATH="$old:/usr/bin:/bin" "$WEFT" "$@"; }

# old_slurm VERSION LIST: how it lists its PMIs.
old_slurm() {
    echo "slurm $1" >"$old/version"
    printf "$2" >"$old/list"
    ends 1 "slurm $1 is too old: Weft needs 22.05 or newer" \
        long_ago submit -n 2 --mpi mpich -- "$program" && [ ! -e "$old/queued" ] &&
        ends 0 'srun --mpi=pmi2' long_ago submit --dry-run -n 2 --mpi mpich -- "$program"
    report $? "Slurm $1 is refused before a job is queued; a script for it can be printed"
}
old_slurm 17.11.13 'srun: MPI types are...\nsrun: openmpi\nsrun: pmi2\nsrun: none\n'
old_slurm 20.11.9 'srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n'
old_slurm 21.08.8 'MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n\tpmix\n'

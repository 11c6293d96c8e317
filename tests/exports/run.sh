#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What `weft export` makes, before those who read it: the code of AWS, of ParallelCluster and of
# Kubernetes; the kernel, where Slurm's script sizes a /dev/shm; weft run, with the example jobs.
# Usage: tests/exports/run.sh [NAME]...
#
# The owners' code comes from the Python package index, and is not part of `make test`'s set-up:
# `make check-exports` fetches it (60 MB) into .env/exports. Without it those cases are skipped.
# WEFT names another weft command, WEFT_EXPORTS another folder than .env/exports. Twenty seconds.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD wanted=("$@")
# shellcheck source=tests/reports.sh
. tests/reports.sh
need_weft
PYTHON=${WEFT_EXPORTS:-.env/exports}/bin/python
BED=
finish() {
    [ -n "$BED" ] && tests/testbed/testbed.sh "$BED" down 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# case NAME COMMAND...: if it is wanted.
case_of() {
    is_wanted "$1" || return 0
    check "$@"
}

cat >"$work/full.yaml" <<'YAML'
version: 2
name: wave.solver
program: ./solve
arguments: [input.dat, --steps, 100, "$(HOME) $$", "", "ä: 'b'"]
folder: /work
ranks: 8
nodes: 2
ranks_per_node: 4
mpi: intel
environment: {OMP_NUM_THREADS: 1, TEXT: "no"}
shm_size: 1536m
mounts:
  - {source: s3://abc/d/e, target: /data, read_only: true}
  - {source: s3://abcd, target: /more, shared_writes: true}
time_limit: 1h
retries: 2
dependencies: [{job: 17}]
YAML
cat >"$work/array.yaml" <<'YAML'
version: 1
program: /opt/9 lives/run
ranks: 4
shm_size: try:5k
environment: {A: b}
time_limit: 1.5
array: {size: 5, at_once: 2}
YAML
printf 'version: 1\nprogram: a\n' >"$work/least.yaml"
jobs=("$work/full.yaml" "$work/array.yaml" "$work/least.yaml" examples/jobs/*)
for owner in batch cluster pods; do
    if [ -x "$PYTHON" ]; then
        case_of "$owner" "$PYTHON" tests/exports/owners.py "$owner" "$WEFT" "${jobs[@]}"
    else
        skip "$owner" "their code is not here; make check-exports fetches it"
    fi
done

# Slurm's scripts on a mount namespace as Slurm makes one: it is held by a file, and its /dev/shm
# was mounted without a size. All of it runs in a namespace whose /dev/shm stands for the node's.
sized_in_namespace() {
    local version=$1 folder=$work/slurm-$1 bytes before
    mkdir -p "$folder/17" && : >"$folder/17/.ns" || return 1
    "$WEFT" export slurm-shm --slurm "$version" --script "$work/full.yaml" >"$folder/script" &&
        chmod +x "$folder/script" || return 1
    while umount /dev/shm 2>/dev/null; do :; done
    mount -t tmpfs -o size=1g tmpfs /dev/shm || return 1
    # A namespace is bound to a file only where mounts do not spread.
    mount --bind "$folder" "$folder" && mount --make-private "$folder" || return 1
    bytes_of_shm() { "$@" df -B1 --output=size /dev/shm | tail -n 1; }
    before=$(bytes_of_shm)
    if [ "$version" = 22.05 ]; then
        # It is started before there is a namespace.
        SLURM_JOB_MOUNTPOINT_SRC=$folder/17/.17 "$folder/script" || return 1
    fi
    # Slurm binds the namespace first; until it mounts, /dev/shm there is the node's.
    unshare --mount="$folder/17/.ns" sh -c 'sleep 0.5 && umount /dev/shm && sleep 0.2 &&
        mount -t tmpfs tmpfs /dev/shm' || return 1
    if [ "$version" = 24.11 ]; then SLURM_NS=$folder/17/.ns "$folder/script" || return 1; fi
    has_size() {
        [ "$(bytes_of_shm nsenter --mount="$folder/17/.ns" --)" -eq $((1536 << 20)) ]
    }
    wait_for 60 has_size || return 1
    bytes=$(bytes_of_shm)
    [ "$bytes" = "$before" ] || echo "the node's /dev/shm had $before bytes, and has $bytes now"
    umount "$folder/17/.ns" "$folder" /dev/shm
    [ "$bytes" = "$before" ]
}
export -f sized_in_namespace wait_for
export work WEFT
# Linux binds a namespace only to a file of one with a smaller number, and 6.18 gives numbers to
# each processor in advance: both namespaces must come from one processor.
one_processor=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
for version in 24.11 22.05; do
    if unshare --mount true 2>/dev/null; then
        case_of "slurm-$version" taskset -c "$one_processor" \
            unshare --mount bash -c "sized_in_namespace $version"
    else
        skip "slurm-$version" 'mount namespaces are refused here'
    fi
done

# The entry point of Batch's containers: three nodes, of which the last one is the main node.
nodes_meet() {
    local index
    printf '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n' >"$work/shell"
    chmod +x "$work/shell"
    export AWS_BATCH_JOB_NUM_NODES=3 AWS_BATCH_JOB_MAIN_NODE_INDEX=2
    export WEFT_BATCH_FOLDER="$work/a folder" WEFT_BATCH_SSHD=true WEFT_BATCH_SHELL=$work/shell
    for index in 1 0; do
        AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.2 WEFT_BATCH_ADDRESS=10.0.0.$index \
            AWS_BATCH_JOB_NODE_INDEX=$index examples/batch/nodes.sh false &
        others+=($!)
    done
    WEFT_BATCH_ADDRESS=10.0.0.2 AWS_BATCH_JOB_NODE_INDEX=2 WEFT_BATCH_PATIENCE=100 \
        examples/batch/nodes.sh cat "$work/a folder/hosts" >"$work/hosts"
    local status=$?
    kill "${others[@]}"
    wait "${others[@]}" 2>/dev/null
    cat "$work/hosts"
    [ $status = 0 ] && [ "$(paste -sd ' ' "$work/hosts")" = '10.0.0.2 10.0.0.0 10.0.0.1' ]
}
others=()
case_of nodes nodes_meet

# A node that never comes is named, and nothing waits for ever.
a_missing_node_is_told() {
    ! AWS_BATCH_JOB_NUM_NODES=2 AWS_BATCH_JOB_MAIN_NODE_INDEX=0 WEFT_BATCH_SSHD=true \
        WEFT_BATCH_FOLDER=$work/lonely WEFT_BATCH_ADDRESS=10.0.0.7 WEFT_BATCH_PATIENCE=1 \
        examples/batch/nodes.sh true 2>"$work/said" && cat "$work/said" &&
        grep -q 'only these of 2' "$work/said" && grep -q 10.0.0.7 "$work/said"
}
case_of missing-node a_missing_node_is_told

installs() {
    mkdir -p "$work/dist/bin" && cp "$WEFT" "$work/dist/bin/weft" &&
        tar -cf "$work/weft.tar" -C "$work/dist" bin &&
        WEFT_LINK=$work/link examples/parallelcluster/install-weft.sh "$work/weft.tar" \
            --prefix "$work/opt" && "$work/link" --version || return 1
    ! examples/parallelcluster/install-weft.sh "$work/weft.tar" --size 4 || return 1
    # What jobs mount buckets on; what is missing is said, and is no failure.
    : >"$work/fuse" && chmod 600 "$work/fuse" || return 1
    WEFT_LINK=$work/link WEFT_FUSE=$work/fuse examples/parallelcluster/install-weft.sh \
        "$work/weft.tar" --prefix "$work/opt" --mount-folder "$work/a/b" --mount-folder "$work/c" \
        2>"$work/said" && cat "$work/said" && [ -d "$work/a/b" ] && [ -d "$work/c" ] &&
        [ "$(stat -c %a "$work/fuse")" = 666 ] && grep -q 'no bin/weft-mount' "$work/said"
}
case_of install installs

# The example jobs, from the files that are exported.
mpi=
[ -x .env/mpi/mpich/bin/mpiexec ] && mpi=mpich
[ -z "$mpi" ] && [ -x /usr/bin/mpirun.openmpi ] && mpi=debian-openmpi
ran() { grep -Eq '^4194304 +[0-9.]+' "$work/ran"; }
shared_memory() {
    PATH=${WEFT%/*}:$PATH "$WEFT" run --spec examples/jobs/shared-memory.json --mpi "$mpi" \
        --timeout 100 >"$work/ran" && cat "$work/ran" && ran
}
# Two hosts of the testbed, whose processes a busy machine may keep waiting.
osu_latency() {
    BED=$(tests/testbed/testbed.sh up --owner $$ --hosts 2 --paths 1 --rate none) || return 1
    local agent
    agent=$(tests/testbed/testbed.sh "$BED" agent) || return 1
    tests/testbed/testbed.sh "$BED" host a0 env "PATH=${WEFT%/*}:$PATH" "$WEFT" run \
        --spec "$ROOT/examples/jobs/osu-latency.yaml" --hosts a0,b1 --launcher "$agent" \
        --mpi "$mpi" --host-timeout 100 --env FI_WEFT_DEAD_AFTER=100 --timeout 200 \
        >"$work/ran" && cat "$work/ran" && ran
}
if [ -z "$mpi" ]; then
    skip shared-memory 'no MPI is installed'
    skip osu-latency 'no MPI is installed'
else
    case_of shared-memory shared_memory
    # Up to a minute and a half; so it runs only when it is named.
    if [ ${#wanted[@]} = 0 ]; then
        skip osu-latency 'takes long on a busy machine: tests/exports/run.sh osu-latency'
    elif reason=$(tests/testbed/testbed.sh check); then
        case_of osu-latency osu_latency
    else
        skip osu-latency "$reason"
    fi
fi
summary

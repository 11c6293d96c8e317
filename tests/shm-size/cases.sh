# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Cases of one MPI each: job files, sizes, refusals, jobs side by side, what is killed. Sourced by
# run.sh.

# A shell that says what df shows is a rank that takes no time.
run_df() { as_user timeout 60 "$WEFT" run --quiet "$@"; }
df_words=(sh -c 'df --output=size -m /dev/shm | tail -1')

name='a job file and a job definition of AWS Batch give their size, and an option wins'
cat >"$work/job.yaml" <<YAML
version: 1
program: sh
arguments: [-c, df -m --output=size /dev/shm]
ranks: 1
mpi: $any
shm_size: 96m
YAML
cat >"$work/batch.json" <<'JSON'
{"jobDefinitionName": "sized", "type": "container", "containerProperties": {"image": "x",
"command": ["sh", "-c", "df -m --output=size /dev/shm"],
"linuxParameters": {"sharedMemorySize": 80}}}
JSON
ends 0 ' 96' run_df --spec "$work/job.yaml" &&
    ends 0 ' 80' run_df --mpi "$any" --spec "$work/batch.json" &&
    ends 0 '112' run_df --spec "$work/job.yaml" --shm-size 112m
report $? "$name"

name='a size above the memory is refused before the start, and try: goes on'
ends 1 'of memory, and what lies in /dev/shm is memory' run_df --mpi "$any" \
    --shm-size 1000t -n 1 touch "$work/x" && [ ! -e "$work/x" ] &&
    ends 0 'The job goes on' run_df --mpi "$any" \
    --shm-size try:1000t -n 1 "${df_words[@]}" &&
    ends 2 'has no unit' run_df --shm-size 64 -n 1 true &&
    ends 1 'of memory' as_user "$WEFT" exec --mpi "$any" --shm-size 1000t -- true
report $? "$name"

name='a program and a launcher whose names are not UTF-8'
odd=$work/$'caf\351' launcher=$(launcher_of "$any")
cp "$work/ranks-$any" "$odd"
ln -s "$(dirname "$(dirname "$launcher")")" "$odd.mpi"
ends 0 '' as_user timeout 60 "$WEFT" run --mpi "$odd.mpi/bin/$(basename "$launcher")" \
    --transport native --shm-size $SIZE -n 3 "$odd" $BYTES 96 && fine &&
    ends 0 '' mpirun user "$any" 3 "$WEFT" exec --mpi "$any" --shm-size $SIZE -- \
        "$odd" $BYTES 96 && fine
report $? "$name"

# Without namespaces: a user namespace that allows none inside it, in which nobody may mount.
no_namespaces() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare -U -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
        exec setpriv --bounding-set -all "$@"' - "$@"
}
# A rank that waits for the other one: only ranks that live at the same time know of each other.
# shellcheck disable=SC2016 # the ranks' shell expands
together=(sh -c 'touch "$0-$$"; until [ "$(ls "$0"-* | wc -l)" = 2 ]; do sleep 0.05; done'
    "$work/together")
name='where user namespaces are used up, the refusal says the limit and the remedy'
if no_namespaces true 2>"$work/out"; then
    ends 1 'user.max_user_namespaces is 0; as root: sysctl user.max_user_namespaces=' \
        no_namespaces "$WEFT" run --mpi "$any" --shm-size 96m -n 1 touch "$work/y" &&
        [ ! -e "$work/y" ] &&
        ends 0 'The job goes on' \
            no_namespaces "$WEFT" run --mpi "$any" --shm-size try:96m -n 1 true &&
        ends 1 'user.max_user_namespaces is 0' no_namespaces "$(launcher_of "$any")" -n 2 \
            "$WEFT" exec --mpi "$any" --shm-size 96m -- true &&
        ends 0 'The job goes on' no_namespaces "$(launcher_of "$any")" -n 2 \
            "$WEFT" exec --mpi "$any" --shm-size try:96m -- "${together[@]}" &&
        [ "$(grep -c 'The job goes on' "$work/out")" = 1 ]
    report $? "$name"
else
    skip "$name" "$(tail -n 1 "$work/out")"
fi

name='where a seccomp filter refuses unshare, the refusal says so'
if gcc -O1 -o "$work/confine" tests/containers/confine.c 2>"$work/out"; then
    ends 1 'a seccomp filter is in force' as_user "$work/confine" --deny unshare \
        "$WEFT" run --mpi "$any" --shm-size 96m -n 1 true
    report $? "$name"
else
    skip "$name" 'tests/containers/confine.c does not build'
fi

name='two jobs of one user at once have one /dev/shm each'
meet() { # meet NAME: a job of two ranks, which leaves its mark and looks for others when told to
    # shellcheck disable=SC2016 # the ranks' shell expands
    mpirun user "$any" 2 "$WEFT" exec --mpi "$any" --shm-size 96m -- sh -c \
        'touch /dev/shm/$0-$$ "$1-$$"; until [ -e "$2" ]; do sleep 0.05; done; ls -1 /dev/shm' \
        "$1" "$work/user/$1" "$work/user/go" >"$work/out-$1" 2>&1
}
began() { [ "$(find "$work/user" -name "$1-*" | wc -l)" = 2 ]; }
meet one &
first=$!
meet two &
second=$!
wait_for 100 began one >"$work/out" && wait_for 100 began two >"$work/out"
touch "$work/user/go"
wait "$first" "$second"
cat "$work"/out-* >"$work/out"
[ "$(grep -c '^one-' "$work/out-one")" = 4 ] && [ "$(grep -c '^two-' "$work/out-two")" = 4 ] &&
    ! grep -q '^two-' "$work/out-one" && ! grep -q '^one-' "$work/out-two" &&
    tidy >>"$work/out" 2>&1
report $? "$name"

name='ranks of one host that ask for two sizes are told'
# Who was first stays until the other one has said so.
# shellcheck disable=SC2016 # the ranks' shell expands
ends 1 'another rank of this host has asked for 9' mpirun user "$any" 2 sh -c \
    'exec "$0" exec --mpi "$1" --shm-size "9${PMI_RANK:-$PMIX_RANK}m" -- \
        sh -c "until grep -q another \"\$0\"; do sleep 0.05; done" "$2"' "$WEFT" "$any" "$work/out"
report $? "$name"

keeper() { strangers | awk '/dev-shm keep/ { print $1 }'; }
sleepers() { # sleepers SECONDS; with or without the program's folder
    strangers | awk -v words="sleep $1" '{ sub(".*/", "", $2) } $2 " " $3 == words { print $1 }'
}
both_sleep() { [ "$(sleepers "$1" | wc -l)" = 2 ]; }
long_job() { # long_job SECONDS: two ranks that sleep
    mpirun user "$any" 2 "$WEFT" exec --mpi "$any" --shm-size 96m -- \
        sh -c "sleep $1; df --output=size -m /dev/shm" >"$work/long" 2>&1 &
    job=$!
    wait_for 100 both_sleep "$1" >"$work/out"
}
kill_all() { # kill_all PID...
    for pid in "$@"; do kill -9 "$pid" 2>>"$work/out"; done
}
without_keeper() {
    long_job 63 || return 1
    kill_all $(keeper) $(sleepers 63) # a rank then goes on to df
    wait "$job"
    [ "$(grep -c '^ *96' "$work/long")" = 2 ] && tidy >>"$work/out" 2>&1
}
without_ranks() {
    long_job 61 || return 1
    kill_all $(sleepers 61)
    wait "$job"
    tidy >>"$work/out" 2>&1
}
without_launcher() { # its ranks end with it, or by hand
    run_df --mpi "$any" --shm-size 96m -n 2 sleep 62 >"$work/out" 2>&1 &
    job=$!
    wait_for 100 both_sleep 62 >"$work/out" || return 1
    kill_all $(strangers | awk '{ print $1 }')
    wait "$job"
    tidy >>"$work/out" 2>&1
}
name='a killed keeper takes no rank along, and killed ranks and launchers leave nothing'
if [ -n "${SMALL_WORLD:-}" ]; then
    # shellcheck disable=SC2119 # no arguments
    without_keeper && without_ranks && without_launcher
    report $? "$name"
else
    skip "$name" 'it takes root, who sees all processes of a world of its own'
fi

name='20 jobs in a row leave no process, mount or file'
status=0
for _ in $(seq 10); do
    run_df --shm-size 96m --mpi "$any" -n 2 "${df_words[@]}" >"$work/out" 2>&1 &&
        mpirun user "$any" 2 "$WEFT" exec --mpi "$any" --shm-size 96m -- "${df_words[@]}" \
            >>"$work/out" 2>&1 && [ "$(grep -c '^ *96$' "$work/out")" = 4 ] || status=1
done
[ $status = 0 ] && tidy >>"$work/out" 2>&1
report $? "$name"

name='a full /dev/shm is an error that names the folder'
FI_WEFT_REGION_DIR=/dev/shm run_df --mpi "$any" --shm-size 256k -n 2 \
    "$work/ranks-$any" 0 1 >"$work/out" 2>&1
[ $? != 0 ] && grep -q 'regions in /dev/shm: No space left on device' "$work/out" &&
    ! grep -qi 'bus error' "$work/out" && tidy >>"$work/out" 2>&1
report $? "$name"

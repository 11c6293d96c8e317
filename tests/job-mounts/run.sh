#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `--mount` of `weft run`, `weft exec` and job files, on the S3 server of the tests: each rank finds
# the bucket, nobody else does; what was written is in the bucket when the job has ended, or the job
# fails; what cannot be is refused before a rank starts; nothing is left, whoever is killed.
# As root, as an ordinary user, and on two hosts. Usage: tests/job-mounts/run.sh [MPI]
#
# Prints `ok`, `not ok` or `skip`, ends with `N passed, N failed, N skipped`. Half a minute.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
ROOT=$PWD
# A world of its own, so that all that a job leaves is seen.
if [ "$(id -u)" = 0 ] && [ -z "${MOUNT_WORLD:-}" ] &&
    unshare -m -p -f --mount-proc true 2>/dev/null; then
    MOUNT_WORLD=1 exec unshare -m -p -f --kill-child --mount-proc "$0" "$@"
fi
# shellcheck source=tests/reports.sh
. tests/reports.sh
# shellcheck source=tests/bucket-server/server.sh
. tests/bucket-server/server.sh
need_weft
mpi=${1:-openmpi}
begin_outside_jobs AWS_
# shellcheck source=tests/exec/programs.sh
. tests/exec/programs.sh
[ -n "${MOUNT_WORLD:-}" ] || skip_all 'mounts of jobs' 'the suite wants root and namespaces'
[ -c /dev/fuse ] || skip_all 'mounts of jobs' 'there is no /dev/fuse'
[ -x "$(launcher_of "$mpi")" ] ||
    skip_all 'mounts of jobs' "$mpi is not installed; scripts/setup.sh test installs it"
need_bucket_server
mounter=${WEFT_MOUNT:-${CARGO_TARGET_DIR:-target}/debug/weft-mount}
[ -x "$mounter" ] || cargo build --locked --quiet -p weft-daemon
# Weft as it is installed with the mount, and without.
without=$WEFT
mkdir "$work/weft" "$work/weft/bin"
cp -r "$(dirname "$WEFT")/../lib" "$work/weft/"
cp "$WEFT" "$work/weft/bin/weft" && cp "$mounter" "$work/weft/bin/weft-mount"
WEFT=$work/weft/bin/weft
export WEFT_MPI_PATH=$ROOT/.env/mpi/$mpi
chmod 755 "$work"

start_bucket_server --bucket data --bucket more
trap 'stop_bucket_server; umount /dev/fuse "$work/dev"; rm -rf --one-file-system "$work"' EXIT
export AWS_ENDPOINT_URL=$BUCKET_URL AWS_ACCESS_KEY_ID=weft AWS_SECRET_ACCESS_KEY=weft-secret
export AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
one=$work/one two=$work/two
mkdir "$one" "$two" "$work/user"
chown 65534:65534 "$work/user"
# Any user may use the device, as on most systems.
mkdir "$work/dev" && mount -t tmpfs tmpfs "$work/dev" && mknod -m 666 "$work/dev/fuse" c 10 229 &&
    mount --bind "$work/dev/fuse" /dev/fuse

as_root() { (cd "$work" && "$@"); }
as_user() {
    (cd "$work/user" && HOME=$work/user TMPDIR=$work/user \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$@")
}
run() { as_root timeout 60 "$WEFT" run --quiet --mpi "$mpi" "$@"; }
# ranks USER COUNT WORDS...: started by the MPI's own launcher.
ranks() {
    local options=()
    [[ $mpi == *openmpi ]] && options=(--oversubscribe)
    "as_$1" timeout 60 "$(launcher_of "$mpi")" "${options[@]}" -n "$2" "$WEFT" exec --mpi "$mpi" \
        "${@:3}"
}

# objects: how many there are in all buckets.
objects() {
    control GET state | python3 -c '
import json, sys
print(sum(bucket["objects"] for bucket in json.load(sys.stdin).values()))'
}
# empty: the buckets, by a mount of all of it.
empty() { run --mount "s3://data:$one" --mount "s3://more:$two" -n 1 -- \
    sh -c "rm -rf $one/* $two/*" && [ "$(objects)" = 0 ]; }

# tidy: no process of Weft or of a job, no mount, and the folders are empty.
strangers() {
    ps -e -o pid=,stat=,args= | grep -e weft -e 'sleep 6[0-9]' -e phases |
        grep -v -e ' Z' -e bucket-server -e run.sh -e grep
}
nobody_left() { ! strangers; }
tidy() {
    wait_for 100 nobody_left && ! grep "$work/\(one\|two\)" /proc/self/mountinfo &&
        [ -z "$(find "$one" "$two" -mindepth 1 ! -name occupied)" ]
}

# A rank that writes a file of its own, and waits for the other's on the same mount.
cat >"$work/write.sh" <<'SH'
rank=${PMIX_RANK:-$PMI_RANK}
printf 'of rank %s' "$rank" >"$1/file-$rank" || exit 3
until [ "$(cat "$1"/file-* | wc -c)" = 18 ]; do sleep 0.05; done
grep -c " $1 " /proc/self/mountinfo
SH
both_wrote() { [ "$(objects)" = 2 ] && [ "$(grep -c '^1$' "$work/out")" = 2 ] && tidy; }

name='weft run mounts for the ranks alone, and all is published when it ends'
ends 0 '' run --mount "s3://data/p:$one" -n 2 -- sh "$work/write.sh" "$one" &&
    both_wrote >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? "$name"

name='weft exec does so under the MPI'"'"'s own launcher, one mount for both ranks'
ends 0 '' ranks root 2 --mount "s3://data/p:$one" -- sh "$work/write.sh" "$one" &&
    both_wrote >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? "$name"

name='a program and a launcher whose names are not UTF-8'
odd=$work/$'caf\351' launcher=$(launcher_of "$mpi")
{ echo '#!/bin/sh' && cat "$work/write.sh"; } >"$odd" && chmod 755 "$odd"
ln -s "$(dirname "$(dirname "$launcher")")" "$odd.mpi"
ends 0 '' run --mpi "$odd.mpi/bin/$(basename "$launcher")" --mount "s3://data/p:$one" -n 2 -- \
    "$odd" "$one" &&
    both_wrote >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? "$name"

name='as an ordinary user, in a user namespace'
if as_user unshare -U -m true 2>"$work/out"; then
    chown 65534:65534 "$one"
    ends 0 '' as_user timeout 60 "$WEFT" run --quiet --mpi "$mpi" --mount "s3://data:$one" \
        --shm-size 64m -n 2 -- sh "$work/write.sh" "$one" && both_wrote >>"$work/out" 2>&1 &&
        ends 0 '' ranks user 2 --shm-size 64m --mount "s3://data/x:$one" -- \
            sh -c "$(<"$work/write.sh"); df -m --output=size /dev/shm" sh "$one" &&
        [ "$(grep -c '^ *64$' "$work/out")" = 2 ] && [ "$(objects)" = 4 ] &&
        tidy >>"$work/out" 2>&1
    report $? "$name"
    chown 0:0 "$one"
    empty >/dev/null 2>&1
else
    skip "$name" "this host refuses user namespaces: $(tail -n 1 "$work/out")"
fi

cat >"$work/both.sh" <<'SH'
echo new >"$1/new" && ! echo new 2>/dev/null >"$2/new" && grep " $2 ro," /proc/self/mountinfo
SH
name='a job file with two buckets, one of them read-only'
cat >"$work/job.yaml" <<YAML
version: 1
program: sh
arguments: [$work/both.sh, $one, $two]
ranks: 1
mounts:
  - {source: 's3://data/a', target: $one}
  - {source: 's3://more', target: $two, read_only: true}
YAML
ends 0 ' ro,' run --spec "$work/job.yaml" && [ "$(objects)" = 1 ] && tidy >>"$work/out" 2>&1 &&
    empty >>"$work/out" 2>&1
report $? "$name"

name='credentials and address stand on no command line'
printf '%s\n' weft-secret "$BUCKET_URL" >"$work/secrets"
# shellcheck disable=SC2016 # the ranks expand
run --mount "s3://data:$one" -n 2 -- \
    sh -c 'touch "$0"; until [ -e "$1" ]; do sleep 0.05; done' "$work/begun" "$work/looked" \
    >"$work/out" 2>&1 &
job=$!
wait_for 100 test -e "$work/begun" >>"$work/out"
# The patterns come from a file, since grep's own command line is looked at, too.
shown=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -cF -f "$work/secrets")
touch "$work/looked"
wait "$job" && [ "$shown" = 0 ]
report $? "$name"

# refused CODE WORDS OPTIONS...: before a rank has started, by weft run and by weft exec.
refused() {
    rm -f "$work/started"
    ends 1 "$1" run "${@:2}" -n 2 -- touch "$work/started" && [ ! -e "$work/started" ] &&
        tidy >>"$work/out" 2>&1 || return
    ranks root 2 "${@:2}" -- touch "$work/started" >"$work/out" 2>&1
    [ $? != 0 ] && grep -qF -- "$1" "$work/out" && [ ! -e "$work/started" ] &&
        tidy >>"$work/out" 2>&1
}
refused 'Give the name of a bucket that is there' --mount "s3://no-such-bucket:$one"
report $? 'a bucket that is not there'
refused 'mkdir -p' --mount "s3://data:$work/none"
report $? 'a folder that is not there'
touch "$one/occupied"
refused 'Give an empty folder' --mount "s3://more:$two" --mount "s3://data:$one"
status=$?
rm "$one/occupied"
report $status 'a folder with something in it, beside one that could be mounted'
if [ -x "$(dirname "$without")/weft-mount" ] || command -v weft-mount >/dev/null; then
    skip 'weft-mount is missing' 'it is installed here'
else
    WEFT=$without refused 'make build-mount' --mount "s3://data:$one"
    report $? 'weft-mount is missing'
fi
AWS_SECRET_ACCESS_KEY=wrong refused AWS_SECRET_ACCESS_KEY --mount "s3://data:$one"
report $? 'a wrong key'
ends 2 'names no folder' run --mount s3://data -n 1 -- true &&
    ends 2 'two buckets' run --mount "s3://data:$one" --mount "s3://more:$one" -n 1 -- true &&
    ends 2 'nobody writes' run --mount "s3://data:$one:ro:shared-writes" -n 1 -- true
report $? 'words that are no mount'

# One rank of two, the other of which is on another host, as the launcher of this MPI says it.
of_two_hosts() {
    local rank=(PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1 MPI_LOCALRANKID=0)
    [[ $mpi != *openmpi ]] || rank=(OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
        OMPI_COMM_WORLD_LOCAL_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0)
    env "${rank[@]}" FI_WEFT_JOB_KEY="$(printf '%064d' 7)" timeout 60 "$WEFT" exec --mpi "$mpi" "$@"
}
rm -f "$work/started"
ends 2 'do not know each other' of_two_hosts --mount "s3://data:$one:shared-writes" -- \
    touch "$work/started" && [ ! -e "$work/started" ] && tidy >>"$work/out" 2>&1
report $? 'mounts that do not know each other share no writes, and say what to do'
ends 0 '' run --mount "s3://data/p:$one:shared-writes" -n 2 -- sh "$work/write.sh" "$one" &&
    both_wrote >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? 'on one host :shared-writes is taken, and changes nothing'

# held WORDS...: a mount as a job starts it, which ends at once.
held() {
    "$work/weft/bin/weft-mount" data "$one" --held --stage "$work/held-stage" \
        --job-nodes 127.0.0.1:7700,127.0.0.1:99999 --job-node 0 "$@" </dev/null
}
ends 0 'fetches by itself' held && ends 2 'is no address' held --shared-writes &&
    tidy >>"$work/out" 2>&1
report $? 'a mount that cannot join the others mounts, unless it shares its writes'

name='what cannot be published makes the job fail, with the file and the cause'
# A process of the program is killed, and so nobody hears what close(2) says of its file.
lose="printf x >$one/kept; { touch $work/wrote
    until [ -e $work/refusing ]; do sleep 0.05; done; printf x; kill -9 \$\$; } >$one/lost"
lost() { # lost CODE COMMAND...
    rm -f "$work"/{wrote,refusing}
    "${@:2}" >"$work/out" 2>&1 &
    local job=$! ended
    wait_for 100 test -e "$work/wrote" >>"$work/out" && faults '{"expired": true}'
    touch "$work/refusing"
    wait "$job"
    ended=$?
    no_faults
    echo "exit code $ended, wanted $1" >>"$work/out"
    [ "$ended" = "$1" ] && grep -q 'not published: lost: ' "$work/out"
}
lost 5 run --mount "s3://data:$one" -n 1 -- sh -c "sh -c '$lose'; exit 0" &&
    tidy >>"$work/out" 2>&1
report $? "$name, weft run"
lost 5 "$WEFT" exec --mpi "$mpi" --mount "s3://data:$one" -- sh -c "sh -c '$lose'; exit 0" &&
    tidy >>"$work/out" 2>&1
report $? "$name, weft exec"
empty >/dev/null 2>&1

name='a rank that is killed: what it had written is published, the exit code is its own'
ends 137 '' "$WEFT" exec --mpi "$mpi" --mount "s3://data:$one" -- \
    sh -c "exec 3>$one/half; printf x >&3; kill -9 \$\$" && [ "$(objects)" = 1 ] &&
    tidy >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? "$name"

# killed PATTERN COMMAND...: the process that the pattern names is killed while the ranks stay; then
# they may leave.
killed() {
    rm -f "$work"/{asleep,exchanged}-* "$work/leave"
    "${@:2}" >"$work/out" 2>&1 &
    local job=$!
    asleep() { [ "$(cd "$work" && ls -d asleep-* exchanged-* 2>/dev/null | wc -l)" = 2 ]; }
    wait_for 100 asleep >>"$work/out" || return
    # shellcheck disable=SC2046 # several numbers
    kill -9 $(pgrep -f "$1" | sort -n | tail -n "${KILLED:-1}") 2>>"$work/out"
    touch "$work/leave"
    wait "$job"
    ended=$?
    echo "exit code $ended" >>"$work/out"
}
staying=(sh -c "touch $work/asleep-\$\$; until [ -e $work/leave ]; do sleep 0.05; done")
by_run() { killed "$1" run --mount "s3://data:$one" -n 2 -- "${staying[@]}" && [ "$ended" != 0 ]; }
by_exec() {
    killed "$1" ranks root 2 --mount "s3://data:$one" -- "${staying[@]}" && [ "$ended" != 0 ]
}
by_run '^[^ ]*weft-mount ' && grep -q 'signal 9' "$work/out" && tidy >>"$work/out" 2>&1 &&
    by_exec '^[^ ]*weft-mount ' && grep -q 'signal 9' "$work/out" && tidy >>"$work/out" 2>&1
report $? 'weft-mount is killed: the job fails and says so, and nothing is left'
by_run 'mounts keep' && grep -q 'kept the mounts was killed' "$work/out" &&
    tidy >>"$work/out" 2>&1 && by_exec 'mounts keep' &&
    grep -q 'kept the mounts was killed' "$work/out" && tidy >>"$work/out" 2>&1
report $? 'its keeper is killed: the job fails and says so, and nothing is left'
ends_launcher() { # the launcher that weft run has started goes on by itself; it is ended, too
    killed "^$WEFT run" run --mount "s3://data:$one" -n 2 -- \
        sh -c "touch $work/asleep-\$\$; sleep 64"
    pkill -9 -f 'mpiexec|hydra|prterun|sleep 64' # of this world alone
    tidy
}
ends_launcher 2>&1 | sort -u >>"$work/out"
[ "${PIPESTATUS[0]}" = 0 ]
report $? 'weft run is killed: nothing is left'
# MPI programs: Hydra waits for the other ranks where one fails that has not joined, as a shell.
rank_killed() { # rank_killed COUNT PATTERN: the launcher ends the others, and not its time limit
    KILLED=$1 killed "$2" ranks root 2 --mount "s3://data:$one" -- \
        "$work/phases-$mpi" run "$work" && [ "$ended" != 0 ] && [ "$ended" != 124 ] && tidy
}
if build "$mpi" tests/jobs/phases.c >"$work/out" 2>&1; then
    rank_killed 1 "^$work/phases" >>"$work/out" 2>&1 && rank_killed 2 'weft exec' >>"$work/out" 2>&1
    report $? 'ranks are killed: the launcher ends the others, and nothing is left'
else
    skip 'ranks are killed' 'the compiler or the headers of the MPI are not installed'
fi

name='SIGTERM to the job reaches the program, whose last words are published'
words="trap 'echo last >$one/words; exit 9' TERM; touch $work/begun; while :; do sleep 0.1; done"
rm -f "$work/begun"
"$WEFT" exec --mpi "$mpi" --mount "s3://data:$one" -- sh -c "$words" >"$work/out" 2>&1 &
job=$!
wait_for 100 test -e "$work/begun" >>"$work/out"
kill -TERM "$job"
wait "$job"
[ $? = 9 ] && [ "$(objects)" = 1 ] && tidy >>"$work/out" 2>&1 && empty >>"$work/out" 2>&1
report $? "$name"

# shellcheck source=tests/job-mounts/hosts.sh
. tests/job-mounts/hosts.sh
summary

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How mounts end, and wrong usage. Sourced by tests/mount/run.sh.

objects ends 1 100000

killed() {
    remount && signal_daemon KILL && wait_for 60 daemon_is_gone &&
        ends 1 "Transport endpoint is not connected" cat "$mnt/ends" &&
        mount_bucket && [ "$(wc -c <"$mnt/ends")" = 100000 ]
}
check "after kill -9 the next mount takes the dead one away" killed

killed_while_reading() {
    objects slow 1 100000000
    faults '{"total_rate": 5000000}'
    remount || return 1
    cat "$mnt/slow" >"$work/slow" 2>"$work/why" &
    local reader=$!
    sleep 1
    signal_daemon KILL || return 1
    wait "$reader" && return 1
    faults '{"total_rate": 0}'
    mount_bucket && unmount_bucket
}
check "a reader whose mount is killed gets an error" killed_while_reading

many_times() {
    local turn before after
    unmount_bucket
    before=$(grep -c . /proc/self/mountinfo)
    for turn in $(seq 24); do
        mount_bucket && [ -f "$mnt/ends" ] && unmount_bucket || { echo "turn $turn"; return 1; }
    done
    after=$(grep -c . /proc/self/mountinfo)
    echo "$before mounts before, $after after"
    [ "$before" = "$after" ] && daemon_is_gone
}
check "24 mounts in a row leave nothing behind" many_times

term() {
    mount_bucket && signal_daemon TERM && wait_for 60 daemon_is_gone &&
        ! is_mounted
}
check "SIGTERM unmounts" term

busy() {
    mount_bucket || return 1
    (exec 3<"$mnt/ends"; ends 32 "busy" umount "$mnt"; )
    local ended=$?
    unmount_bucket && [ $ended = 0 ]
}
check "a bucket in use is not unmounted" busy

# usage CODE WORDS ARGUMENTS...: weft-mount with these arguments ends so.
usage() { timeout 60 true && ends "$1" "$2" timeout 300 "$WEFT_MOUNT" "${@:3}"; }
here=(--endpoint-url "$BUCKET_URL")
check "no arguments: usage" usage 2 "Usage"
check "an unknown option: usage" usage 2 "unexpected argument" data "$mnt" --no-such-option
# Options behind -o, as in /etc/fstab; and mount(8) finds the helper, in a /usr/sbin of this
# namespace alone.
by_fstab() {
    unmount_bucket && mount_bucket -o "rw,_netdev,nofail,ro,file-mode=0640" &&
        [ "$(stat -c %a "$mnt/ends")" = 640 ] && grep -q " $mnt ro," /proc/self/mountinfo &&
        unmount_bucket || return 1
    [ -n "${WEFT_MOUNT_NAMESPACE:-}" ] || return 0
    mkdir -p "$work/sbin" && mount -t tmpfs tmpfs "$work/sbin" && mkdir "$work/sbin"/{upper,work} &&
        mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$work/sbin/upper" \
            -o "workdir=$work/sbin/work" /usr/sbin || return 1
    ln -s "$WEFT_MOUNT" /usr/sbin/mount.weft &&
        mount -t weft data "$mnt" -o "ro,endpoint-url=$BUCKET_URL,stage=$work/stage" &&
        [ "$(wc -c <"$mnt/ends")" = 100000 ]
    local ended=$?
    unmount_bucket && umount /usr/sbin && umount "$work/sbin" && return $ended
}
check "options as /etc/fstab has them, and mount -t weft" by_fstab
check "a word behind -o that is no option" usage 2 "unexpected argument" data "$mnt" -o no-such-word

# The store's clock is an hour ahead of this host's, or behind it: AWS's SDK signs by the store's.
clock_is_wrong() {
    local ahead_s
    for ahead_s in 3600 -3600; do
        unmount_bucket && faults "{\"clock_ahead_s\": $ahead_s}" && mount_bucket &&
            [ "$(wc -c <"$mnt/ends")" = 100000 ] && echo "$ahead_s" >"$mnt/clock" &&
            [ "$(cat "$mnt/clock")" = "$ahead_s" ] || { no_faults; return 1; }
    done
    no_faults
    unmount_bucket
}
check "a clock that is wrong by an hour does not hinder a mount" clock_is_wrong
check "a bucket that is not there is named, with a remedy" \
    usage 1 "no-such-bucket" no-such-bucket "$mnt" "${here[@]}"
check "a name that no bucket has" usage 2 "not the name of a bucket" "A B" "$mnt" "${here[@]}"
check "a folder that is not there" usage 1 "mkdir -p" data "$mnt/none" "${here[@]}"
check "a file in place of a folder" usage 1 "no folder" data "$work/url" "${here[@]}"
touch "$mnt/occupied"
check "a folder with something in it" usage 1 "occupied" data "$mnt" "${here[@]}"
rm "$mnt/occupied"
check "a server that is not there" \
    usage 1 "cannot use bucket" data "$mnt" --endpoint-url http://127.0.0.1:9
wrong_key() { AWS_SECRET_ACCESS_KEY=wrong usage 1 "credentials" data "$mnt" "${here[@]}"; }
check "a wrong key: credentials are the remedy" wrong_key
help_is_lost() {
    local word
    for word in --help --version; do
        "$WEFT_MOUNT" "$word" >/dev/full 2>"$work/why"
        [ $? = 1 ] && grep -q "No space left" "$work/why" || { cat "$work/why"; return 1; }
    done
    "$WEFT_MOUNT" --help >/dev/null
}
check "help that cannot be written is no success" help_is_lost
# In a namespace whose /dev has little more than null.
no_fuse() {
    ends 1 "modprobe fuse" unshare --mount --propagation private sh -c '
        mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 &&
            mknod -m 666 /dev/urandom c 1 9 && exec "$@"' sh \
        timeout 60 "$WEFT_MOUNT" data "$mnt" "${here[@]}" --stage "$work/stage"
}
check "without /dev/fuse: what is missing, and how to get it" no_fuse
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
others() {
    local mode ended
    mode=$(stat -c %a "$work")
    chmod 755 "$work" && as_nobody ls -d "$mnt" && mount_bucket &&
        ends 2 "Permission denied" as_nobody ls "$mnt" && remount --allow-other &&
        as_nobody ls "$mnt/ends"
    ended=$?
    unmount_bucket && chmod "$mode" "$work" && return $ended
}
check "other users are kept out without --allow-other" others
twice() {
    mount_bucket && usage 1 "mounted there already" data "$mnt" "${here[@]}" && unmount_bucket
}
check "a folder that is mounted already" twice
bound() {
    local ended
    mkdir -p "$work/above/m" "$work/bound" && mount --bind "$work/above" "$work/bound" || return 1
    usage 2 "would hide it" data "$work/above/m" "${here[@]}" --stage "$work/bound/m/stage"
    ended=$?
    umount "$work/bound" && [ $ended = 0 ] && [ ! -e "$work/above/m/stage" ]
}
check "a stage in the folder to mount on, by a bind mount" bound
strange_keys() {
    "$PYTHON" - "$BUCKET_URL" <<'EOF' &&
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
for key in ["odd//double", "odd/./dot", "odd/../up", "odd/both", "odd/both/below", "odd/plain"]:
    s3.put_object(Bucket="data", Key=key, Body=b"x")
s3.put_object(Bucket="data", Key="odd/" + "n" * 300, Body=b"x")
EOF
        mount_bucket && ls -la "$mnt/odd" && [ "$(cat "$mnt/odd/plain")" = x ] &&
        find "$mnt/odd" >"$work/found" && unmount_bucket
}
check "keys that are no names do no harm" strange_keys

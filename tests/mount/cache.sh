# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The cache on a disk: kept across mounts, bounded, checked. Sourced by tests/mount/run.sh.

disk=$work/disk
mkdir "$disk"
objects kept 1 50000000
# with_cache [OPTIONS...]: a bound is always given: without one the cache keeps nothing where less
# than a twentieth of the disk is free, as on a machine that has just built much.
with_cache() {
    [[ " $* " == *' --max-cache-size '* ]] || set -- --max-cache-size 1024 "$@"
    remount --cache "$disk" --metadata-ttl 3600 "$@" && forget
}

# is_kept BYTES: until so much lies in the cache; it is written after it was read.
is_kept() { [ "$(du -s --block-size=1 "$disk" | cut -f1)" -ge "$1" ]; }

# A busy disk takes less than what is read; the rest comes with the next read.
read_in() { with_cache && sum=$(sha256sum <"$mnt/kept") && wait_for 3 is_kept 50000000; }
kept() {
    local is_in=no
    for _ in {1..10}; do read_in && is_in=yes && break; done
    [ "$is_in" = yes ] && with_cache && [ "$(sha256sum <"$mnt/kept")" = "$sum" ] &&
        asked 'read_bytes == 0'
}
check "the next mount reads from the cache what an earlier one fetched" kept

flipped_on_disk() {
    local file
    unmount_bucket && file=$(find "$disk" -name '*.data' -size +40M) || return 1
    printf 'x' | dd of="$file" bs=1 seek=12345678 conv=notrunc status=none
    with_cache && [ "$(sha256sum <"$mnt/kept")" = "$sum" ] &&
        asked '0 < read_bytes <= 131_072' &&
        grep -q 'are not what was written' "$work/weft-mount.log"
}
check "bits turned over in the cache are found, told and fetched anew" flipped_on_disk

replaced() {
    objects kept 1 50000000 && with_cache &&
        control POST objects \
            '{"bucket": "data", "prefix": "kept", "size": 50000000, "seed": 9}' >/dev/null &&
        with_cache && [ "$(sha256sum <"$mnt/kept")" != "$sum" ] && asked 'read_bytes >= 50_000_000'
}
check "an object that was replaced is fetched, whatever the cache has" replaced

bounded() {
    local number
    for number in 1 2 3 4; do objects "many$number" 1 30000000; done
    with_cache --max-cache-size 64 || return 1
    for number in 1 2 3 4; do cat "$mnt/many$number" >/dev/null; done
    unmount_bucket && [ "$(du -s --block-size=1 "$disk" | cut -f1)" -le 75000000 ]
}
check "the cache keeps to its bound" bounded

full() {
    local small=$work/small
    mkdir -p "$small" && mount -t tmpfs -o size=20m weft-test "$small" || return 1
    remount --cache "$small" 2>"$work/told" && sum=$(sha256sum <"$mnt/many1") &&
        [ "$(cat "$mnt/many1" "$mnt/many2" | wc -c)" = 60000000 ]
    local read=$?
    unmount_bucket
    umount "$small" && [ $read = 0 ] &&
        grep -q "takes at most 19 MiB: its disk has 20 MiB free" "$work/told"
}
check "reads go on where the cache's disk is full" full

refused() {
    unmount_bucket && mkdir -p "$work/open/weft-cache-1" && chmod 777 "$work/open/weft-cache-1" &&
        ends 1 "nobody else may write" mount_bucket --cache "$work/open" &&
        ends 2 "" mount_bucket --max-cache-size 100
}
check "a cache that others may write to, and a bound without a cache, are refused" refused

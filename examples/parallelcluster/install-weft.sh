#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A custom action of AWS ParallelCluster that installs Weft on a node, sizes its /dev/shm, and
# prepares the folders on which jobs mount buckets.
# `weft export parallelcluster --install-script URL --archive URL` names it to the cluster.
#
#   install-weft.sh ARCHIVE [--shm-bytes N] [--mount-folder DIR]... [--prefix DIR]
#
# ARCHIVE is a tar file of dist/ (bin/weft, lib/weft/...), as `make build` makes it: s3://...,
# https://... or a path. Without --prefix the prefix is /opt/weft. For each --mount-folder the
# script makes an empty folder; it also gives all users access to the FUSE device. The jobs
# themselves mount the buckets (`weft submit --mount`) with weft-mount, which `make build-mount`
# puts into dist/.
set -euo pipefail

usage='usage: install-weft.sh ARCHIVE [--shm-bytes N] [--mount-folder DIR]... [--prefix DIR]'
archive=${1:?$usage}
shift
prefix=/opt/weft shm_bytes='' folders=()
while [ $# -gt 0 ]; do
    case $1 in
    --shm-bytes) shm_bytes=${2:?--shm-bytes needs a number} ;;
    --mount-folder) folders+=("${2:?--mount-folder needs a folder}") ;;
    --prefix) prefix=${2:?--prefix needs a folder} ;;
    *) echo "install-weft.sh: unknown option $1; $usage" >&2; exit 2 ;;
    esac
    shift 2
done

fetched=$(mktemp)
trap 'rm -f "$fetched"' EXIT
case $archive in
s3://*) aws s3 cp --only-show-errors "$archive" "$fetched" ;;
https://*) curl --fail --silent --show-error --location --retry 5 --output "$fetched" "$archive" ;;
*) cp "$archive" "$fetched" ;;
esac

mkdir -p "$prefix"
tar -xf "$fetched" -C "$prefix"
"$prefix/bin/weft" --version
ln -sfn "$prefix/bin/weft" "${WEFT_LINK:-/usr/local/bin/weft}"
if [ -n "$shm_bytes" ]; then mount -o "remount,size=$shm_bytes" /dev/shm; fi

# What jobs of ordinary users need to mount buckets. If something is missing, this warns and does
# not fail, since a failure would remove the node from the cluster.
warn() { echo "install-weft.sh: $*" >&2; }
prepare_mounts() {
    local device=${WEFT_FUSE:-/dev/fuse}
    mkdir -p "${folders[@]}"
    [ -x "$prefix/bin/weft-mount" ] ||
        warn "$archive has no bin/weft-mount; run make build-mount before you pack dist/"
    [ -e "$device" ] || modprobe fuse || true
    chmod 666 "$device" || warn "jobs of ordinary users cannot open $device"
    setpriv --reuid 65534 --regid 65534 --clear-groups unshare -U -r -m true ||
        warn 'ordinary users cannot make a user namespace here; the messages above say why'
}
if [ ${#folders[@]} -gt 0 ]; then prepare_mounts; fi

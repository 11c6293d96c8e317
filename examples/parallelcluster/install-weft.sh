#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A custom action of AWS ParallelCluster that installs Weft on a node, and sizes its /dev/shm.
# `weft export parallelcluster --install-script URL --archive URL` names it to the cluster.
#
#   install-weft.sh ARCHIVE [--shm-bytes N] [--prefix DIR]
#
# ARCHIVE is a tar file of dist/ (bin/weft, lib/weft/...), as `make build` makes it: s3://...,
# https://... or a path. DIR is /opt/weft without --prefix.
set -euo pipefail

archive=${1:?usage: install-weft.sh ARCHIVE [--shm-bytes N] [--prefix DIR]}
shift
prefix=/opt/weft shm_bytes=
while [ $# -gt 0 ]; do
    case $1 in
    --shm-bytes) shm_bytes=${2:?--shm-bytes needs a number} ;;
    --prefix) prefix=${2:?--prefix needs a folder} ;;
    *) echo "install-weft.sh: $1 is no option of it" >&2; exit 2 ;;
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

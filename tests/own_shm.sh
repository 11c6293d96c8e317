# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A /dev/shm for one suite alone. Sourced by those that look for what processes leave there.

# own_dev_shm SCRIPT ARGUMENTS...: starts the suite anew with a /dev/shm of its own, unless it has
# one, or may not mount. So it finds nothing of the suites that run beside it, and whatever they do
# to the machine's /dev/shm is nothing to it.
own_dev_shm() {
    if [ -n "${OWN_DEV_SHM:-}" ] || [ "$(id -u)" != 0 ] ||
        ! unshare --mount mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then return; fi
    export OWN_DEV_SHM=1
    # shellcheck disable=SC2016 # the inner shell expands
    exec unshare --mount sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$0" "$@"' "$@"
}

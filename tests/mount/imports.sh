# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# An environment of Python in the bucket of several hosts, which import it at once. Sourced by the
# parts of tests/mount/run.sh that need it, which have `on`, `hosts` and `there`.

libraries=${MOUNT_PYTHON:-$PWD/.env/mount-programs/bin/python}

# environment: numpy is in the bucket, in `site/`; its files have site_bytes.
environment() {
    local site
    site=$("$libraries" -c 'import numpy, os; print(os.path.dirname(numpy.__file__))')/..
    rm -rf "$work/site" && mkdir "$work/site" &&
        cp -r "$site/numpy" "$site/numpy.libs" "$work/site" &&
        find "$work/site" -path '*/tests/*' -delete &&
        site_bytes=$(find "$work/site" -type f -exec cat {} + | wc -c) &&
        on a0 "$PYTHON" tests/mount/upload.py "$there" data "$work/site" site/
}

# all_import COUNT: so many hosts import numpy at once, from the bucket alone. One host reads a part
# of its libraries, with what is read ahead. Several read ahead in different places: together they
# may read all, and each byte once.
all_import() {
    local number importers=()
    for number in $(seq 0 $(($1 - 1))); do
        on "${hosts[number]}" env PYTHONPATH="$work/node$number/site" PYTHONDONTWRITEBYTECODE=1 \
            "$libraries" -c 'import numpy; print(numpy.__file__, numpy.arange(1000).sum())' \
            >"$work/imported$number" &
        importers+=($!)
    done
    for number in "${importers[@]}"; do wait "$number" || return 1; done
    for number in $(seq 0 $(($1 - 1))); do
        grep "$work/node$number/site/.* 499500" "$work/imported$number" || return 1
    done
}

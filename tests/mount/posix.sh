# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Modes, owners, times, links and extended attributes, by programs, and pjdfstest, which judges.
# Sourced by tests/mount/run.sh.

pjdfstest=${PJDFSTEST:-$PWD/.env/mount-judges/bin/pjdfstest}
stage=$work/posix-stage
remount --allow-other --metadata-ttl 3600 >"$work/out" 2>&1 || not_ok "posix: a bucket is mounted"

# looks: what the files of the folder look like, here and after a new mount.
looks() { (cd "$mnt/posix" && stat -c '%n %a %u:%g %Y %F' -- * && readlink link); }
kept_attributes() {
    mkdir -m 750 "$mnt/posix" && cd "$mnt/posix" || return 1
    printf x >file && chown 12:34 file && chmod 4711 file && touch -d @1000000000 file &&
        ln -s file link && mkfifo -m 600 pipe && mkdir -m 1777 inner &&
        touch -d @1000000001 inner && cd "$OLDPWD" || return 1
    looks >"$work/before" && remount --allow-other --metadata-ttl 3600 && looks >"$work/after" &&
        cat "$work/after" && diff "$work/before" "$work/after" &&
        grep -qx 'file 4711 12:34 1000000000 regular file' "$work/after" &&
        grep -qx 'pipe 600 0:0 [0-9]* fifo' "$work/after" && [ "$(stat -c %a "$mnt/posix")" = 750 ]
}
check "modes, owners, times, links and pipes are there after a new mount" kept_attributes

xattrs() {
    "$PYTHON" - "$mnt/posix/file" <<'END' || return 1
import errno, os, sys
path = sys.argv[1]
os.setxattr(path, "user.lab", b"\0\1\2", os.XATTR_CREATE)
os.setxattr(path, "user.none", b"")
assert sorted(os.listxattr(path)) == ["user.lab", "user.none"], os.listxattr(path)
os.removexattr(path, "user.none")
for name, wanted in ("user.none", errno.ENODATA), ("system.posix_acl_access", errno.ENOTSUP):
    try:
        os.getxattr(path, name)
        sys.exit(f"{name} is there")
    except OSError as error:
        assert error.errno == wanted, (name, error)
file = os.open(path, os.O_RDONLY)
os.fsync(file)
END
    remount --allow-other && "$PYTHON" -c '
import os, sys
assert os.getxattr(sys.argv[1], "user.lab") == b"\0\1\2"' "$mnt/posix/file"
}
check "extended attributes are kept" xattrs

archive_kept() {
    mkdir -p "$work/tree-of-modes/d" && cp /bin/true "$work/tree-of-modes/d/run" &&
        chmod 711 "$work/tree-of-modes/d" && ln -s ../x "$work/tree-of-modes/d/link" &&
        touch -d @1234567890 "$work/tree-of-modes/d/run" "$work/tree-of-modes/d" &&
        mkdir -p "$mnt/untarred" && tar -C "$work/tree-of-modes" -cf - d |
        tar -C "$mnt/untarred" -xpf - && remount &&
        tar -C "$mnt/untarred" -cf - d | tar -C "$work/tree-of-modes" -df - && "$mnt/untarred/d/run"
}
check "tar restores modes, times and links, and finds no difference later" archive_kept

no_links() {
    printf x >"$mnt/one" && ends 1 "not permitted" ln "$mnt/one" "$mnt/two" &&
        ends 1 "Invalid argument" touch "$mnt/.weft-attributes"
}
check "link(2) fails with EPERM, and the mount's own names with EINVAL" no_links

listed_without_heads() {
    local number
    mkdir "$mnt/moded" && for number in $(seq 50); do
        (umask 077 && : >"$mnt/moded/$number") || return 1
    done
    remount --metadata-ttl 3600 && forget &&
        [ "$(ls -l "$mnt/moded" | grep -c '^-rw-------')" = 50 ] &&
        asked 'get("HeadObject") == 0 and get("GetObject") == 1'
}
check "ls -l of 50 modes takes one GET and no HEAD" listed_without_heads

# pjdfstest names the cases that failed; those that tests/mount/pjdfstest-known.txt names may.
judge_posix() {
    chmod 755 "$work" && remount --allow-other --metadata-ttl 3600 && mkdir -m 777 "$mnt/judged" ||
        return 1
    timeout 1200 "$pjdfstest" -c tests/mount/pjdfstest.toml -p "$mnt/judged" "$@" \
        >"$work/judged" 2>"$work/judged-noise"
    grep '^Summary' "$work/judged"
    sed -n 's/ *FAILED$//p' "$work/judged" | sort >"$work/failed"
    grep -v '^#' tests/mount/pjdfstest-known.txt | sort >"$work/known"
    echo "not known to fail:"
    comm -23 "$work/failed" "$work/known" | tee "$work/new"
    [ ! -s "$work/new" ] && grep -q '^Summary: .* [1-9][0-9]* passed' "$work/judged"
}
if [ -x "$pjdfstest" ]; then
    # Each word names the cases that have it.
    read -ra judged_parts <<<"${WEFT_PJDFSTEST-chmod utimensat symlink rename::unchanged}"
    check "pjdfstest fails in no case that it may not" judge_posix "${judged_parts[@]}"
    sed -n 's/^Summary/# pjdfstest/p' "$work/judged"
else
    skip "pjdfstest" "$pjdfstest is missing (scripts/setup.sh test)"
fi
unset stage

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Real programs read what boto3 wrote. Sourced by tests/mount/run.sh.

source_tree=$work/tree
mkdir -p "$source_tree/empty" "$source_tree/a/b/c"
cp -r docs/adr docs/lab "$source_tree/a/" 2>/dev/null
printf '' >"$source_tree/nothing"
printf 'line\n' >"$source_tree/name with blanks"
printf 'ü' >"$source_tree/a/b/ümläut"
head -c 3000000 /dev/urandom >"$source_tree/a/b/c/random"
sqlite3 "$source_tree/db.sqlite" \
    'create table t(a, b); insert into t values(1, "one"), (2, "two"); create index i on t(a)' \
    2>/dev/null
rmdir "$source_tree/empty"
upload "$source_tree" tree/
objects large 1 50000000
mount_bucket >"$work/out" 2>&1
report $? "a bucket is mounted"

cat_reads() {
    cat "$mnt/tree/name with blanks" | cmp - "$source_tree/name with blanks" &&
        cmp "$mnt/tree/a/b/ümläut" "$source_tree/a/b/ümläut" &&
        [ "$(wc -c <"$mnt/tree/nothing")" = 0 ] && [ "$(wc -c <"$mnt/large")" = 50000000 ]
}
check "cat, cmp and wc read files" cat_reads

dd_reads() {
    local block
    for block in 0 1 7 700 2999; do
        dd if="$mnt/tree/a/b/c/random" bs=1000 skip=$block count=3 status=none |
            cmp - <(dd if="$source_tree/a/b/c/random" bs=1000 skip=$block count=3 status=none) ||
            return 1
    done
    dd if="$mnt/tree/a/b/c/random" bs=4096 iflag=direct status=none |
        cmp - "$source_tree/a/b/c/random"
}
check "dd reads blocks anywhere, also with O_DIRECT" dd_reads

lists() {
    diff <(cd "$mnt/tree" && find . | sort) <(cd "$source_tree" && find . | sort) &&
        diff <(cd "$mnt/tree" && find . -type f -printf '%p %s\n' | sort) \
            <(cd "$source_tree" && find . -type f -printf '%p %s\n' | sort) &&
        [ "$(ls -l "$mnt/tree/a/b/c/random" | awk '{ print $5 }')" = 3000000 ]
}
check "ls and find show names and sizes" lists

copies() {
    rm -rf "$work/copy"
    cp -r "$mnt/tree" "$work/copy" && diff -r "$work/copy" "$source_tree"
}
check "cp -r copies a tree out" copies

archives() {
    tar -C "$mnt/tree" -cf - . | tar -C "$source_tree" -df - 2>&1 |
        grep -vE "time differs|Mode differs|Uid differs|Gid differs" | tee "$work/differs"
    [ ! -s "$work/differs" ]
}
check "tar reads a tree, and its contents are the same" archives

if command -v rsync >/dev/null; then
    syncs() {
        rm -rf "$work/sync" && rsync -a --no-owner --no-group "$mnt/tree/" "$work/sync/" &&
            diff -r "$work/sync" "$source_tree"
        [ -z "$(rsync -rtni --size-only "$mnt/tree/" "$work/sync/" | grep -v '^\.d')" ]
    }
    check "rsync copies a tree out and finds nothing new" syncs
else
    skip "rsync copies a tree out and finds nothing new" "rsync is not installed"
fi

python_reads() {
    "$PYTHON" - "$mnt/tree/a/b/c/random" "$source_tree/a/b/c/random" <<'EOF'
import mmap, os, random, sys, threading
there = open(sys.argv[1], "rb")
whole = open(sys.argv[2], "rb").read()
seed = random.randrange(1 << 32)
print("seed", seed)
random.seed(seed)
for _ in range(50):
    at, length = random.randrange(len(whole) + 10), random.randrange(200_000)
    assert os.pread(there.fileno(), length, at) == whole[at : at + length], (at, length)
mapped = mmap.mmap(there.fileno(), 0, prot=mmap.PROT_READ)
assert mapped[1_000_000:1_000_100] == whole[1_000_000:1_000_100] and mapped[:] == whole
wrong = []
def read(first):
    with open(sys.argv[1], "rb") as file:
        file.seek(first)
        if file.read(300_000) != whole[first : first + 300_000]:
            wrong.append(first)
threads = [threading.Thread(target=read, args=(first * 300_000,)) for first in range(10)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert not wrong, wrong
EOF
}
check "python reads by pread, by mmap and from many threads" python_reads

if command -v sqlite3 >/dev/null; then
    queries() {
        [ "$(sqlite3 "file:$mnt/tree/db.sqlite?immutable=1" 'select b from t where a = 2')" = two ]
    }
    check "sqlite queries a database" queries
else
    skip "sqlite queries a database" "sqlite3 is not installed"
fi

git_reads() {
    rm -rf "$work/repository" "$work/clone"
    git init -q "$work/repository" && cp -r docs/adr "$work/repository/" &&
        git -C "$work/repository" add -A &&
        git -C "$work/repository" -c user.name=t -c user.email=t@t commit -qm one &&
        git clone -q --bare "$work/repository" "$work/bare.git" &&
        git -C "$work/bare.git" gc -q && upload "$work/bare.git" bare.git/ &&
        wait_for 60 test -f "$mnt/bare.git/HEAD" || return 1
    # A bucket has no empty folders, and git wants this one.
    [ -d "$mnt/bare.git/refs" ] || { printf '' >"$work/keep"; mkdir -p "$work/refs/heads" &&
        cp "$work/keep" "$work/refs/heads/.keep" && upload "$work/refs" bare.git/refs/ &&
        wait_for 60 test -d "$mnt/bare.git/refs"; }
    git -c safe.directory='*' clone -q "$mnt/bare.git" "$work/clone" &&
        diff -r "$work/clone/adr" docs/adr
}
check "git clones a repository out of the bucket" git_reads

changes_show() {
    printf 'first' >"$work/changing" && mkdir -p "$work/changed" &&
        cp "$work/changing" "$work/changed/file" && upload "$work/changed" changed/ &&
        wait_for 60 grep -q first "$mnt/changed/file" &&
        printf 'second, longer' >"$work/changed/file" &&
        upload "$work/changed" changed/ && wait_for 60 grep -qx 'second, longer' "$mnt/changed/file"
}
check "what others write shows after a while" changes_show

missing() {
    ends 1 "No such file" cat "$mnt/tree/no such name" && ends 1 "Is a directory" cat "$mnt/tree" &&
        ends 1 "Not a directory" cat "$mnt/tree/nothing/below"
}
check "missing names and folders give the usual errors" missing

read_only() {
    remount --read-only && ends 1 "Read-only file system" touch "$mnt/new"
}
check "--read-only refuses writes" read_only

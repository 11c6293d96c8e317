# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Two hosts of a job write one file at once (--shared-writes), on two hosts of tests/testbed.
# Sourced by tests/mount/run.sh.

# shellcheck source=tests/mount/two_hosts.sh
. tests/mount/two_hosts.sh

cat >"$work/pieces.py" <<'END'
"""Two ranks of this host write every fourth piece of a file, and then check all of it."""
import os, sys, time
path, host, flags = sys.argv[1], int(sys.argv[2]), sys.argv[3]
piece, pieces = 47008, 400  # as ior-hard
data = lambda number: bytes((number * 31 + at) % 251 for at in range(256)) * 184
def meet(what):
    open(f"{flags}/{what}-{rank}", "w").close()
    while len([1 for name in os.listdir(flags) if name.startswith(what + "-")]) < 4:
        time.sleep(0.01)
child = os.fork()
rank = 2 * host + (child == 0)
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
meet("opened")
for number in range(rank, pieces, 4):
    at, left = number * piece, data(number)[:piece]
    assert os.pwrite(file, left, at) == piece
meet("written")
for number in range(pieces):  # what others wrote, before it is published
    assert os.pread(file, piece, number * piece) == data(number)[:piece], number
assert os.fstat(file).st_size == pieces * piece
log = os.open(path + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for line in range(50):
    os.write(log, b"%d" % rank * 99 + b"\n")
meet("read")
os.fsync(file)
os.close(file)
os.close(log)
meet("closed")
with open(path, "rb") as whole:
    for number in range(pieces):
        assert whole.read(piece) == data(number)[:piece], number
    assert not whole.read(1)
lines = open(path + ".log").read().split("\n")
assert sorted(lines[:-1]) == sorted(50 * [str(one) * 99 for one in range(4)]), len(lines)
if child == 0:
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END

write_together() {
    local number writers=() wrote=0
    rm -rf "$work/flags" && mkdir "$work/flags"
    for number in 0 1; do
        on "${hosts[number]}" timeout 60 python3 "$work/pieces.py" "$work/node$number/one" \
            "$number" "$work/flags" &
        writers+=($!)
    done
    for number in "${writers[@]}"; do wait "$number" || wrote=1; done
    [ $wrote = 0 ] || tail -n 5 "$work/job-log"
    return $wrote
}

# Another client of the store reads what the hosts published.
read_by_s3() {
    on a0 "$PYTHON" - "$there" <<'END'
import sys, boto3
store = boto3.client("s3", endpoint_url=sys.argv[1])
whole = store.get_object(Bucket="data", Key="one")["Body"].read()
piece, pieces = 47008, 400
data = lambda number: bytes((number * 31 + at) % 251 for at in range(256)) * 184
assert len(whole) == piece * pieces, len(whole)
for number in range(pieces):
    assert whole[number * piece:(number + 1) * piece] == data(number)[:piece], number
assert len(store.get_object(Bucket="data", Key="one.log")["Body"].read()) == 4 * 50 * 100
END
}

one_makes_it() {
    local number made=0 makers=()
    for number in 0 1; do
        on "${hosts[number]}" python3 -c 'import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_WRONLY)
time.sleep(2)' "$work/node$number/new" 2>"$work/refused$number" &
        makers+=($!)
    done
    for number in "${makers[@]}"; do wait "$number" && made=$((made + 1)); done
    [ $made = 1 ] && grep -qh FileExistsError "$work"/refused?
}

count_together() {
    on a0 sh -c "printf 0 >'$work/node0/count'" && count_on_both count &&
        on a0 grep -qx 200 "$work/node0/count" && on b1 grep -qx 200 "$work/node1/count"
}

# ior NUMBER FILE OPTION...: ranks of one host write or read one file of its mount.
ior() {
    on "${hosts[$1]}" timeout 100 dist/bin/weft run -q -n 3 --transport native -- \
        dist/bin/weft bench ior -k -o "$work/node$1/$2" "${@:3}"
}
# As IO500's ior-hard: pieces of 47,008 bytes in turn. The other host compares what it reads.
ior_hard() {
    ior 0 hard -w -W -t 47008 -b 47008 -s 50 && ior 1 hard -r -R -t 47008 -b 47008 -s 50
}
# In random order, each write synced; then the other host writes over what is there.
ior_random() {
    ior 0 random -w -r -R -z -Y -t 100000 -b 400000 -s 3 &&
        ior 1 random -w -W -r -R -E -t 100000 -b 400000 -s 3
}
# Both hosts write the same bytes to the same places at once. Without -E, IOR removes what is there.
ior_at_once() {
    local other
    ior 0 hard -w -W -E -t 47008 -b 47008 -s 50 &
    other=$!
    ior 1 hard -w -W -E -t 47008 -b 47008 -s 50
    local ended=$?
    wait $other && return $ended
}

cat >"$work/killed.py" <<'END'
"""Writes to a file until another host's mount is killed, and tells what its calls answer then:
killed.py FILE PLACE FLAGS NAME. Place: where it writes its 1,000,000 bytes."""
import errno, os, sys, time
path, place, flags, name = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
data = bytes([65 + place]) * 1_000_000
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
assert os.pwrite(file, data, place * len(data)) == len(data)
open(f"{flags}/{name}-wrote", "w").close()
while not os.path.exists(f"{flags}/killed"):
    time.sleep(0.02)
def said(call, *words):
    began = time.monotonic()
    try:
        call(*words)
        answer = "fine"
    except OSError as error:
        answer = errno.errorcode[error.errno]
    assert time.monotonic() - began < 40, (call, time.monotonic() - began)
    return answer
calls = [(os.pwrite, file, b"more", 0), (os.pread, file, 4, 0), (os.fsync, file), (os.close, file)]
if name == "own":  # only closes
    calls = calls[3:]
print(name, *[said(*call) for call in calls], flush=True)
END

# owned NUMBER WORD: a name whose file this host has for all (docs/job-cache.md, 1.3 and 5.1).
owned() {
    python3 - "$1" "$2" <<'END'
import hashlib, itertools, sys
def weight(node, name):
    number = node.to_bytes(8, "little")
    return int.from_bytes(hashlib.sha256(number + b"W" + name.encode()).digest()[:8], "little")
names = (f"{sys.argv[2]}{number}" for number in itertools.count())
print(next(name for name in names if int(weight(1, name) > weight(0, name)) == int(sys.argv[1])))
END
}

# While one host has the file open for writing, the other one changes its mode.
mode_is_seen() {
    local writer name
    name=$(owned 0 mode)
    on a0 python3 -c 'import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
os.write(file, b"x")
open(sys.argv[2], "w").close()
time.sleep(6)
os.close(file)' "$work/node0/$name" "$work/mode-open" &
    writer=$!
    wait_for 60 test -e "$work/mode-open" && on b1 chmod 600 "$work/node1/$name" &&
        [ "$(on b1 stat -c %a "$work/node1/$name")" = 600 ] &&
        wait_for 10 on a0 sh -c "[ \"\$(stat -c %a '$work/node0/$name')\" = 600 ]"
    local ended=$?
    wait $writer || return 1
    return $ended
}

# tar, cp -p and rsync set times before they close or rename a file, whichever host has it. Both
# hosts unpack the same files, over what is there, too, and see the same times; so does a mount that
# begins later.
cat >"$work/times.py" <<'END'
"""Compares names, times and modes: times.py FOLDER FOLDER..."""
import os, sys
def tree(folder):
    files = sorted(os.listdir(folder))
    seen = [os.stat(os.path.join(folder, name)) for name in files]
    return {name: (one.st_mtime_ns, one.st_mode & 0o777, one.st_size)
            for name, one in zip(files, seen)}
first = tree(sys.argv[1])
assert len(first) == 40, len(first)
for folder in sys.argv[2:]:
    other = tree(folder)
    wrong = {name: (one, other.get(name)) for name, one in first.items()
             if one != other.get(name)}
    assert not wrong, (folder, len(wrong), next(iter(wrong.items())))
END
times_are() { on "$1" python3 "$work/times.py" "${@:2}" 2>>"$work/wrong-times"; }
# unpack TOOL HOST FOLDER: the dated files, by a tool.
unpack() {
    case $1 in
        tar) on "$2" tar -C "$3" -xpf "$work/dated.tar" ;;
        cp) on "$2" sh -c "cp -p '$work'/dated/f* '$3'" ;;
        rsync) on "$2" rsync -a --ignore-times "$work/dated/" "$3/" ;;
    esac
}
unpacked_times_stay() {
    local number tool into dated=$work/dated
    mkdir -p "$dated" "$work/later"
    for number in {10..49}; do
        head -c "$number" /dev/zero >"$dated/f$number"
        chmod $((600 + number % 4 * 10)) "$dated/f$number"
        touch -d "2001-02-03 04:05:$number.123456789" "$dated/f$number"
    done
    tar -C "$dated" --format=posix -cf "$work/dated.tar" .
    for tool in tar cp rsync; do
        for number in 0 1 0; do
            into=$work/node$number/by-$tool
            on "${hosts[number]}" mkdir -p "$into" || return 1
            unpack "$tool" "${hosts[number]}" "$into" &&
                times_are "${hosts[number]}" "$dated" "$into" ||
                { echo "right after $tool on $number:" && tail -n 1 "$work/wrong-times"; return 1; }
        done
    done
    for number in 0 1; do
        wait_for 20 times_are "${hosts[number]}" "$dated" "$work/node$number"/by-{tar,cp,rsync} ||
            { tail -n 1 "$work/wrong-times"; return 1; }
    done
    on a0 "$WEFT_MOUNT" data "$work/later" --endpoint-url "$there" --read-only || return 1
    times_are a0 "$dated" "$work"/later/by-{tar,cp,rsync}
    local ended=$?
    on a0 umount "$work/later"
    return $ended
}

# The second host's mount is killed. It had the file `there` for a program of the first host, whose
# calls fail from then on, and it had written to the file `here`, which the first host has: that
# host publishes all of it.
mount_killed() {
    local there_name here_name names=() one
    there_name=$(owned 1 there) here_name=$(owned 0 here)
    rm -rf "$work/flags" && mkdir "$work/flags"
    on a0 timeout 200 python3 "$work/killed.py" "$work/node0/$there_name" 0 "$work/flags" far \
        >"$work/said-far" 2>&1 &
    names+=($!)
    on a0 timeout 200 python3 "$work/killed.py" "$work/node0/$here_name" 0 "$work/flags" own \
        >"$work/said-own" 2>&1 &
    names+=($!)
    on b1 timeout 200 python3 "$work/killed.py" "$work/node1/$here_name" 1 "$work/flags" gone \
        >"$work/said-gone" 2>&1 &
    names+=($!)
    for one in far own gone; do wait_for 60 test -e "$work/flags/$one-wrote" || return 1; done
    kill -9 $(pgrep -f "^$WEFT_MOUNT data $work/node1 ") && touch "$work/flags/killed"
    for one in "${names[@]}"; do wait "$one" || { cat "$work"/said-*; return 1; }; done
    cat "$work"/said-*
    grep -qx 'far EIO EIO EIO EIO' "$work/said-far" && grep -qx 'own fine' "$work/said-own" &&
        ! grep -q fine "$work/said-gone" &&
        wait_for 60 on a0 "$PYTHON" -c '
import sys, boto3
store = boto3.client("s3", endpoint_url=sys.argv[1])
whole = store.get_object(Bucket="data", Key=sys.argv[2])["Body"].read()
assert whole == b"A" * 1_000_000 + b"B" * 1_000_000, len(whole)' "$there" "$here_name" \
            2>"$work/got" &&
        never_published "$there_name"
}
# What was lost with the host: nobody sees it, and the file can be written anew at once.
never_published() {
    on a0 timeout 60 sh -c "[ ! -e '$work/node0/$1' ] && echo anew >'$work/node0/$1' &&
        grep -qx anew '$work/node0/$1'"
}
# The next mount there saves what the killed one had of the file that it had for all.
what_was_lost_is_saved() {
    on b1 umount -l "$work/node1"
    on b1 "$WEFT_MOUNT" data "$work/node1" --endpoint-url "$there" --foreground \
        --stage "$work/stage1" --shared-writes --job-nodes 10.77.0.2:7700,10.77.1.2:7700 \
        --job-node 1 2>"$work/again-log" &
    wait_for 60 on b1 mountpoint -q "$work/node1" || return 1
    cat "$work/again-log"
    ls "$work"/stage1/saved
    cmp "$work"/stage1/saved/*there* <(head -c 1000000 /dev/zero | tr '\0' A)
}

if ! reason=$("$TESTBED" check); then
    skip "two hosts write one file" "$reason"
else
    begin_two_hosts
    check "a bucket on two hosts that write its files together" \
        mount_on_both --shared-writes
    check "two hosts write one file, and both read all of it" write_together
    check "another client reads what two hosts wrote to one file" read_by_s3
    check "of two hosts that make a file that must be new, one succeeds" one_makes_it
    check "four programs on two hosts count in one shared file under a lock" count_together
    check "IOR's pieces of 47,008 bytes in one file, compared on the other host" ior_hard
    check "IOR in random order with fsync, and over the file from the other host" ior_random
    check "IOR on two hosts at once in one file" ior_at_once
    check "a mode that one host sets on a file that is being written the other one sees" \
        mode_is_seen
    if command -v rsync >/dev/null; then
        check "tar, cp -p and rsync on two hosts keep times and modes" unpacked_times_stay
    else
        skip "tar, cp -p and rsync on two hosts keep times and modes" "there is no rsync"
    fi
    check "a mount is killed that has one file for all and had written to another" mount_killed
    check "the next mount saves what the killed one had not published" what_was_lost_is_saved
    end_two_hosts 0 1
fi

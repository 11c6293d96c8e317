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
    end_two_hosts 0 1
fi

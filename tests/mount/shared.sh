# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Two hosts of a job write one file at once. Sourced by tests/mount/together.sh, which has the
# hosts and their server.

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
    rm -rf "$work/flags" && mkdir "$work/flags"
    job_mounts 2 --shared-writes || return
    local number writers=() wrote=0
    for number in 0 1; do
        on "${hosts[number]}" timeout 60 python3 "$work/pieces.py" "$work/node$number/one" \
            "$number" "$work/flags" &
        writers+=($!)
    done
    for number in "${writers[@]}"; do wait "$number" || wrote=1; done
    [ $wrote = 0 ] || tail -n 5 "$work/job-log"
    end_job
    return $wrote
}

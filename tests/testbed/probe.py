# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A stream between two ranks, watched closely: when did each message arrive, and how long did
nothing arrive?

Run by tests/testbed/measure.py under mpi4py: probe.py SECONDS BYTES READY. Rank 0 sends, 32
messages in flight, rank 1 notes the time of every message. The file READY is made when the stream
has run for a second. Rank 1 prints one line of JSON: the times since then of the messages' ends, in
milliseconds, joined into steps of 10 ms as bytes, and every pause of more than 2 ms as [when, how
long].
"""

import json
import sys
import time

import numpy
from mpi4py import MPI

WINDOW = 32
STEP_MS = 10
LONG_MS = 2.0

world = MPI.COMM_WORLD
seconds, size, ready = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
blocks = [numpy.zeros(size, dtype="u1") for _ in range(WINDOW)]
stop = numpy.zeros(1, dtype="u1")

if world.rank == 0:
    requests = [MPI.REQUEST_NULL] * WINDOW
    # The other side says when it has had enough.
    end = world.Irecv(stop, 1, tag=1)
    at = 0
    while not end.Test():
        requests[at].Wait()
        requests[at] = world.Isend(blocks[at], 1)
        at = (at + 1) % WINDOW
    MPI.Request.Waitall(requests)
    world.Send(numpy.zeros(0, dtype="u1"), 1, tag=2)
else:
    requests = [world.Irecv(block, 0, tag=0) for block in blocks]
    begin = time.perf_counter()
    told, times, at = False, [], 0
    while True:
        requests[at].Wait()
        now = time.perf_counter()
        times.append(now)
        if not told and now - begin > 1:
            told, zero = True, now
            open(ready, "w").close()
        requests[at] = world.Irecv(blocks[at], 0, tag=0)
        at = (at + 1) % WINDOW
        if told and now - zero > seconds:
            break
    world.Send(stop, 0, tag=1)
    # What was still on its way.
    done = world.Irecv(numpy.zeros(1, dtype="u1"), 0, tag=2)
    while not done.Test():
        if requests[at].Test():
            requests[at] = world.Irecv(blocks[at], 0, tag=0)
            at = (at + 1) % WINDOW
    while requests[at].Test():
        requests[at] = world.Irecv(blocks[at], 0, tag=0)
        at = (at + 1) % WINDOW
    for request in requests:
        request.Cancel()
        request.Wait()
    moments = (numpy.array(times) - zero) * 1000
    moments = moments[moments >= 0]
    steps = numpy.bincount((moments // STEP_MS).astype(int)) * size
    pauses = numpy.diff(moments)
    long = [[round(float(moments[i]), 2), round(float(pauses[i]), 2)]
        for i in numpy.nonzero(pauses > LONG_MS)[0]]
    print(json.dumps(
        {"step_ms": STEP_MS, "bytes": steps.tolist(), "pauses_ms": long,
        "longest_ms": float(pauses.max())}), flush=True)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ranks exchange long arrays whose memory is allocated, grown, freed and used again, and fork
children meanwhile; every byte is checked.

Started by run.sh on each rank, under `weft run --heap shared` and without. Prints one line on rank
0 when all is well.
"""

import os
import subprocess
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size


def pattern(seed, count):
    return (numpy.arange(count, dtype=numpy.uint32) * 2654435761 + seed).astype(numpy.uint32)


def exchange(seed, count):
    """Sends an array to the right; the buffers are fresh each time, so freed memory is used again
    at once."""
    sent, got = pattern(seed + rank, count), numpy.zeros(count, dtype=numpy.uint32)
    world.Sendrecv(sent, right, 1, got, left, 1)
    assert (got == pattern(seed + left, count)).all(), f"rank {rank}: wrong bytes of {4 * count}"


def fork_amid(count):
    """A child writes over its copy of the arrays while the parent sends them."""
    sent, got = pattern(rank, count), numpy.zeros(count, dtype=numpy.uint32)
    child = os.fork()
    if child == 0:
        good = (sent == pattern(rank, count)).all()
        sent[:] = 7
        got[:] = 8
        os._exit(0 if good else 1)
    world.Sendrecv(sent, right, 2, got, left, 2)
    assert (got == pattern(left, count)).all(), f"rank {rank}: a child changed its parent's bytes"
    assert os.waitpid(child, 0)[1] == 0, f"rank {rank}: the child did not find its memory"


def again(count, times):
    """Sends out of one array again and again, as most programs do; its bytes change each time."""
    sent, got = numpy.empty(count, dtype=numpy.uint32), numpy.zeros(count, dtype=numpy.uint32)
    for index in range(times):
        sent[:] = pattern(index + rank, count)
        world.Sendrecv(sent, right, 3, got, left, 3)
        is_right = (got == pattern(index + left, count)).all()
        assert is_right, f"rank {rank}: wrong bytes, time {index}"


def closely(count, times):
    """Sends out of one array with little else in between, which is when sharing pays."""
    sent, got = pattern(rank, count), numpy.zeros(count, dtype=numpy.uint32)
    for index in range(times):
        sent[::1024] = index
        world.Sendrecv(sent, right, 4, got, left, 4)
        assert (got[::1024] == index).all(), f"rank {rank}: wrong bytes, time {index}"
    expected = pattern(left, count)
    expected[::1024] = times - 1
    assert (got == expected).all(), f"rank {rank}: wrong bytes"


def windows(count):
    memory = pattern(100 + rank, count)
    window = MPI.Win.Create(memory, memory.itemsize, comm=world)
    got, put = numpy.zeros(count // 2, dtype=numpy.uint32), pattern(200 + rank, count // 2)
    window.Fence()
    window.Get(got, right)
    window.Put(put, right, target=[count // 2, count - count // 2])
    window.Fence()
    assert (got == pattern(100 + right, count)[: count // 2]).all(), f"rank {rank}: wrong get"
    is_right = (memory[count // 2 :] == pattern(200 + left, count // 2)).all()
    assert is_right, f"rank {rank}: wrong put"
    window.Free()


def main():
    growing = bytearray(10)
    for round_number in range(6):
        for count in (10_000, 20_000, 65_536, 262_144, 1_000_003):
            exchange(round_number * 1000 + count, count)
            growing.extend(bytes(count))
    again(100_000, 120)
    closely(100_000, 400)
    fork_amid(300_000)
    said = subprocess.run(["echo", "from a child"], capture_output=True, text=True,
        check=True).stdout
    assert said == "from a child\n"
    windows(200_000)
    exchange(9, 1_000_000)
    total = world.allreduce(len(growing))
    assert total == size * (10 + 6 * (10_000 + 20_000 + 65_536 + 262_144 + 1_000_003))
    if rank == 0:
        print("all bytes are right")


main()
sys.stdout.flush()

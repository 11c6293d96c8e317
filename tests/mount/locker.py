#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Takes locks of a file as tests/mount/locks.sh says.

locker.py try FILE CALL KIND [FIRST LENGTH]   exit code 0 if the lock is free, 7 if it is not
locker.py hold FILE CALL KIND SIGN [FIRST LENGTH]
                                              takes the lock, makes file SIGN, sleeps
locker.py wait FILE SIGN                      waits for the lock, and makes SIGN before that
locker.py interrupted FILE                    is interrupted by a signal while it waits
locker.py who FILE                            who has the file, by F_GETLK
locker.py count FILE TIMES SIGN GO            opens the file, makes SIGN, waits for file GO, and
                                              adds 1 to the number in the file, under a lock
locker.py database FILE TIMES [SIGN GO]       opens a database of SQLite, makes SIGN, waits for
                                              file GO, and adds 1 to the number in it; then prints
                                              the number, and what SQLite finds in the file

CALL is flock or lockf, KIND is LOCK_EX or LOCK_SH.
"""

import contextlib
import errno
import fcntl
import os
import signal
import struct
import sys
import time

WAIT = fcntl.LOCK_EX


def taken(file, call, kind, part=()):
    if call == "flock":
        fcntl.flock(file, kind)
    elif part:
        first, length = map(int, part)
        fcntl.lockf(file, kind, length, first)
    else:
        fcntl.lockf(file, kind)


def sign(path):
    with open(path, "w"):
        pass


def attempt(path, call, kind, *part):
    with open(path, "r+b") as file:
        try:
            taken(file, call, getattr(fcntl, kind) | fcntl.LOCK_NB, part)
        except BlockingIOError:
            sys.exit(7)


def hold(path, call, kind, made, *part):
    with open(path, "r+b") as file:
        taken(file, call, getattr(fcntl, kind), part)
        sign(made)
        time.sleep(3600)


def wait(path, made):
    with open(path, "r+b") as file:
        sign(made)
        fcntl.lockf(file, WAIT)


def interrupted(path):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    signal.signal(signal.SIGALRM, ring)
    with open(path, "r+b") as file:
        for call in (fcntl.flock, fcntl.lockf):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                call(file, WAIT)
                sys.exit("the lock was free")
            except Alarm:
                pass


def who(path):
    with open(path, "r+b") as file:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, start, length, process = struct.unpack(
            "hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))
        print(["read", "write", "none"][kind], start, length, process)


def await_all(made, go):
    sign(made)
    while not os.path.exists(go):
        time.sleep(0.01)


def count(path, times, made, go):
    with open(path, "r+b", buffering=0) as file:
        await_all(made, go)
        for _ in range(int(times)):
            fcntl.lockf(file, WAIT)
            number = int(os.pread(file.fileno(), 20, 0))
            os.pwrite(file.fileno(), b"%d" % (number + 1), 0)
            fcntl.lockf(file, fcntl.LOCK_UN)


def database(path, times, *signs):
    import sqlite3  # not every Python has it
    # A transaction that cannot begin yet waits for the locks of others, for a minute at most.
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    with contextlib.closing(connection) as data:
        if signs:
            await_all(*signs)
        data.execute("CREATE TABLE IF NOT EXISTS counts (number)")
        for _ in range(int(times)):
            data.execute("BEGIN IMMEDIATE")
            number = sum(number for number, in data.execute("SELECT number FROM counts"))
            data.execute("DELETE FROM counts")
            data.execute("INSERT INTO counts VALUES (?)", (number + 1,))
            data.execute("COMMIT")
        (number,) = data.execute("SELECT sum(number) FROM counts").fetchone()
        (sound,) = data.execute("PRAGMA integrity_check").fetchone()
        print(number, sound)


CALLS = {
    "try": attempt,
    "hold": hold,
    "wait": wait,
    "interrupted": interrupted,
    "who": who,
    "count": count,
    "database": database,
}

if __name__ == "__main__":
    try:
        CALLS[sys.argv[1]](*sys.argv[2:])
    except OSError as error:
        sys.exit(f"{errno.errorcode.get(error.errno, error.errno)}: {error}")

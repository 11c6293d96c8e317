#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A testbed host's first process, and the way into it: what sshd and ssh are to a real host.

    host.py serve SOCKET            the first process of a host: adopts what others leave behind, starts what callers ask for
    host.py enter SOCKET COMMAND... run a command there with the caller's environment and folder; signals are passed on
    host.py shell SOCKET WORDS...   as ssh does: the words joined, run by /bin/sh in an environment of its own

A caller reaches a host through a socket in the file system, which no namespace separates, and hands over its own standard streams. A
command that was started with `shell` outlives its caller, as one under sshd without a terminal does: whoever starts it must see to its end.
"""

import array
import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
# What sshd gives to a command. The mark is how the tests find what a case left behind, wherever a launcher has put it.
FRESH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8"}
KEPT = ("WEFT_TEST_MARK",)


class Host:
    """The serving side: one process, no threads; a caller's socket is known by the child that runs for it."""

    def __init__(self, path):
        self.callers = {}  # child -> connection
        self.wake_read, self.wake_write = socket.socketpair()
        self.wake_read.setblocking(False)
        self.wake_write.setblocking(False)
        signal.set_wakeup_fd(self.wake_write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(path):
            os.unlink(path)
        self.listener.bind(path)
        self.listener.listen(64)

    def serve(self):
        import select

        while True:
            watched = [self.listener, self.wake_read, *self.callers.values()]
            for ready in select.select(watched, [], [])[0]:
                if ready is self.listener:
                    self.accept()
                elif ready is self.wake_read:
                    self.wake_read.recv(4096)
                else:
                    self.hear(ready)
            self.reap()

    def accept(self):
        connection, _ = self.listener.accept()
        descriptors = array.array("i")
        text, ancillary, _, _ = connection.recvmsg(16, socket.CMSG_SPACE(3 * descriptors.itemsize))
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        length = int(text.decode().strip() or 0)
        if len(descriptors) != 3 or length == 0:
            connection.close()
            return
        request = b""
        while len(request) < length:
            part = connection.recv(length - len(request))
            if not part:
                break
            request += part
        if len(request) == length:
            child = self.start(json.loads(request), descriptors)
            self.callers[child] = connection
        for descriptor in descriptors:
            os.close(descriptor)

    def start(self, request, descriptors):
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in FORWARDED + (signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            os.closerange(3, 1024)
            os.chdir(request["folder"])
            os.execvpe(request["command"][0], request["command"], request["environment"])
        except OSError as error:
            os.write(2, f"host.py: {request['command'][0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def hear(self, connection):
        child = next(pid for pid, one in self.callers.items() if one is connection)
        try:
            word = connection.recv(4)
        except OSError:
            word = b""
        if not word:
            connection.close()
            del self.callers[child]
            return
        try:
            os.killpg(child, int(word.decode()))
        except OSError:
            pass

    def reap(self):
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            connection = self.callers.pop(child, None)
            if connection:
                try:
                    connection.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                except OSError:
                    pass
                connection.close()


def call(path, request, forward):
    """Returns the exit status as a shell would see it; 255 when the host is not there, as ssh has it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        text = json.dumps(request).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        # A caller may have closed its standard input; the other side needs three descriptors.
        for number in (0, 1, 2):
            try:
                os.fstat(number)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
        connection.sendmsg([f"{len(text):<16}".encode()], rights)
        connection.sendall(text)
    except OSError as error:
        print(f"host.py: {path}: {error.strerror}; the host is down", file=sys.stderr)
        return 255
    if forward:
        for number in FORWARDED:
            signal.signal(number, lambda number, _: connection.send(f"{number:<4}".encode()))
    answer = connection.recv(64).decode().strip()
    if not answer:
        return 255
    code = int(answer)
    return 128 - code if code < 0 else code


def main():
    verb, path, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    if verb == "serve":
        Host(path).serve()
    elif verb == "enter":
        return call(path, {"command": words, "folder": os.getcwd(), "environment": dict(os.environ)}, True)
    elif verb == "shell":
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        command = ["/bin/sh", "-c", " ".join(words)]
        return call(path, {"command": command, "folder": FRESH["HOME"], "environment": {**FRESH, **kept}}, False)
    else:
        print(__doc__, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

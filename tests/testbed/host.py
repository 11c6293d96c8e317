#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A testbed host's first process, and the way into it: what sshd and ssh are to a real host.

    host.py serve SOCKET            the first process of a host: adopts what others leave behind,
                                    starts what callers ask for
    host.py enter SOCKET COMMAND... run a command there with the caller's environment and folder;
                                    signals are passed on
    host.py shell HOST WORDS...     as ssh does: the words joined, run by /bin/sh there in an
                                    environment of its own

`enter` reaches a host through a socket in the file system, which no namespace separates, and hands
over the caller's standard streams. `shell` goes over the testbed's network, from one host to
another, so that it fails when the network does. As under sshd without a terminal, a command that is
started so outlives the connection: whoever starts it must see to its end.
"""

import array
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGQUIT)
# What sshd gives to a command. The mark is how the tests find what a case left behind, wherever a
# launcher has put it.
FRESH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8"}
FRESH.update({name: os.environ[name] for name in ("TMPDIR",) if name in os.environ})
KEPT = ("WEFT_TEST_MARK",)
PORT = 22


class Host:
    """The serving side: one process, no threads; a caller's socket is known by the child that runs
    for it."""

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
        self.door = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True,
            backlog=64)

    def serve(self):
        while True:
            watched = [self.listener, self.door, self.wake_read, *self.callers.values()]
            for ready in select.select(watched, [], [])[0]:
                if ready is self.listener:
                    self.accept()
                elif ready is self.door:
                    self.open_shell()
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

    def open_shell(self):
        connection, _ = self.door.accept()
        if os.fork():
            connection.close()
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.listener.close()
            self.door.close()
            shell(connection)
        finally:
            os._exit(0)

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


# --- over the network: frames of a kind, a length and bytes ---------------------------------------

COMMAND, INPUT, INPUT_END, OUTPUT, ERROR, STATUS = range(6)
HEAD = struct.Struct("!BI")


def put(connection, kind, data=b""):
    connection.sendall(HEAD.pack(kind, len(data)) + data)


def get(connection):
    """The next frame, or None at the end of the connection."""

    def exactly(count):
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                return None
            data += part
        return data

    head = exactly(HEAD.size)
    if head is None:
        return None
    kind, length = HEAD.unpack(head)
    data = exactly(length)
    return None if data is None else (kind, data)


def shell(connection):
    """The host's side of `shell`: a command with pipes, until both or the connection have ended."""
    _, text = get(connection)
    request = json.loads(text)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # As sshd does it.
    folder = FRESH["HOME"] if os.access(FRESH["HOME"], os.X_OK) else "/"
    child = subprocess.Popen(
        ["/bin/sh", "-c", request["command"]], env={**FRESH, **request["kept"]}, cwd=folder,
        start_new_session=True, **pipes
    )
    outputs = {child.stdout: OUTPUT, child.stderr: ERROR}
    while outputs:
        for ready in select.select([connection, *outputs], [], [])[0]:
            if ready is connection:
                frame = get(connection)
                if frame is None:
                    return
                feed(child.stdin, *frame)
                continue
            data = os.read(ready.fileno(), 65536)
            if data:
                put(connection, outputs[ready], data)
            else:
                del outputs[ready]
    status = child.wait()
    put(connection, STATUS, str(128 - status if status < 0 else status).encode())
    # The kernel answers unread input with a reset when we close, and the caller then loses what it
    # has not read yet. So we read to the caller's end; who is gone without a word is not waited
    # for.
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(10)
    while connection.recv(65536):
        pass


def feed(pipe, kind, data):
    try:
        if kind == INPUT:
            os.write(pipe.fileno(), data)
        elif not pipe.closed:
            pipe.close()
    except (OSError, ValueError):
        pass


def call_shell(host, words):
    """The caller's side of `shell`. 255, as with ssh, when the connection cannot be made or breaks.
    """
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        connection = socket.create_connection((host, PORT), timeout=10)
        connection.settimeout(None)
        put(connection, COMMAND, json.dumps({"command": " ".join(words), "kept": kept}).encode())
        watched = [connection, 0]
        while True:
            for ready in select.select(watched, [], [])[0]:
                if ready == 0:
                    data = os.read(0, 65536)
                    put(connection, INPUT if data else INPUT_END, data)
                    if not data:
                        watched.remove(0)
                    continue
                frame = get(connection)
                if frame is None:
                    print(f"agent: the connection to {host} broke", file=sys.stderr)
                    return 255
                kind, data = frame
                if kind == STATUS:
                    return int(data)
                os.write(1 if kind == OUTPUT else 2, data)
    except OSError as error:
        print(f"agent: {host} port {PORT}: {error.strerror or error}", file=sys.stderr)
        return 255


# --- through the file system ----------------------------------------------------------------------


def call(path, request):
    """Returns the exit status as a shell would see it; 255, as with ssh, where the host is gone."""
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
        return call(path,
            {"command": words, "folder": os.getcwd(), "environment": dict(os.environ)})
    elif verb == "shell":
        return call_shell(path, words)
    else:
        print(__doc__, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

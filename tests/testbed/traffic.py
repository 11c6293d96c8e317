# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One TCP flow, for others to share a network with. Run by tests/testbed/coexist.py on two hosts:

    traffic.py take PORT                               takes one connection and reads until its end
    traffic.py give ADDRESS PORT CONTROL SECONDS       sends as fast as it may

CONTROL is a congestion control of the kernel (tcp_available_congestion_control).
"""

import socket
import sys
import time

BLOCK_BYTES = 256 << 10
# The receiver's program may start later than the sender's.
CONNECT_SECONDS = 10


def take(port):
    with socket.create_server(("", port)) as server:
        connection, _ = server.accept()
    with connection:
        while connection.recv(BLOCK_BYTES):
            pass


def connected(address, port, control):
    end = time.monotonic() + CONNECT_SECONDS
    while True:
        flow = socket.socket()
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        try:
            flow.connect((address, port))
            return flow
        except ConnectionRefusedError:
            flow.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def give(address, port, control, seconds):
    block = bytes(BLOCK_BYTES)
    with connected(address, port, control) as flow:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            flow.sendall(block)


if sys.argv[1] == "take":
    take(int(sys.argv[2]))
else:
    give(sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))

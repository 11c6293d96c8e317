# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Ports for the servers of the suites. Sourced by them.

# free_ports COUNT: so many TCP ports that nobody has, on one line. They lie below those from which
# the kernel takes a port for a connection, or for a server that names none: so nobody gets one of
# them meanwhile, also where its server is ended and started again.
free_ports() {
    python3 - "$1" <<'PYTHON'
import random, socket, sys
with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
    first = int(file.read().split()[0])
ports, held = list(range(min(10_000, first // 2), first)), []
random.shuffle(ports)
while len(held) < int(sys.argv[1]):
    one = socket.socket()
    try:
        one.bind(("", ports.pop()))
        held.append(one)
    except OSError:
        one.close()
print(*[one.getsockname()[1] for one in held])
PYTHON
}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Somebody on the path, who has no key: captures the datagrams of real processes and attacks them.

    attacker.py --seed N --may forge|replay [--rate N] [--only ATTACK]... INTERFACE...

Run by suite attack in the network namespace of a testbed's switch, on the interfaces that lead to
the hosts, until SIGTERM. `forge` does everything; `replay` leaves out what makes new datagrams from
captured ones, which without a key nothing can tell from true ones (docs/threat-model.md). At the
end a line for each attack says how often it was made: `attack NAME COUNT`.

Datagrams: docs/srd-protocol.md. All that is sent from here has a TTL of its own, by which it is
known again: only what the processes say is captured.
"""

import argparse
import random
import select
import signal
import socket
import struct
import time

# Of the protocol (docs/srd-protocol.md, 2).
VERSION = 6
HEADER = struct.Struct("<BBBBIQQQQQ")
OWN_TTL = 77
TAPE_FIRST, TAPE_LAST = 500, 4000
EAGER, ACKNOWLEDGEMENT, PROBE, STALE, GREETING, ALIVE, PIECE = 1, 8, 9, 10, 11, 12, 13
PIECE_HEAD = struct.Struct("<BBBBHHQ")
LENGTH_MOST = 8900


class Datagram:
    """One that was captured: from where, to where, and its bytes."""

    def __init__(self, source, target, payload):
        self.source, self.target, self.payload = source, target, payload

    def header(self):
        return list(HEADER.unpack_from(self.payload))


class Tape:
    """The first datagrams, with which the processes met, and some of all later ones."""

    def __init__(self, chance):
        self.chance, self.all, self.seen_count = chance, [], 0
        self.ports, self.newest, self.pieces = {}, {}, []

    def take(self, datagram):
        self.seen_count += 1
        for address, port in (datagram.source, datagram.target):
            self.ports.setdefault(address, set()).add(port)
        self.newest[datagram.source[0], datagram.target[0]] = datagram
        if len(self.all) < TAPE_FIRST + TAPE_LAST:
            self.all.append(datagram)
        elif self.chance.random() < 0.5:
            self.all[TAPE_FIRST + self.chance.randrange(TAPE_LAST)] = datagram

    def take_pieces(self, source, target, payload):
        """Of a long packet; where the kernel has joined them, one behind the other."""
        each = PIECE_HEAD.size + PIECE_HEAD.unpack_from(payload)[5]
        for at in range(0, len(payload), each):
            piece = Datagram(source, target, payload[at : at + each])
            self.pieces = self.pieces[-200:] + [piece]
            if len(piece.payload) >= HEADER.size:
                self.take(piece)

    def any(self):
        # Of the last ones half of the time: those are of what is under way now.
        if self.chance.random() < 0.5:
            return self.chance.choice(list(self.newest.values()))
        return self.chance.choice(self.all)

    def address(self):
        return self.chance.choice(list(self.ports))

    def port(self, address):
        return self.chance.choice(sorted(self.ports[address]))


def ip_header(protocol, source, target, body):
    """The kernel fills in the checksum and the number."""
    length, ends = 20 + len(body), socket.inet_aton(source) + socket.inet_aton(target)
    return struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, OWN_TTL, protocol, 0) + ends


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def home(address, port):
    """As a packet names an endpoint."""
    mapped = bytes(10) + b"\xff\xff" + socket.inet_aton(address)
    return mapped + struct.pack("<H6x", port)


class Attacker:
    """Attacks are the methods `do_...` (always) and `forge_...` (with --may forge). Each answers
    what to send: (protocol, source address, target address, bytes behind the IP header)."""

    def __init__(self, words):
        self.chance = random.Random(words.seed)
        self.tape = Tape(self.chance)
        self.counts, self.refused_count = {}, 0
        kinds = ("do_", "forge_") if words.may == "forge" else ("do_",)
        known = sorted(name for name in dir(self) if name.startswith(kinds))
        self.attacks = [name for name in known if name in (words.only or known)]
        self.out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.ears = [self.listen(interface) for interface in words.interfaces]
        self.syns, self.own = [], "10.77.0.1"

    @staticmethod
    def listen(interface):
        everything = socket.htons(0x0003)
        ear = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, everything)
        ear.bind((interface, 0x0003))
        ear.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        ear.setblocking(False)
        return ear

    def hear(self):
        for ear in select.select(self.ears, [], [], 0)[0]:
            for _ in range(256):
                try:
                    self.capture(ear.recv(65535))
                except BlockingIOError:
                    break

    def capture(self, packet):
        if len(packet) < 28 or packet[0] != 0x45 or packet[8] == OWN_TTL:
            return
        source, target = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
        ports = struct.unpack_from("!HH", packet, 20)
        if packet[9] == socket.IPPROTO_UDP:
            payload = packet[28 : struct.unpack_from("!H", packet, 2)[0]]
            if len(payload) >= HEADER.size and payload[0] >> 4 == VERSION:
                ends = (source, ports[0]), (target, ports[1])
                if payload[0] & 15 == PIECE:
                    self.tape.take_pieces(*ends, payload)
                else:
                    self.tape.take(Datagram(*ends, payload))
        elif packet[9] == socket.IPPROTO_TCP and packet[33] & 0x12 == 0x02:
            if ports[1] in self.tape.ports.get(target, ()):
                self.syns.append((source, target, ports, struct.unpack_from("!I", packet, 24)[0]))

    def step(self):
        if len(self.tape.all) < 2:
            time.sleep(0.001)
            return 0
        name = self.chance.choice(self.attacks)
        made = getattr(self, name)()
        for protocol, source, target, body in made:
            try:
                self.out.sendto(ip_header(protocol, source, target, body) + body, (target, 0))
                self.counts[name] = self.counts.get(name, 0) + 1
            except OSError:
                # Too long for the path, or nobody has this address.
                self.refused_count += 1
        return len(made)

    @staticmethod
    def udp(source, target, payload):
        """Without a checksum, which IPv4 allows."""
        body = struct.pack("!HHHH", source[1], target[1], 8 + len(payload), 0) + payload
        return (socket.IPPROTO_UDP, source[0], target[0], body)

    # What was captured, as it is: again, and to others.

    def do_play_once(self):
        one = self.tape.any()
        return [self.udp(one.source, one.target, one.payload)]

    def do_play_often(self):
        one = self.tape.any()
        return [self.udp(one.source, one.target, one.payload)] * 20

    def do_shuffle_pieces(self):
        """Pieces that were joined already, in another order, some of them twice."""
        pieces = self.tape.pieces[-30:]
        pieces += pieces[:5]
        self.chance.shuffle(pieces)
        return [self.udp(one.source, one.target, one.payload) for one in pieces]

    def do_reflect(self):
        one = self.tape.any()
        return [self.udp(one.target, one.source, one.payload)]

    def do_move_source(self):
        one = self.tape.any()
        strange = (self.own, self.chance.randrange(1, 65536))
        other = (one.source[0], self.chance.randrange(1, 65536))
        invented = (f"10.99.0.{self.chance.randrange(1, 255)}", one.source[1])
        return [self.udp(where, one.target, one.payload) for where in (strange, other, invented)]

    def do_move_target(self):
        one, address = self.tape.any(), self.tape.address()
        ports = (one.target[1], self.tape.port(address), self.chance.choice(range(1024, 65536)))
        sources = (one.source, (self.tape.address(), one.source[1]))
        ways = [(source, (address, port)) for source in sources for port in ports]
        return [self.udp(*way, one.payload) for way in ways if way[0][0] != address]

    # What nobody has said; of it only addresses and ports are known.

    def between(self):
        source, target = self.tape.address(), self.tape.address()
        return (source, self.tape.port(source)), (target, self.tape.port(target))

    def do_flood(self):
        source, target = self.between()
        made = []
        for _ in range(20):
            kind, flags = self.chance.randrange(16), self.chance.choice((0, 1, 2, 3, 7, 16))
            head = bytes([VERSION << 4 | kind, flags, self.chance.randrange(64), 0])
            length = self.chance.choice((40, 44, 60, 84, 132, 300, 1400, 8000))
            noise = bytearray(head + self.chance.randbytes(length))
            # No tag, as without a key.
            noise[24:32] = self.chance.choice((bytes(8), noise[24:32]))
            made.append(self.udp(source, target, bytes(noise)))
        return made

    def do_guess(self):
        """Acknowledgements, ends, greetings, signs of life: all but the incarnations is right."""
        source, target = self.between()
        number = self.chance.getrandbits
        ends = (number(64) | 1, number(64) | 1)
        return [self.udp(source, target, one) for one in self.answers(ends, 1, source)]

    def do_complain(self):
        """ICMP in the name of a host: port, host or everything unreachable; too long."""
        one = self.tape.any()
        inside = ip_header(socket.IPPROTO_UDP, *[end[0] for end in (one.source, one.target)], b"")
        length = struct.pack("!H", 28 + len(one.payload))
        inside = inside[:2] + length + inside[4:8] + b"\x3f" + inside[9:]
        inside += struct.pack("!HHHH", one.source[1], one.target[1], 8 + len(one.payload), 0)
        made = []
        for code, next_mtu in ((3, 0), (1, 0), (13, 0), (2, 0), (4, 600), (4, 68)):
            body = struct.pack("!BBHHH", 3, code, 0, 0, next_mtu) + inside
            body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
            made.append((socket.IPPROTO_ICMP, one.target[0], one.source[0], body))
        return made

    def do_shake(self):
        """TCP: connections to the ports of datagrams, and answers to those that hosts try."""
        source, target = self.between()
        made = [self.tcp(source, target, self.chance.getrandbits(32), 0, 0x02)]
        made.append(self.tcp(source, target, self.chance.getrandbits(32), 0, 0x04))
        for asker, asked, ports, sequence in self.syns[-8:]:
            ends = (asked, ports[1]), (asker, ports[0])
            made.append(self.tcp(*ends, 0, sequence + 1, 0x14))
        del self.syns[:-8]
        return made

    @staticmethod
    def tcp(source, target, sequence, acknowledged, flags):
        ends = struct.pack("!HHII", source[1], target[1], sequence, acknowledged & 0xFFFFFFFF)
        body = ends + struct.pack("!BBHHH", 0x50, flags, 1024, 0, 0)
        addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
        pseudo = addresses + struct.pack("!HH", socket.IPPROTO_TCP, len(body))
        body = body[:16] + struct.pack("!H", checksum(pseudo + body)) + body[18:]
        return (socket.IPPROTO_TCP, source[0], target[0], body)

    # What is made from captured ones. With a key nobody can, and none of it is heard.

    def forge_cut(self):
        one = self.tape.any()
        cut = self.chance.randrange(len(one.payload))
        return [self.udp(one.source, one.target, one.payload[:cut])]

    def forge_flip(self):
        one = self.tape.any()
        changed = bytearray(one.payload)
        for _ in range(self.chance.randrange(1, 9)):
            end = self.chance.choice((48, len(changed)))
            changed[self.chance.randrange(end)] ^= 1 << self.chance.randrange(8)
        return [self.udp(one.source, one.target, bytes(changed))]

    def forge_pieces(self):
        """In the name of who sends pieces now: others of this packet and of the next ones."""
        if not self.tape.pieces:
            return []
        one, made = self.tape.pieces[-1], []
        head = list(PIECE_HEAD.unpack_from(one.payload))
        for further in range(5):
            head[1], head[2] = self.chance.choice(((0, 2), (head[1], head[2]), (63, 64), (1, 1)))
            head[4] = (head[4] + self.chance.choice((0, 1, further))) % 65536
            part = self.chance.randbytes(self.chance.choice((head[5], head[5] // 2)))
            made.append(self.udp(one.source, one.target, PIECE_HEAD.pack(*head) + part))
        return made

    def forge_splice(self):
        one, other = self.tape.any(), self.tape.any()
        at = self.chance.choice((24, 32, 48, len(one.payload) // 2))
        return [self.udp(one.source, one.target, one.payload[:at] + other.payload[at:])]

    def forge_later(self):
        """The same, sent later, as a sequence that is still to come."""
        one = self.tape.any()
        header = one.header()
        header[8] += self.chance.randrange(1, 1 << 32)
        header[9] = (header[9] + self.chance.randrange(64)) & (2**64 - 1)
        header[8] &= 2**64 - 1
        return [self.udp(one.source, one.target, HEADER.pack(*header) + one.payload[48:])]

    def forge_answers(self):
        """To one, in the name of the other, all fields as they should be."""
        one = self.tape.any()
        header = one.header()
        made = self.answers((header[6], header[5]), header[8], one.target)
        return [self.udp(one.target, one.source, answer) for answer in made]

    def answers(self, ends, echo_ns, source):
        """From and to these incarnations, as if something sent at that time were answered."""
        where = home(*source)

        def head(kind, flags, sent_ns):
            path, context = self.chance.randrange(64), self.chance.choice((0, 1, 2))
            return HEADER.pack(VERSION << 4 | kind, flags, path, 0, context, *ends, 0, sent_ns, 0)

        section = struct.pack("<QQQIBBBBQQQQ", 1 << 20, 1 << 40, echo_ns, 0, 0, 127, 0, 255,
                              2**64 - 1, 2**63, 2**63, 2**64 - 1)
        later = (echo_ns + 10**9) & (2**64 - 1)
        made = [head(ACKNOWLEDGEMENT, 2, later) + section]
        for gone in (ends[0], ends[1]):
            made.append(head(STALE, 0, later) + struct.pack("<QQ", gone, echo_ns) + where)
        made.append(head(GREETING, 0, later) + struct.pack("<QQ", echo_ns, 5) + where)
        made.append(head(ALIVE, 0, 0) + struct.pack("<QQ", ends[0], echo_ns) + where)
        return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--may", choices=("forge", "replay"), required=True)
    parser.add_argument("--rate", type=int, default=4000, help="packets in a second, at most")
    parser.add_argument("--only", action="append", help="this attack, to find what does harm")
    parser.add_argument("interfaces", nargs="+")
    words = parser.parse_args()
    attacker = Attacker(words)
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    print(f"attacker: seed {words.seed}", flush=True)
    begin, made = time.monotonic(), 0
    while not over:
        attacker.hear()
        made += attacker.step()
        ahead = made / words.rate - (time.monotonic() - begin)
        if ahead > 0:
            time.sleep(min(ahead, 0.01))
    print(f"captured {attacker.tape.seen_count} datagrams, {attacker.refused_count} did not leave")
    for name in attacker.attacks:
        print("attack", name, attacker.counts.get(name, 0))


if __name__ == "__main__":
    main()

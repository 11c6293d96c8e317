// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets longer than a datagram, put together from their pieces (srd-protocol 19.3, 19.4). Owned
//! by sockets/reader.rs, which hands over what is no packet; what comes of it is checked as every
//! datagram is.
//!
//! A piece has no tag of its own, so what is kept of them is limited whoever sends them, and each
//! byte is placed by checked numbers.

use std::net::{IpAddr, SocketAddr};

use weft_srd::piece::PIECES_BYTES;
use weft_srd::{Ecn, Piece};

/// Packets that are put together at a time (srd-protocol 15; with 64 KiB each they take 4 MiB).
const PACKET_LIMIT: usize = 64;
/// The same from one address.
const ADDRESS_LIMIT: usize = 16;
/// Pieces of packets that are joined keep their memory up to here (chosen: of two packets from each
/// of two remotes).
const SPARE_LIMIT: usize = 4;

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Joined<'a> {
    /// It is kept, or was there already.
    Kept,
    /// It breaks a rule, or is for somebody else.
    Bad,
    /// Its packet is whole: the bytes, and what the IP headers of all pieces say of congestion.
    Whole(&'a [u8], Ecn),
}

/// Which of our sockets a piece came through, and from where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ports {
    from: SocketAddr,
    socket_index: usize,
}

/// A packet of which some pieces have come.
#[derive(Debug)]
struct Packet {
    ports: Ports,
    /// Any of its pieces: which packet it is.
    piece: Piece,
    /// Bit for each piece that is there.
    there: u64,
    /// Where its last piece ends; 0 before that has come.
    length_bytes: usize,
    ecn: Ecn,
    /// When its last piece came, in pieces taken.
    touched: u64,
    /// Its place is made when it begins.
    bytes: Vec<u8>,
}

/// All packets that are being put together.
#[derive(Debug)]
pub struct Joining {
    incarnation: u64,
    packets: Vec<Packet>,
    spares: Vec<Vec<u8>>,
    /// The packet that was whole last.
    whole: Vec<u8>,
    /// Pieces taken.
    count: u64,
    /// Pieces that broke a rule, or were for somebody else.
    bad_count: u64,
}

impl Packet {
    fn is_of(&self, piece: &Piece) -> bool {
        let known = &self.piece;
        (known.packet, known.count, known.part_bytes)
            == (piece.packet, piece.count, piece.part_bytes)
    }

    fn is_whole(&self) -> bool {
        self.there.count_ones() == u32::from(self.piece.count)
    }

    /// Puts a piece to its place, unless one is there.
    fn take(&mut self, piece: &Piece, part: &[u8], ecn: Ecn) {
        let bit = 1 << piece.number;
        if self.there & bit != 0 {
            return;
        }
        self.there |= bit;
        self.ecn = worse(self.ecn, ecn);
        let start = piece.start_bytes();
        if piece.is_last() {
            self.length_bytes = start + part.len();
        }
        if start == self.bytes.len() {
            // In order, as they mostly come.
            self.bytes.extend_from_slice(part);
            return;
        }
        let end = start + part.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(part);
    }
}

/// What two pieces together say of congestion (srd-protocol 19.5).
fn worse(one: Ecn, other: Ecn) -> Ecn {
    let rank = |ecn: Ecn| match ecn {
        Ecn::Ce => 4,
        Ecn::NotEct => 3,
        Ecn::Ect1 => 2,
        Ecn::Ect0 => 1,
        Ecn::Unknown => 0,
    };
    match rank(one) < rank(other) {
        true => other,
        false => one,
    }
}

impl Joining {
    /// Takes pieces for this incarnation.
    pub fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            packets: Vec::new(),
            spares: Vec::new(),
            whole: Vec::new(),
            count: 0,
            bad_count: 0,
        }
    }

    /// Pieces turned away so far.
    pub(crate) fn bad_count(&self) -> u64 {
        self.bad_count
    }

    /// Takes a piece that came through this socket; see [`Piece::is_one`]. Fast path: copies the
    /// part once.
    pub fn take(
        &mut self,
        from: SocketAddr,
        socket_index: usize,
        datagram: &[u8],
        ecn: Ecn,
    ) -> Joined<'_> {
        let parsed = Piece::parse(datagram).ok();
        let ours = parsed.filter(|(piece, _)| piece.target == self.incarnation);
        let Some((piece, part)) = ours else {
            self.bad_count += 1;
            return Joined::Bad;
        };
        let ports = Ports { from, socket_index };
        let place = self.place(ports, &piece);
        self.count += 1;
        let packet = &mut self.packets[place];
        packet.touched = self.count;
        packet.take(&piece, part, ecn);
        if !packet.is_whole() {
            return Joined::Kept;
        }
        let mut packet = self.packets.swap_remove(place);
        packet.bytes.truncate(packet.length_bytes);
        let before = std::mem::replace(&mut self.whole, packet.bytes);
        self.keep_spare(before);
        Joined::Whole(&self.whole, packet.ecn)
    }

    /// Where the packet of this piece is put together. It begins there if it is a new one: the one
    /// before from the same port ends.
    fn place(&mut self, ports: Ports, piece: &Piece) -> usize {
        let known = self.packets.iter().position(|one| one.ports == ports);
        if let Some(place) = known {
            if self.packets[place].is_of(piece) {
                return place;
            }
            self.end(place);
        }
        self.make_room(ports.from.ip());
        let mut bytes = self.spares.pop().unwrap_or_default();
        bytes.reserve(usize::from(piece.count) * usize::from(piece.part_bytes));
        self.packets.push(Packet {
            ports,
            piece: *piece,
            there: 0,
            length_bytes: 0,
            ecn: Ecn::Unknown,
            touched: 0,
            bytes,
        });
        self.packets.len() - 1
    }

    /// Ends those that have waited longest, until one more may begin.
    fn make_room(&mut self, ip: IpAddr) {
        let of_it = |one: &Packet| one.ports.from.ip() == ip;
        if self.packets.iter().filter(|one| of_it(one)).count() >= ADDRESS_LIMIT {
            self.end_oldest(of_it);
        }
        if self.packets.len() >= PACKET_LIMIT {
            self.end_oldest(|_| true);
        }
    }

    fn end_oldest(&mut self, may_end: impl Fn(&Packet) -> bool) {
        let all = self.packets.iter().enumerate();
        let candidates = all.filter(|(_, packet)| may_end(packet));
        let oldest = candidates.min_by_key(|(_, packet)| packet.touched);
        if let Some((place, _)) = oldest {
            self.end(place);
        }
    }

    fn end(&mut self, place: usize) {
        let packet = self.packets.swap_remove(place);
        self.keep_spare(packet.bytes);
    }

    fn keep_spare(&mut self, mut bytes: Vec<u8>) {
        if self.spares.len() < SPARE_LIMIT && bytes.capacity() > 0 {
            bytes.clear();
            self.spares.push(bytes);
        }
    }

    /// Holds at all times: for tests and fuzzing.
    pub fn check(&self) {
        assert!(self.packets.len() <= PACKET_LIMIT && self.spares.len() <= SPARE_LIMIT);
        let all = self.packets.iter().map(|packet| &packet.bytes);
        for bytes in all.chain(&self.spares).chain([&self.whole]) {
            assert!(bytes.len() <= PIECES_BYTES);
        }
        for (place, packet) in self.packets.iter().enumerate() {
            assert!(packet.there != 0 && !packet.is_whole());
            let ip = packet.ports.from.ip();
            let of_it = self.packets.iter().filter(|one| one.ports.from.ip() == ip);
            assert!(of_it.count() <= ADDRESS_LIMIT);
            let others = &self.packets[place + 1..];
            assert!(others.iter().all(|other| other.ports != packet.ports));
        }
    }
}

#[cfg(test)]
#[path = "joining_tests.rs"]
mod tests;

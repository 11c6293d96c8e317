// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams gathered from packet heads and user buffers without a copy in between. Called by udp;
//! calls os.
//!
//! What is gathered is borrowed until it is sent; the lists of pieces are kept from one call to the
//! next.

use core::marker::PhantomData;
use std::io;
use std::net::SocketAddr;

use weft_os::outbound::{self, Outbound, PIECE_LIMIT, Piece};
use weft_os::udp_socket::UdpSocket;

use crate::UserBuffer;

/// Lists that outlive their datagrams, so that gathering does not allocate.
#[derive(Debug, Default)]
pub struct GatherSpace {
    pieces: Vec<Piece>,
    outbound: Vec<Outbound>,
}

/// Datagrams being gathered; what they refer to lives for `'a`.
#[derive(Debug)]
pub struct Gather<'s, 'a> {
    space: &'s mut GatherSpace,
    lent: PhantomData<&'a [u8]>,
}

impl GatherSpace {
    /// Begins with no datagram.
    pub fn begin<'s, 'a>(&'s mut self) -> Gather<'s, 'a> {
        self.pieces.clear();
        self.outbound.clear();
        Gather {
            space: self,
            lent: PhantomData,
        }
    }
}

impl<'a> Gather<'_, 'a> {
    /// Begins a datagram, or several of `segment_bytes` each that go joined (0: one).
    #[inline]
    pub fn begin_datagram(&mut self, to: SocketAddr, segment_bytes: u16) {
        self.space.outbound.push(Outbound {
            to,
            first_piece: self.space.pieces.len(),
            piece_count: 0,
            segment_bytes,
            without_ect: false,
        });
    }

    /// The datagram begun last leaves as Not-ECT.
    #[inline]
    pub fn leave_without_ect(&mut self) {
        if let Some(last) = self.space.outbound.last_mut() {
            last.without_ect = true;
        }
    }

    /// Adds bytes to the datagram begun last.
    #[inline]
    pub fn add_bytes(&mut self, bytes: &'a [u8]) {
        self.add(bytes.as_ptr() as usize, bytes.len());
    }

    /// Adds a stretch of a user's buffer.
    #[inline]
    pub fn add_buffer(&mut self, buffer: &'a UserBuffer, offset_bytes: usize, length_bytes: usize) {
        buffer.for_each_piece(offset_bytes, length_bytes, |address, length| {
            self.add(address, length);
        });
    }

    #[inline]
    fn add(&mut self, address: usize, length_bytes: usize) {
        self.space.pieces.push(Piece::new(address, length_bytes));
        if let Some(last) = self.space.outbound.last_mut() {
            last.piece_count += 1;
        }
    }

    /// Datagrams gathered.
    pub fn count(&self) -> usize {
        self.space.outbound.len()
    }

    /// Whether another part fits the datagram begun last: a head and a buffer in pieces.
    pub fn has_room(&self) -> bool {
        let room = 1 + crate::user_buffer::IOV_LIMIT;
        let last = self.space.outbound.last();
        last.is_none_or(|last| last.piece_count + room <= PIECE_LIMIT)
    }

    /// Sends those from the `skip`th on; answers how many were taken.
    ///
    /// # Errors
    /// As [`outbound::send`].
    pub fn send(&self, socket: &UdpSocket, skip: usize) -> io::Result<usize> {
        // SAFETY: each piece is a slice that is borrowed for 'a, which outlives this value, or lies
        // in a user's buffer, readable until its completion, which cannot come before the borrow
        // ends.
        unsafe { outbound::send(socket, &self.space.outbound[skip..], &self.space.pieces) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BytesView;
    use weft_os::datagrams::ReceiveBatch;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no sendmmsg(2)")]
    fn a_datagram_is_a_head_and_a_stretch_of_a_scattered_buffer() {
        let socket = UdpSocket::bind("127.0.0.1:0".parse().expect("address")).expect("a socket");
        let to = socket.local_address().expect("address");
        let buffer = UserBuffer::leaked(&[3, 4]);
        buffer.fill(0, BytesView::from_slice(&[1, 2, 3, 4, 5, 6, 7]));
        let mut space = GatherSpace::default();
        let mut gather = space.begin();
        for offset in [1, 2] {
            gather.begin_datagram(to, 0);
            gather.add_bytes(&[0]);
            gather.add_buffer(&buffer, offset, 4);
        }
        assert_eq!((gather.count(), gather.has_room()), (2, true));
        assert_eq!(gather.send(&socket, 0).expect("sent"), 2);
        let mut batch = ReceiveBatch::new(2, 64);
        assert_eq!(batch.receive(&socket).expect("received"), 2);
        let got = [0, 1].map(|index| batch.get(index).expect("whole").bytes);
        assert_eq!(got, [&[0, 2, 3, 4, 5][..], &[0, 3, 4, 5, 6][..]]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no sendmmsg(2)")]
    fn datagrams_leave_with_ect_unless_told_otherwise_joined_or_not() {
        for ip in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(ip.parse().expect("an address"), 0);
            let Ok(from) = UdpSocket::bind(address) else {
                println!("skipped: no {ip} here");
                continue;
            };
            let to = UdpSocket::bind(address).expect("bound");
            assert!(from.take_congestion_marks() && to.take_congestion_marks());
            assert!(to.receive_joined());
            let (bytes, mut space) = ([7; 3000], GatherSpace::default());
            let mut gather = space.begin();
            for (segment_bytes, without) in [(0, false), (0, true), (1000, false), (1000, true)] {
                gather.begin_datagram(to.local_address().expect("bound"), segment_bytes);
                gather.add_bytes(&bytes);
                if without {
                    gather.leave_without_ect();
                }
            }
            assert_eq!(gather.send(&from, 0).expect("sent"), 4);
            let mut batch = ReceiveBatch::new(4, 4096);
            assert_eq!(batch.receive(&to).expect("received"), 4);
            let class = |place| batch.get(place).expect("one").traffic_class;
            assert_eq!([0, 1, 2, 3].map(class), [2, 0, 2, 0].map(Some), "{ip}");
        }
    }
}

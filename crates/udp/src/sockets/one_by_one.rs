// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The pieces of a long packet through an interface that cannot send datagrams joined: one by one
//! (srd-protocol 19.7). Called by sockets.rs.

use weft_memory::GatherSpace;
use weft_os::outbound::SendFailure;
use weft_os::udp_socket::UdpSocket;

use crate::gso_batch::Source;
use crate::sockets::queued_errors::QueuedErrors;

/// Sends the first packet of the source, which is long. Answers how many are done, and whether it
/// must wait: what finds no room behind its first piece is lost, as on the way.
pub(super) fn send(
    space: &mut GatherSpace,
    socket: &UdpSocket,
    source: &Source<'_>,
    queued_errors: &mut QueuedErrors,
) -> (usize, bool) {
    let whole = source.whole(0);
    let (count, part_bytes) = whole.cut(source.seal_bytes);
    let is_open = |token| source.sends.is_open(token);
    if whole
        .transmit
        .payload
        .is_some_and(|part| !is_open(part.token))
    {
        return (1, false);
    }
    let heads = source.cutting.heads(source.from);
    for (number, head) in heads.iter().take(count).enumerate() {
        let mut gather = space.begin();
        gather.begin_datagram(whole.transmit.to, 0);
        if source.ecn && !whole.transmit.head.is_ect() {
            gather.leave_without_ect();
        }
        gather.add_bytes(head);
        whole.gather(number * part_bytes, part_bytes, &mut gather);
        // An error may be the answer to an earlier datagram; then the same may go once more, and
        // first: to take some of the answers may make the next call fail.
        let result = gather.send(socket, 0).or_else(|_| {
            let again = gather.send(socket, 0);
            queued_errors.collect(socket);
            again
        });
        if let Err(error) = result
            && SendFailure::of(&error) == SendFailure::Full
        {
            return (usize::from(number > 0), number == 0);
        }
    }
    (1, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutting::Cutting;
    use crate::gso_batch::GsoBatch;
    use crate::joining::{Joined, Joining};
    use crate::sends::Sends;
    use crate::sockets::port_sockets::open_socket;
    use crate::sockets::refusing::{FLOODS, be_flooded, be_refused, refusing};
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, AsRawFd};
    use weft_memory::{BytesView, UserBuffer};
    use weft_os::datagrams::ReceiveBatch;
    use weft_os::sleep;
    use weft_srd::events::Payload;
    use weft_srd::{Ecn, Transmit};

    /// The pieces that came, with their lengths, and what they make.
    fn read(socket: &UdpSocket, count: usize) -> (Vec<usize>, Vec<u8>) {
        let (mut joining, mut lengths) = (Joining::new(0), Vec::new());
        let mut batch = ReceiveBatch::new(2, 1 << 16);
        while lengths.len() < count {
            assert!(sleep::wait_readable(socket.as_fd().as_raw_fd(), 10_000));
            for place in 0..batch.receive(socket).expect("received") {
                let received = batch.get(place).expect("whole");
                for piece in received.bytes.chunks(received.segment_bytes) {
                    lengths.push(piece.len());
                    let joined = joining.take(received.from, 0, piece, Ecn::Unknown);
                    if let Joined::Whole(packet, _) = joined {
                        return (lengths, packet.to_vec());
                    }
                }
            }
        }
        (lengths, Vec::new())
    }

    /// A batch without authentication, from its beginning on.
    fn source<'a>(batch: &'a [Transmit], sends: &'a Sends, cutting: &'a Cutting) -> Source<'a> {
        Source {
            batch,
            ready: &[],
            sends,
            seal_bytes: 0,
            ecn: false,
            cutting,
            from: 0,
        }
    }

    /// A packet that is cut, who lends its payload, and the bytes that this is a part of.
    fn long_packet(to: SocketAddr) -> (Transmit, Sends, Vec<u8>) {
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        let payload = UserBuffer::leaked(&[bytes.len()]);
        payload.fill(0, BytesView::from_slice(&bytes));
        let mut sends = Sends::default();
        let mut transmit = Transmit::blank();
        transmit.to = to;
        transmit.cut_bytes = 1_472;
        transmit.payload = Some(Payload {
            token: sends.copy(None, &payload),
            offset_bytes: 100,
            length_bytes: 19_900,
        });
        (transmit, sends, bytes)
    }

    #[test]
    fn a_long_packet_arrives_as_it_was_joined_or_one_by_one() {
        let bind = || UdpSocket::bind(([127, 0, 0, 1], 0).into()).expect("bound");
        let (from, to) = (bind(), bind());
        let (transmit, mut sends, bytes) = long_packet(to.local_address().expect("bound"));
        let (mut cutting, mut space) = (Cutting::default(), GatherSpace::default());
        let mut queued_errors = QueuedErrors::default();
        let batch = [transmit];
        for joins in [true, false] {
            cutting.prepare(&batch, 0);
            let source = source(&batch, &sends, &cutting);
            if joins {
                let run = GsoBatch::gather(&mut space, &source, true);
                assert_eq!((run.count(), run.taken_count()), (1, 1));
                assert_eq!(run.send_as(&from, 0, false).expect("sent"), 1);
            } else {
                let sent = send(&mut space, &from, &source, &mut queued_errors);
                assert_eq!(sent, (1, false));
            }
            let (lengths, packet) = read(&to, 14);
            assert!(packet == bytes[100..], "of pieces of {lengths:?}");
            assert_eq!(lengths.len(), 14);
            assert!(lengths.iter().all(|length| *length <= 1_472));
        }
        sends.end(batch[0].payload.expect("it has one").token);
        cutting.prepare(&batch, 0);
        let source = source(&batch, &sends, &cutting);
        let sent = send(&mut space, &from, &source, &mut queued_errors);
        assert_eq!(sent, (1, false), "it has ended");
    }

    #[test]
    fn what_a_host_has_refused_is_collected() {
        let from = open_socket(([127, 0, 0, 1], 0).into()).expect("bound");
        let (_far, to) = refusing();
        be_refused(&from, to);
        let (transmit, sends, _) = long_packet(to);
        let (batch, mut cutting) = ([transmit], Cutting::default());
        cutting.prepare(&batch, 0);
        let mut queued_errors = QueuedErrors::default();
        let source = source(&batch, &sends, &cutting);
        let sent = send(
            &mut GatherSpace::default(),
            &from,
            &source,
            &mut queued_errors,
        );
        assert_eq!(sent, (1, false));
        assert!(!queued_errors.is_empty());
    }

    #[test]
    fn a_long_packet_leaves_whole_behind_a_flood_of_queued_errors() {
        for count in FLOODS {
            let bind = || open_socket(([127, 0, 0, 1], 0).into()).expect("bound");
            let (from, to, (_far, gone)) = (bind(), bind(), refusing());
            be_flooded(&from, gone, count);
            let (transmit, sends, bytes) = long_packet(to.local_address().expect("bound"));
            let (batch, mut cutting) = ([transmit], Cutting::default());
            cutting.prepare(&batch, 0);
            let mut queued_errors = QueuedErrors::default();
            let source = source(&batch, &sends, &cutting);
            let sent = send(
                &mut GatherSpace::default(),
                &from,
                &source,
                &mut queued_errors,
            );
            assert_eq!(sent, (1, false));
            assert!(read(&to, 14).1 == bytes[100..], "behind {count}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What reader.rs promises of sockets that tell first what was refused, between sockets of this
//! machine.

use super::*;
use crate::absence::AWAY_NS;
use crate::sockets::refusing::{FLOODS, be_flooded, be_refused, refusing};

/// A host has refused what was sent earlier through a socket, and the socket tells of that first.
#[test]
fn a_complaint_hides_nothing_from_who_comes_back() {
    for (connects, complaining) in [(false, 0), (false, 1), (true, PORT_COUNT), (true, 1)] {
        let (far, far_address) = refusing();
        let (mut reader, addresses) = settled_with(connects, far_address);
        looked_at(&mut reader, Instant(1));
        be_refused(reader.sockets.at(complaining), far_address);
        for to in &addresses[..2] {
            for _ in 0..WAITING_COUNT {
                far.send_to(&[7; DATAGRAM_BYTES], to).expect("sent");
            }
        }
        let (mut count, mut refused) = (0, Vec::new());
        reader.receive(&mut |_, incoming| match incoming {
            Incoming::Datagram(..) => count += 1,
            Incoming::Refused(to) => refused.push(to),
        });
        assert_eq!(count, 2 * WAITING_COUNT, "{connects}, {complaining}");
        assert_eq!(refused, [far_address]);
    }
}

/// A look takes so many of them and no more.
#[test]
fn a_flood_of_complaints_hides_nothing() {
    for (connects, index) in [(false, 0), (true, PORT_COUNT)] {
        for flood in FLOODS {
            let (far, far_address) = refusing();
            let (mut reader, addresses) = settled_with(connects, far_address);
            looked_at(&mut reader, Instant(1));
            for _ in 0..WAITING_COUNT {
                far.send_to(&[7; DATAGRAM_BYTES], addresses[0])
                    .expect("sent");
            }
            be_flooded(reader.sockets.at(index), far_address, flood);
            let count = receive(&mut reader);
            assert_eq!(count, WAITING_COUNT, "connected: {connects}, {flood}");
        }
    }
}

/// A reader whose next look is into one socket or around all of them. There waits word of so many
/// datagrams that were refused, and [`WAITING_COUNT`] datagrams behind it. No look asks again.
fn cut(connects: bool, looks_around: bool, flood: usize) -> (Reader, std::net::UdpSocket) {
    let (far, far_address) = refusing();
    let (mut reader, addresses) = if looks_around {
        eight()
    } else {
        settled_with(connects, far_address)
    };
    if connects && looks_around {
        reader.sockets.settle(0, far_address);
    }
    for _ in 0..WAITING_COUNT {
        far.send_to(&[7; DATAGRAM_BYTES], addresses[0])
            .expect("sent");
    }
    let index = if connects { PORT_COUNT } else { 0 };
    be_flooded(reader.sockets.at(index), far_address, flood);
    looked_at(&mut reader, Instant(1));
    reader.queued_errors.calls_most = 0;
    (reader, far)
}

/// Others may forge queued errors without end.
#[test]
fn a_socket_that_could_not_be_read_does_not_count_as_empty() {
    for (connects, looks_around) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut reader, _far) = cut(connects, looks_around, 1);
        assert_eq!(receive(&mut reader), 0, "{connects}, {looks_around}");
        let now_ns = Instant(1) + AWAY_NS;
        reader.on_clock(now_ns);
        let is_back = reader.polling.comes_back(now_ns + Nanos(1));
        assert!(is_back, "{connects}, {looks_around}");
    }
}

#[test]
fn a_socket_that_could_not_be_read_is_asked_again_before_timers_are() {
    for connects in [false, true] {
        let (mut reader, _far) = cut(connects, false, 1);
        let rest = reader.look_for_rest(&mut |_, _| {});
        assert_eq!(rest.datagram_count, WAITING_COUNT, "connected: {connects}");
        assert!(!rest.is_cut);
        // Each round takes a part of them, if the error queue has held so many.
        let (mut reader, _far) = cut(connects, false, 3_000);
        let rest = reader.look_for_rest(&mut |_, _| {});
        let is_read = rest.datagram_count == WAITING_COUNT;
        assert_eq!(rest.is_cut, !is_read, "timers must wait");
    }
}

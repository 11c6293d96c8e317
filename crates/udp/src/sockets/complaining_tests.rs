// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What reader.rs promises of sockets that tell first what was refused, between sockets of this
//! machine.

use super::*;
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of all lengths that two endpoints send each other, answered and not, so that chunks
//! change hands in every way: each arrives once, in order, as it was sent.

#[path = "shared/random.rs"]
mod random;
#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;

use random::Random;
use transports::{open_pair, tagged};
use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

const LONGEST: usize = 64 * 1024;

/// Receives everything and checks it against its tag.
struct Checker {
    landing: UserBuffer,
    arrived: u64,
    sending: u64,
}

/// What stands in the message with a tag.
fn byte(tag: u64, index: usize) -> u8 {
    (tag as usize)
        .wrapping_mul(31)
        .wrapping_add(index / 3)
        .wrapping_add(index) as u8
}

fn is_as_sent(tag: u64, bytes: &[u8]) -> bool {
    bytes
        .iter()
        .enumerate()
        .all(|(index, &b)| b == byte(tag, index))
}

impl Owner for Checker {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _: Option<AckToken>,
    ) -> bool {
        assert_eq!(envelope.tag, self.arrived, "in order");
        assert!(is_as_sent(envelope.tag, &payload.to_vec()));
        self.arrived += 1;
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        assert_eq!(envelope.tag, self.arrived, "in order");
        let buffer = self.landing.part(0, envelope.length_bytes as usize);
        Some(Landing {
            token: LandingToken(envelope.length_bytes),
            buffer,
        })
    }
    fn on_landed(&mut self, token: LandingToken, outcome: Result<(), TransferError>) {
        outcome.expect("landed");
        let mut bytes = vec![0; token.0 as usize];
        self.landing
            .drain(0, &mut weft_memory::BytesViewMut::from_slice(&mut bytes));
        assert!(is_as_sent(self.arrived, &bytes));
        self.arrived += 1;
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        outcome.expect("sent");
        self.sending -= 1;
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("{why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

struct Side {
    transport: Transport,
    owner: Checker,
    out: UserBuffer,
    sent: u64,
}

impl Side {
    fn new(transport: Transport) -> Self {
        Self {
            transport,
            owner: Checker {
                landing: UserBuffer::leaked(&[LONGEST]),
                arrived: 0,
                sending: 0,
            },
            out: UserBuffer::leaked(&[LONGEST]),
            sent: 0,
        }
    }

    fn progress(&mut self) {
        self.transport.progress(&mut self.owner);
    }

    /// Sends the next message; false while there is no room or the last one is still on its way.
    fn send(&mut self, length: usize) -> bool {
        if self.owner.sending > 0 {
            return false;
        }
        let bytes: Vec<u8> = (0..length).map(|index| byte(self.sent, index)).collect();
        self.out.fill(0, BytesView::from_slice(&bytes));
        let op = tagged(self.sent, CompletionLevel::Transmit);
        match self.transport.post_send(&op, &self.out.part(0, length)) {
            Ok(Posted::Complete) => {}
            Ok(Posted::Pending) => self.owner.sending += 1,
            Err(PostError::Busy) => return false,
            Err(PostError::Failed(why)) => panic!("{why}"),
        }
        self.sent += 1;
        true
    }
}

#[test]
fn messages_arrive_in_order_and_whole_however_chunks_change_hands() {
    let mut sides = open_pair(&Settings::default()).map(Side::new);
    let mut random = Random::seeded();
    let mut draw = move |below: usize| random.below(below as u64) as usize;
    // First both lanes get wide, then all patterns in turns: to and fro, one way, both at once.
    for round in 0..600 {
        let pattern = if round < 250 { 0 } else { draw(4) };
        let length = if round < 250 {
            LONGEST
        } else {
            1 + draw(LONGEST)
        };
        let (first, both) = (draw(2), pattern == 3);
        let order: &[usize] = match (pattern, both) {
            (_, true) => &[0, 1, 0, 1],
            (0, _) => &[0, 1],
            _ => &[first],
        };
        for &side in order {
            while !sides[side].send(length) {
                sides.iter_mut().for_each(Side::progress);
            }
            let sent = sides[side].sent;
            while !both && sides[1 - side].owner.arrived < sent {
                sides.iter_mut().for_each(Side::progress);
            }
        }
    }
    while (0..2).any(|one| sides[one].owner.arrived < sides[1 - one].sent) {
        sides.iter_mut().for_each(Side::progress);
    }
}

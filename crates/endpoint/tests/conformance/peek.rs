// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of FI_PEEK, FI_CLAIM and FI_DISCARD.

use std::time::Instant;

use weft_endpoint::{Completion, Error, FiAddr, Receive, Send, UserBuffer, flags};

use crate::pair::*;

const LENGTHS: [usize; 4] = [5, 300, 9000, 200_000];

/// A receive by tag with flags.
fn look(tag: u64, flags: u64, context: usize) -> Receive {
    Receive {
        flags: Some(flags),
        ..want_tag(tag, context)
    }
}

/// Peeks until the message is there, as MPI_Probe does: the peek itself must make progress.
fn peek_until_found<F: Fabric>(pair: &mut Pair<F>, receive: Receive) -> Completion {
    let start = Instant::now();
    loop {
        pair.receive(B, receive, &UserBuffer::empty());
        let side = &mut pair.sides[B];
        let mut found = None;
        match side
            .domain
            .queues()
            .read(side.queue, 1, |entry| found = Some(*entry))
        {
            Ok(_) => return found.unwrap(),
            Err(error) => assert_eq!(
                error,
                Error::ErrorAvailable,
                "the answer to a peek is there at once"
            ),
        }
        let error = side.domain.queues().read_error(side.queue).unwrap();
        assert_eq!(
            (error.error, error.completion.context),
            (Error::NoMessage, receive.context)
        );
        assert!(start.elapsed() < PATIENCE, "a peek makes progress");
        if F::NEEDS_SENDER {
            pair.sides[A].poll();
        }
    }
}

pub fn a_peek_tells_of_a_message_and_leaves_it<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for length in LENGTHS {
        let bytes = pattern(length, length);
        pair.send(
            A,
            Send {
                cq_data: Some(3),
                ..tagged(0x21, 1)
            },
            &bytes,
        );
        for _ in 0..2 {
            let seen = peek_until_found(
                &mut pair,
                Receive {
                    ignore: 1,
                    ..look(0x20, flags::PEEK, 8)
                },
            );
            assert_eq!(
                (seen.context, seen.length_bytes, seen.tag),
                (8, length, 0x21)
            );
            assert_eq!((seen.cq_data, seen.source), (3, pair.sides[B].other));
            assert_eq!(
                seen.flags,
                flags::RECV | flags::TAGGED | flags::REMOTE_CQ_DATA
            );
        }
        let buffer = room(length);
        pair.receive(B, want_tag(0x21, 2), &buffer);
        assert_eq!(pair.success(B).length_bytes, length);
        assert!(bytes_in(&buffer) == bytes);
        pair.success(A);
    }
    assert_eq!(
        pair.counts(B),
        (0, LENGTHS.len() as u64),
        "peeks are not counted"
    );
}

pub fn a_peek_that_finds_nothing_ends_in_an_error_entry<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    pair.send(A, tagged(1, 1), &[1]);
    pair.settle();
    let other = pair.sides[B].myself;
    for receive in [
        look(2, flags::PEEK, 5),
        Receive {
            source: other,
            ..look(1, flags::PEEK, 5)
        },
    ] {
        pair.receive(B, receive, &UserBuffer::empty());
        let failed = pair.failure(B);
        assert_eq!(
            (failed.error, failed.completion.context),
            (Error::NoMessage, 5)
        );
    }
    pair.receive(
        B,
        look(2, flags::PEEK | flags::CLAIM, 6),
        &UserBuffer::empty(),
    );
    assert_eq!(pair.failure(B).error, Error::NoMessage);
    let nothing_claimed = pair.try_receive(B, look(2, flags::CLAIM, 6), &room(1));
    assert_eq!(nothing_claimed, Err(Error::Invalid));
}

pub fn a_claimed_message_is_found_by_its_context_alone<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for length in LENGTHS {
        let (first, second) = (pattern(1, length), pattern(2, length));
        pair.send(A, tagged(4, 1), &first);
        pair.send(A, tagged(4, 2), &second);
        let seen = peek_until_found(&mut pair, look(4, flags::PEEK | flags::CLAIM, 7));
        assert_eq!(seen.length_bytes, length);
        pair.settle();
        let (claimed, plainly) = (room(length), room(length));
        pair.receive(B, want_tag(4, 8), &plainly);
        assert_eq!(pair.success(B).context, 8);
        assert!(
            bytes_in(&plainly) == second,
            "the claimed message is not found"
        );
        assert_eq!(
            pair.try_receive(B, look(4, flags::CLAIM, 9), &claimed),
            Err(Error::Invalid)
        );
        let claim = Receive {
            source: FiAddr(0),
            ..look(4, flags::CLAIM, 7)
        };
        pair.receive(B, claim, &claimed);
        let got = pair.success(B);
        assert_eq!((got.context, got.length_bytes, got.tag), (7, length, 4));
        assert!(bytes_in(&claimed) == first);
        assert_eq!(
            pair.try_receive(B, look(4, flags::CLAIM, 7), &claimed),
            Err(Error::Invalid),
            "claimed once"
        );
        pair.success(A);
        pair.success(A);
    }
}

pub fn a_discarded_message_is_gone_and_its_sender_is_done<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        transmit_flags: flags::DELIVERY_COMPLETE,
        ..Options::default()
    });
    for length in LENGTHS {
        for claim_first in [false, true] {
            pair.send(A, tagged(4, 1), &pattern(1, length));
            if claim_first {
                peek_until_found(&mut pair, look(4, flags::PEEK | flags::CLAIM, 7));
                pair.receive(
                    B,
                    look(4, flags::CLAIM | flags::DISCARD, 7),
                    &UserBuffer::empty(),
                );
                assert_eq!(pair.success(B).context, 7, "one entry for the discard");
            } else {
                let seen = peek_until_found(&mut pair, look(4, flags::PEEK | flags::DISCARD, 7));
                assert_eq!((seen.context, seen.length_bytes), (7, length));
            }
            pair.receive(B, look(4, flags::PEEK, 5), &UserBuffer::empty());
            assert_eq!(pair.failure(B).error, Error::NoMessage, "it is gone");
            assert_eq!(pair.success(A).context, 1);
        }
    }
}

pub fn flags_that_contradict_each_other_are_refused<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for flags in [
        flags::DISCARD,
        flags::PEEK | flags::CLAIM | flags::DISCARD,
        flags::PEEK | flags::MULTI_RECV,
        flags::CLAIM | flags::MULTI_RECV,
    ] {
        let refused = pair.try_receive(B, look(1, flags, 1), &UserBuffer::empty());
        assert_eq!(refused, Err(Error::Invalid), "{flags:#x}");
    }
    pair.quiet(B);
}

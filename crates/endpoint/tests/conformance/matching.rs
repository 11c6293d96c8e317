// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of matching, as the user sees them. The matching crate tests them in the small.

use weft_endpoint::{FiAddr, Receive, Send};

use crate::pair::*;

pub fn plain_and_tagged_messages_never_meet<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (plainly, by_tag) = (room(1), room(1));
    pair.receive(
        B,
        Receive {
            ignore: u64::MAX,
            ..want_tag(0, 1)
        },
        &by_tag,
    );
    pair.send(A, plain(3), &[7]);
    pair.quiet(B);
    pair.receive(B, want_plain(2), &plainly);
    assert_eq!(pair.success(B).context, 2);
    pair.send(A, tagged(0, 4), &[8]);
    assert_eq!(pair.success(B).context, 1);
    assert_eq!((bytes_in(&plainly), bytes_in(&by_tag)), (vec![7], vec![8]));
}

pub fn the_earliest_receive_that_matches_takes_the_message<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let buffer = room(8);
    let other = pair.sides[B].other;
    for (context, source, tag, ignore) in [
        (0, FiAddr::UNSPEC, 0xF0, 0xF),
        (1, other, 0xF3, 0),
        (2, FiAddr::UNSPEC, 0, u64::MAX),
        (3, other, 0xF3, 0),
        (4, other, 0, u64::MAX),
    ] {
        pair.receive(
            B,
            Receive {
                source,
                tag,
                ignore,
                ..want_tag(0, context)
            },
            &buffer,
        );
    }
    for (tag, taken_by) in [(0xF3, 0), (0xF3, 1), (0xE3, 2), (0xE3, 4), (0xF3, 3)] {
        pair.send(A, tagged(tag, 9), &[1]);
        let got = pair.success(B);
        assert_eq!((got.tag, got.context), (tag, taken_by));
    }
}

pub fn a_receive_takes_the_earliest_message_that_matches<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for (tag, length) in [(1, 5), (2, 6000), (1, 70_000), (3, 8)] {
        pair.send(
            A,
            Send {
                cq_data: Some(length as u64),
                ..tagged(tag, 0)
            },
            &pattern(1, length),
        );
    }
    pair.settle();
    let buffer = room(70_000);
    for (tag, ignore, expected) in [(2, 0, 6000), (1, 2, 5), (0, u64::MAX, 70_000), (1, 2, 8)] {
        pair.receive(
            B,
            Receive {
                ignore,
                ..want_tag(tag, 1)
            },
            &buffer,
        );
        let got = pair.success(B);
        assert_eq!((got.length_bytes, got.cq_data), (expected, expected as u64));
        assert!(bytes_in(&buffer)[..expected] == pattern(1, expected));
    }
}

pub fn a_directed_receive_takes_from_its_source_alone<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (buffer, myself, other) = (room(9), pair.sides[B].myself, pair.sides[B].other);
    pair.receive(
        B,
        Receive {
            source: myself,
            ..want_tag(1, 1)
        },
        &buffer,
    );
    pair.send(A, tagged(1, 2), &[1]);
    pair.quiet(B);
    pair.receive(
        B,
        Receive {
            source: other,
            ..want_tag(1, 3)
        },
        &buffer,
    );
    let got = pair.success(B);
    assert_eq!((got.context, got.source), (3, other));
    pair.send_buffer(B, myself, tagged(1, 4), &buffer_of(&[2]));
    let mut contexts = [pair.success(B).context, pair.success(B).context];
    contexts.sort_unstable();
    assert_eq!(contexts, [1, 4]);
}

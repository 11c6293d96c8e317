// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of remotes that die. A remote dies here by closing its endpoint.

use std::time::Instant;

use weft_endpoint::{Error, Receive, TransferError, flags};

use crate::pair::*;

const LOST: Error = Error::Transfer(TransferError::RemoteLost);

fn kill<F: Fabric>(pair: &mut Pair<F>, side: usize) {
    let endpoint = pair.sides[side].endpoint;
    pair.sides[side].domain.endpoints().close(endpoint).unwrap();
}

/// As [`kill`]; the other side makes progress meanwhile where what was sent may need its sender.
fn kill_beside_progress<F: Fabric>(pair: &mut Pair<F>, side: usize) {
    if !F::NEEDS_SENDER {
        return kill(pair, side);
    }
    let [a, b] = &mut pair.sides;
    let (dying, other) = if side == A { (a, b) } else { (b, a) };
    let endpoint = dying.endpoint;
    std::thread::scope(|scope| {
        let domain = &mut dying.domain;
        let closed = scope.spawn(move || domain.endpoints().close(endpoint).unwrap());
        while !closed.is_finished() {
            other.poll();
        }
    });
}

/// Both have exchanged a message, so both are in contact.
fn acquainted<F: Fabric>() -> Pair<F> {
    let mut pair = Pair::<F>::open();
    for side in [A, B] {
        pair.receive(1 - side, want_plain(1), &room(1));
        pair.send(side, plain(2), &[1]);
        pair.success(side);
        pair.success(1 - side);
    }
    pair
}

pub fn a_directed_receive_ends_when_its_source_dies<F: Fabric>() {
    let mut pair = acquainted::<F>();
    let (other, myself) = (pair.sides[B].other, pair.sides[B].myself);
    let any = room(1);
    pair.receive(B, want_tag(1, 1), &any);
    pair.receive(
        B,
        Receive {
            source: other,
            ..want_tag(1, 2)
        },
        &room(1),
    );
    pair.receive(
        B,
        Receive {
            source: other,
            ..want_plain(3)
        },
        &room(1),
    );
    let multi = Receive {
        source: other,
        flags: Some(flags::MULTI_RECV),
        ..want_plain(4)
    };
    pair.receive(B, multi, &room(10_000));
    pair.quiet(B);
    kill(&mut pair, A);
    let mut contexts: Vec<usize> = (0..3)
        .map(|_| {
            let failed = pair.failure(B);
            assert_eq!(failed.error, LOST);
            let released = failed.completion.flags & flags::MULTI_RECV != 0;
            assert_eq!(released, failed.completion.context == 4);
            failed.completion.context
        })
        .collect();
    contexts.sort_unstable();
    assert_eq!(contexts, [2, 3, 4]);
    pair.quiet(B);
    pair.send_buffer(B, myself, tagged(1, 5), &buffer_of(&[9]));
    pair.success(B);
    pair.success(B);
    assert_eq!(bytes_in(&any), [9], "a receive from anyone goes on");
}

pub fn what_was_received_is_complete_though_its_receiver_closes_at_once<F: Fabric>() {
    let mut pair = acquainted::<F>();
    let landed = room(1);
    pair.receive(B, want_plain(3), &landed);
    pair.send(A, plain(4), &[7]);
    let start = Instant::now();
    while pair.sides[B].heard.is_empty() {
        assert!(start.elapsed() < PATIENCE, "nothing was received");
        pair.poll();
    }
    kill(&mut pair, B);
    assert_eq!(bytes_in(&landed), [7]);
    assert_eq!(pair.success(A).context, 4);
}

/// When the receive of a message is posted.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Posted {
    /// Before the message is sent.
    Before,
    /// When the message is unexpected and its sender lives; nothing makes progress any more.
    AtTheEnd,
    /// When the sender is known to be lost.
    Behind,
    /// Then, too; a peek had claimed the message before.
    Claimed,
}

/// Whether all that was sent is reported as sent, after a while.
fn all_went<F: Fabric>(pair: &mut Pair<F>, count: usize) -> bool {
    for _ in 0..F::SETTLING_ROUNDS {
        // The receiver takes what comes, but is a little behind.
        pair.sides[A].poll();
        if pair.sides[A].heard.len() == count {
            return true;
        }
        pair.sides[B].poll();
    }
    false
}

/// Sends messages of one length and closes their sender as soon as they are reported as sent: they
/// get to their receives. False if they were not reported, and their sender closes at its own risk.
fn arrives<F: Fabric>(posted: Posted, length: usize) -> bool {
    const COUNT: usize = 3;
    let mut pair = acquainted::<F>();
    let other = pair.sides[B].other;
    let rooms: [_; COUNT] = std::array::from_fn(|_| room(length));
    let from = |tag: usize, flags| Receive {
        source: other,
        flags,
        ..want_tag(tag as u64, tag)
    };
    let post = |pair: &mut Pair<F>, flags| {
        for (tag, room) in rooms.iter().enumerate() {
            pair.receive(B, from(tag, flags), room);
        }
    };
    if posted == Posted::Before {
        post(&mut pair, None);
    }
    for tag in 0..COUNT {
        pair.send(A, tagged(tag as u64, tag), &pattern(tag, length));
    }
    if !all_went(&mut pair, COUNT) {
        return false;
    }
    if posted == Posted::Claimed {
        pair.settle();
        for tag in 0..COUNT {
            pair.receive(B, from(tag, Some(flags::PEEK | flags::CLAIM)), &room(0));
            pair.success(B);
        }
    }
    if posted == Posted::AtTheEnd {
        post(&mut pair, None);
    }
    kill_beside_progress(&mut pair, A);
    if matches!(posted, Posted::Behind | Posted::Claimed) {
        pair.receive(B, from(99, None), &room(0));
        assert_eq!(pair.failure(B).completion.context, 99, "the loss is known");
        post(
            &mut pair,
            (posted == Posted::Claimed).then_some(flags::CLAIM),
        );
    }
    for _ in 0..COUNT {
        let outcome = pair.next(B);
        let got = outcome
            .unwrap_or_else(|error| panic!("{length} bytes, received {posted:?}: {error:?}"));
        assert!(
            bytes_in(&rooms[got.context]) == pattern(got.context, length),
            "{length} bytes, received {posted:?}"
        );
    }
    true
}

pub fn what_was_reported_as_sent_arrives_though_its_sender_closes_at_once<F: Fabric>() {
    const LENGTHS: [usize; 11] = [
        0, 8, 300, 3150, 8192, 8193, 12_600, 30_000, 65_536, 65_537, 1_000_000,
    ];
    let mut arrived_count = 0;
    for posted in [
        Posted::Before,
        Posted::AtTheEnd,
        Posted::Behind,
        Posted::Claimed,
    ] {
        let arrived = LENGTHS
            .iter()
            .filter(|&&length| arrives::<F>(posted, length));
        arrived_count += arrived.count();
    }
    // The shortest go without their receiver's help on every route.
    assert!(arrived_count >= 4, "{arrived_count} went");
}

pub fn a_receive_from_the_dead_ends_too<F: Fabric>() {
    let mut pair = acquainted::<F>();
    let other = pair.sides[B].other;
    kill(&mut pair, A);
    for context in 0..3 {
        pair.receive(
            B,
            Receive {
                source: other,
                ..want_tag(1, context)
            },
            &room(1),
        );
        let failed = pair.failure(B);
        assert_eq!((failed.error, failed.completion.context), (LOST, context));
    }
}

pub fn messages_of_the_dead_are_received_but_their_offers_are_void<F: Fabric>() {
    let mut pair = acquainted::<F>();
    pair.send(A, tagged(1, 1), &[]);
    pair.send(A, tagged(2, 1), &pattern(1, 8));
    pair.send(A, tagged(3, 1), &pattern(2, 5_000_000));
    pair.settle();
    pair.receive(
        B,
        Receive {
            flags: Some(flags::PEEK | flags::CLAIM),
            ..want_tag(3, 6)
        },
        &room(0),
    );
    assert_eq!(pair.success(B).length_bytes, 5_000_000);
    pair.send(A, tagged(4, 1), &pattern(2, 5_000_000));
    pair.settle();
    let other = pair.sides[B].other;
    pair.receive(
        B,
        Receive {
            source: other,
            ..want_tag(9, 9)
        },
        &room(0),
    );
    kill(&mut pair, A);
    assert_eq!(pair.failure(B).completion.context, 9, "the loss is known");
    let buffer = room(8);
    pair.receive(B, want_tag(1, 1), &room(0));
    assert_eq!(pair.success(B).context, 1);
    pair.receive(B, want_tag(2, 2), &buffer);
    assert_eq!(pair.success(B).context, 2);
    assert_eq!(bytes_in(&buffer), pattern(1, 8));
    pair.receive(
        B,
        Receive {
            flags: Some(flags::PEEK),
            ..want_tag(4, 4)
        },
        &room(0),
    );
    assert_eq!(pair.failure(B).error, Error::NoMessage, "the offer is gone");
    pair.receive(
        B,
        Receive {
            flags: Some(flags::CLAIM),
            ..want_tag(3, 6)
        },
        &room(5_000_000),
    );
    let failed = pair.failure(B);
    assert_eq!(
        (failed.error, failed.completion.context),
        (LOST, 6),
        "so is the one claimed before"
    );
}

pub fn a_send_to_the_dead_ends<F: Fabric>() {
    let mut pair = acquainted::<F>();
    pair.send(A, tagged(1, 7), &pattern(1, 5_000_000));
    let waits = weft_endpoint::Send {
        flags: Some(flags::DELIVERY_COMPLETE),
        ..tagged(1, 8)
    };
    pair.send(A, waits, &[1]);
    pair.settle();
    kill(&mut pair, B);
    let mut ends = [pair.failure(A), pair.failure(A)];
    ends.sort_by_key(|failed| failed.completion.context);
    assert_eq!(
        ends.map(|failed| (failed.error, failed.completion.context)),
        [(LOST, 7), (LOST, 8)]
    );
    assert_eq!(ends[0].completion.flags, flags::SEND | flags::TAGGED);
    // A later send is refused, or fails: it never hangs and never succeeds for good.
    let start = Instant::now();
    let (endpoint, other) = (pair.sides[A].endpoint, pair.sides[A].other);
    let payload = buffer_of(&[1]);
    loop {
        assert!(start.elapsed() < PATIENCE, "sends to the dead go on and on");
        match pair.sides[A]
            .domain
            .endpoint(endpoint)
            .unwrap()
            .send(other, &waits, &payload)
        {
            Err(Error::Again) => pair.poll(),
            Err(error) => return assert!(matches!(error, Error::Transfer(_)), "{error}"),
            Ok(()) => return assert!(matches!(pair.failure(A).error, Error::Transfer(_))),
        }
    }
}

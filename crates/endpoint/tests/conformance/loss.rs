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

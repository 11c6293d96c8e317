// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of sends to a remote that makes no progress: they are taken up to the depth that is
//! promised, and keep every law of messages. Source: MPI-4.1 section 3.7 (nonblocking calls are
//! local), fi_endpoint(3) on `fi_tx_attr.size`.

use std::time::Instant;

use weft_endpoint::{Error, Inject, SEND_DEPTH, Send, TransferError, flags};

use crate::pair::*;

/// Above what any lane or window holds, and about what other MPIs' transports take.
const MANY: usize = 2000;

/// Most of 8 bytes, and of every form that shared memory and the network have for short ones.
fn length_of(number: usize) -> usize {
    const FORMS: [usize; 6] = [0, 40, 296, 1024, 4096, 8192];
    FORMS.get(number % 32).copied().unwrap_or(8)
}

/// Posts message `number`, without making progress anywhere.
fn post<F: Fabric>(pair: &mut Pair<F>, side: usize, number: usize) -> Result<(), Error> {
    post_bytes(pair, side, number, length_of(number))
}

fn post_bytes<F: Fabric>(
    pair: &mut Pair<F>,
    side: usize,
    number: usize,
    length_bytes: usize,
) -> Result<(), Error> {
    let sender = &mut pair.sides[side];
    let payload = buffer_of(&pattern(number, length_bytes));
    let (class, tag) = (weft_endpoint::Class::Tagged, number as u64);
    if number.is_multiple_of(2) {
        let inject = Inject {
            class,
            tag,
            cq_data: Some(number as u64),
        };
        let injected = sender.domain.endpoint(sender.endpoint).unwrap().inject(
            sender.other,
            &inject,
            &payload,
        );
        // The buffer is ours again.
        payload.fill(
            0,
            weft_memory::BytesView::from_slice(&vec![0xEE; length_bytes]),
        );
        return injected;
    }
    let send = Send {
        flags: Some(flags::INJECT_COMPLETE | flags::COMPLETION),
        ..tagged(tag, number)
    };
    sender
        .domain
        .endpoint(sender.endpoint)
        .unwrap()
        .send(sender.other, &send, &payload)
}

/// Receives message `number`.
fn take<F: Fabric>(pair: &mut Pair<F>, side: usize, number: usize) {
    let buffer = room(length_of(number));
    let anything = weft_endpoint::Receive {
        ignore: u64::MAX,
        ..want_tag(0, number)
    };
    pair.receive(side, anything, &buffer);
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "message {number} is missing");
        pair.poll();
        match pair.heard(side) {
            Some(Ok(got)) if got.flags & flags::RECV != 0 => {
                let expected = (number as u64, length_of(number));
                assert_eq!((got.tag, got.length_bytes), expected, "order");
                break;
            }
            Some(Ok(_)) | None => {}
            Some(Err(error)) => panic!("message {number}: {error:?}"),
        }
    }
    let expected = pattern(number, length_of(number));
    assert!(bytes_in(&buffer) == expected, "message {number}");
}

pub fn bidirectional_sends_are_taken_though_nobody_makes_progress<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for number in 0..MANY {
        for side in [A, B] {
            let posted = post(&mut pair, side, number);
            assert_eq!(posted, Ok(()), "message {number} of side {side}");
        }
    }
    for number in 0..MANY {
        for side in [A, B] {
            take(&mut pair, side, number);
        }
    }
    pair.settle();
    for side in [A, B] {
        assert_eq!(pair.counts(side), (MANY as u64, MANY as u64));
    }
}

pub fn beyond_the_depth_senders_are_told_to_come_again_and_all_that_was_taken_arrives<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let mut taken = 0;
    while taken < 2 * SEND_DEPTH {
        match post(&mut pair, A, taken) {
            Ok(()) => taken += 1,
            Err(error) => {
                assert_eq!(error, Error::Again);
                break;
            }
        }
    }
    assert!(taken >= SEND_DEPTH, "only {taken} were taken");
    assert!(
        taken < 2 * SEND_DEPTH || F::HAS_ROOM_FOR_ALL,
        "queues are bounded"
    );
    (0..taken).for_each(|number| take(&mut pair, B, number));
    assert_eq!(post(&mut pair, A, taken), Ok(()), "there is room again");
    take(&mut pair, B, taken);
}

pub fn a_write_among_sends_that_wait_keeps_its_place<F: Fabric>() {
    if F::IS_DIRECT {
        return; // no order of accesses and messages is promised
    }
    let mut pair = Pair::<F>::open();
    let memory = room(8);
    let key = crate::access::register(&mut pair, B, &memory);
    let ranges = [crate::access::range(key, 0, 8)];
    // Short ones: those that are offered end when they have come, in any order.
    let (before, all) = (300, 600);
    for number in 0..all {
        let anything = weft_endpoint::Receive {
            ignore: u64::MAX,
            ..want_tag(0, number)
        };
        pair.receive(B, anything, &room(8));
        if number == before {
            let side = &mut pair.sides[A];
            let access = weft_endpoint::Access {
                cq_data: Some(77),
                ..crate::access::access(side.other, &ranges, all)
            };
            let payload = buffer_of(&[1; 8]);
            let written = side.calls().write(&access, &payload);
            assert_eq!(written, Ok(()), "a write waits with the sends before it");
        }
        let posted = post_bytes(&mut pair, A, number, 8);
        assert_eq!(posted, Ok(()), "message {number}");
    }
    for number in 0..all {
        if number == before {
            let got = pair.success(B);
            assert_eq!(
                (got.flags & flags::REMOTE_WRITE, got.cq_data),
                (flags::REMOTE_WRITE, 77)
            );
            assert_eq!(bytes_in(&memory), [1; 8]);
        }
        assert_eq!(pair.success(B).tag, number as u64);
    }
}

pub fn sends_that_wait_for_the_dead_end_in_errors<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let delivery = |context| Send {
        flags: Some(flags::DELIVERY_COMPLETE | flags::COMPLETION),
        ..tagged(1, context)
    };
    let payload = room(64);
    for context in 0..MANY {
        let side = &mut pair.sides[A];
        let posted = side.domain.endpoint(side.endpoint).unwrap().send(
            side.other,
            &delivery(context),
            &payload,
        );
        assert_eq!(posted, Ok(()), "send {context}");
    }
    let endpoint = pair.sides[B].endpoint;
    pair.sides[B].domain.endpoints().close(endpoint).unwrap();
    let mut ended = vec![false; MANY];
    for _ in 0..MANY {
        let failed = pair.failure(A);
        assert_eq!(failed.error, Error::Transfer(TransferError::RemoteLost));
        let context = failed.completion.context;
        assert!(
            !std::mem::replace(&mut ended[context], true),
            "send {context} twice"
        );
    }
    pair.quiet(A);
}

pub fn a_send_that_waits_can_be_canceled_and_only_it_is_missing<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let receipt = Send {
        flags: Some(flags::DELIVERY_COMPLETE | flags::COMPLETION),
        ..tagged(MANY as u64, MANY)
    };
    for number in 0..MANY {
        assert_eq!(post(&mut pair, A, number), Ok(()));
    }
    let (endpoint, other) = (pair.sides[A].endpoint, pair.sides[A].other);
    let payload = room(8);
    let domain = &mut pair.sides[A].domain;
    assert_eq!(
        domain
            .endpoint(endpoint)
            .unwrap()
            .send(other, &receipt, &payload),
        Ok(())
    );
    match domain.endpoint(endpoint).unwrap().cancel(MANY) {
        Ok(()) => {}
        // It found room at once, and is under way.
        Err(error) => {
            assert!(F::HAS_ROOM_FOR_ALL, "{error}");
            return;
        }
    }
    assert_eq!(
        domain.endpoint(endpoint).unwrap().cancel(MANY),
        Err(Error::NoSuch)
    );
    assert_eq!(
        domain.endpoint(endpoint).unwrap().cancel(1),
        Err(Error::NoSuch),
        "it is complete"
    );
    let failed = loop {
        match pair.next(A) {
            Ok(_) => {}
            Err(failed) => break failed,
        }
    };
    assert_eq!(
        (failed.error, failed.completion.context),
        (Error::Canceled, MANY)
    );
    (0..MANY).for_each(|number| take(&mut pair, B, number));
    pair.receive(B, want_tag(MANY as u64, 0), &room(8));
    pair.settle();
    assert!(pair.heard(B).is_none(), "it was canceled");
}

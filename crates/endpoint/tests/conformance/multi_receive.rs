// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of FI_MULTI_RECV.

use weft_endpoint::{Error, Receive, UserBuffer, flags};

use crate::pair::*;

/// A multi-receive without a tag.
fn many(context: usize) -> Receive {
    Receive {
        flags: Some(flags::MULTI_RECV),
        ..want_plain(context)
    }
}

fn set_minimum<F: Fabric>(pair: &mut Pair<F>, bytes: usize) {
    let endpoint = pair.sides[B].endpoint;
    pair.sides[B]
        .domain
        .endpoints()
        .set_min_multi_receive_bytes(endpoint, bytes)
        .unwrap();
    assert_eq!(
        pair.sides[B]
            .domain
            .endpoints()
            .min_multi_receive_bytes(endpoint),
        Ok(bytes)
    );
}

/// Receives `count` messages in a multi-receive and checks each where its entry says it is. They
/// may end in any order; the last entry, and no other, releases the buffer if `released`.
fn check<F: Fabric>(pair: &mut Pair<F>, buffer: &UserBuffer, lengths: &[usize], released: bool) {
    let mut seen = vec![false; lengths.len()];
    for index in 0..lengths.len() {
        let got = pair.success(B);
        assert_eq!(got.context, 5);
        let message = got.cq_data as usize;
        assert!(
            !std::mem::replace(&mut seen[message], true),
            "message {message} came twice"
        );
        let offset = got.address - buffer.address();
        assert_eq!(
            offset,
            lengths[..message].iter().sum::<usize>(),
            "messages lie one behind the other"
        );
        assert_eq!(got.length_bytes, lengths[message]);
        assert!(
            bytes_in(buffer)[offset..offset + lengths[message]]
                == pattern(message, lengths[message])
        );
        let last = index + 1 == lengths.len();
        let released_now = got.flags & flags::MULTI_RECV != 0;
        assert_eq!(
            released_now,
            last && released,
            "after {} messages",
            index + 1
        );
    }
}

fn send_all<F: Fabric>(pair: &mut Pair<F>, lengths: &[usize]) {
    for (message, &length) in lengths.iter().enumerate() {
        let send = weft_endpoint::Send {
            cq_data: Some(message as u64),
            ..plain(1)
        };
        pair.send(A, send, &pattern(message, length));
    }
}

pub fn a_multi_receive_packs_messages_and_is_released_once<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    set_minimum(&mut pair, 1000);
    for lengths in [
        &[4, 0, 100, 9, 6000, 50][..],
        &[5000, 5000, 8][..],
        &[1; 40][..],
    ] {
        let total: usize = lengths.iter().sum();
        let buffer = room(total + 999);
        pair.receive(B, many(5), &buffer);
        send_all(&mut pair, lengths);
        check(&mut pair, &buffer, lengths, true);
        pair.quiet(B);
        pair.settle();
    }
}

pub fn a_multi_receive_takes_what_was_unexpected_first<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    set_minimum(&mut pair, 64);
    let lengths = [70, 5000, 3, 200];
    send_all(&mut pair, &lengths);
    pair.settle();
    let buffer = room(lengths.iter().sum::<usize>() + 63);
    pair.receive(B, many(5), &buffer);
    check(&mut pair, &buffer, &lengths, true);

    send_all(&mut pair, &lengths);
    pair.settle();
    let buffer = room(lengths.iter().sum::<usize>() + 64);
    pair.receive(B, many(5), &buffer);
    check(&mut pair, &buffer, &lengths, false);
    pair.send(
        A,
        weft_endpoint::Send {
            cq_data: Some(4),
            ..plain(1)
        },
        &[1],
    );
    let got = pair.success(B);
    assert_eq!(
        (got.cq_data, got.flags & flags::MULTI_RECV),
        (4, flags::MULTI_RECV)
    );
}

pub fn the_release_is_reported_even_if_the_queue_is_selective<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        selective: true,
        ..Options::default()
    });
    set_minimum(&mut pair, 10);
    let buffer = room(100);
    pair.receive(B, many(5), &buffer);
    send_all(&mut pair, &[40, 30]);
    pair.quiet(B);
    pair.send(A, plain(1), &[1; 25]);
    let got = pair.success(B);
    assert_eq!((got.context, got.length_bytes), (5, 25));
    assert_ne!(got.flags & flags::MULTI_RECV, 0);
    assert_eq!(pair.counts(B), (0, 3), "each message counts");
}

pub fn a_message_beyond_the_room_left_is_cut<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    set_minimum(&mut pair, 10);
    for length in [60, 9000] {
        let buffer = room(100);
        pair.receive(B, many(5), &buffer);
        send_all(&mut pair, &[50, length]);
        let (first, second) = (pair.next(B), pair.next(B));
        let (whole, cut) = if first.is_ok() {
            (first, second)
        } else {
            (second, first)
        };
        let (whole, cut) = (whole.unwrap(), cut.unwrap_err());
        assert_eq!((whole.length_bytes, whole.address), (50, buffer.address()));
        assert_eq!(
            (cut.error, cut.overflow_bytes, cut.completion.length_bytes),
            (Error::Truncated, length - 50, 50)
        );
        let released = (whole.flags | cut.completion.flags) & flags::MULTI_RECV;
        assert_eq!(released, flags::MULTI_RECV);
        assert!(bytes_in(&buffer)[50..] == pattern(1, length)[..50]);
    }
    assert_eq!(
        pair.try_receive(B, many(5), &UserBuffer::empty()),
        Err(Error::Invalid)
    );
}

pub fn a_canceled_multi_receive_is_released<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    set_minimum(&mut pair, 10);
    let buffer = room(100_000);
    pair.receive(B, many(5), &buffer);
    send_all(&mut pair, &[20, 9000]);
    assert_eq!(pair.success(B).length_bytes, 20);
    let endpoint = pair.sides[B].endpoint;
    pair.sides[B]
        .domain
        .endpoint(endpoint)
        .unwrap()
        .cancel(5)
        .unwrap();
    let mut outcome = pair.next(B);
    if let Ok(message) = outcome {
        assert_eq!(
            (message.length_bytes, message.flags & flags::MULTI_RECV),
            (9000, 0),
            "it was on its way"
        );
        outcome = pair.next(B);
    }
    let failed = outcome.unwrap_err();
    assert_eq!(
        (failed.error, failed.completion.context),
        (Error::Canceled, 5)
    );
    assert_ne!(failed.completion.flags & flags::MULTI_RECV, 0);
    assert_eq!(
        pair.sides[B].domain.endpoint(endpoint).unwrap().cancel(5),
        Err(Error::NoSuch)
    );
}

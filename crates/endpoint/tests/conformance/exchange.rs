// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of plain sending and receiving.

use weft_endpoint::{Class, Error, Inject, UserBuffer, flags};
use weft_memory::BytesView;

use crate::pair::*;

/// Around every threshold that a transport may have.
const LENGTHS: [usize; 22] = [
    0, 1, 7, 8, 9, 16, 17, 40, 63, 64, 65, 200, 1000, 4095, 4096, 4097, 8192, 16_384, 65_537,
    262_144, 1_000_003, 2_097_152,
];

pub fn every_length_arrives_whole_in_a_posted_receive<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for (index, length) in LENGTHS.into_iter().enumerate() {
        for class in [Class::Tagged, Class::Message] {
            let buffer = room(length);
            let tag = if class == Class::Tagged {
                0xFEDC_BA98_7654_3210 + index as u64
            } else {
                0
            };
            pair.receive(
                B,
                weft_endpoint::Receive {
                    class,
                    ..want_tag(tag, index)
                },
                &buffer,
            );
            exchange(&mut pair, (class, tag), index, length, &buffer);
        }
    }
}

fn exchange<F: Fabric>(
    pair: &mut Pair<F>,
    (class, tag): (Class, u64),
    index: usize,
    length: usize,
    into: &UserBuffer,
) {
    let bytes = pattern(index, length);
    let cq_data = index.is_multiple_of(2).then_some(u64::MAX - index as u64);
    let send = weft_endpoint::Send {
        class,
        cq_data,
        ..tagged(tag, index + 100)
    };
    pair.send(A, send, &bytes);
    let kind = if class == Class::Tagged {
        flags::TAGGED
    } else {
        flags::MSG
    };
    let got = pair.success(B);
    assert_eq!(
        (got.context, got.length_bytes, got.tag),
        (index, length, tag)
    );
    let data = if cq_data.is_some() {
        flags::REMOTE_CQ_DATA
    } else {
        0
    };
    assert_eq!(
        (got.flags, got.cq_data),
        (flags::RECV | kind | data, cq_data.unwrap_or(0))
    );
    assert_eq!(got.source, pair.sides[B].other);
    assert!(
        bytes_in(into) == bytes,
        "{length} bytes were changed on the way"
    );
    let done = pair.success(A);
    assert_eq!(
        (done.context, done.flags),
        (index + 100, flags::SEND | kind)
    );
}

pub fn every_length_arrives_whole_when_it_was_unexpected<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for (index, length) in LENGTHS.into_iter().enumerate() {
        let bytes = pattern(index, length);
        pair.send(
            A,
            weft_endpoint::Send {
                cq_data: Some(index as u64),
                ..tagged(5, 9)
            },
            &bytes,
        );
        pair.settle();
        let buffer = room(length + 1);
        pair.receive(B, want_tag(5, index), &buffer);
        let got = pair.success(B);
        assert_eq!(
            (got.context, got.length_bytes, got.tag, got.cq_data),
            (index, length, 5, index as u64)
        );
        assert!(
            bytes_in(&buffer)[..length] == bytes,
            "{length} bytes were changed on the way"
        );
        assert_eq!(pair.success(A).context, 9);
    }
    let counts = pair.sides[B]
        .domain
        .endpoints()
        .statistics(pair.sides[B].endpoint)
        .unwrap()
        .counts;
    assert_eq!(
        (counts.received_count, counts.unexpected_count),
        (LENGTHS.len() as u64, LENGTHS.len() as u64)
    );
    assert_eq!(counts.received_bytes, LENGTHS.iter().sum::<usize>() as u64);
}

pub fn scattered_buffers_arrive_in_order<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for length in [10, 60, 5000, 300_000] {
        let bytes = pattern(length, length);
        let source = UserBuffer::leaked(&[3, length / 2, 0, length - length / 2 - 3]);
        source.fill(0, BytesView::from_slice(&bytes));
        let target = UserBuffer::leaked(&[length / 3, 1, length - length / 3 - 1]);
        pair.receive(B, want_plain(1), &target);
        let to = pair.sides[A].other;
        pair.send_buffer(A, to, plain(2), &source);
        assert_eq!(pair.success(B).length_bytes, length);
        assert!(
            bytes_in(&target) == bytes,
            "{length} bytes were changed on the way"
        );
        pair.success(A);
    }
}

pub fn messages_from_one_sender_arrive_in_order_whatever_their_length<F: Fabric>() {
    const COUNT: usize = 300;
    let mut pair = Pair::<F>::open();
    let length = |index: usize| [8, 5000, 64, 100_000, 0, 300][index % 6];
    let buffers: Vec<UserBuffer> = (0..COUNT).map(|index| room(length(index))).collect();
    for (index, buffer) in buffers.iter().enumerate().take(COUNT / 2) {
        pair.receive(B, want_tag(7, index), buffer);
    }
    for index in 0..COUNT {
        let bytes = pattern(index, length(index));
        pair.send(
            A,
            weft_endpoint::Send {
                cq_data: Some(index as u64),
                ..tagged(7, index)
            },
            &bytes,
        );
    }
    pair.settle();
    for (index, buffer) in buffers.iter().enumerate().skip(COUNT / 2) {
        pair.receive(B, want_tag(7, index), buffer);
    }
    for _ in 0..COUNT {
        let got = pair.success(B);
        assert_eq!(
            got.context as u64, got.cq_data,
            "receive and message of the same place match"
        );
        let index = got.context;
        assert!(
            bytes_in(&buffers[index]) == pattern(index, length(index)),
            "message {index} was changed on the way"
        );
        pair.success(A);
    }
}

pub fn a_message_to_oneself_arrives<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for length in [0, 8, 100, 10_000, 1_000_000] {
        let (bytes, buffer) = (pattern(length, length), room(length));
        let myself = pair.sides[A].myself;
        pair.send_buffer(A, myself, tagged(3, 1), &buffer_of(&bytes));
        pair.settle();
        pair.receive(
            A,
            weft_endpoint::Receive {
                source: myself,
                ..want_tag(3, 2)
            },
            &buffer,
        );
        let mut ends = [pair.success(A), pair.success(A)];
        ends.sort_by_key(|end| end.context);
        assert_eq!(ends.map(|end| end.context), [1, 2]);
        assert_eq!((ends[1].length_bytes, ends[1].source), (length, myself));
        assert!(bytes_in(&buffer) == bytes);
    }
}

pub fn an_injected_message_needs_its_buffer_no_longer_and_has_no_entry<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let limit = pair.sides[A].domain.settings().inject_limit_bytes;
    for length in [0, 1, 32, 64, 500, limit] {
        let (bytes, target) = (pattern(length, length), room(length));
        let payload = buffer_of(&bytes);
        let inject = Inject {
            class: Class::Tagged,
            tag: 11,
            cq_data: Some(length as u64),
        };
        pair.insist(|pair| {
            let side = &mut pair.sides[A];
            side.domain
                .endpoint(side.endpoint)
                .unwrap()
                .inject(side.other, &inject, &payload)
        });
        payload.fill(0, BytesView::from_slice(&vec![0xEE; length]));
        pair.receive(B, want_tag(11, 1), &target);
        let got = pair.success(B);
        assert_eq!((got.length_bytes, got.cq_data), (length, length as u64));
        assert!(
            bytes_in(&target) == bytes,
            "{length} bytes were taken too late"
        );
    }
    pair.quiet(A);
    assert_eq!(pair.counts(A), (6, 0));
    let (side, long) = (&mut pair.sides[A], room(limit + 1));
    let inject = Inject {
        class: Class::Message,
        tag: 0,
        cq_data: None,
    };
    assert_eq!(
        side.domain
            .endpoint(side.endpoint)
            .unwrap()
            .inject(side.other, &inject, &long),
        Err(Error::TooLong)
    );
    let send = weft_endpoint::Send {
        flags: Some(flags::INJECT),
        ..plain(1)
    };
    assert_eq!(
        side.domain
            .endpoint(side.endpoint)
            .unwrap()
            .send(side.other, &send, &long),
        Err(Error::TooLong)
    );
    let payload = pair.send(A, send, &[1, 2, 3]);
    payload.fill(0, BytesView::from_slice(&[9, 9, 9]));
    let target = room(3);
    pair.receive(B, want_plain(2), &target);
    pair.success(B);
    assert_eq!(bytes_in(&target), [1, 2, 3]);
    assert_eq!(
        pair.success(A).context,
        1,
        "a send with FI_INJECT has an entry"
    );
}

/// Injects a message, and writes over its buffer as soon as it was taken.
fn inject_and_spoil<F: Fabric>(pair: &mut Pair<F>, tag: u64, bytes: &[u8]) {
    let payload = buffer_of(bytes);
    let inject = Inject {
        class: Class::Tagged,
        tag,
        cq_data: None,
    };
    pair.insist(|pair| {
        let to = pair.sides[A].other;
        pair.sides[A].calls().inject(to, &inject, &payload)
    });
    payload.fill(0, BytesView::from_slice(&vec![0xEE; bytes.len()]));
}

pub fn long_injects_need_their_buffers_no_longer_and_keep_their_order<F: Fabric>() {
    const LENGTHS: [usize; 6] = [
        64 << 10,
        (8 << 10) + 1,
        8 << 10,
        20_000,
        100,
        (64 << 10) - 1,
    ];
    let mut pair = Pair::<F>::with(Options {
        long_injects: true,
        ..Options::default()
    });
    let count = 4 * LENGTHS.len();
    let bytes_of = |number: usize| pattern(number, LENGTHS[number % LENGTHS.len()]);
    for number in 0..count {
        inject_and_spoil(&mut pair, number as u64, &bytes_of(number));
    }
    for number in 0..count {
        let (bytes, target) = (bytes_of(number), room(64 << 10));
        // Any tag: the earliest comes first.
        let receive = weft_endpoint::Receive {
            ignore: u64::MAX,
            ..want_tag(0, number)
        };
        pair.receive(B, receive, &target);
        let got = pair.success(B);
        assert_eq!(
            (got.tag, got.length_bytes),
            (number as u64, bytes.len()),
            "message {number}"
        );
        assert!(
            bytes_in(&target)[..bytes.len()] == bytes,
            "{number} is spoilt"
        );
    }
    pair.quiet(A);
    assert_eq!(pair.counts(A), (count as u64, 0));
}

pub fn a_long_inject_that_asks_for_delivery_ends_with_it<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        long_injects: true,
        ..Options::default()
    });
    let bytes = pattern(5, 40_000);
    let send = weft_endpoint::Send {
        flags: Some(flags::INJECT | flags::DELIVERY_COMPLETE | flags::COMPLETION),
        ..tagged(2, 7)
    };
    let payload = pair.send(A, send, &bytes);
    payload.fill(0, BytesView::from_slice(&vec![0xEE; bytes.len()]));
    pair.settle();
    pair.quiet(A);
    let target = room(bytes.len());
    pair.receive(B, want_tag(2, 1), &target);
    assert_eq!(pair.success(B).length_bytes, bytes.len());
    assert_eq!(pair.success(A).context, 7);
    assert!(bytes_in(&target) == bytes);
}

pub fn a_short_receive_gets_what_fits_and_an_error<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for (length, fits, unexpected) in [
        (8, 7, false),
        (8, 0, true),
        (100, 64, true),
        (70_000, 5000, false),
        (70_000, 5000, true),
        (900_000, 1, false),
    ] {
        let (bytes, buffer) = (pattern(length, length), room(fits));
        if !unexpected {
            pair.receive(B, want_tag(77, 4), &buffer);
        }
        pair.send(
            A,
            weft_endpoint::Send {
                cq_data: Some(33),
                ..tagged(77, 5)
            },
            &bytes,
        );
        if unexpected {
            pair.settle();
            pair.receive(B, want_tag(77, 4), &buffer);
        }
        let failed = pair.failure(B);
        assert_eq!(
            (failed.error, failed.overflow_bytes),
            (Error::Truncated, length - fits)
        );
        let entry = failed.completion;
        assert_eq!((entry.context, entry.tag, entry.cq_data), (4, 77, 33));
        assert_eq!(
            (entry.length_bytes, entry.source),
            (fits, pair.sides[B].other)
        );
        assert_eq!(
            entry.flags,
            flags::RECV | flags::TAGGED | flags::REMOTE_CQ_DATA
        );
        assert!(bytes_in(&buffer) == bytes[..fits]);
        assert_eq!(
            pair.success(A).context,
            5,
            "to the sender the message was delivered"
        );
    }
}

pub fn bidirectional_traffic_arrives_whole<F: Fabric>() {
    const COUNT: usize = 100;
    let mut pair = Pair::<F>::open();
    let buffers: Vec<UserBuffer> = (0..2 * COUNT).map(|_| room(20_000)).collect();
    for index in 0..COUNT {
        for side in [A, B] {
            pair.receive(side, want_plain(index), &buffers[2 * index + side]);
            pair.send(side, plain(COUNT), &pattern(2 * index + side, 200 * index));
        }
    }
    for side in [A, B] {
        let mut arrived = [false; COUNT];
        for _ in 0..2 * COUNT {
            let end = pair.success(side);
            if end.flags & flags::RECV != 0 {
                // Messages match receives in order. Which copy ends first is not promised:
                // comp_order is FI_ORDER_NONE (fi_endpoint(3)).
                let index = end.context;
                assert_eq!(end.length_bytes, 200 * index, "matched in order");
                let bytes = bytes_in(&buffers[2 * index + side]);
                assert!(bytes[..200 * index] == pattern(2 * index + 1 - side, 200 * index));
                let again = std::mem::replace(&mut arrived[index], true);
                assert!(!again, "receive {index} ended twice");
            }
        }
        assert_eq!(arrived, [true; COUNT]);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of completion: selective queues, levels, counters.

use weft_endpoint::{Error, Receive, Send, flags};

use crate::pair::*;

pub fn selective_queues_report_only_what_asks_for_it<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        selective: true,
        ..Options::default()
    });
    for length in [4, 9000, 100_000] {
        for (asks, flags) in [
            (false, None),
            (false, Some(0)),
            (true, Some(flags::COMPLETION)),
        ] {
            let buffer = room(length);
            pair.receive(
                B,
                Receive {
                    flags,
                    ..want_tag(1, 2)
                },
                &buffer,
            );
            pair.send(
                A,
                Send {
                    flags,
                    ..tagged(1, 3)
                },
                &pattern(9, length),
            );
            if asks {
                assert_eq!((pair.success(A).context, pair.success(B).context), (3, 2));
            }
            pair.quiet(A);
            pair.quiet(B);
            assert!(
                bytes_in(&buffer) == pattern(9, length),
                "it arrived all the same"
            );
        }
    }
    pair.receive(B, want_tag(1, 2), &room(0));
    pair.send(A, tagged(1, 3), &[1]);
    assert_eq!(
        pair.failure(B).error,
        Error::Truncated,
        "errors are always reported"
    );

    let always = Options {
        selective: true,
        transmit_flags: flags::COMPLETION,
        ..Options::default()
    };
    let mut pair = Pair::<F>::with(always);
    pair.send(A, tagged(1, 3), &[1]);
    assert_eq!(
        pair.success(A).context,
        3,
        "the endpoint's own flags ask for it"
    );
}

pub fn every_level_completes_and_delivery_waits_for_the_receive<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for length in [0, 8, 100, 9000, 200_000] {
        for level in [
            0,
            flags::INJECT_COMPLETE,
            flags::TRANSMIT_COMPLETE,
            flags::DELIVERY_COMPLETE,
            flags::MATCH_COMPLETE,
        ] {
            let delivery = level & (flags::DELIVERY_COMPLETE | flags::MATCH_COMPLETE) != 0;
            for posted in [true, false] {
                let buffer = room(length);
                if posted {
                    pair.receive(B, want_plain(2), &buffer);
                }
                pair.send(
                    A,
                    Send {
                        flags: Some(level),
                        ..plain(3)
                    },
                    &pattern(4, length),
                );
                if !posted {
                    if delivery {
                        pair.quiet(A);
                    }
                    pair.settle();
                    pair.receive(B, want_plain(2), &buffer);
                }
                assert_eq!(
                    pair.success(A).context,
                    3,
                    "{length} bytes at level {level:#x}"
                );
                assert_eq!(pair.success(B).context, 2);
                assert!(bytes_in(&buffer) == pattern(4, length));
            }
        }
    }
}

pub fn counters_count_messages_whether_or_not_they_have_entries<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        selective: true,
        ..Options::default()
    });
    let mut expected = 0;
    for length in [4, 9000, 100_000] {
        pair.receive(B, want_tag(1, 2), &room(length));
        pair.send(A, tagged(1, 3), &pattern(9, length));
        pair.settle();
        expected += 1;
        assert_eq!(
            (pair.counts(A), pair.counts(B)),
            ((expected, 0), (0, expected))
        );
    }
    let side = &mut pair.sides[A];
    side.domain.counters().add(side.sent, 10, 2).unwrap();
    assert_eq!(side.domain.counters().read(side.sent), Ok(expected + 10));
    assert_eq!(side.domain.counters().read_errors(side.sent), Ok(2));
    side.domain.counters().set(side.sent, 1).unwrap();
    side.domain.counters().set_errors(side.sent, 0).unwrap();
    assert_eq!(
        (
            side.domain.counters().read(side.sent),
            side.domain.counters().read_errors(side.sent)
        ),
        (Ok(1), Ok(0))
    );
}

pub fn errors_are_counted_apart<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    pair.receive(B, want_tag(1, 2), &room(1));
    pair.send(A, tagged(1, 3), &[1, 2]);
    assert_eq!(pair.failure(B).error, Error::Truncated);
    pair.receive(B, want_tag(1, 2), &room(1));
    let (endpoint, received) = (pair.sides[B].endpoint, pair.sides[B].received);
    pair.sides[B]
        .domain
        .endpoint(endpoint)
        .unwrap()
        .cancel(2)
        .unwrap();
    assert_eq!(pair.failure(B).error, Error::Canceled);
    assert_eq!(pair.counts(B), (0, 0));
    assert_eq!(pair.sides[B].domain.counters().read_errors(received), Ok(2));
    assert_eq!(
        pair.sides[B]
            .domain
            .endpoints()
            .statistics(endpoint)
            .unwrap()
            .counts
            .error_count,
        1,
        "what the user canceled did not go wrong"
    );
}

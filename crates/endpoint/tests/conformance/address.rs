// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of addresses and of the life of objects.

use weft_endpoint::{EndpointSettings, Error, FiAddr, QueueBinding, Receive, VectorKind, flags};

use crate::pair::*;

pub fn a_message_before_its_sender_is_known_matches_a_directed_receive_later<F: Fabric>() {
    for length in [8, 5000, 100_000] {
        let mut pair = Pair::<F>::with(Options {
            strangers: true,
            ..Options::default()
        });
        let (of_a, of_b) = (pair.sides[A].address(), pair.sides[B].address());
        pair.sides[A].other = pair.sides[A].insert(of_b);
        let buffer = room(length);
        pair.receive(B, want_tag(1, 1), &buffer);
        pair.send(A, tagged(1, 7), &pattern(3, length));
        assert_eq!(
            pair.success(B).source,
            FiAddr::UNSPEC,
            "the source is not in the address vector"
        );
        pair.send(A, tagged(1, 8), &pattern(4, length));
        pair.settle();
        let name = pair.sides[B].insert(of_a);
        pair.receive(
            B,
            Receive {
                source: name,
                ..want_tag(1, 2)
            },
            &buffer,
        );
        let got = pair.success(B);
        assert_eq!((got.context, got.source), (2, name));
        assert!(bytes_in(&buffer) == pattern(4, length));
    }
}

pub fn an_address_known_twice_is_one_remote_reported_by_its_first_name<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (first, of_a) = (pair.sides[B].other, pair.sides[A].address());
    let second = pair.sides[B].insert(of_a);
    assert_eq!((first, second), (FiAddr(0), FiAddr(2)));
    pair.receive(
        B,
        Receive {
            source: second,
            ..want_tag(1, 1)
        },
        &room(1),
    );
    pair.send(A, tagged(1, 1), &[1]);
    assert_eq!(pair.success(B).source, first);
    let (domain, vector) = (&mut pair.sides[B].domain, pair.sides[B].vector);
    domain.vectors().remove(vector, first).unwrap();
    assert_eq!(domain.vectors().lookup(vector, second), Ok(of_a));
    pair.receive(B, want_tag(1, 1), &room(1));
    pair.send(A, tagged(1, 1), &[1]);
    assert_eq!(pair.success(B).source, second, "the name that is left");
}

pub fn a_removed_address_is_sent_to_no_more_but_heard_still<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (name, of_a) = (pair.sides[B].other, pair.sides[A].address());
    let side = &mut pair.sides[B];
    side.domain.vectors().remove(side.vector, name).unwrap();
    assert_eq!(
        side.domain.vectors().remove(side.vector, name),
        Err(Error::NoSuch)
    );
    assert_eq!(
        side.domain.vectors().lookup(side.vector, name),
        Err(Error::NoSuch)
    );
    assert_eq!(
        side.calls().send(name, &plain(1), &room(1)),
        Err(Error::Invalid)
    );
    assert_eq!(
        side.calls().send(FiAddr(99), &plain(1), &room(1)),
        Err(Error::Invalid)
    );
    let directed = Receive {
        source: name,
        ..want_plain(1)
    };
    assert_eq!(pair.try_receive(B, directed, &room(1)), Err(Error::Invalid));
    pair.receive(B, want_plain(1), &room(1));
    pair.send(A, plain(1), &[1]);
    assert_eq!(pair.success(B).source, FiAddr::UNSPEC);
    assert_eq!(pair.sides[B].insert(of_a), name, "the lowest free name");
    pair.send(B, plain(2), &[2]);
    assert_eq!(pair.success(B).context, 2);
}

pub fn objects_in_use_cannot_be_closed<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let side = &mut pair.sides[A];
    let (domain, endpoint) = (&mut side.domain, side.endpoint);
    assert_eq!(domain.vectors().close(side.vector), Err(Error::Busy));
    assert_eq!(domain.queues().close(side.queue), Err(Error::Busy));
    assert_eq!(domain.counters().close(side.sent), Err(Error::Busy));
    let both = QueueBinding {
        transmit: true,
        receive: true,
        selective: false,
    };
    assert_eq!(
        domain.endpoints().bind_queue(endpoint, side.queue, both),
        Err(Error::BadState),
        "it is enabled"
    );
    assert_eq!(domain.endpoints().enable(endpoint), Err(Error::BadState));

    let young = domain.endpoints().open(EndpointSettings::default());
    let enabled = domain.endpoints().enable(young);
    assert_eq!(enabled, Err(Error::NotBound), "it has no address vector");
    let address = domain.endpoints().local_address(young);
    assert_eq!(address, Err(Error::BadState));
    let calls = domain.endpoint(young).unwrap();
    let sent = calls.send(FiAddr(0), &plain(1), &room(1));
    assert_eq!(sent, Err(Error::BadState));
    let calls = domain.endpoint(young).unwrap();
    let received = calls.receive(&want_plain(1), || room(1));
    assert_eq!(received, Err(Error::BadState));
    let first = domain.endpoints().bind_queue(young, side.queue, both);
    let second = domain.endpoints().bind_queue(young, side.queue, both);
    assert_eq!((first, second), (Ok(()), Err(Error::Busy)));
    let events = flags::MULTI_RECV;
    let bound = domain.endpoints().bind_counter(young, side.sent, events);
    assert_eq!(bound, Err(Error::Invalid));
    let vector = domain.vectors().open(VectorKind::Map);
    domain.endpoints().bind_vector(young, vector).unwrap();
    assert_eq!(
        domain.endpoints().bind_vector(young, side.vector),
        Err(Error::Busy)
    );
    assert_eq!(domain.vectors().close(vector), Err(Error::Busy));

    assert!(!domain.is_empty());
    domain.endpoints().close(young).unwrap();
    domain.endpoints().close(endpoint).unwrap();
    assert_eq!(domain.endpoints().close(endpoint), Err(Error::NoSuch));
    domain.vectors().close(vector).unwrap();
    domain.vectors().close(side.vector).unwrap();
    domain.queues().close(side.queue).unwrap();
    domain.counters().close(side.sent).unwrap();
    domain.counters().close(side.received).unwrap();
    for counter in side.accesses {
        domain.counters().close(counter).unwrap();
    }
    assert!(domain.is_empty());
}

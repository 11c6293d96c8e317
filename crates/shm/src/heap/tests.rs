// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which messages are offered out of the heap though they might be streamed.

use weft_contract::*;
use weft_memory::{UserBuffer, foreign_heap};
use weft_os::heap::Heap;

use crate::settings::SingleCopy;
use crate::sink::Sink;
use crate::{Settings, Transport};

const LONG: usize = 32 << 10;

fn open(heap: Option<Heap>, single_copy: SingleCopy) -> Transport {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        single_copy,
        heap,
        ..Settings::default()
    };
    Transport::open(settings).expect("transport")
}

/// Two transports in contact, each remote 0 of the other.
fn pair(heaps: [Option<Heap>; 2], single_copy: SingleCopy) -> [Transport; 2] {
    let [mut a, mut b] = heaps.map(|heap| open(heap, single_copy));
    a.add_remote(RemoteId(0), b.local_address());
    b.add_remote(RemoteId(0), a.local_address());
    for transport in [&mut a, &mut b] {
        transport.housekeeping.shares_cores = false;
    }
    let mut pair = [a, b];
    for from in [0, 1] {
        send(&mut pair, from, &UserBuffer::leaked(&[8]));
    }
    pair
}

fn send(pair: &mut [Transport; 2], from: usize, payload: &UserBuffer) -> Posted {
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag: 7,
        cq_data: None,
        level: CompletionLevel::Transmit,
        token: SendToken(0),
        inject: false,
    };
    loop {
        let posted = pair[from].post_send(&op, payload);
        for transport in pair.iter_mut() {
            transport.progress(&mut Sink);
        }
        match posted {
            Ok(posted) => return posted,
            Err(why) => assert_eq!(why, PostError::Busy),
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn what_is_shown_lies_in_our_heap_and_goes_to_one_that_has_a_heap_too() {
    let (heap, inside) = foreign_heap::leaked(LONG).expect("a heap");
    let (other, outside) = foreign_heap::leaked(LONG).expect("a heap");
    for (heaps, single_copy, shares_cores, expected) in [
        ([Some(heap), Some(other)], SingleCopy::Auto, false, true),
        ([Some(heap), Some(other)], SingleCopy::Never, false, true),
        ([Some(heap), Some(other)], SingleCopy::Always, false, false),
        ([Some(heap), Some(other)], SingleCopy::Auto, true, true),
        ([Some(heap), None], SingleCopy::Auto, false, false),
        ([None, Some(other)], SingleCopy::Auto, false, false),
    ] {
        let [mut a, _b] = pair(heaps, single_copy);
        a.housekeeping.shares_cores = shares_cores;
        assert_eq!(a.shows(RemoteId(0), &inside), expected, "{heaps:?}");
        assert!(!a.shows(RemoteId(0), &outside));
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn the_third_message_in_a_row_is_offered_and_an_answer_ends_the_row() {
    let (heap, inside) = foreign_heap::leaked(LONG).expect("a heap");
    let mut pair = pair([Some(heap), Some(heap)], SingleCopy::Auto);
    for _ in 0..2 {
        assert_eq!(send(&mut pair, 0, &inside), Posted::Complete);
        assert_eq!(send(&mut pair, 0, &inside), Posted::Complete);
        assert_eq!(send(&mut pair, 0, &inside), Posted::Pending);
        assert_eq!(
            send(&mut pair, 1, &UserBuffer::leaked(&[100])),
            Posted::Complete
        );
        assert_eq!(
            send(&mut pair, 0, &inside),
            Posted::Complete,
            "a row begins"
        );
        assert_eq!(
            send(&mut pair, 1, &UserBuffer::leaked(&[100])),
            Posted::Complete
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn where_ranks_share_cores_a_lone_message_is_offered_too() {
    let (heap, inside) = foreign_heap::leaked(LONG).expect("a heap");
    let mut pair = pair([Some(heap), Some(heap)], SingleCopy::Auto);
    for (shares_cores, expected) in [(false, Posted::Complete), (true, Posted::Pending)] {
        pair[0].housekeeping.shares_cores = shares_cores;
        assert_eq!(send(&mut pair, 0, &inside), expected);
        send(&mut pair, 1, &UserBuffer::leaked(&[100]));
    }
}

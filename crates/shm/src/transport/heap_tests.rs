// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which messages are offered out of the heap though they might be streamed.

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, Offering, OwnHeap, UserBuffer, own_heap};

use crate::protocol::STREAM_BYTES;
use crate::protocol::send_protocol::SendProtocol;
use crate::settings::SingleCopy;
use crate::transport::traffic::Traffic;
use crate::transports_for_tests::{Basin, Sink, open_with, tagged};
use crate::tuner::protocols::SendTuner;
use crate::{Protocol, Settings, Transport};

const LONG: usize = 32 << 10;

fn open(heap: Option<OwnHeap>, single_copy: SingleCopy) -> Transport {
    open_with(Settings {
        single_copy,
        heap,
        ..Settings::default()
    })
}

/// Two transports in contact, each remote 0 of the other.
fn pair(heaps: [Option<OwnHeap>; 2], single_copy: SingleCopy) -> [Transport; 2] {
    let [mut a, mut b] = heaps.map(|heap| open(heap, single_copy));
    a.add_remote(RemoteId(0), b.local_address());
    b.add_remote(RemoteId(0), a.local_address());
    for transport in [&mut a, &mut b] {
        transport.set_shares_cores(false);
    }
    let mut pair = [a, b];
    for from in [0, 1] {
        send(&mut pair, from, &UserBuffer::leaked(&[8]));
    }
    pair
}

fn shows(of: &mut Transport, payload: &UserBuffer) -> bool {
    let Traffic {
        contacts, sender, ..
    } = &mut of.traffic;
    sender.shows(contacts, RemoteId(0), payload, Offering::ONE)
}

fn send(pair: &mut [Transport; 2], from: usize, payload: &UserBuffer) -> Posted {
    let op = tagged(7, CompletionLevel::Transmit);
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
    let (heap, inside) = own_heap::leaked(LONG).expect("a heap");
    let (other, outside) = own_heap::leaked(LONG).expect("a heap");
    for (heaps, single_copy, shares_cores, expected) in [
        (
            [Some(heap.clone()), Some(other.clone())],
            SingleCopy::Auto,
            false,
            true,
        ),
        (
            [Some(heap.clone()), Some(other.clone())],
            SingleCopy::Never,
            false,
            true,
        ),
        (
            [Some(heap.clone()), Some(other.clone())],
            SingleCopy::Always,
            false,
            false,
        ),
        (
            [Some(heap.clone()), Some(other.clone())],
            SingleCopy::Auto,
            true,
            true,
        ),
        ([Some(heap.clone()), None], SingleCopy::Auto, false, false),
        ([None, Some(other.clone())], SingleCopy::Auto, false, false),
    ] {
        let names = format!("{heaps:?}");
        let [mut a, _b] = pair(heaps, single_copy);
        a.set_shares_cores(shares_cores);
        assert_eq!(shows(&mut a, &inside), expected, "{names}");
        assert!(!shows(&mut a, &outside));
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn the_third_message_in_a_row_is_described_and_an_answer_ends_the_row() {
    let (heap, inside) = own_heap::leaked(LONG).expect("a heap");
    let mut pair = pair([Some(heap.clone()), Some(heap.clone())], SingleCopy::Auto);
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
fn where_ranks_share_cores_a_single_message_is_described_too() {
    let (heap, inside) = own_heap::leaked(LONG).expect("a heap");
    let mut pair = pair([Some(heap.clone()), Some(heap.clone())], SingleCopy::Auto);
    for (shares_cores, expected) in [(false, Posted::Complete), (true, Posted::Pending)] {
        pair[0].set_shares_cores(shares_cores);
        assert_eq!(send(&mut pair, 0, &inside), expected);
        send(&mut pair, 1, &UserBuffer::leaked(&[100]));
    }
}

/// Sends a message that nothing else follows or precedes, looks at its bytes, and answers whether
/// it was copied out of the heap.
fn send_alone(pair: &mut [Transport; 2], payload: &UserBuffer, mark: u8) -> bool {
    let length_bytes = payload.length_bytes();
    let bytes: Vec<u8> = (0..length_bytes)
        .map(|index| (index / 64) as u8 ^ mark)
        .collect();
    payload.fill(0, BytesView::from_slice(&bytes));
    let mapped = |transport: &Transport| transport.statistics().sent(Protocol::Mapped).messages;
    let before = mapped(&pair[0]);
    let mut taker = Basin::new(length_bytes);
    let op = tagged(7, CompletionLevel::Transmit);
    pair[0].post_send(&op, payload).expect("sent");
    while taker.landed == 0 {
        pair[0].progress(&mut Sink);
        pair[1].progress(&mut taker);
    }
    // Its end comes to its sender, too.
    while pair[0].is_busy() || pair[0].traffic.sends.remotes().count() > 0 {
        pair[0].progress(&mut Sink);
    }
    let mut taken = vec![0; length_bytes];
    taker
        .landing
        .drain(0, &mut BytesViewMut::from_slice(&mut taken));
    assert!(taken == bytes, "{length_bytes} bytes, mark {mark}");
    send(pair, 1, &UserBuffer::leaked(&[100]));
    mapped(&pair[0]) > before
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn of_messages_far_apart_none_is_mapped_unless_somebody_asked_for_it() {
    let (heap, inside) = own_heap::leaked(4 * LONG).expect("a heap");
    for (heap, expected) in [(heap.clone(), true), (heap.not_asked(), false)] {
        let mut pair = pair([Some(heap.clone()), Some(heap)], SingleCopy::Never);
        for mark in 0..12 {
            // What a program computes in between.
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(send_alone(&mut pair, &inside, mark), expected);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn a_single_message_leaves_as_its_sender_has_found_to_be_faster() {
    for (length_bytes, shares_cores, default) in [
        (LONG, false, SendProtocol::Streamed),
        (LONG, true, SendProtocol::Rendezvous),
        (4 * LONG, false, SendProtocol::Rendezvous),
    ] {
        let (heap, inside) = own_heap::leaked(length_bytes).expect("a heap");
        let mut pair = pair([Some(heap.clone()), Some(heap.clone())], SingleCopy::Never);
        pair[0].set_shares_cores(shares_cores);
        // So that its lane is wide where lanes are.
        (0..40).for_each(|_| {
            send(&mut pair, 0, &UserBuffer::leaked(&[STREAM_BYTES]));
        });
        send(&mut pair, 1, &UserBuffer::leaked(&[100]));
        for other in [false, true, false] {
            pair[0].traffic.sender.set_tuner(SendTuner::found(other));
            let is_described = (default == SendProtocol::Rendezvous) != other;
            for mark in 0..40 {
                let mapped = send_alone(&mut pair, &inside, mark);
                assert_eq!(mapped, is_described, "{length_bytes} bytes, {shares_cores}");
            }
        }
    }
}

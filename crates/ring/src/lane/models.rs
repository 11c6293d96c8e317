// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of lanes and bells, through every interleaving of their two sides (docs/shm-layout.md,
//! clauses 4 to 6).
//!
//! Run by tests/loom/run.sh. Lanes have two cells here, so that every model goes round. Each says
//! which change of the code it is there to catch.

use loom::sync::Arc;
use loom::thread;

use super::tests::HeapLane;
use super::*;
use crate::cell::{CELL_PAYLOAD_BYTES, CELL_WORDS, Head, INLINE_PAYLOAD_BYTES};
use crate::doorbell::Doorbell;
use crate::layout::LANE_NARROW_BYTES;
use weft_memory::UserBuffer;

fn head(kind: u8) -> Head {
    Head {
        kind,
        flags: 0,
        length_bytes: 0,
    }
}

fn push(producer: &mut Producer, value: u64) {
    while producer.push_words(head(1), [value; CELL_WORDS]).is_err() {
        thread::yield_now();
    }
}

fn pop(consumer: &mut Consumer) -> u64 {
    loop {
        if let Some(arrival) = consumer.peek() {
            let words = arrival.words();
            assert_eq!(words, [words[0]; CELL_WORDS], "half a message");
            break;
        }
        thread::yield_now();
    }
    let value = consumer.peek().expect("it stays").word(0);
    consumer.advance(0);
    consumer.settle();
    value
}

fn lane() -> (Producer, Consumer) {
    Box::leak(HeapLane::new()).ends()
}

/// Push against pop. Catches: the mark published without release or loaded without acquire;
/// `consumed` likewise; a cell written before the consumer has let it go.
#[test]
fn every_message_arrives_once_and_whole_through_every_interleaving() {
    loom::model(|| {
        let (mut producer, mut consumer) = lane();
        let sender = thread::spawn(move || (1..=3).for_each(|value| push(&mut producer, value)));
        for expected in 1..=3 {
            assert_eq!(pop(&mut consumer), expected);
        }
        sender.join().expect("sender");
        assert!(consumer.peek().is_none());
    });
}

/// Runs of two cells, each of which fills the lane. Catches: a run published before its last cell
/// is written, or written before the consumer has let go of all that was there.
#[test]
fn a_run_of_cells_arrives_whole_and_is_not_overwritten() {
    loom::model(|| {
        let (mut producer, mut consumer) = lane();
        let run = Head {
            kind: 1,
            flags: 0,
            length_bytes: INLINE_PAYLOAD_BYTES as u32,
        };
        let sender = thread::spawn(move || {
            for value in 1..=2_u8 {
                let payload = UserBuffer::leaked(&[INLINE_PAYLOAD_BYTES]);
                payload.fill(0, weft_memory::BytesView::from_slice(&[value; 64]));
                while producer.push_run(run, 7, 8, &payload).is_err() {
                    thread::yield_now();
                }
            }
        });
        for expected in 1..=2_u8 {
            loop {
                if let Some(arrival) = consumer.peek() {
                    assert_eq!((arrival.word(0), arrival.word(1)), (7, 8));
                    let payload = arrival.inline_payload().expect("inside the lane");
                    assert_eq!(payload.to_vec(), [expected; CELL_PAYLOAD_BYTES]);
                    break;
                }
                thread::yield_now();
            }
            consumer.advance_inline(run.length_bytes);
            consumer.settle();
        }
        sender.join().expect("sender");
    });
}

/// Payload in the data area, through a lane that becomes wide. Catches: a consumer that counts a
/// message before it has copied it; a producer that goes back to the first byte while payload is in
/// flight.
#[test]
fn payload_is_not_overwritten_before_it_is_taken_narrow_or_wide() {
    loom::model(|| {
        const BYTES: usize = LANE_NARROW_BYTES / 2 + 64;
        let (mut producer, mut consumer) = lane();
        let sender = thread::spawn(move || {
            for value in 1..=3_u8 {
                let payload = UserBuffer::leaked(&[BYTES]);
                payload.fill(0, weft_memory::BytesView::from_slice(&[value; 64]));
                while producer
                    .push_data(head(2), [0; 5], &payload, 0..BYTES)
                    .is_err()
                {
                    thread::yield_now();
                }
                producer.widen();
            }
        });
        for expected in 1..=3_u8 {
            loop {
                if let Some(arrival) = consumer.peek() {
                    let payload = arrival.data_payload().expect("inside the area");
                    assert_eq!(payload.to_vec()[..64], [expected; 64]);
                    break;
                }
                thread::yield_now();
            }
            consumer.advance(BYTES as u32);
            consumer.settle();
        }
        sender.join().expect("sender");
    });
}

/// Offer and answer over two lanes, as control messages go. Catches: an answer that overtakes what
/// it answers.
#[test]
fn an_answer_comes_after_what_it_answers() {
    loom::model(|| {
        let (mut offers, mut offered) = lane();
        let (mut answers, mut answered) = lane();
        let memory = Arc::new(loom::cell::UnsafeCell::new(0_u64));
        let theirs = memory.clone();
        let receiver = thread::spawn(move || {
            assert_eq!(pop(&mut offered), 5);
            // SAFETY: the sender writes before it offers and not again before it is answered; the
            // model checks it.
            theirs.with(|memory| assert_eq!(unsafe { *memory }, 7));
            push(&mut answers, 6);
        });
        // SAFETY: nothing is offered yet.
        memory.with_mut(|memory| unsafe { *memory = 7 });
        push(&mut offers, 5);
        assert_eq!(pop(&mut answered), 6);
        // SAFETY: the receiver is done with it.
        memory.with_mut(|memory| unsafe { *memory = 8 });
        receiver.join().expect("receiver");
    });
}

/// Ring against collect. Catches: the summary set before the slot's bit; the slot's bits taken
/// before the summary.
#[test]
fn a_bell_that_rings_during_a_collection_is_heard_in_it_or_in_the_next() {
    loom::model(|| {
        let bell = Arc::new(Doorbell::new());
        let senders: Vec<_> = [3, 5]
            .map(|slot| {
                let theirs = bell.clone();
                thread::spawn(move || theirs.ring(slot))
            })
            .into();
        let mut heard = Vec::new();
        bell.collect(|slot| heard.push(slot));
        for sender in senders {
            sender.join().expect("sender");
        }
        bell.collect(|slot| heard.push(slot));
        heard.sort_unstable();
        assert_eq!(heard, [3, 5]);
        assert!(!bell.is_rung());
    });
}

/// Ring against sleep: the receiver sees the bit or the sender sees the sleeper. Catches: either
/// fence left out.
#[test]
fn a_receiver_that_sleeps_after_looking_again_is_always_woken() {
    loom::model(|| {
        let bell = Arc::new(Doorbell::new());
        let theirs = bell.clone();
        let sender = thread::spawn(move || theirs.ring(3));
        bell.begin_sleep();
        let looks_again = bell.is_rung();
        let wakes = sender.join().expect("sender");
        assert!(looks_again || wakes, "asleep beside a message");
    });
}

/// Push without a ring against sleep. Senders look at `polled` without a fence; the receiver's
/// membarrier(2) stands for one in each sender, between its push and its look, which is how the
/// model has it. Catches: the sleep without its barrier (no fence on the sender's side), or a last
/// look that comes before it.
#[test]
fn a_push_that_does_not_ring_is_seen_before_the_sleep() {
    loom::model(|| {
        let (mut producer, mut consumer) = lane();
        let bell = Arc::new(Doorbell::new());
        let theirs = bell.clone();
        consumer.set_polled(true);
        let sender = thread::spawn(move || {
            push(&mut producer, 1);
            // What membarrier does to this processor.
            crate::sync::fence(Ordering::SeqCst);
            !producer.is_polled() && theirs.ring(3)
        });
        consumer.set_polled(false);
        bell.begin_sleep();
        let looks_again = consumer.has_message() || bell.is_rung();
        let wakes = sender.join().expect("sender");
        assert!(looks_again || wakes, "asleep beside a message");
    });
}

/// A silent lane is left alone while its sender pushes: after the sender is through, either the
/// lane or the bell says so. Catches: a sender that looks at `polled` before it pushes.
#[test]
fn a_lane_that_is_left_alone_is_rung_for_or_seen_at_the_second_look() {
    loom::model(|| {
        let (mut producer, mut consumer) = lane();
        let bell = Arc::new(Doorbell::new());
        let theirs = bell.clone();
        consumer.set_polled(true);
        let sender = thread::spawn(move || {
            push(&mut producer, 1);
            if !producer.is_polled() {
                theirs.ring(3);
            }
        });
        consumer.set_polled(false);
        // The second look comes a tick later: whatever was under way is through.
        sender.join().expect("sender");
        assert!(consumer.has_message() || bell.is_rung());
    });
}

/// Death of a sender and reset of its lane, then another sender. Catches: a reset that leaves a
/// mark of the first.
#[test]
fn a_reset_lane_shows_nothing_of_the_dead() {
    loom::model(|| {
        let heap = Box::leak(HeapLane::new());
        let (mut producer, mut consumer) = heap.ends();
        let (mut successor, _) = heap.ends();
        let sender = thread::spawn(move || {
            let _ = producer.push_words(head(1), [1; CELL_WORDS]);
        });
        let _ = consumer.peek().is_some();
        sender.join().expect("it dies");
        consumer.reset();
        let next = thread::spawn(move || push(&mut successor, 2));
        assert_eq!(pop(&mut consumer), 2);
        next.join().expect("successor");
    });
}

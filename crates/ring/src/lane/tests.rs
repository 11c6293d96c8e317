// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of a lane in one process: order, exactness, flow control, and disbelief in what a remote
//! claims.

use super::*;
use crate::cell::CELL_WORDS;

/// A lane on the heap, for tests and models.
pub(crate) struct HeapLane {
    control: LaneControl,
    cells: Vec<Cell>,
    data: Vec<u8>,
}

impl HeapLane {
    pub(crate) fn new() -> Box<Self> {
        let cell = || Cell {
            mark: AtomicU64::new(0),
            words: crate::sync::UnsafeCell::new([0; CELL_WORDS]),
        };
        Box::new(Self {
            control: LaneControl {
                consumed: AtomicU64::new(0),
                #[cfg(not(loom))]
                reserved: [const { AtomicU64::new(0) }; 15],
                polled: AtomicU64::new(0),
                #[cfg(not(loom))]
                reserved_too: [const { AtomicU64::new(0) }; 13],
                advice: AtomicU64::new(0),
                non_temporal: AtomicU64::new(0),
            },
            cells: (0..LANE_CELLS).map(|_| cell()).collect(),
            data: vec![0; LANE_DATA_BYTES],
        })
    }

    /// Both ends; the lane must outlive them.
    pub(crate) fn ends(&mut self) -> (Producer, Consumer) {
        let data = self.data.as_mut_ptr();
        let lane = || Lane {
            control: &raw const self.control,
            cells: self.cells.as_ptr(),
            data,
            keep: None,
        };
        (Producer::over(lane()), Consumer::over(lane()))
    }
}

#[cfg(not(loom))]
mod laws {
    use weft_memory::UserBuffer;

    use super::*;
    use crate::cell::{CELL_PAYLOAD_BYTES, Head, INLINE_PAYLOAD_BYTES, cells_of};
    use crate::lane::data_area::REWIND_BYTES;
    use crate::layout::LANE_NARROW_BYTES;

    /// Rounds of a law that repeats itself: fewer where an interpreter runs them (Miri), which
    /// takes 10,000 times as long.
    const fn rounds(count: u64) -> u64 {
        if cfg!(miri) { count / 400 } else { count }
    }

    fn user(bytes: &mut [u8]) -> UserBuffer {
        // SAFETY: each test keeps the bytes alive and untouched while the buffer is used.
        unsafe { UserBuffer::from_raw(bytes.as_mut_ptr(), bytes.len()) }
    }

    fn head(length_bytes: usize) -> Head {
        Head {
            kind: 1,
            flags: 2,
            length_bytes: length_bytes as u32,
        }
    }

    fn run_head(length_bytes: usize) -> Head {
        Head {
            kind: 9,
            ..head(length_bytes)
        }
    }

    #[test]
    fn inline_messages_arrive_in_order_with_every_length() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        assert!(consumer.peek().is_none());
        for round in 0..500usize {
            let length = round % (CELL_PAYLOAD_BYTES + 1);
            let mut bytes: Vec<u8> = (0..length).map(|i| (round + i) as u8).collect();
            producer
                .push_inline(
                    head(length),
                    round as u64,
                    !(round as u64),
                    &user(&mut bytes),
                )
                .expect("room");
            let arrival = consumer.peek().expect("arrived");
            assert_eq!(
                (arrival.head, arrival.word(0), arrival.word(1)),
                (head(length), round as u64, !(round as u64))
            );
            assert_eq!(arrival.inline_payload().expect("fits").to_vec(), bytes);
            consumer.advance(0);
        }
    }

    #[test]
    fn a_full_lane_refuses_and_has_room_after_the_consumer_settles() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        for i in 0..LANE_CELLS {
            producer
                .push_words(head(0), [i as u64; CELL_WORDS])
                .expect("room");
        }
        assert_eq!(producer.push_words(head(0), [0; CELL_WORDS]), Err(Full));
        assert!(!producer.is_drained());
        for i in 0..LANE_CELLS {
            assert_eq!(consumer.peek().expect("arrived").word(0), i as u64);
            consumer.advance(0);
        }
        consumer.settle();
        assert!(
            consumer.peek().is_none(),
            "cells of the last lap are not new"
        );
        assert!(producer.is_drained());
        producer
            .push_words(head(0), [7; CELL_WORDS])
            .expect("room again");
    }

    #[test]
    fn data_of_messages_in_flight_is_never_overwritten() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        let mut expected = std::collections::VecDeque::new();
        let mut random = 12345u64;
        for round in 0..rounds(20_000) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let length = (random >> 40) as usize % 9000;
            let mut bytes = vec![round as u8; length];
            if producer
                .push_data(
                    head(length),
                    [round, 0, 0, 0, 0],
                    &user(&mut bytes),
                    0..length,
                )
                .is_ok()
            {
                expected.push_back((round, length));
            }
            if random & 0x300 != 0 || expected.len() > 40 {
                let Some((tag, length)) = expected.pop_front() else {
                    continue;
                };
                let arrival = consumer.peek().expect("arrived");
                assert_eq!(arrival.word(0), tag);
                let payload = arrival.data_payload().expect("inside the area").to_vec();
                assert!(payload.len() == length && payload.iter().all(|&b| b == tag as u8));
                consumer.advance(length as u32);
            }
        }
    }

    #[test]
    fn an_empty_lane_has_room_for_data_of_every_length() {
        let mut bytes = vec![0; LANE_NARROW_BYTES];
        let step = if cfg!(miri) {
            LANE_NARROW_BYTES / 4
        } else {
            64
        };
        for first in (64..=LANE_NARROW_BYTES).step_by(step) {
            let mut heap = HeapLane::new();
            let (mut producer, mut consumer) = heap.ends();
            for length in [first, 64, 192, 64, LANE_NARROW_BYTES, 64] {
                let payload = user(&mut bytes);
                let pushed = producer.push_data(head(length), [0; 5], &payload, 0..length);
                assert_eq!(pushed, Ok(()), "{length} bytes after {first} at first");
                assert!(consumer.peek().is_some());
                consumer.advance(length as u32);
                consumer.settle();
            }
        }
    }

    #[test]
    fn an_idle_lane_keeps_to_its_first_pages() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        for _ in 0..1000 {
            let mut bytes = [1u8; 1000];
            producer
                .push_data(head(1000), [0; 5], &user(&mut bytes), 0..1000)
                .expect("room");
            let place = consumer.peek().expect("arrived").word(2) >> 32;
            assert!(place < 2 * REWIND_BYTES as u64, "at {place}");
            consumer.advance(1000);
            consumer.settle();
        }
    }

    #[test]
    fn a_wide_lane_goes_round_its_whole_area_and_keeps_order() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        producer.widen();
        let mut furthest = 0;
        for round in 0..1000u64 {
            let mut bytes = vec![round as u8; 5000];
            producer
                .push_data(head(5000), [round, 0, 0, 0, 0], &user(&mut bytes), 0..5000)
                .expect("room");
            let arrival = consumer.peek().expect("arrived");
            assert_eq!(
                arrival.data_payload().expect("inside the area").to_vec(),
                bytes
            );
            furthest = furthest.max(arrival.word(2) >> 32);
            consumer.advance(5000);
            consumer.settle();
        }
        assert!(
            furthest > LANE_DATA_BYTES as u64 * 9 / 10,
            "only up to {furthest}"
        );
    }

    /// What one thread pushed the other takes, whole and in order; for interpreters and sanitizers
    /// that see data races.
    #[test]
    fn two_threads_hand_messages_over() {
        struct Moved<T>(T);
        // SAFETY: each end is used by one thread alone, and the lane outlives both.
        unsafe impl<T> Send for Moved<T> {}
        const COUNT: u64 = rounds(20_000);
        let mut heap = HeapLane::new();
        let (producer, mut consumer) = heap.ends();
        let moved = Moved(producer);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let Moved(mut producer) = { moved };
                for round in 0..COUNT {
                    let length = (round * 37 % 1000) as usize;
                    let mut bytes = vec![round as u8; length];
                    let payload = user(&mut bytes);
                    if length <= INLINE_PAYLOAD_BYTES
                        && producer
                            .push_run(run_head(length), round, 0, &payload)
                            .is_ok()
                    {
                        continue;
                    }
                    while producer
                        .push_data(head(length), [round, 0, 0, 0, 0], &payload, 0..length)
                        .is_err()
                    {
                        std::thread::yield_now();
                    }
                }
            });
            for round in 0..COUNT {
                let arrival = loop {
                    if let Some(arrival) = consumer.peek() {
                        break arrival;
                    }
                    std::thread::yield_now();
                };
                let length = (round * 37 % 1000) as usize;
                assert_eq!(arrival.word(0), round);
                let is_run = arrival.head == run_head(length);
                let payload = if is_run {
                    arrival.inline_payload().expect("inside the lane").to_vec()
                } else {
                    arrival.data_payload().expect("inside the area").to_vec()
                };
                assert_eq!(payload, vec![round as u8; length]);
                if is_run {
                    consumer.advance_inline(length as u32);
                } else {
                    consumer.advance(length as u32);
                }
                consumer.settle();
            }
        });
    }

    #[test]
    fn a_claim_outside_the_lane_is_not_believed() {
        let mut heap = HeapLane::new();
        let (mut producer, consumer) = heap.ends();
        let outside = (LANE_DATA_BYTES as u64 - 10) << 32 | 11;
        producer
            .push_words(head(INLINE_PAYLOAD_BYTES + 1), [0, 0, outside, 0, 0, 0, 0])
            .expect("room");
        let arrival = consumer.peek().expect("arrived");
        assert!(arrival.data_payload().is_none());
        assert!(arrival.inline_payload().is_none());
    }

    #[test]
    fn a_claim_of_cells_behind_the_last_one_is_not_believed() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        for index in 0..LANE_CELLS {
            producer
                .push_words(head(INLINE_PAYLOAD_BYTES), [0; CELL_WORDS])
                .expect("room");
            let arrival = consumer.peek().expect("arrived");
            let fits = index + cells_of(INLINE_PAYLOAD_BYTES) <= LANE_CELLS;
            assert_eq!(arrival.inline_payload().is_some(), fits, "at {index}");
            consumer.advance(0);
        }
    }

    /// Runs of cells of every length between other cells, wherever the lane ends; what finds no
    /// room in cells goes as data.
    #[test]
    fn runs_of_cells_arrive_in_order_between_others_with_every_length() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        let (mut expected, mut as_run) = (std::collections::VecDeque::new(), 0);
        for round in 0..rounds(40_000) as usize {
            let length = round * 7919 % (INLINE_PAYLOAD_BYTES + 1);
            let mut bytes: Vec<u8> = (0..length).map(|i| (round * 31 + i) as u8).collect();
            let (tag, payload) = (round as u64, user(&mut bytes));
            if producer.push_run(head(length), tag, !tag, &payload).is_ok() {
                as_run += 1;
                expected.push_back((tag, true, bytes));
            } else if producer
                .push_data(head(length), [tag, !tag, 0, 0, 0], &payload, 0..length)
                .is_ok()
            {
                expected.push_back((tag, false, bytes));
            }
            while expected.len() > round % 9 {
                let (tag, is_run, bytes) = expected.pop_front().expect("counted");
                let arrival = consumer.peek().expect("arrived");
                assert_eq!((arrival.word(0), arrival.word(1)), (tag, !tag));
                if is_run {
                    let payload = arrival.inline_payload().expect("inside the lane");
                    assert_eq!(payload.to_vec(), bytes);
                    consumer.advance_inline(bytes.len() as u32);
                } else {
                    let payload = arrival.data_payload().expect("inside the area");
                    assert_eq!(payload.to_vec(), bytes);
                    consumer.advance(bytes.len() as u32);
                }
                consumer.settle();
            }
        }
        assert!(
            as_run > rounds(40_000) / 2,
            "only {as_run} went as runs of cells"
        );
    }

    /// Payload that holds laps where marks lie, at every place of the lane: no cell is ever taken
    /// for a message.
    #[test]
    fn payload_that_looks_like_marks_is_not_taken_for_messages() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        let mut refused = 0;
        for round in 0..rounds(8000).max(500) {
            // Near the lap of this round, in every second of its words' upper halves.
            let lap = (round / 13 + round % 4) as u16;
            let mut bytes: Vec<u8> = lap.to_le_bytes().repeat(INLINE_PAYLOAD_BYTES / 2);
            let payload = user(&mut bytes);
            let length = payload.length_bytes();
            if producer.push_run(head(length), round, 0, &payload).is_err() {
                refused += 1;
                assert!(consumer.peek().is_none(), "a cell that was not published");
                producer
                    .push_words(head(0), [round, 0, 0, 0, 0, 0, 0])
                    .expect("room");
            }
            let arrival = consumer.peek().expect("arrived");
            assert_eq!(arrival.word(0), round);
            let length_bytes = arrival.head.length_bytes;
            if length_bytes > 0 {
                let payload = arrival.inline_payload().expect("inside the lane");
                assert_eq!(payload.to_vec(), bytes);
            }
            consumer.advance_inline(length_bytes);
            consumer.settle();
            assert!(consumer.peek().is_none(), "a message that nobody sent");
        }
        assert!(refused > 20, "only {refused} looked like the next lap");
    }

    #[test]
    fn a_count_that_ends_inside_a_message_does_no_harm() {
        let mut heap = HeapLane::new();
        let (mut producer, consumer) = heap.ends();
        let mut bytes = vec![5; 5000];
        let (mut run_count, mut data_count) = (0, 0);
        for claimed in 1..=2 * LANE_CELLS {
            let short = user(&mut bytes[..INLINE_PAYLOAD_BYTES]);
            if claimed % 3 == 1 {
                let run = producer.push_run(head(short.length_bytes()), 0, 0, &short);
                run_count += usize::from(run.is_ok());
            }
            let data = producer.push_data(head(5000), [0; 5], &user(&mut bytes), 0..5000);
            data_count += usize::from(data.is_ok());
            consumer.claim(claimed as u64);
        }
        // Some find no room, as the count says; the others were written by it.
        assert!(run_count > 0 && data_count > 0);
    }

    #[test]
    fn a_count_that_cannot_be_is_ignored() {
        let mut heap = HeapLane::new();
        heap.control.consumed.store(u64::MAX, Ordering::Relaxed);
        let (mut producer, _consumer) = heap.ends();
        for _ in 0..LANE_CELLS {
            producer.push_words(head(0), [0; CELL_WORDS]).expect("room");
        }
        assert_eq!(producer.push_words(head(0), [0; CELL_WORDS]), Err(Full));
    }

    #[test]
    fn a_reset_lane_serves_the_next_sender() {
        let mut heap = HeapLane::new();
        let (mut producer, mut consumer) = heap.ends();
        for _ in 0..LANE_CELLS / 2 {
            producer.push_words(head(3), [9; CELL_WORDS]).expect("room");
        }
        consumer.advance(0);
        consumer.reset();
        assert!(consumer.peek().is_none());
        let (mut second, _) = heap.ends();
        second.push_words(head(1), [5; CELL_WORDS]).expect("room");
        assert_eq!(consumer.peek().expect("arrived").word(0), 5);
    }
}

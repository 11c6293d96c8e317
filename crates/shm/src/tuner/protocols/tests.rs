// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which protocol is found, in simulated time.

use std::time::{Duration, Instant};

use super::SendTuner;
use crate::protocol::send_protocol::SendProtocol;

/// Sends so many messages, of which each protocol takes its own time; answers how many were
/// offered.
struct Simulated {
    tuner: SendTuner,
    now: Instant,
    default: SendProtocol,
}

/// The default first.
fn pair(default: SendProtocol) -> [SendProtocol; 2] {
    let all = [SendProtocol::Streamed, SendProtocol::Rendezvous];
    let other = all.into_iter().find(|&one| one != default);
    [default, other.expect("there are two")]
}

impl Simulated {
    fn new(default: SendProtocol) -> Self {
        Self {
            tuner: SendTuner::new(),
            now: Instant::now(),
            default,
        }
    }

    fn send(
        &mut self,
        count: usize,
        bytes: usize,
        mut took_ns: impl FnMut(SendProtocol) -> u64,
    ) -> usize {
        let mut offered = 0;
        for _ in 0..count {
            let now = self.now;
            let protocol = self.tuner.next(bytes, pair(self.default), false, || now);
            offered += usize::from(protocol == SendProtocol::Rendezvous);
            self.now += Duration::from_nanos(took_ns(protocol));
        }
        offered
    }
}

fn by(streamed_ns: u64, offered_ns: u64) -> impl FnMut(SendProtocol) -> u64 {
    move |protocol| match protocol {
        SendProtocol::Streamed => streamed_ns,
        _ => offered_ns,
    }
}

/// Messages after which a first trial is over.
const LEARNED: usize = 80;

#[test]
fn the_faster_protocol_is_found_from_either_default() {
    for default in [SendProtocol::Streamed, SendProtocol::Rendezvous] {
        let mut sends = Simulated::new(default);
        sends.send(LEARNED, 32 << 10, by(2000, 1000));
        let offered = sends.send(400, 32 << 10, by(2000, 1000));
        assert!(
            offered >= 352,
            "all but trials: {offered} after {default:?}"
        );
        let mut sends = Simulated::new(default);
        sends.send(LEARNED, 32 << 10, by(1000, 2000));
        let others = sends.send(400, 32 << 10, by(1000, 2000));
        assert!(others <= 48, "trials only: {others} after {default:?}");
    }
}

#[test]
fn what_takes_the_same_stays_at_the_default() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    sends.send(LEARNED, 32 << 10, by(1000, 980));
    let others = sends.send(400, 32 << 10, by(1000, 980));
    assert!(others <= 48, "trials only: {others}");
}

#[test]
fn one_interruption_in_a_window_decides_nothing() {
    for interrupted in 0..LEARNED {
        let mut sends = Simulated::new(SendProtocol::Streamed);
        let mut sent = 0;
        let mut usual = by(2000, 1000);
        sends.send(LEARNED, 32 << 10, |protocol| {
            sent += 1;
            usual(protocol) + if sent == interrupted { 10_000 } else { 0 }
        });
        let offered = sends.send(400, 32 << 10, by(2000, 1000));
        assert_eq!(offered, 400, "message {interrupted} was interrupted");
    }
}

/// The other rank shares its buffer, or maps ours.
#[test]
fn where_the_first_trial_meets_what_happens_once_the_next_one_comes_soon() {
    for first in 0..LEARNED {
        let mut sends = Simulated::new(SendProtocol::Streamed);
        let mut sent = 0;
        let mut usual = by(2000, 1000);
        sends.send(LEARNED, 32 << 10, |protocol| {
            sent += 1;
            usual(protocol) + 100_000 * u64::from(sent == first || sent == first + 8)
        });
        sends.send(250, 32 << 10, by(2000, 1000));
        let offered = sends.send(400, 32 << 10, by(2000, 1000));
        assert!(
            offered > 360,
            "all but trials: {offered}, after messages {first} and {}",
            first + 8
        );
    }
}

#[test]
fn trials_cost_little_and_become_rare() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    sends.send(LEARNED, 32 << 10, by(1000, 1500));
    let (first, later) = (
        sends.send(5000, 32 << 10, by(1000, 1500)),
        sends.send(50_000, 32 << 10, by(1000, 1500)),
    );
    assert!((1..=100).contains(&first), "{first} of 5000");
    assert!((1..=200).contains(&later), "{later} of 50000");
}

#[test]
fn a_change_of_the_pattern_is_followed() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    sends.send(LEARNED, 32 << 10, by(2000, 1000));
    sends.send(1000, 32 << 10, by(2000, 1000));
    sends.send(150, 32 << 10, by(2000, 5000));
    assert_eq!(sends.send(200, 32 << 10, by(2000, 5000)), 0);
}

#[test]
fn classes_are_learned_one_at_a_time_and_by_themselves() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    for _ in 0..3 * LEARNED {
        sends.send(1, 32 << 10, by(2000, 1000));
        sends.send(1, 64 << 10, by(3000, 7000));
    }
    let (mut short, mut long) = (0, 0);
    for _ in 0..100 {
        short += sends.send(1, 32 << 10, by(2000, 1000));
        long += sends.send(1, 64 << 10, by(3000, 7000));
    }
    assert!(short == 100 && long <= 10, "{short} and {long}");
}

#[test]
fn a_class_without_messages_does_not_keep_others_from_trials() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    // Until it is in the middle of its trial.
    while sends.send(1, 32 << 10, by(2000, 1000)) == 0 {}
    sends.send(600, 64 << 10, by(3000, 1000));
    assert_eq!(sends.send(100, 64 << 10, by(3000, 1000)), 100);
}

#[test]
fn what_leaves_by_no_chosen_protocol_is_not_learned_from() {
    let mut sends = Simulated::new(SendProtocol::Streamed);
    for _ in 0..LEARNED {
        sends.send(1, 32 << 10, by(2000, 1000));
        sends.tuner.disturb(32 << 10);
    }
    assert_eq!(sends.send(5, 32 << 10, by(2000, 1000)), 0);
}

#[test]
fn other_lengths_leave_by_default() {
    for default in [SendProtocol::Streamed, SendProtocol::Rendezvous] {
        for bytes in [0, 1, 8 << 10, (1 << 20) + 1] {
            let mut sends = Simulated::new(default);
            let offered = sends.send(500, bytes, by(2000, 1000));
            assert_eq!(
                offered,
                500 * usize::from(default == SendProtocol::Rendezvous)
            );
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of a message leaves before its sender looks for what has arrived.

#[path = "shared/pair.rs"]
mod pair;

use std::net::SocketAddr;

use pair::Pair;
use weft_memory::UserBuffer;
use weft_simulated_wire::{Conditions, SimulatedPorts, Wire};
use weft_udp::Settings;

/// The longest message that is sent unasked.
const MESSAGE_BYTES: usize = 256 << 10;
/// Messages that are under way together while the window grows, and how often. No offer is made for
/// them.
const SHORT_BYTES: usize = 32 << 10;
const SHORT_COUNT: usize = 16;
const WARM_UP_COUNT: usize = 40;
/// Steps of both sides after which something hangs.
const STEPS_MOST: usize = 100_000;

/// Until all that was posted has come and is acknowledged.
fn settle(pair: &mut Pair<SimulatedPorts>, message_count: usize) {
    for _ in 0..STEPS_MOST {
        pair.progress();
        if pair.at_receiver.0.len() == message_count && pair.in_flight_bytes() == 0 {
            return;
        }
    }
    panic!("{} of {message_count} came", pair.at_receiver.0.len());
}

/// Whoever looks in between makes the receiver wait for that look, too.
#[test]
fn a_message_that_fits_the_window_has_left_when_its_send_returns() {
    let short = UserBuffer::leaked(&[SHORT_BYTES]);
    let mut pair = Pair::<SimulatedPorts>::open(&Settings {
        address: Some(SocketAddr::new(Wire::open(Conditions::calm(1)), 0)),
        ..Settings::default()
    });
    for round in 1..=WARM_UP_COUNT {
        for _ in 0..SHORT_COUNT {
            pair.post(&short);
        }
        settle(&mut pair, round * SHORT_COUNT);
    }
    pair.post(&UserBuffer::leaked(&[MESSAGE_BYTES]));
    let left_bytes = pair.in_flight_bytes();
    assert!(left_bytes >= MESSAGE_BYTES as u64, "{left_bytes} have left");
}

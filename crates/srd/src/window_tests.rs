// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the congestion window; part of window.rs.

use super::*;
use crate::config::Config;

const PACKET: u64 = 1400;

fn window() -> Window {
    let mut pace = Config::default().pace;
    pace.target_floor_ns = Nanos(5_000);
    Window::new(&pace, PACKET)
}

fn feed(window: &mut Window, now_ns: Instant, rtt_ns: Nanos, acked_bytes: u64) -> Verdict {
    window.on_acknowledged(&Sample {
        now_ns,
        rtt_ns: Some(rtt_ns),
        send_delay_ns: Nanos::ZERO,
        acked_bytes,
        in_flight_bytes: window.cwnd_bytes(),
        tried_bytes: window.cwnd_bytes(),
    })
}

fn lose(window: &mut Window, packet_count: u64, in_flight_bytes: u64) {
    window.on_lost(&Lost {
        now_ns: Instant(100_000),
        bytes: packet_count * PACKET,
        packet_count,
        overtaken_bytes: 0,
        in_flight_bytes,
    });
}

#[test]
fn an_empty_network_lets_the_window_grow_and_a_full_one_makes_it_shrink() {
    let mut window = window();
    let start = window.cwnd_bytes();
    let mut now_ns = 0;
    for _ in 0..200 {
        now_ns += 1_000;
        assert_eq!(
            feed(&mut window, Instant(now_ns), Nanos(10_000), 8 * PACKET),
            Verdict::BelowTarget
        );
    }
    let grown = window.cwnd_bytes();
    assert!(grown > 2 * start, "{start} -> {grown}");
    for _ in 0..200 {
        now_ns += 1_000;
        feed(&mut window, Instant(now_ns), Nanos(40_000), 8 * PACKET);
    }
    assert!(
        window.cwnd_bytes() < grown / 4,
        "{grown} -> {}",
        window.cwnd_bytes()
    );
}

#[test]
fn one_slow_path_among_fast_ones_leaves_the_window_alone() {
    let mut window = window();
    for step in 0..50 {
        feed(&mut window, Instant(1_000 * step), Nanos(10_000), PACKET);
    }
    let before = window.cwnd_bytes();
    assert_eq!(
        feed(&mut window, Instant(51_000), Nanos(35_000), PACKET),
        Verdict::SlowMinority
    );
    assert_eq!(window.cwnd_bytes(), before);
}

/// Four links of which one is empty: a smaller window would leave that one idle.
#[test]
fn long_queues_on_most_paths_leave_the_window_alone_while_one_path_is_free() {
    let mut window = window();
    for step in 0..50 {
        feed(&mut window, Instant(1_000 * step), Nanos(10_000), PACKET);
    }
    let before = window.cwnd_bytes();
    for step in 50..1_000 {
        let rtt_ns = if step % 8 == 0 { 12_000 } else { 500_000 };
        feed(&mut window, Instant(1_000 * step), Nanos(rtt_ns), PACKET);
    }
    assert!(
        window.cwnd_bytes() >= before,
        "{before} -> {}",
        window.cwnd_bytes()
    );
    for step in 1_000..2_000 {
        feed(&mut window, Instant(1_000 * step), Nanos(500_000), PACKET);
    }
    assert!(window.cwnd_bytes() < before / 2, "no path is free any more");
}

#[test]
fn after_heavy_loss_the_window_is_what_was_delivered() {
    let mut window = window();
    feed(&mut window, Instant::START, Nanos(10_000), PACKET);
    feed(&mut window, Instant(100_000), Nanos(10_000), PACKET);
    lose(&mut window, 1, 128 << 10);
    feed(&mut window, Instant(110_000), Nanos(60_000), 2 * PACKET);
    feed(&mut window, Instant(140_000), Nanos(60_000), PACKET);
    assert_eq!(window.cwnd_bytes(), 3 * PACKET);
}

#[test]
fn what_was_taken_for_losses_comes_back_as_they_prove_to_be_none() {
    let mut window = window();
    feed(&mut window, Instant::START, Nanos(10_000), PACKET);
    feed(&mut window, Instant(100_000), Nanos(10_000), PACKET);
    let before = window.cwnd_bytes();
    // Half of what is in flight seems lost, and then nearly nothing is delivered for a round
    // trip.
    lose(&mut window, 20, 40 * PACKET);
    feed(&mut window, Instant(110_000), Nanos(60_000), 2 * PACKET);
    feed(&mut window, Instant(140_000), Nanos(60_000), PACKET);
    let least = window.cwnd_bytes();
    assert_eq!(least, 3 * PACKET);
    window.on_false_loss(10);
    assert_eq!(window.cwnd_bytes(), least + (before - least) / 2);
    window.on_false_loss(10);
    assert_eq!(window.cwnd_bytes(), before);
    window.on_false_loss(10);
    assert_eq!(window.cwnd_bytes(), before, "nothing more than was taken");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut window = window();
    let before = window.cwnd_bytes();
    for step in 0..100 {
        window.on_acknowledged(&Sample {
            now_ns: Instant(step * 1_000),
            rtt_ns: Some(Nanos(10_000)),
            send_delay_ns: Nanos::ZERO,
            acked_bytes: PACKET,
            in_flight_bytes: PACKET,
            tried_bytes: PACKET,
        });
    }
    assert_eq!(window.cwnd_bytes(), before);
}

#[test]
fn a_penalty_of_64_halves_the_window_once_per_round_trip() {
    let mut window = window();
    let before = window.cwnd_bytes();
    window.on_penalty(64, Instant(100_000), Nanos(10_000));
    window.on_penalty(64, Instant(105_000), Nanos(10_000));
    assert_eq!(window.cwnd_bytes(), before / 2);
    window.on_penalty(64, Instant(110_000), Nanos(10_000));
    assert_eq!(window.cwnd_bytes(), before / 4);
}

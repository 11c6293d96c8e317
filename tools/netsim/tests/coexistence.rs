// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A flow that shares a link takes a fair part of it, and leaves the others theirs (srd-protocol
//! 10.10).

use weft_netsim::bottleneck::{Bottleneck, Sender, Shares};
use weft_netsim::rival::Control;

const WEFT: Sender = Sender::Weft;
const CUBIC: Sender = Sender::Tcp(Control::Cubic);
const RENO: Sender = Sender::Tcp(Control::Reno);
const BBR: Sender = Sender::Tcp(Control::Bbr);
/// Packets of 1500 bytes: 30, 130 and 660 of them.
const BUFFERS: [u64; 3] = [45_000, 200_000, 1_000_000];

fn run(buffer_bytes: u64, one_way_ns: u64, senders: [Sender; 2]) -> Shares {
    let bottleneck = Bottleneck {
        buffer_bytes,
        one_way_ns,
        senders,
        ..Bottleneck::default()
    };
    let shares = bottleneck.run();
    println!("{bottleneck:?}: {:.2}, {shares:?}", shares.part());
    shares
}

/// A flow that gives way to delay gets 0.02 to 0.3 here.
#[test]
fn beside_tcp_a_stream_takes_a_third_to_two_thirds_whatever_the_buffer() {
    for buffer_bytes in BUFFERS {
        for senders in [[WEFT, RENO], [CUBIC, WEFT]] {
            let shares = run(buffer_bytes, 20_000, senders);
            let part = shares.part();
            assert!((0.35..=0.65).contains(&part), "{part}");
            let used = shares.of_link[0] + shares.of_link[1];
            assert!(used > 0.88, "{used} of the link is used");
        }
    }
    for buffer_bytes in &BUFFERS[..2] {
        let part = run(*buffer_bytes, 20_000, [WEFT, CUBIC]).part();
        assert!((0.35..=0.65).contains(&part), "{part}");
    }
    // CUBIC that came first leaves 0.4 to another CUBIC here.
    let part = run(BUFFERS[2], 20_000, [WEFT, CUBIC]).part();
    assert!((0.3..=0.65).contains(&part), "{part}");
}

/// BBR keeps a queue that never overflows here; CUBIC that came first gets 0.03. Where BBR
/// overflows a shallow one, who gives way to losses has nothing, and no law is held.
#[test]
fn beside_bbr_a_stream_takes_a_third_to_two_thirds_where_the_buffer_is_deep() {
    let part = run(BUFFERS[2], 20_000, [WEFT, BBR]).part();
    assert!((0.33..=0.67).contains(&part), "{part}");
    let part = run(BUFFERS[2], 20_000, [BBR, WEFT]).part();
    assert!((0.3..=0.67).contains(&part), "{part}");
}

/// What comes second takes the queue of the first for a part of the route.
#[test]
fn of_two_streams_the_second_leaves_the_first_its_part() {
    for buffer_bytes in &BUFFERS[..2] {
        let part = run(*buffer_bytes, 20_000, [WEFT, WEFT]).part();
        assert!((0.35..=0.65).contains(&part), "{part}");
    }
    let part = run(BUFFERS[2], 20_000, [WEFT, WEFT]).part();
    assert!((0.25..=0.75).contains(&part), "{part}");
}

/// The queue holds 0.9 of a base round trip and the delay target is 2.5 of them: a window that only
/// delay holds back sends one packet of seven twice here, and leaves nothing to anybody.
#[test]
fn queues_that_overflow_below_the_delay_target_are_shared_too() {
    let alone = run(45_000, 500_000, [WEFT, Sender::Nobody]);
    assert!(alone.of_link[0] > 0.88, "{}", alone.of_link[0]);
    assert!(
        alone.sender.lost_count < 2000,
        "{}",
        alone.sender.lost_count
    );
    let part = run(45_000, 500_000, [WEFT, CUBIC]).part();
    assert!((0.3..=0.72).contains(&part), "{part}");
}

/// Without a drain now and then the base round trip takes in the queue, and the target grows with
/// it: 5.7 ms of queue after 20 s.
#[test]
fn alone_the_queue_stays_short_for_ever() {
    let bottleneck = Bottleneck {
        senders: [WEFT, Sender::Nobody],
        counted_ns: 20_000_000_000,
        ..Bottleneck::default()
    };
    let shares = bottleneck.run();
    assert!(shares.queue_us < 600.0, "{}", shares.queue_us);
    assert!(shares.of_link[0] > 0.88, "{}", shares.of_link[0]);
}

/// As some clouds do: 500 Mbit/s a flow on a link of 2 Gbit/s. Headers are 6 of 100 bytes.
#[test]
fn where_the_network_limits_each_flow_the_paths_fill_the_link() {
    let run = |sender, buffer_bytes| {
        let limited = Bottleneck {
            megabits: 2000,
            flow_megabits: 500,
            buffer_bytes,
            one_way_ns: 100_000,
            senders: [sender, Sender::Nobody],
            counted_ns: 1_000_000_000,
            ..Bottleneck::default()
        };
        let shares = limited.run();
        println!("{limited:?}: {shares:?}");
        shares.of_link[0]
    };
    for buffer_bytes in BUFFERS {
        let used = run(WEFT, buffer_bytes);
        assert!(used > 0.89, "{used} of the link is used");
    }
    let one_flow = run(CUBIC, BUFFERS[2]);
    assert!(one_flow < 0.25, "{one_flow}");
}

/// A queue that marks at 0.6 ms is kept there, and nothing is lost; without marks the delay target
/// of 2.5 base round trips keeps it at ms.
#[test]
fn a_queue_that_marks_is_kept_short_without_a_loss_and_shared() {
    let bottleneck = |mark_bytes, senders| Bottleneck {
        mark_bytes,
        one_way_ns: 500_000,
        senders,
        settle_ns: 300_000_000,
        counted_ns: 1_000_000_000,
        ..Bottleneck::default()
    };
    let alone = [WEFT, Sender::Nobody];
    let unmarked = bottleneck(u64::MAX, alone).run();
    let marked = bottleneck(30_000, alone).run();
    println!("{unmarked:?} {marked:?}");
    assert!(marked.queue_us * 2.0 < unmarked.queue_us);
    assert!(marked.of_link[0] > 0.85, "{}", marked.of_link[0]);
    assert_eq!(marked.sender.lost_count, 0);
    let both = bottleneck(30_000, [WEFT, WEFT]).run();
    println!("{both:?}");
    assert!((0.35..=0.65).contains(&both.part()), "{}", both.part());
    assert_eq!(both.sender.lost_count, 0);
}

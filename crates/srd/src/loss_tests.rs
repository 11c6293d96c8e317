// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What echoes tell, and what a loss means (srd-protocol 8, 9.1).

use super::*;
use crate::config::Config;
use crate::random::Random;
use weft_wire::Path;

/// What was echoed, and what was acknowledged with it.
struct Told {
    path: Path,
    sent_ns: Instant,
    sequence: u64,
    cumulative: u64,
    bitmap: u64,
    /// Of the time since it left, so much at the remote.
    hold_ns: u32,
}

/// Answers how many packets count as lost by what was told.
fn hear(sender: &mut Sender, told: &Told, now_ns: Instant) -> u64 {
    let mut section = Acknowledgement {
        cumulative: told.cumulative,
        received_bytes: 0,
        echo_sent_ns: told.sent_ns,
        echo_sequence: told.sequence,
        hold_ns: told.hold_ns,
        echo_path: told.path,
        penalty: 0,
        duplicate_count: 0,
        paths_heard: told.path.bit(),
        receive_limit: 0,
        credit_limit: 0,
        bitmap: [0; 16],
        marks: None,
    };
    section.bitmap[0] = told.bitmap;
    let heard = Heard {
        section: &section,
        now_ns,
        waited_ns: Nanos::ZERO,
        send_delay_ns: Nanos::ZERO,
        is_news: true,
    };
    let mut statistics = Statistics::default();
    let taken = on_section(sender, &heard, &mut statistics, |_| {});
    assert_eq!(taken, Ok(()));
    statistics.lost_count
}

/// Else nothing is known of a path with a queue: what leaves later on an empty one is back
/// sooner.
#[test]
fn an_echo_that_was_overtaken_tells_of_its_path_and_counts_once() {
    let mut sender = Sender::new(&Config::default(), 0, 0, &mut Random::new(1));
    let (slow, quick) = (Path::from_ports(0, 0), Path::from_ports(1, 0));
    sender.on_fresh(Piece::Eager { slot: 0 }, 1000, slow, Instant(1_000));
    sender.on_fresh(Piece::Eager { slot: 0 }, 1000, quick, Instant(2_000));
    let second = Told {
        path: quick,
        sent_ns: Instant(2_000),
        sequence: 1,
        cumulative: 0,
        bitmap: 1,
        hold_ns: 0,
    };
    hear(&mut sender, &second, Instant(12_000));
    assert_eq!(sender.paths.rtt_ns(quick), Nanos(10_000));
    assert_eq!(sender.paths.rtt_ns(slow), Nanos::ZERO);
    let first = Told {
        path: slow,
        sent_ns: Instant(1_000),
        sequence: 0,
        cumulative: 2,
        bitmap: 0,
        hold_ns: 0,
    };
    hear(&mut sender, &first, Instant(101_000));
    assert_eq!(sender.paths.rtt_ns(slow), Nanos(100_000));
    hear(&mut sender, &first, Instant(901_000));
    assert_eq!(sender.paths.rtt_ns(slow), Nanos(100_000), "played back");
    assert!(sender.ring.is_empty());
}

/// Three packets on one path and one on another have left for a process that was off its processor
/// for a millisecond. It reads the first of each path, and says so.
fn half_read() -> Sender {
    let mut sender = Sender::new(&Config::default(), 0, 0, &mut Random::new(1));
    let (full, other) = (Path::from_ports(0, 0), Path::from_ports(1, 1));
    for (step, path) in [full, full, full, other].into_iter().enumerate() {
        let sent_ns = Instant(1_000 + 300_000 * step as u64);
        sender.on_fresh(Piece::Eager { slot: 0 }, 1000, path, sent_ns);
    }
    let first_of_each = Told {
        path: other,
        sent_ns: Instant(901_000),
        sequence: 3,
        cumulative: 1,
        bitmap: 0b10,
        hold_ns: 100_000,
    };
    assert_eq!(hear(&mut sender, &first_of_each, Instant(1_020_000)), 0);
    sender
}

#[test]
fn what_waits_behind_a_packet_that_was_read_only_now_is_not_lost() {
    let mut sender = half_read();
    let cwnd_bytes = sender.window.cwnd_bytes();
    let rest = Told {
        path: Path::from_ports(0, 0),
        sent_ns: Instant(601_000),
        sequence: 2,
        cumulative: 4,
        bitmap: 0,
        hold_ns: 0,
    };
    assert_eq!(hear(&mut sender, &rest, Instant(1_050_000)), 0);
    assert!(sender.ring.is_empty());
    assert!(sender.window.cwnd_bytes() >= cwnd_bytes);
}

#[test]
fn what_is_missing_when_the_remote_reads_later_packets_in_time_is_lost() {
    let mut sender = half_read();
    let other = Path::from_ports(1, 1);
    sender.on_fresh(Piece::Eager { slot: 0 }, 1000, other, Instant(1_100_000));
    let in_time = Told {
        path: other,
        sent_ns: Instant(1_100_000),
        sequence: 4,
        cumulative: 1,
        bitmap: 0b110,
        hold_ns: 0,
    };
    assert_eq!(hear(&mut sender, &in_time, Instant(1_200_000)), 2);
}

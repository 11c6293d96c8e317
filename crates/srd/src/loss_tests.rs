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
}

fn hear(sender: &mut Sender, told: &Told, now_ns: Instant) {
    let mut section = Acknowledgement {
        cumulative: told.cumulative,
        received_bytes: 0,
        echo_sent_ns: told.sent_ns,
        echo_sequence: told.sequence,
        hold_ns: 0,
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
    let taken = on_section(sender, &heard, &mut Statistics::default(), |_| {});
    assert_eq!(taken, Ok(()));
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
    };
    hear(&mut sender, &first, Instant(101_000));
    assert_eq!(sender.paths.rtt_ns(slow), Nanos(100_000));
    hear(&mut sender, &first, Instant(901_000));
    assert_eq!(sender.paths.rtt_ns(slow), Nanos(100_000), "played back");
    assert!(sender.ring.is_empty());
}

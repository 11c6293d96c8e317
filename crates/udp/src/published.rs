// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the route lets its own user's tools see while it works: a file without a name that they
//! find among the process's descriptors (docs/srd-protocol.md, clause 18). Written by transport now
//! and then, read by `weft top`.
//!
//! JSON, put together by hand: numbers and fixed names need no library, and whoever reads needs
//! nothing of this crate.

use std::fmt::Write;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;

use weft_os::region_file;
use weft_srd::{Condition, Instant, Machine, Nanos, Remote};

use crate::statistics::Statistics;

/// Between two writings. Chosen: half of what `weft top` waits.
pub(crate) const EVERY_NS: Nanos = Nanos(500_000_000);
/// Remotes that are shown: those heard last. Chosen: more than a screen has lines.
const SHOWN: usize = 64;
/// Room for all of them.
const FILE_BYTES: usize = 32 << 10;

/// The file, once there is something to say.
#[derive(Debug, Default)]
pub(crate) struct Published {
    file: Option<File>,
    due_ns: Instant,
    text: String,
}

impl Published {
    /// Whether it is time. Fast path.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: Instant) -> bool {
        now_ns >= self.due_ns
    }

    /// Writes how things stand. Slow path; what fails is not shown.
    #[cold]
    pub(crate) fn write(
        &mut self,
        now_ns: Instant,
        address: SocketAddr,
        statistics: &Statistics,
        machine: &Machine,
    ) {
        self.due_ns = now_ns + EVERY_NS;
        if machine.inspect().remote_count() == 0 {
            return;
        }
        if self.file.is_none() {
            let made = region_file::create_memfd(&format!("weft srd {address}"), FILE_BYTES as u64);
            self.file = made.ok().map(File::from);
        }
        let Some(file) = &self.file else { return };
        self.text.clear();
        describe(&mut self.text, now_ns, statistics, machine);
        // What is left of a longer text before is behind the end of this one.
        self.text.push('\n');
        let whole = self.text.len().min(FILE_BYTES);
        let _ = file.write_all_at(&self.text.as_bytes()[..whole], 0);
    }
}

fn describe(text: &mut String, now_ns: Instant, statistics: &Statistics, machine: &Machine) {
    let all = &statistics.machine;
    let numbers = [
        ("sent", all.sent_count),
        ("received", all.received_count),
        ("messages_sent", statistics.sent_messages),
        ("message_bytes_sent", statistics.sent_bytes),
        ("messages_received", statistics.received_messages),
        ("message_bytes_received", statistics.received_bytes),
        ("retransmitted", all.retransmitted_count),
        ("lost", all.lost_count),
        ("timeouts", all.rto_count),
        ("tail_probes", all.tail_probe_count),
        ("suspects", all.suspect_count),
        ("duplicates", all.duplicate_count),
        ("dropped", all.dropped_count),
        ("malformed", all.malformed_count),
        ("unknown_flow", all.unknown_flow_count),
        ("violations", all.violation_count),
        ("turned_away", statistics.turned_away),
        ("blocked", statistics.blocked),
        ("remotes", statistics.remotes),
        ("remotes_lost", statistics.lost),
    ];
    let written_ns = now_ns.0;
    // Writing to a String cannot fail.
    let _ = write!(text, r#"{{"version":4,"written_ns":{written_ns}"#);
    for (name, number) in numbers {
        let _ = write!(text, r#","{name}":{number}"#);
    }
    text.push_str(r#","flows":["#);
    for (place, (address, condition)) in shown(machine).iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let Condition {
            srtt_ns: Nanos(srtt_ns),
            cwnd_bytes,
            in_flight_bytes,
            good_path_count,
            path_count,
            heard_ns: Instant(heard_ns),
            sent_bytes,
            retransmitted_count,
            datagram_bytes,
        } = condition;
        let _ = write!(
            text,
            r#"{comma}{{"address":"{address}","srtt_ns":{srtt_ns},"cwnd_bytes":{cwnd_bytes},"#
        );
        let _ = write!(
            text,
            r#""in_flight_bytes":{in_flight_bytes},"good_paths":{good_path_count},"#
        );
        let _ = write!(
            text,
            r#""paths":{path_count},"datagram_bytes":{datagram_bytes},"sent_bytes":{sent_bytes},"#
        );
        let _ = write!(
            text,
            r#""retransmitted":{retransmitted_count},"heard_ns":{heard_ns}}}"#
        );
    }
    // Who reads while this is written sees that the two ends differ.
    let _ = write!(text, r#"],"end_ns":{written_ns}}}"#);
}

/// The remotes with which something is under way, or was lately; those heard last, at most so many
/// as are shown.
fn shown(machine: &Machine) -> Vec<(SocketAddr, Condition)> {
    let remotes = (0..machine.inspect().remote_count() as u32).map(Remote);
    let mut all: Vec<(SocketAddr, Condition)> = remotes
        .filter_map(|remote| {
            Some((
                machine.inspect().address(remote)?,
                machine.inspect().condition(remote)?,
            ))
        })
        .collect();
    all.sort_by_key(|(_, condition)| std::cmp::Reverse(condition.heard_ns));
    all.truncate(SHOWN);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_srd::{Config, Send};

    #[test]
    fn all_that_is_shown_fits_the_file() {
        let mut machine = Machine::new(Config::default(), 1).expect("defaults");
        for port in 1..=100 {
            let address = SocketAddr::from(([0xfd00, 1, 2, 3, 4, 5, 6, 7], 10_000 + port));
            let remote = machine.remote(address).expect("room");
            let send = Send {
                remote,
                tag: None,
                cq_data: None,
                length_bytes: 1,
                wants_receipt: false,
                is_awaited: false,
                is_service: false,
                token: 1,
            };
            machine
                .post_send(Instant(port.into()), &send)
                .expect("sent");
        }
        let mut text = String::new();
        let statistics = Statistics {
            sent_messages: 3,
            received_bytes: u64::MAX,
            ..Statistics::default()
        };
        describe(&mut text, Instant::NEVER, &statistics, &machine);
        assert!(text.contains(r#""messages_sent":3,"message_bytes_sent":0,"#));
        assert!(text.contains(&format!(r#""message_bytes_received":{}"#, u64::MAX)));
        assert_eq!(text.matches("srtt_ns").count(), SHOWN);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        // The one heard last comes first.
        assert!(text.contains(r#""flows":[{"address":"[fd00:1:2:3:4:5:6:7]:10100""#));
        assert!(text.len() * 3 / 2 < FILE_BYTES, "{} bytes", text.len());
    }
}

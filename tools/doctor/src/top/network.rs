// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint's network route publishes (docs/srd-protocol.md, clause 18), read and turned
//! into rates. Called by `watch.rs` and `rates.rs`; shown by `screen.rs` or as JSON.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};
use weft_os::process;

use super::traffic::Traffic;

/// More than any endpoint publishes.
const MOST_BYTES: usize = 64 << 10;
/// The version of the format that is read.
const VERSION: u32 = 4;
/// Attempts to read a text that is being written.
const ATTEMPTS: usize = 3;

/// How things stand with one remote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Where it is.
    pub address: SocketAddr,
    /// Smoothed round trip; 0 before the first.
    pub srtt_ns: u64,
    /// The congestion window: what may be in flight, and what is.
    pub cwnd_bytes: u64,
    /// See `cwnd_bytes`.
    pub in_flight_bytes: u64,
    /// Paths that carry data, of those that may be used.
    pub good_paths: u32,
    /// See `good_paths`.
    pub paths: u32,
    /// The longest datagram in use.
    pub datagram_bytes: u16,
    /// What was sent, what was sent again included.
    pub sent_bytes: u64,
    /// Packets that were sent again.
    pub retransmitted: u64,
    /// When it was last heard, by CLOCK_MONOTONIC.
    pub heard_ns: u64,
    /// Since the reading before: computed here.
    #[serde(default)]
    pub sent_bytes_per_s: f64,
    /// See `sent_bytes_per_s`.
    #[serde(default)]
    pub retransmitted_per_s: f64,
}

/// What one endpoint's route has counted, and its remotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Of the format.
    pub version: u32,
    /// When it was written, by CLOCK_MONOTONIC.
    pub written_ns: u64,
    #[serde(skip_serializing)]
    end_ns: u64,
    /// All counts by their names.
    #[serde(flatten)]
    pub counts: std::collections::BTreeMap<String, serde_json::Value>,
    /// Its remotes, those heard last first.
    pub flows: Vec<Flow>,
    /// Counts a second, since the reading before: computed here.
    #[serde(default)]
    pub per_s: std::collections::BTreeMap<String, f64>,
}

/// The file of the endpoint at an address, if its process has one that may be read.
pub(super) fn open(pid: u32, address: SocketAddr) -> Option<File> {
    let opened = process::open_memfd_of(pid, &format!("weft srd {address}"), -1);
    opened.ok().map(File::from)
}

/// What the file says now; none if it cannot be read, or is of another version.
pub(super) fn read(file: &File) -> Option<Network> {
    for _ in 0..ATTEMPTS {
        let mut bytes = vec![0; MOST_BYTES];
        let length = file.read_at(&mut bytes, 0).ok()?;
        if let Some(network) = parse(&bytes[..length]) {
            return Some(network);
        }
    }
    None
}

fn parse(bytes: &[u8]) -> Option<Network> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let network: Network = serde_json::from_slice(line).ok()?;
    (network.version == VERSION && network.written_ns == network.end_ns).then_some(network)
}

impl Network {
    /// A count; 0 for one that is not there.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let value = self.counts.get(name);
        value.and_then(serde_json::Value::as_u64).unwrap_or(0)
    }

    /// Messages in one direction, `sent` or `received`, with their payload.
    #[must_use]
    pub(super) fn messages(&self, direction: &str) -> Traffic {
        let names = ["messages", "message_bytes"].map(|what| format!("{what}_{direction}"));
        let [messages, bytes] = [0, 1].map(|index| self.count(&names[index]));
        let per_s = |index: usize| self.per_s.get(&names[index]).copied().unwrap_or(0.0);
        Traffic {
            messages_per_s: per_s(0),
            bytes_per_s: per_s(1),
            messages,
            bytes,
        }
    }

    /// The same with what has happened since an earlier reading, by the time between the two
    /// writings.
    #[must_use]
    pub(super) fn since(mut self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let elapsed_s = self.written_ns.saturating_sub(before.written_ns) as f64 / 1e9;
        if elapsed_s == 0.0 {
            // Not written since: it makes no progress, or hardly any time has passed.
            self.per_s.clone_from(&before.per_s);
            return self;
        }
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_s;
        for name in self.counts.keys() {
            let per_s = rate(self.count(name), before.count(name));
            self.per_s.insert(name.clone(), per_s);
        }
        for flow in &mut self.flows {
            let same = |old: &&Flow| old.address == flow.address;
            if let Some(old) = before.flows.iter().find(same) {
                flow.sent_bytes_per_s = rate(flow.sent_bytes, old.sent_bytes);
                flow.retransmitted_per_s = rate(flow.retransmitted, old.retransmitted);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(written_ns: u64, sent: u64) -> String {
        let (message_bytes, sent_bytes) = (sent * 8, sent * 1000);
        let flow = format!(
            r#""address":"10.0.0.2:7","srtt_ns":85000,"cwnd_bytes":524288,"in_flight_bytes":0,
            "good_paths":30,"paths":32,"datagram_bytes":8972,"sent_bytes":{sent_bytes},
            "retransmitted":4,"heard_ns":5"#
        );
        let text = format!(
            r#"{{"version":4,"written_ns":{written_ns},"sent":{sent},"messages_sent":{sent},
            "message_bytes_sent":{message_bytes},"lost":0,"flows":[{{{flow}}}],
            "end_ns":{written_ns}}}"#
        );
        // The object stands on one line.
        text.replace("\n            ", "") + "\nbehind the end"
    }

    #[test]
    fn what_is_published_becomes_rates_by_the_time_between_two_writings() {
        let before = parse(text(1_000_000_000, 10).as_bytes()).unwrap();
        let now = parse(text(3_000_000_000, 110).as_bytes()).unwrap();
        let now = now.since(Some(&before));
        assert_eq!((now.count("sent"), now.count("none")), (110, 0));
        assert_eq!(now.per_s["sent"], 50.0);
        assert_eq!(now.flows[0].sent_bytes_per_s, 50_000.0);
        let sent = now.messages("sent");
        assert_eq!((sent.messages_per_s, sent.bytes_per_s), (50.0, 400.0));
        assert_eq!((sent.messages, sent.bytes), (110, 880));
        assert_eq!(now.messages("received"), Traffic::default());
        assert_eq!(now.flows[0].retransmitted_per_s, 0.0);
        let again = parse(text(3_000_000_000, 110).as_bytes()).unwrap();
        assert_eq!(again.since(Some(&now)).per_s["sent"], 50.0);
    }

    #[test]
    fn what_is_half_written_or_of_another_version_is_not_read() {
        let good = text(5, 1);
        for bad in [
            good.replace("\"end_ns\":5", "\"end_ns\":4"),
            good.replace("\"version\":4", "\"version\":1"),
            good[..40].to_owned(),
            String::new(),
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}

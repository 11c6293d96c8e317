// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two readings of all endpoints as rates: by endpoint, by remote, by protocol. Called by
//! `watch.rs`; shown by `screen.rs` or as JSON.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use clap::ValueEnum;
use serde::Serialize;
use weft_facts::{copy, protocol};
use weft_ring::published::CLASS_COUNT;

use super::collectives::{self, Calls};
use super::mount_row::MountRow;
use super::network::Network;
use super::place::Place;
use super::reading::Reading;
use super::traffic::Traffic;

/// Names of one-sided operations that went without a message, in the order in which they are
/// published.
const DIRECT: [&str; 2] = ["direct_access", "direct_copy"];

/// What endpoints and remotes are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Order {
    /// Messages a second, sent and received, most first
    #[default]
    Messages,
    /// Bytes a second, sent and received, most first
    Bytes,
    /// What waits, most first
    Waiting,
    /// Process id
    Pid,
}

impl Order {
    /// The order after this one, round and round.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Messages => Self::Bytes,
            Self::Bytes => Self::Waiting,
            Self::Waiting => Self::Pid,
            Self::Pid => Self::Messages,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Bytes => "bytes",
            Self::Waiting => "waiting",
            Self::Pid => "pid",
        }
    }
}

/// How messages of some lengths are fetched at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The shortest of them.
    pub from_bytes: u64,
    /// The longest of them.
    pub to_bytes: u64,
    /// The copy method.
    pub method: &'static str,
    /// Whether that is so while messages of these lengths go in both directions at once, or while
    /// they only come.
    pub bidirectional: bool,
}

/// One remote of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemoteRow {
    /// Where it is.
    pub address: SocketAddr,
    /// Its process as it counts itself.
    pub pid: u32,
    /// Which way messages go: shm or srd.
    pub route: &'static str,
    /// To the remote; none if the remote's own counts cannot be read here.
    pub sent: Option<Traffic>,
    /// From the remote.
    pub received: Option<Traffic>,
}

// structure: allow struct-fields because they are the columns of one row
/// One endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointRow {
    /// Where it is.
    pub address: SocketAddr,
    /// Its process; 0 if it is in another namespace.
    pub pid: u32,
    /// Its program, rank and job.
    #[serde(flatten)]
    pub place: Place,
    /// Whether it sleeps until a message comes.
    pub sleeps: bool,
    /// Seconds since it last made progress.
    pub silent_s: f64,
    /// What it sent, by protocol, `srd` for all beyond this host; operations on memory that needed
    /// no message among them.
    pub sent: BTreeMap<&'static str, Traffic>,
    /// What it received from all remotes.
    pub received: Traffic,
    /// Sends and answers that wait for room.
    pub waiting: u64,
    /// Long messages on their way.
    pub moving: u64,
    /// Messages announced and not matched.
    pub offered: u64,
    /// Lanes to busy remotes that use a MiB.
    pub wide_lanes: u64,
    /// Remotes given up.
    pub lost: u64,
    /// How long messages are fetched at present.
    pub choices: Vec<Choice>,
    /// Its remotes.
    pub remotes: Vec<RemoteRow>,
    /// Its network route, if anything went that way.
    pub network: Option<Network>,
    /// Its process's calls of collectives, by who carried them out.
    pub collectives: BTreeMap<&'static str, Calls>,
}

/// All endpoints, and those that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Seconds between the two readings.
    pub interval_s: f64,
    /// The endpoints.
    pub endpoints: Vec<EndpointRow>,
    /// The buckets that their jobs have mounted.
    pub mounts: Vec<MountRow>,
    /// Endpoints that could not be read, with the reason.
    pub refused: Vec<String>,
}

impl EndpointRow {
    /// What it sent by all protocols.
    #[must_use]
    pub fn sent_in_all(&self) -> Traffic {
        let flows = self.sent.values().copied();
        flows.fold(Traffic::default(), Traffic::plus)
    }

    fn key(&self, order: Order) -> (Reverse<u64>, u32, SocketAddr) {
        let sent = self.sent_in_all();
        let most = match order {
            Order::Messages => sent.messages_per_s + self.received.messages_per_s,
            Order::Bytes => sent.bytes_per_s + self.received.bytes_per_s,
            Order::Waiting => (self.waiting + self.moving + self.offered) as f64,
            Order::Pid => 0.0,
        };
        (Reverse(most as u64), self.pid, self.address)
    }
}

impl RemoteRow {
    fn key(&self, order: Order) -> (Reverse<u64>, u32, SocketAddr) {
        let both = [self.sent, self.received].map(Option::unwrap_or_default);
        let most: f64 = match order {
            Order::Bytes => both.iter().map(|flow| flow.bytes_per_s).sum(),
            Order::Pid => 0.0,
            Order::Messages | Order::Waiting => both.iter().map(|flow| flow.messages_per_s).sum(),
        };
        (Reverse(most as u64), self.pid, self.address)
    }
}

impl Report {
    /// The same, sorted.
    #[must_use]
    pub fn sorted(mut self, order: Order) -> Self {
        self.endpoints.sort_by_key(|row| row.key(order));
        for row in &mut self.endpoints {
            row.remotes.sort_by_key(|remote| remote.key(order));
        }
        self
    }
}

/// All readings as rates since the readings before, `elapsed_ns` ago.
#[must_use]
pub fn report(
    before: &HashMap<SocketAddr, Reading>,
    now: &HashMap<SocketAddr, Reading>,
    now_ns: u64,
    elapsed_ns: u64,
    refused: &[String],
) -> Report {
    let elapsed_s = (elapsed_ns as f64 / 1e9).max(1e-3);
    let rows = now.iter().map(|(address, reading)| {
        let old = before
            .get(address)
            .filter(|old| old.snapshot.owner == reading.snapshot.owner)
            .unwrap_or(reading);
        endpoint_row(old, reading, now_ns, elapsed_s)
    });
    let mut endpoints: Vec<EndpointRow> = rows.collect();
    join(&mut endpoints);
    Report {
        interval_s: elapsed_s,
        endpoints,
        mounts: Vec::new(),
        refused: refused.to_vec(),
    }
}

fn endpoint_row(old: &Reading, reading: &Reading, now_ns: u64, elapsed_s: f64) -> EndpointRow {
    let (was, is) = (&old.snapshot.counters, &reading.snapshot.counters);
    let protocols = protocol::ALL.iter().map(|one| &one.key);
    let messages = protocols.zip(was.sent.iter().zip(is.sent));
    let flows = messages.chain(DIRECT.iter().zip(was.direct.iter().zip(is.direct)));
    let received_from = |address: SocketAddr, incarnation: u64| {
        let same = |inflow: &&weft_ring::snapshot::Inflow| {
            inflow.from.address == address && inflow.from.incarnation == incarnation
        };
        let inflow = old.snapshot.inflows.iter().find(same);
        inflow.map_or([0; 2], |inflow| [inflow.messages, inflow.bytes])
    };
    let remotes = reading.snapshot.inflows.iter().map(|inflow| RemoteRow {
        address: inflow.from.address,
        pid: inflow.from.process.pid,
        route: "shm",
        sent: None,
        received: Some(Traffic::between(
            received_from(inflow.from.address, inflow.from.incarnation),
            [inflow.messages, inflow.bytes],
            elapsed_s,
        )),
    });
    let mut sent: BTreeMap<&'static str, Traffic> = flows
        .map(|(&name, (&was, is))| (name, Traffic::between(was, is, elapsed_s)))
        .collect();
    let mut received = Traffic::between(was.received, is.received, elapsed_s);
    if let Some(network) = &reading.network {
        sent.insert("srd", network.messages("sent"));
        received = received.plus(network.messages("received"));
    }
    EndpointRow {
        address: reading.snapshot.owner.address,
        pid: reading.pid,
        place: reading.place.clone(),
        sleeps: reading.snapshot.sleeps,
        silent_s: now_ns.saturating_sub(is.written_ns) as f64 / 1e9,
        sent,
        received,
        waiting: is.waiting_count,
        moving: is.moving_count,
        offered: is.offered_count,
        wide_lanes: is.wide_lanes_count,
        lost: is.lost_count,
        choices: [false, true]
            .into_iter()
            .flat_map(|bidirectional| choices(&is.choices, bidirectional))
            .collect(),
        remotes: remotes.collect(),
        network: reading.network.clone(),
        collectives: reading
            .collectives
            .as_ref()
            .map_or_else(BTreeMap::new, |now| {
                collectives::between(old.collectives.as_ref(), now, elapsed_s)
            }),
    }
}

/// What an endpoint sends to a remote is what the remote receives from it.
fn join(endpoints: &mut [EndpointRow]) {
    let arrived: Vec<(SocketAddr, SocketAddr, u32, Traffic)> = endpoints
        .iter()
        .flat_map(|row| {
            let inflows = row
                .remotes
                .iter()
                .filter_map(|remote| Some((remote, remote.received?)));
            inflows.map(|(remote, flow)| (remote.address, row.address, row.pid, flow))
        })
        .collect();
    for (from, to, pid, flow) in arrived {
        let Some(row) = endpoints.iter_mut().find(|row| row.address == from) else {
            continue;
        };
        match row.remotes.iter_mut().find(|remote| remote.address == to) {
            Some(remote) => remote.sent = Some(flow),
            None => row.remotes.push(RemoteRow {
                address: to,
                pid,
                route: "shm",
                sent: Some(flow),
                received: None,
            }),
        }
    }
}

/// Neighbouring sizes that are fetched by the same method as one range; sizes of which nothing is
/// known are left out.
fn choices(published: &[u8; CLASS_COUNT], bidirectional: bool) -> Vec<Choice> {
    let mut ranges: Vec<Choice> = Vec::new();
    for (class, &byte) in published.iter().enumerate() {
        let number = if bidirectional { byte >> 4 } else { byte & 15 };
        let Some(method) = copy::numbered(number) else {
            continue;
        };
        let method = method.name;
        let (from_bytes, to_bytes) = (1 << class, ((1u128 << (class + 1)) - 1) as u64);
        match ranges.last_mut() {
            Some(last) if last.method == method && last.to_bytes + 1 == from_bytes => {
                last.to_bytes = to_bytes;
            }
            _ => ranges.push(Choice {
                from_bytes,
                to_bytes,
                method,
                bidirectional,
            }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_ring::Identity;
    use weft_ring::published::{Counters, PROTOCOL_COUNT};
    use weft_ring::snapshot::Snapshot;

    fn reading(direct: [[u64; 2]; 2]) -> Reading {
        let owner = Identity {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            incarnation: 1,
            process: weft_os::process_id::ProcessId {
                pid: 7,
                ..Default::default()
            },
        };
        let counters = Counters {
            written_ns: 0,
            sent: [[0; 2]; PROTOCOL_COUNT],
            received: [0; 2],
            remotes_count: 0,
            lost_count: 0,
            waiting_count: 0,
            moving_count: 0,
            offered_count: 0,
            wide_lanes_count: 0,
            choices: [0; CLASS_COUNT],
            direct,
        };
        Reading {
            pid: 7,
            place: Place {
                command: "program".to_owned(),
                ..Place::default()
            },
            network: None,
            collectives: None,
            snapshot: Snapshot {
                owner,
                is_open: true,
                sleeps: false,
                counters,
                inflows: Vec::new(),
            },
        }
    }

    #[test]
    fn operations_without_a_message_are_shown_beside_the_protocols() {
        let (before, now) = (reading([[10, 80], [0, 0]]), reading([[30, 240], [4, 4096]]));
        let row = endpoint_row(&before, &now, 2_000_000_000, 2.0);
        assert_eq!(row.sent["direct_access"].messages_per_s, 10.0);
        assert_eq!(row.sent["direct_copy"].bytes, 4096);
        assert_eq!(row.sent_in_all().messages, 34);
    }

    #[test]
    fn choices_for_both_directions_stand_beside_those_for_one() {
        let mut published = [0; CLASS_COUNT];
        (published[17], published[18], published[19]) = (1 | 2 << 4, 1, 3);
        let of = |bidirectional| {
            let found = choices(&published, bidirectional).into_iter();
            let parts = found.map(|choice| (choice.from_bytes, choice.to_bytes, choice.method));
            parts.collect::<Vec<_>>()
        };
        let single = (1 << 17, (1 << 19) - 1, "single copy");
        let past = (1 << 19, (1 << 20) - 1, copy::PIPELINED_NON_TEMPORAL.name);
        assert_eq!(of(false), [single, past]);
        assert_eq!(of(true), [(1 << 17, (1 << 18) - 1, "pipelined")]);
    }
}

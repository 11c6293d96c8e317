// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a scenario with every variant and sums up the results. Called by lib; calls workload and
//! simulator.

use std::time::Instant;

use serde::Serialize;
use weft_srd::random::Random;
use weft_srd::{Config, Nanos};

use crate::fabric::Fabric;
use crate::host::{Desk, Host, SrdHost, TcpHost};
use crate::options::{Options, Scenario};
use crate::problem::Problem;
use crate::simulator::{Outcome, Simulator};
use crate::tcp::HEADER_BYTES;
use crate::topology::Topology;
use crate::workload::{Cut, Workload};

/// A run is given up after this much simulated time (chosen: several of the baseline's time-outs).
const LIMIT_NS: u64 = 2_000_000_000;
/// Bytes of an SRD header and the body of data (srd-protocol 2, 5).
const SRD_HEADER_BYTES: u64 = 48 + 16;
/// IPv4 and UDP.
const IP_BYTES: u64 = 28;
/// The time after which an empty network of this diameter answers (chosen: four hops there and
/// back, and both hosts).
const ROUND_TRIP_NS: u64 = 9_000;

/// Who carries the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// The machine with so many paths.
    Srd(u8),
    /// The baseline.
    Tcp,
}

impl Variant {
    fn name(self) -> String {
        match self {
            Self::Srd(1) => "weft, 1 path".to_owned(),
            Self::Srd(paths) => format!("weft, {paths} paths"),
            Self::Tcp => "TCP-like".to_owned(),
        }
    }
}

/// What one variant came to.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// In words.
    pub variant: String,
    /// Median slowdown.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The worst.
    pub max: f64,
    /// Time until the last message was whole.
    pub end_us: f64,
    /// Messages that were not whole when the run was given up; their slowdown counts to that
    /// moment.
    pub unfinished: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    /// Of them, sent again.
    pub retransmitted: u64,
    /// Dropped at full queues.
    pub dropped: u64,
    /// Swallowed by broken links.
    pub swallowed: u64,
    /// Simulated events.
    pub events: u64,
    /// Time that the simulation took.
    pub wall_seconds: f64,
    /// All slowdowns, ascending, for the plot.
    #[serde(skip)]
    pub slowdowns: Vec<f64>,
}

/// A whole scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Which.
    pub scenario: Scenario,
    /// Hosts.
    pub hosts: usize,
    /// Bytes of a message.
    pub bytes: u64,
    /// Seed.
    pub seed: u64,
    /// Rate of every link.
    pub gigabits_per_second: u64,
    /// Largest IP packet.
    pub mtu: u16,
    /// For a failure: by how much the last message came later than undisturbed, in microseconds.
    pub failure_cost_us: Option<f64>,
    /// By variant.
    pub rows: Vec<Row>,
}

/// Runs all variants.
///
/// # Errors
/// A sentence, when the scenario cannot be run with so few hosts.
pub fn run(options: &Options) -> Result<Report, Problem> {
    let failure = options.scenario == Scenario::SpineFailure;
    let spines = Topology::new(options.host_count(), &mut Random::new(options.seed)).spine_count();
    if failure && options.host_count() <= spines {
        return Err(Problem::OneLeaf {
            hosts: options.host_count(),
            least: spines + 1,
        });
    }
    let mut variants = vec![Variant::Srd(options.paths)];
    if !options.alone {
        variants.extend([Variant::Srd(1), Variant::Tcp]);
    }
    let mut rows: Vec<Row> = variants
        .iter()
        .map(|variant| run_one(options, *variant, failure))
        .collect();
    let mut failure_cost_us = None;
    if failure {
        let mut undisturbed = run_one(options, variants[0], false);
        failure_cost_us = Some(rows[0].end_us - undisturbed.end_us);
        undisturbed.variant.push_str(", no failure");
        rows.insert(1, undisturbed);
    }
    Ok(Report {
        scenario: options.scenario,
        hosts: options.host_count(),
        bytes: options.message_bytes(),
        seed: options.seed,
        gigabits_per_second: options.rate,
        mtu: options.mtu,
        failure_cost_us,
        rows,
    })
}

/// The machine's settings for a network whose rate and round trip are known (srd-protocol 15).
fn config(options: &Options, paths: u8) -> Config {
    let mut config = Config::default();
    let product = options.rate * ROUND_TRIP_NS / 8;
    config.datagram_bytes = options.mtu - IP_BYTES as u16;
    config.path_count = paths;
    let least = 4 * u64::from(config.datagram_bytes);
    config.pace.initial_cwnd_bytes = (product * 3).max(least);
    config.pace.cwnd_limit_bytes = (product * 3).max(least);
    config.pace.credit_pool_bytes = (product * 4).max(64 << 10);
    config.pace.target_floor_ns = Nanos(5_000);
    config
}

fn run_one(options: &Options, variant: Variant, failure: bool) -> Row {
    let started = Instant::now();
    let mut random = Random::new(options.seed);
    let topology = Topology::new(options.host_count(), &mut random);
    let mut fabric = Fabric::new(topology, options.rate, options.queue << 10, options.seed);
    let packet_bytes = u64::from(options.mtu) - IP_BYTES;
    let header = if variant == Variant::Tcp {
        HEADER_BYTES
    } else {
        SRD_HEADER_BYTES
    };
    let cut = Cut {
        payload_bytes: packet_bytes - header,
        packet_bytes,
    };
    let workload = Workload::new(
        options.scenario,
        options.message_bytes(),
        &fabric,
        &cut,
        &mut random,
    );
    for link in 0..fabric.topology().link_count() as u32 {
        fabric.set_loss(link, options.loss);
    }
    let hosts = (0..options.host_count() as u32).map(|host| match variant {
        Variant::Srd(paths) => Host::Srd(Box::new(SrdHost::new(
            host,
            config(options, paths),
            options.seed,
        ))),
        Variant::Tcp => Host::Tcp(TcpHost::new(host)),
    });
    let desk = Desk::new(workload.transfers.clone(), cut.payload_bytes);
    let mut simulator = Simulator::new(fabric, hosts.collect(), desk, options.check);
    // The baseline has a connection for each message: there is nothing to know.
    let before = (options.met && variant != Variant::Tcp)
        .then(|| simulator.meet(workload.greetings(), LIMIT_NS));
    let begun_ns = before.map_or(0, |before| before.end_ns);
    if failure {
        // In the middle of an undisturbed run.
        let ideals = workload.units.iter().map(|unit| unit.ideal_ns / 2);
        let middle_ns = begun_ns + ideals.max().unwrap_or(0);
        simulator.fabric().break_spine(0, middle_ns);
    }
    let outcome = simulator.run(begun_ns + LIMIT_NS);
    let outcome = before.map_or(outcome, |before| outcome.since(&before));
    let done: Vec<u64> = simulator
        .done_ns()
        .map(|done_ns| done_ns.saturating_sub(begun_ns))
        .collect();
    summarize(variant, &workload, &outcome, &done, started)
}

fn summarize(
    variant: Variant,
    workload: &Workload,
    outcome: &Outcome,
    done: &[u64],
    started: Instant,
) -> Row {
    let mut ends = vec![0u64; workload.units.len()];
    for (transfer, done_ns) in workload.transfers.iter().zip(done) {
        let end_ns = if *done_ns == 0 { LIMIT_NS } else { *done_ns };
        let end = &mut ends[transfer.unit as usize];
        *end = (*end).max(end_ns);
    }
    let ratios = ends
        .iter()
        .zip(&workload.units)
        .map(|(end, unit)| *end as f64 / unit.ideal_ns.max(1) as f64);
    let mut slowdowns: Vec<f64> = ratios.collect();
    slowdowns.sort_by(f64::total_cmp);
    let last = ends.iter().max().copied().unwrap_or(0);
    Row {
        variant: variant.name(),
        p50: percentile(&slowdowns, 50.0),
        p99: percentile(&slowdowns, 99.0),
        max: percentile(&slowdowns, 100.0),
        end_us: last as f64 / 1e3,
        unfinished: outcome.unfinished_count,
        packets: outcome.tally.sent_count,
        retransmitted: outcome.retransmitted_count,
        dropped: outcome.tally.full_count,
        swallowed: outcome.tally.broken_count,
        events: outcome.event_count,
        wall_seconds: started.elapsed().as_secs_f64(),
        slowdowns,
    }
}

/// The least value that is not below `percent` of an ascending list.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

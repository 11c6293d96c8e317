// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream between two hosts over few slow paths, some of which fail: how long it pauses, and how
//! fast it recovers.
//!
//! tests/testbed makes the same network and stream of namespaces. There the machine's own two
//! processors do all the work; here only the protocol decides. Called by lib and by tests; calls
//! simulator and plot.

use serde::Serialize;
use weft_srd::random::Random;
use weft_srd::{Config, Statistics};

use crate::fabric::{Fabric, Shape};
use crate::host::{Desk, Host, SrdHost};
use crate::options::{Options, Scenario};
use crate::simulator::{Absence, Simulator};
use crate::topology::Topology;
use crate::workload::Workload;

const MS: u64 = 1_000_000;
/// Of every path, as a token bucket of `burst 128kb latency 5ms` makes it: its queue is 5 ms of the
/// rate and the burst.
const BURST_BYTES: u64 = 128 << 10;
const QUEUE_NS: u64 = 5 * MS;
/// Between a host and its leaf, in Gb/s (chosen: as fast as memory is copied).
const HOST_GIGABITS: u64 = 40;
/// What a host takes for a packet (measured: a third of an idle round trip on the testbed).
const HOST_NS: u64 = 12_000;
/// Jumbo frames without IP and UDP.
const DATAGRAM_BYTES: u16 = 9000 - 28;
/// Until a stream has its pace, and is watched.
pub const WARM_NS: u64 = 200 * MS;

/// What is wrong with the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nothing.
    None,
    /// One path drops everything for a while.
    Hole,
    /// One path has a tenth of its rate.
    Slow,
    /// All paths lose so many packets of a million.
    Loss(u32),
}

/// Runs a scenario's stream with all paths and with one, prints what was seen, and answers it.
pub fn show(options: &Options) -> Vec<Seen> {
    let fault = match options.scenario {
        Scenario::SlowPath => Fault::Slow,
        _ => Fault::Hole,
    };
    let counts = [options.paths, 1];
    let shown = if options.alone { 1 } else { 2 };
    let seen = counts[..shown].iter().map(|used_count| {
        let stream = Stream {
            seed: options.seed,
            message_bytes: options.message_bytes(),
            used_count: *used_count,
            fault,
            ..Stream::default()
        };
        stream.run()
    });
    let seen: Vec<Seen> = seen.collect();
    if options.json {
        // Numbers and their names do not fail to be written.
        println!(
            "{}",
            serde_json::to_string_pretty(&seen).unwrap_or_default()
        );
    } else {
        print!("{}", table(&seen));
    }
    seen
}

fn table(seen: &[Seen]) -> String {
    let mut text = format!(
        "{:<14}{:>12}{:>12}{:>12}{:>12}{:>11}{:>17}\n{:<14}{:>12}{:>12}{:>12}{:>12}{:>11}{:>17}\n",
        "",
        "before: MB/s",
        "pause (us)",
        "fault: MB/s",
        "pause (us)",
        "back (ms)",
        "healed path used",
        "",
        "",
        "",
        "",
        "",
        "",
        "after (ms)"
    );
    let time = |ms: Option<f64>| ms.map_or("never".to_owned(), |ms| format!("{ms:.0}"));
    for row in seen {
        text.push_str(&format!(
            "{:<14}{:>12.1}{:>12.0}{:>12.1}{:>12.0}{:>11}{:>17}\n",
            row.name(),
            row.before_mb_s,
            row.pause_before_us,
            row.during_mb_s,
            row.pause_us,
            time(row.back_ms),
            time(row.healed_use_ms)
        ));
    }
    text
}

/// A stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Repeats it exactly.
    pub seed: u64,
    /// Paths of the network.
    pub path_count: usize,
    /// Of each path, in Mbit/s.
    pub megabits: u64,
    /// Of each message.
    pub message_bytes: u64,
    /// Messages under way.
    pub window: usize,
    /// What goes wrong.
    pub fault: Fault,
    /// How long a fault lasts that ends; the stream goes on for half a second more.
    pub fault_ns: u64,
    /// Of the machine's 64 paths so many are used.
    pub used_count: u8,
    /// The longest time from one absence of a host's processor to the next.
    pub away_every_ns: u64,
    /// The longest time for which it does something else; 0 for never.
    pub away_most_ns: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            seed: 1,
            path_count: 4,
            megabits: 500,
            message_bytes: 64 << 10,
            window: 32,
            fault: Fault::None,
            fault_ns: 500 * MS,
            used_count: 64,
            away_every_ns: 20 * MS,
            away_most_ns: 0,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// Of the machine's paths so many were used.
    pub paths: u8,
    /// The longest time without the next message in order, from the fault on.
    pub pause_us: f64,
    /// Before it.
    pub pause_before_us: f64,
    /// MB/s before the fault.
    pub before_mb_s: f64,
    /// From 100 ms after its beginning to its end.
    pub during_mb_s: f64,
    /// From the fault until 100 ms have 0.9 of what the remaining paths gave before.
    pub back_ms: Option<f64>,
    /// From the end of the fault until 20 packets have used the path.
    pub healed_use_ms: Option<f64>,
    /// What the sender's machine counted.
    #[serde(skip)]
    pub sender: Statistics,
    /// And the receiver's.
    #[serde(skip)]
    pub receiver: Statistics,
    /// Bytes of each message.
    pub message_bytes: u64,
    /// When each message was whole, as the receiver sees it in order.
    #[serde(skip)]
    pub whole_ns: Vec<u64>,
}

impl Seen {
    /// What ran, in words.
    pub fn name(&self) -> String {
        let plural = if self.paths == 1 { "" } else { "s" };
        format!("weft, {} path{plural}", self.paths)
    }

    /// MB/s in each slice of time, by its middle in milliseconds.
    pub fn rates(&self, slice_ns: u64) -> Vec<(f64, f64)> {
        let end_ns = self.whole_ns.last().copied().unwrap_or(0);
        let mut counts = vec![0_u64; (end_ns / slice_ns) as usize + 1];
        for at_ns in &self.whole_ns {
            counts[(at_ns / slice_ns) as usize] += 1;
        }
        let rate = |(slice, count): (usize, &u64)| {
            let middle_ms = (slice as f64 + 0.5) * slice_ns as f64 / 1e6;
            let bytes = (count * self.message_bytes) as f64;
            (middle_ms, bytes * 1e3 / slice_ns as f64)
        };
        counts.iter().enumerate().map(rate).collect()
    }
}

impl Stream {
    fn simulator(&self) -> Simulator {
        let mut random = Random::new(self.seed);
        let topology = Topology::pair(self.path_count, &mut random);
        let mut fabric = Fabric::new(topology, HOST_GIGABITS, 16 << 20, self.seed);
        fabric.set_host_ns(HOST_NS);
        for path in 0..self.path_count {
            let megabits = if path == 0 && self.fault == Fault::Slow {
                self.megabits / 10
            } else {
                self.megabits
            };
            let queue_bytes = QUEUE_NS * megabits / 8000;
            fabric.shape_spine(path, Shape::new(megabits, queue_bytes, BURST_BYTES));
            if let Fault::Loss(per_million) = self.fault {
                for link in fabric.topology().spine_links(path) {
                    // Each way crosses two links of the path.
                    fabric.set_loss(link, per_million / 2);
                }
            }
        }
        let mut config = Config {
            datagram_bytes: DATAGRAM_BYTES,
            ..Config::default()
        };
        config.path_count = self.used_count;
        let hosts = (0..2).map(|host| {
            let host = SrdHost::new(host, config, self.seed);
            Host::Srd(Box::new(host))
        });
        let seconds = (WARM_NS + self.fault_ns) as usize / MS as usize + 600;
        let most =
            seconds * self.path_count * self.megabits as usize * 125 / self.message_bytes as usize;
        let workload = Workload::stream(most + self.window, self.message_bytes, self.window);
        let desk = Desk::new(workload.transfers, 0);
        let mut simulator = Simulator::new(fabric, hosts.collect(), desk, false);
        if self.away_most_ns > 0 {
            simulator.set_absence(Absence::new(
                2,
                self.away_every_ns,
                self.away_most_ns,
                self.seed,
            ));
        }
        simulator
    }

    /// Runs it.
    pub fn run(&self) -> Seen {
        let mut simulator = self.simulator();
        let (cut_ns, healed_ns) = (WARM_NS, WARM_NS + self.fault_ns);
        if self.fault == Fault::Hole {
            simulator.fabric().break_spine(0, cut_ns);
            simulator.fabric().heal_spine(0, healed_ns);
        }
        simulator.begin();
        simulator.go_on(healed_ns);
        let carried = simulator.fabric().carried_count(0);
        let mut healed_use_ms = None;
        let end_ns = healed_ns + 500 * MS;
        let mut now_ns = healed_ns;
        while now_ns < end_ns {
            now_ns += MS;
            simulator.go_on(now_ns);
            let used = simulator.fabric().carried_count(0) >= carried + 20;
            if used && healed_use_ms.is_none() {
                healed_use_ms = Some((now_ns - healed_ns) as f64 / 1e6);
            }
        }
        let mut whole_ns = Vec::new();
        let mut latest_ns = 0;
        for done_ns in simulator.done_ns().take_while(|done_ns| *done_ns > 0) {
            latest_ns = latest_ns.max(done_ns);
            whole_ns.push(latest_ns);
        }
        let seen = self.sum_up(&whole_ns, cut_ns, healed_ns);
        Seen {
            healed_use_ms,
            sender: simulator.statistics(0),
            receiver: simulator.statistics(1),
            whole_ns,
            ..seen
        }
    }

    fn sum_up(&self, whole_ns: &[u64], cut_ns: u64, healed_ns: u64) -> Seen {
        let pause = |from: u64, to: u64| {
            let pairs = whole_ns
                .windows(2)
                .filter(|pair| (from..to).contains(&pair[1]));
            pairs
                .map(|pair| pair[1] - pair[0])
                .max()
                .unwrap_or(to - from) as f64
                / 1e3
        };
        let rate = |from: u64, to: u64| {
            let count = whole_ns
                .iter()
                .filter(|at| (from..to).contains(*at))
                .count();
            (count as u64 * self.message_bytes) as f64 * 1e3 / (to - from) as f64
        };
        let before = rate(cut_ns / 2, cut_ns);
        let left = (self.path_count - 1) as f64 / self.path_count as f64;
        let back = (cut_ns..healed_ns - 100 * MS)
            .step_by(MS as usize)
            .find(|at| rate(*at, at + 100 * MS) >= 0.9 * left * before);
        Seen {
            paths: self.used_count,
            pause_us: pause(cut_ns, healed_ns),
            pause_before_us: pause(cut_ns / 2, cut_ns),
            before_mb_s: before,
            during_mb_s: rate(cut_ns + 100 * MS, healed_ns),
            back_ms: back.map(|at| (at - cut_ns) as f64 / 1e6),
            healed_use_ms: None,
            sender: Statistics::default(),
            receiver: Statistics::default(),
            message_bytes: self.message_bytes,
            whole_ns: Vec::new(),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which host sends what to whom and after what, and the shortest possible time for it. Called by
//! scenario.

use std::collections::BTreeSet;

use weft_srd::random::Random;

use crate::fabric::{FRAME_BYTES, Fabric};
use crate::options::Scenario;

/// Messages of one host under way in an all-to-all (chosen: what MPI libraries post at a time).
const ALLTOALL_WINDOW: usize = 8;

/// Messages by which hosts get to know each other, and their length (chosen: the first is at first
/// contact, and round trips are known after some more).
const GREETINGS: usize = 4;
const GREETING_BYTES: u64 = 8;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Host.
    pub source: u32,
    /// Host.
    pub target: u32,
    /// Of the payload.
    pub bytes: u64,
    /// What is measured: index into [`Workload::units`].
    pub unit: u32,
    /// Starts when this one is done.
    pub then: Option<u32>,
    /// Starts when the run starts.
    pub at_once: bool,
}

/// What is measured: a message, or all that one host does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Time at best.
    pub ideal_ns: u64,
    /// Messages of it.
    pub transfer_count: u32,
}

/// All messages of a run.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// In no order.
    pub transfers: Vec<Transfer>,
    /// What is measured.
    pub units: Vec<Unit>,
}

/// How messages are cut, for the ideal.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Payload bytes of a full packet.
    pub payload_bytes: u64,
    /// Bytes of a full packet without frame.
    pub packet_bytes: u64,
}

impl Cut {
    /// Bytes on a link for a message.
    pub fn wire_bytes(&self, bytes: u64) -> u64 {
        let head = self.packet_bytes - self.payload_bytes + FRAME_BYTES;
        bytes + bytes.div_ceil(self.payload_bytes).max(1) * head
    }

    fn crossing_ns(&self, fabric: &Fabric, source: u32, target: u32, bytes: u64) -> u64 {
        let last =
            (bytes.min(self.payload_bytes) + self.packet_bytes - self.payload_bytes) + FRAME_BYTES;
        fabric.crossing_ns(source as usize, target as usize, last)
    }

    /// A message alone on an empty network: its bytes at the link's rate, and the last packet's
    /// crossing behind them.
    fn alone_ns(&self, fabric: &Fabric, transfer: &Transfer) -> u64 {
        let last = self
            .packet_bytes
            .min(transfer.bytes + self.packet_bytes - self.payload_bytes)
            + FRAME_BYTES;
        let before = self.wire_bytes(transfer.bytes).saturating_sub(last);
        fabric.time_ns(before)
            + self.crossing_ns(fabric, transfer.source, transfer.target, transfer.bytes)
    }
}

impl Workload {
    /// The messages of a scenario on the hosts of a fabric.
    pub fn new(
        scenario: Scenario,
        bytes: u64,
        fabric: &Fabric,
        cut: &Cut,
        random: &mut Random,
    ) -> Self {
        let count = fabric.topology().host_count();
        match scenario {
            Scenario::Incast => Self::incast(count, bytes, fabric, cut),
            Scenario::Permutation | Scenario::SpineFailure => {
                Self::permutation(&cycle(count, random), bytes, fabric, cut)
            }
            Scenario::Allreduce => Self::allreduce(
                &cycle(count, random),
                bytes.div_ceil(count as u64),
                fabric,
                cut,
            ),
            Scenario::Alltoall => Self::alltoall(count, bytes, fabric, cut),
            Scenario::Blackhole | Scenario::SlowPath => Self::stream(1, bytes, 1),
        }
    }

    fn push(&mut self, transfer: Transfer) {
        self.transfers.push(transfer);
    }

    /// Short messages from each source to each of its targets, one after the other.
    pub fn greetings(&self) -> Vec<Transfer> {
        let pair = |transfer: &Transfer| (transfer.source, transfer.target);
        let pairs: BTreeSet<(u32, u32)> = self.transfers.iter().map(pair).collect();
        let mut greetings = Vec::with_capacity(pairs.len() * GREETINGS);
        for (source, target) in pairs {
            for turn in 0..GREETINGS {
                let next = greetings.len() as u32 + 1;
                greetings.push(Transfer {
                    source,
                    target,
                    bytes: GREETING_BYTES,
                    unit: 0,
                    then: (turn + 1 < GREETINGS).then_some(next),
                    at_once: turn == 0,
                });
            }
        }
        greetings
    }

    /// Messages from host 0 to host 1 without end, some at a time; ideals are not asked for.
    pub fn stream(count: usize, bytes: u64, window: usize) -> Self {
        let transfer = |index: usize| Transfer {
            source: 0,
            target: 1,
            bytes,
            unit: 0,
            then: (index + window < count).then_some((index + window) as u32),
            at_once: index < window,
        };
        Self {
            transfers: (0..count).map(transfer).collect(),
            units: vec![Unit {
                ideal_ns: 1,
                transfer_count: count as u32,
            }],
        }
    }

    /// All to host 0; at best the last link is never idle.
    fn incast(count: usize, bytes: u64, fabric: &Fabric, cut: &Cut) -> Self {
        let mut workload = Self::default();
        for source in 1..count as u32 {
            workload.push(Transfer {
                source,
                target: 0,
                bytes,
                unit: source - 1,
                then: None,
                at_once: true,
            });
        }
        let all = fabric.time_ns(cut.wire_bytes(bytes) * (count as u64 - 2));
        let last = workload
            .transfers
            .iter()
            .map(|transfer| cut.alone_ns(fabric, transfer))
            .max();
        let ideal_ns = all + last.unwrap_or(0);
        workload.units = vec![
            Unit {
                ideal_ns,
                transfer_count: 1
            };
            count - 1
        ];
        workload
    }

    /// Every host to the next one of a random cycle.
    fn permutation(cycle: &[u32], bytes: u64, fabric: &Fabric, cut: &Cut) -> Self {
        let mut workload = Self::default();
        for (place, source) in cycle.iter().enumerate() {
            let target = cycle[(place + 1) % cycle.len()];
            let unit = place as u32;
            let transfer = Transfer {
                source: *source,
                target,
                bytes,
                unit,
                then: None,
                at_once: true,
            };
            workload.units.push(Unit {
                ideal_ns: cut.alone_ns(fabric, &transfer),
                transfer_count: 1,
            });
            workload.push(transfer);
        }
        workload
    }

    /// 2 (n - 1) steps around a ring; what arrives in one step is sent on in the next.
    fn allreduce(cycle: &[u32], chunk_bytes: u64, fabric: &Fabric, cut: &Cut) -> Self {
        let mut workload = Self::default();
        let count = cycle.len();
        let steps = 2 * (count - 1);
        let mut slowest = vec![0; count];
        for step in 0..steps {
            for place in 0..count {
                let next = (place + 1) % count;
                let then = (step + 1 < steps).then(|| ((step + 1) * count + next) as u32);
                let transfer = Transfer {
                    source: cycle[place],
                    target: cycle[next],
                    bytes: chunk_bytes,
                    unit: place as u32,
                    then,
                    at_once: step == 0,
                };
                slowest[place] = cut.alone_ns(fabric, &transfer);
                workload.push(transfer);
            }
        }
        // Each chunk goes around nearly twice, over every hop of the ring.
        let ideal_ns = slowest.iter().sum::<u64>() * steps as u64 / count as u64;
        workload.units = vec![
            Unit {
                ideal_ns,
                transfer_count: steps as u32
            };
            count
        ];
        workload
    }

    /// Every host to every other, beginning with its neighbour, some at a time; at best its link is
    /// never idle.
    fn alltoall(count: usize, bytes: u64, fabric: &Fabric, cut: &Cut) -> Self {
        let mut workload = Self::default();
        let each = count - 1;
        for source in 0..count {
            for place in 0..each {
                let target = (source + 1 + place) % count;
                let index = (source * each + place) as u32;
                workload.push(Transfer {
                    source: source as u32,
                    target: target as u32,
                    bytes,
                    unit: source as u32,
                    then: (place + ALLTOALL_WINDOW < each)
                        .then_some(index + ALLTOALL_WINDOW as u32),
                    at_once: place < ALLTOALL_WINDOW,
                });
            }
            let before = fabric.time_ns(cut.wire_bytes(bytes) * (each as u64 - 1));
            let last = cut.alone_ns(fabric, &workload.transfers[source * each]);
            workload.units.push(Unit {
                ideal_ns: before + last,
                transfer_count: each as u32,
            });
        }
        workload
    }
}

/// Hosts in a random circle.
fn cycle(count: usize, random: &mut Random) -> Vec<u32> {
    let mut cycle: Vec<u32> = (0..count as u32).collect();
    random.shuffle(&mut cycle);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    const CUT: Cut = Cut {
        payload_bytes: 1000,
        packet_bytes: 1064,
    };

    fn workload(scenario: Scenario, count: usize) -> Workload {
        let mut random = Random::new(5);
        let fabric = Fabric::new(Topology::new(count, &mut random), 100, 1 << 20, 5);
        Workload::new(scenario, 64_000, &fabric, &CUT, &mut random)
    }

    #[test]
    fn every_transfer_is_started_once_and_counted_once() {
        for scenario in [
            Scenario::Incast,
            Scenario::Permutation,
            Scenario::Allreduce,
            Scenario::Alltoall,
        ] {
            let workload = workload(scenario, 20);
            let mut started = vec![0; workload.transfers.len()];
            let mut counted = vec![0; workload.units.len()];
            for (index, transfer) in workload.transfers.iter().enumerate() {
                started[index] += u32::from(transfer.at_once);
                if let Some(then) = transfer.then {
                    started[then as usize] += 1;
                }
                counted[transfer.unit as usize] += 1;
                assert_ne!(transfer.source, transfer.target);
            }
            assert!(started.iter().all(|times| *times == 1), "{scenario:?}");
            let expected: Vec<u32> = workload
                .units
                .iter()
                .map(|unit| unit.transfer_count)
                .collect();
            assert_eq!(counted, expected, "{scenario:?}");
        }
    }

    #[test]
    fn each_source_greets_each_of_its_targets_once_after_the_other() {
        let workload = workload(Scenario::Alltoall, 5);
        let greetings = workload.greetings();
        assert_eq!(greetings.len(), 5 * 4 * GREETINGS);
        for (index, greeting) in greetings.iter().enumerate() {
            let is_last = index % GREETINGS == GREETINGS - 1;
            assert_eq!(greeting.at_once, index % GREETINGS == 0);
            assert_eq!(greeting.then, (!is_last).then_some(index as u32 + 1));
        }
    }

    #[test]
    fn in_a_permutation_everybody_sends_once_and_receives_once() {
        let workload = workload(Scenario::Permutation, 33);
        let mut targets: Vec<u32> = workload
            .transfers
            .iter()
            .map(|transfer| transfer.target)
            .collect();
        targets.sort_unstable();
        assert_eq!(targets, (0..33).collect::<Vec<_>>());
    }

    #[test]
    fn the_ideal_of_an_incast_is_the_last_link_at_full_rate() {
        let workload = workload(Scenario::Incast, 49);
        let bytes = 48 * CUT.wire_bytes(64_000);
        let least = bytes * 8 / 100;
        let ideal = workload.units[0].ideal_ns;
        assert!(
            ideal > least && ideal < least + 6_000,
            "{ideal} against {least}"
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Some remotes are silent while something is expected of them: asks their hosts, by TCP connection
//! attempts, whether the host lives (srd-protocol 13.5). transport.rs calls this now and then.
//!
//! A process that computes answers heartbeats itself (srd-protocol 13.6). A process that is
//! stopped, or that has no thread for heartbeats, cannot. Then its host may answer: to a TCP
//! connection attempt, that the host lives; to our datagrams, by ICMP, that the process is gone. If
//! the host does not answer, that means nothing, since many hosts drop such attempts.

use weft_os::host_probe::{HostAnswer, HostCheck};
use weft_srd::{Instant, Machine, Nanos, Remote};

/// How often silent remotes are looked for in the time of `dead_after`. Chosen: the answer is there
/// well before the end.
const LOOKS: u64 = 20;

/// How many hosts are asked at the same time: each attempt takes a descriptor, and when a switch
/// breaks, a thousand remotes are silent at once (srd-protocol 13.5; chosen).
const OPEN_MOST: usize = 16;

/// Host probes under way.
#[derive(Debug)]
pub(crate) struct HostProbes {
    every_ns: Nanos,
    next_ns: Instant,
    open: Vec<(Remote, HostCheck)>,
    /// Where to go on asking when more are silent than may be asked at once.
    turn: usize,
}

impl HostProbes {
    /// For a machine with this `dead_after`.
    pub(crate) fn new(dead_after_ns: Nanos) -> Self {
        Self {
            every_ns: (dead_after_ns / LOOKS).max(Nanos(1)),
            next_ns: Instant::START,
            open: Vec::new(),
            turn: 0,
        }
    }

    /// Asks, and hands on what was answered, if it is time. Fast path when it is not.
    #[inline]
    pub(crate) fn turn(&mut self, now_ns: Instant, machine: &mut Machine) {
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + self.every_ns;
            self.look(now_ns, machine);
        }
    }

    #[inline(never)]
    fn look(&mut self, now_ns: Instant, machine: &mut Machine) {
        self.open.retain(|(remote, check)| match check.answer() {
            HostAnswer::Waiting => true,
            HostAnswer::Unreachable => false,
            HostAnswer::Alive => {
                machine.at(*remote).handle_host_alive(now_ns);
                false
            }
        });
        let silent = machine.inspect().silent(now_ns);
        self.open
            .retain(|(remote, _)| silent.iter().any(|(other, _)| other == remote));
        let count = silent.len();
        for step in 0..count {
            if self.open.len() >= OPEN_MOST {
                break;
            }
            let (remote, address) = silent[(self.turn + step) % count];
            if self.open.iter().all(|(asked, _)| *asked != remote)
                && let Ok(check) = HostCheck::ask(address)
            {
                self.open.push((remote, check));
            }
        }
        self.turn = self.turn.wrapping_add(OPEN_MOST);
    }
}

#[cfg(test)]
mod tests {
    use weft_srd::{Config, Send};

    use super::*;

    /// The attempts go to an address of documentation, which nobody answers for.
    #[test]
    fn a_thousand_silent_remotes_take_a_few_descriptors() {
        let mut machine = Machine::new(Config::default(), 7).expect("a machine");
        for number in 0..1_000u16 {
            let address = std::net::SocketAddr::from(([192, 0, 2, 1], 1_000 + number));
            let remote = machine.remote(address).expect("room");
            let send = Send {
                remote,
                tag: None,
                cq_data: None,
                length_bytes: 0,
                wants_receipt: false,
                is_awaited: false,
                is_service: false,
                token: 0,
            };
            machine.post_send(Instant(1), &send).expect("room");
        }
        while machine.poll_transmit(Instant(1)).is_some() {}
        let mut probes = HostProbes::new(Nanos(5_000_000_000));
        for second in 3..5 {
            probes.turn(Instant(second * 1_000_000_000), &mut machine);
            assert!(
                (1..=OPEN_MOST).contains(&probes.open.len()),
                "{}",
                probes.open.len()
            );
        }
    }
}

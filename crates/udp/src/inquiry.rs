// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Remotes that are silent while something is expected of them: is the host gone, or does the process compute?
//! Asked now and then by transport.rs (srd-protocol 13.5).
//!
//! A process that computes answers nothing, for minutes perhaps, and must not be taken for dead. Its host answers in its
//! stead: that it lives, to a TCP connection attempt; that the process is gone, to our datagrams (ICMP). Only when the
//! host is silent too does `dead_after` run out.

use weft_os::host_check::{HostAnswer, HostCheck};
use weft_srd::{Machine, Remote};

/// Looks in the time of `dead_after`. Chosen: the answer is there well before the end.
const LOOKS: u64 = 20;

/// Questions to hosts.
#[derive(Debug)]
pub(crate) struct Inquiry {
    every_ns: u64,
    next_ns: u64,
    open: Vec<(Remote, HostCheck)>,
}

impl Inquiry {
    /// For a machine with this `dead_after`.
    pub(crate) fn new(dead_after_ns: u64) -> Self {
        Self {
            every_ns: (dead_after_ns / LOOKS).max(1),
            next_ns: 0,
            open: Vec::new(),
        }
    }

    /// Asks, and hands on what was answered, if it is time. Fast path when it is not.
    #[inline]
    pub(crate) fn turn(&mut self, now_ns: u64, machine: &mut Machine) {
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + self.every_ns;
            self.look(now_ns, machine);
        }
    }

    #[inline(never)]
    fn look(&mut self, now_ns: u64, machine: &mut Machine) {
        self.open.retain(|(remote, check)| match check.answer() {
            HostAnswer::Waiting => true,
            HostAnswer::Unreachable => false,
            HostAnswer::Alive => {
                machine.handle_host_alive(now_ns, *remote);
                false
            }
        });
        let silent = machine.silent(now_ns);
        self.open
            .retain(|(remote, _)| silent.iter().any(|(other, _)| other == remote));
        for (remote, address) in silent {
            if self.open.iter().all(|(asked, _)| *asked != remote)
                && let Ok(check) = HostCheck::ask(address)
            {
                self.open.push((remote, check));
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping until a message comes: the descriptor behind FI_WAIT_FD and fi_cq_sread. Called by the endpoint.
//!
//! Senders do not check for sleepers on their fast path. A receiver that wants to sleep first makes every lane
//! one that must be rung for, then puts a barrier on every processor (membarrier(2)), then looks once more: what
//! was pushed before the barrier is seen now, and what comes after it rings, and finds the sleeper announced.

use std::io;
use std::os::fd::AsFd;

use weft_os::crash_point;
use weft_os::sleep::{WaitSet, barrier_everywhere, join_barriers};

use crate::own::{Alias, Own};
use crate::transport::Transport;

/// What a sleep needs.
#[derive(Debug)]
pub(crate) struct Sleeper {
    wait_set: WaitSet,
    can_sleep: bool,
}

impl Sleeper {
    pub(crate) fn new(own: &Own) -> io::Result<Self> {
        let wait_set = WaitSet::new()?;
        wait_set.add(own.bell.as_fd())?;
        wait_set.add(own.listener.as_fd())?;
        Ok(Self {
            wait_set,
            can_sleep: join_barriers(),
        })
    }
}

impl Sleeper {
    /// Wakes for a further address, too.
    pub(crate) fn learn(&self, alias: &Alias) -> io::Result<()> {
        self.wait_set.add(alias.listener.as_fd())
    }
}

impl Transport {
    /// A descriptor that is readable while there may be something to do, provided `before_sleep` said true.
    pub fn wait_fd(&self) -> i32 {
        self.sleeper.wait_set.descriptor()
    }

    /// Whether something is under way that moves only while somebody makes progress.
    pub fn is_busy(&self) -> bool {
        !self.sending.is_empty()
            || !self.transfers.accepted.is_empty()
            || !self.transfers.fetches.is_empty()
            || !self.pipes.feeds.is_empty()
    }

    /// Announces a sleep. False if there is something to do first, or if this kernel cannot make sleeping safe
    /// (then callers poll). After true, every message makes `wait_fd` readable; call `after_sleep` when awake.
    /// Slow path: one system call that interrupts the processors of other ranks.
    pub fn before_sleep(&mut self) -> bool {
        if self.is_busy() || !self.sleeper.can_sleep {
            return false;
        }
        self.own.answer_askers();
        self.own.bell.silence();
        for slot in &self.polled {
            if let Some(lane) = self.inbound[*slot].as_mut() {
                lane.consumer.set_polled(false);
            }
        }
        crash_point!(
            40,
            "sleep: lanes are to be rung for, the sleep not announced"
        );
        self.own.region.doorbell().begin_sleep();
        let fenced = barrier_everywhere();
        crash_point!(
            42,
            "sleep: the barrier is done, lanes are not looked at again"
        );
        let lanes = self.inbound.iter().flatten();
        let pending = self.own.region.doorbell().is_rung()
            || lanes.into_iter().any(|lane| lane.consumer.has_message());
        if pending || !fenced {
            self.after_sleep();
            return false;
        }
        crash_point!(43, "sleep: asleep");
        true
    }

    /// Ends the announcement of a sleep.
    pub fn after_sleep(&mut self) {
        crash_point!(44, "sleep: over, still announced");
        self.own.region.doorbell().end_sleep();
        self.own.bell.silence();
        self.hear_refusals();
        for slot in &self.polled {
            if let Some(lane) = self.inbound[*slot].as_mut() {
                lane.consumer.set_polled(true);
            }
        }
    }
}

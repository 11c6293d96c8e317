// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping until a message comes: the descriptor behind FI_WAIT_FD and fi_cq_sread. Called by the
//! transport.
//!
//! Senders do not check for sleepers on their fast path. A receiver that wants to sleep first makes
//! every lane one that must be rung for, then puts a barrier on every processor (membarrier(2)),
//! then looks once more: what was pushed before the barrier is seen now, and what comes after it
//! rings, and finds the sleeper announced.

use std::io;

use weft_os::crash_point;
use weft_os::sleep::{WaitSet, barrier_everywhere, join_barriers};

use crate::contact::contacts::Contacts;
use crate::contact::lane::Inbound;
use crate::contact::own::Own;

/// What a sleep needs.
#[derive(Debug)]
pub(crate) struct Sleeper {
    wait_set: WaitSet,
    can_sleep: bool,
}

impl Sleeper {
    pub(crate) fn new(own: &Own) -> io::Result<Self> {
        let wait_set = WaitSet::new()?;
        own.wake(&wait_set)?;
        Ok(Self {
            wait_set,
            can_sleep: join_barriers(),
        })
    }

    /// What it wakes for.
    pub(crate) fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Announces a sleep; false if there is something to do first, or if this kernel cannot make
    /// sleeping safe. After true, every message makes the descriptor readable.
    pub(crate) fn begin(&self, contacts: &mut Contacts) -> bool {
        if !self.can_sleep {
            return false;
        }
        contacts.own.answer_askers();
        contacts.own.silence_bell();
        contacts.lanes.set_polled(false);
        crash_point!(
            40,
            "sleep: lanes are to be rung for, the sleep not announced"
        );
        contacts.own.doorbell().begin_sleep();
        let fenced = barrier_everywhere();
        crash_point!(
            42,
            "sleep: the barrier is done, lanes are not looked at again"
        );
        let pending =
            contacts.own.doorbell().is_rung() || contacts.lanes.iter().any(Inbound::has_message);
        if pending || !fenced {
            Self::end(contacts);
            return false;
        }
        crash_point!(43, "sleep: asleep");
        true
    }

    /// Ends the announcement of a sleep.
    pub(crate) fn end(contacts: &mut Contacts) {
        crash_point!(44, "sleep: over, still announced");
        contacts.own.doorbell().end_sleep();
        contacts.own.silence_bell();
        contacts.lanes.set_polled(true);
    }
}

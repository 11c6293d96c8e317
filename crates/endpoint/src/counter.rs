// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter of completed operations. Written where operations complete; read through the domain. fi_cntr(3).

use crate::alarm::Alarm;
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, EndpointId};

/// The events that an endpoint can count. The order is ours.
const EVENTS: [u64; 6] = [
    flags::SEND,
    flags::RECV,
    flags::READ,
    flags::WRITE,
    flags::REMOTE_READ,
    flags::REMOTE_WRITE,
];

/// The counter.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    pub(crate) value: u64,
    pub(crate) errors: u64,
    /// Both, as the user last read them.
    pub(crate) read: (u64, u64),
    /// For those who sleep on the counter.
    pub(crate) alarm: Alarm,
    /// Endpoints that a read drives.
    pub(crate) bound: Vec<EndpointId>,
}

impl Counter {
    /// Counts operations that succeeded. Fast path.
    #[inline(always)]
    pub(crate) fn add(&mut self, count: u64) {
        self.value = self.value.wrapping_add(count);
        self.alarm.sound();
    }

    /// Counts operations that failed.
    pub(crate) fn add_errors(&mut self, count: u64) {
        self.errors = self.errors.wrapping_add(count);
        self.alarm.sound();
    }

    /// Whether it differs from what the user last read.
    pub(crate) fn is_changed(&self) -> bool {
        self.read != (self.value, self.errors)
    }
}

/// Which counters an endpoint counts its events on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterBindings {
    counters: [Option<CounterId>; EVENTS.len()],
}

impl CounterBindings {
    /// Binds `counter` to the events in `events`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no event in it, or one that cannot be counted; [`Error::Busy`] if one
    /// of them has a counter already.
    pub(crate) fn bind(&mut self, counter: CounterId, events: u64) -> Result<(), Error> {
        let known = EVENTS.iter().fold(0, |all, event| all | event);
        if events == 0 || events & !known != 0 {
            return Err(Error::Invalid);
        }
        let wanted = |index: &usize| events & EVENTS[*index] != 0;
        if (0..EVENTS.len())
            .filter(wanted)
            .any(|index| self.counters[index].is_some())
        {
            return Err(Error::Busy);
        }
        (0..EVENTS.len())
            .filter(wanted)
            .for_each(|index| self.counters[index] = Some(counter));
        Ok(())
    }

    /// The counter of sends. Fast path.
    #[inline(always)]
    pub(crate) fn send(&self) -> Option<CounterId> {
        self.counters[0]
    }

    /// The counter of receives. Fast path.
    #[inline(always)]
    pub(crate) fn receive(&self) -> Option<CounterId> {
        self.counters[1]
    }

    /// The counter of reads and fetches of remote memory.
    pub(crate) fn read(&self) -> Option<CounterId> {
        self.counters[2]
    }

    /// The counter of writes and changes of remote memory.
    pub(crate) fn write(&self) -> Option<CounterId> {
        self.counters[3]
    }

    /// The counter of reads by remotes.
    pub(crate) fn remote_read(&self) -> Option<CounterId> {
        self.counters[4]
    }

    /// The counter of writes by remotes.
    pub(crate) fn remote_write(&self) -> Option<CounterId> {
        self.counters[5]
    }
}

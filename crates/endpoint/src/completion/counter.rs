// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A counter of completed operations. Written where operations end; read by the calls on counters.
//! fi_cntr(3).

use super::alarm::Alarm;
use crate::ids::{CounterId, EndpointId};

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

/// On which counters one side of an endpoint counts its three events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterBindings {
    events: [u64; 3],
    counters: [Option<CounterId>; 3],
}

impl CounterBindings {
    /// For these events (FI_SEND, FI_RECV, FI_READ ...), of which none has a counter.
    pub(crate) fn new(events: [u64; 3]) -> Self {
        Self {
            events,
            counters: [None; 3],
        }
    }

    /// All events that can be counted here.
    pub(crate) fn events(&self) -> u64 {
        self.events.iter().fold(0, |all, event| all | event)
    }

    /// Whether one of `events` has a counter.
    pub(crate) fn is_bound(&self, events: u64) -> bool {
        let mut both = self.events.iter().zip(&self.counters);
        both.any(|(event, counter)| events & event != 0 && counter.is_some())
    }

    /// Binds `counter` to those of `events` that are counted here.
    pub(crate) fn bind(&mut self, counter: CounterId, events: u64) {
        for (event, bound) in self.events.iter().zip(&mut self.counters) {
            if events & event != 0 {
                *bound = Some(counter);
            }
        }
    }

    /// The counter of the event at a place of the list. Fast path.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> Option<CounterId> {
        self.counters[place]
    }
}

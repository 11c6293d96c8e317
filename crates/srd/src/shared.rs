// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all flows of a machine share: settings, counts, events for the owner, memory and credit.
//!
//! Owned by flows; handed to a flow with each call.

use std::collections::VecDeque;

use crate::config::Config;
use crate::credit::Pool;
use crate::events::{Event, Statistics};
use crate::random::Random;
use crate::reassembly::Spares;
use crate::send_delay::SendDelays;
use crate::timers::Jitter;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// Ours.
    pub(crate) incarnation: u64,
    pub(crate) statistics: Statistics,
    pub(crate) events: EventQueue,
    pub(crate) pool: Pool,
    pub(crate) random: Random,
    pub(crate) jitter: Jitter,
    /// How far this receiver is behind (srd-protocol 10.6).
    pub(crate) penalty: u8,
    pub(crate) send_delays: SendDelays,
    /// The datagram given out last ends its batch.
    pub(crate) batch_has_ended: bool,
    /// The owner waits for nothing but acknowledgements.
    pub(crate) is_closing: bool,
    /// Payload bytes that wait for their turn, over all flows.
    pub(crate) held_bytes: u64,
    pub(crate) spares: Spares,
    /// Remotes to which our host's routes are not known (srd-protocol 17.3).
    pub(crate) unrouted: Vec<u32>,
}

impl Shared {
    pub(crate) fn new(config: Config, incarnation: u64) -> Self {
        Self {
            incarnation: incarnation.max(1),
            statistics: Statistics::default(),
            events: EventQueue::default(),
            pool: Pool::new(config.pace.credit_pool_bytes),
            random: Random::new(incarnation),
            jitter: Jitter::default(),
            penalty: 0,
            send_delays: SendDelays::default(),
            batch_has_ended: false,
            is_closing: false,
            held_bytes: 0,
            spares: Spares::default(),
            unrouted: Vec::new(),
            config,
        }
    }
}

/// What has happened and the owner has not heard of yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    queue: VecDeque<Event>,
    /// Of them, messages and offers: what later messages must not overtake.
    ordered_count: usize,
}

fn is_ordered(event: &Event) -> bool {
    matches!(event, Event::Message { .. } | Event::Offer { .. })
}

impl EventQueue {
    pub(crate) fn push(&mut self, event: Event) {
        self.ordered_count += usize::from(is_ordered(&event));
        self.queue.push_back(event);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.queue.is_empty() {
            return None;
        }
        let event = self.queue.pop_front();
        self.ordered_count -= usize::from(event.as_ref().is_some_and(is_ordered));
        event
    }

    /// Whether messages or offers wait, which later ones must not overtake.
    #[inline]
    pub(crate) fn has_ordered(&self) -> bool {
        self.ordered_count > 0
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When something is due: the flow whose time has come, and whether anything could leave now (srd-protocol 8.6). The third part of
//! machine.
//!
//! Called by the driver between its looks into the sockets; calls flow.

use crate::events::Failure;
use crate::flow::{Flow, Outcome, Shared};
use crate::machine::Machine;
use crate::timers::NEVER;

impl Machine {
    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        while let Some((at_ns, index)) = self.deadlines.first() {
            if at_ns > now_ns {
                break;
            }
            self.fire(at_ns, index, now_ns);
        }
        self.grant(now_ns);
    }

    /// Does what is due by now up to the first deadline at which silence, loss or death is judged; answers whether there is one. All
    /// that has arrived must be handed in before that is done (srd-protocol 8.6), but not for what is done here: most deadlines
    /// have moved, or something merely wants to leave. Fast path.
    pub fn handle_moved_timeouts(&mut self, now_ns: u64) -> bool {
        while let Some((at_ns, index)) = self.deadlines.first() {
            if at_ns > now_ns {
                break;
            }
            let slot = &self.slots[index as usize];
            let mut jitter = self.shared.jitter;
            jitter.sample(now_ns - at_ns);
            let judges = |flow: &Flow| flow.judged_ns(&self.shared.config, jitter.ns()) <= now_ns;
            if slot.armed_ns == at_ns && slot.flow.as_deref().is_some_and(judges) {
                return true;
            }
            self.fire(at_ns, index, now_ns);
        }
        false
    }

    /// The first deadline has come.
    fn fire(&mut self, at_ns: u64, index: u32, now_ns: u64) {
        self.deadlines.pop();
        let slot = &mut self.slots[index as usize];
        if slot.armed_ns != at_ns {
            return;
        }
        slot.armed_ns = NEVER;
        let Some(flow) = slot.flow.as_mut() else {
            return;
        };
        self.shared.jitter.sample(now_ns - at_ns);
        match flow.on_timeout(&mut self.shared, now_ns, now_ns - at_ns) {
            Outcome::Lives => self.settle(index, now_ns, true),
            Outcome::Dead => self.end(index, Failure::Lost),
            Outcome::Folds => {
                slot.rest = flow.fold();
                slot.flow = None;
            }
        }
    }

    /// When to call `handle_timeout`; `None` if nothing is under way. May name a time at which nothing is due any more.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.deadlines.first().map(|entry| entry.0)
    }

    /// Whether `poll_transmit` would surely find nothing: a driver that has just had a datagram, or has handed in one, may go by that
    /// instead of asking, which costs more. Where several remotes may have something to send it always says no. Fast path.
    #[inline]
    pub fn is_at_rest(&self, now_ns: u64) -> bool {
        let flow = match (self.turns.len(), self.turns.front()) {
            (0, _) => return !self.has_to_say(),
            (1, Some(index)) => &self.slots[*index as usize].flow,
            _ => return false,
        };
        let rests = |flow: &Flow| flow.is_at_rest(&self.shared, now_ns);
        !self.has_to_say() && flow.as_deref().is_none_or(rests)
    }

    /// After a change: arms the flow's timer, and gives it a turn if it may have something to send.
    pub(crate) fn settle(&mut self, index: u32, now_ns: u64, turn: bool) {
        let slot = &mut self.slots[index as usize];
        let Some(flow) = slot.flow.as_ref() else {
            return;
        };
        if turn && !slot.in_turn {
            slot.in_turn = true;
            self.turns.push_back(index);
        }
        // What is armed for now, or before, is asked anew when it fires: no deadline is sooner.
        if slot.armed_ns <= now_ns {
            return;
        }
        let at_ns = flow.deadline_ns(&self.shared, now_ns);
        if at_ns >= slot.armed_ns {
            return;
        }
        slot.armed_ns = at_ns;
        self.deadlines.push(at_ns, index);
        if self.deadlines.len() > 64 + 4 * self.slots.len() {
            let slots = &self.slots;
            self.deadlines
                .retain(|at_ns, index| slots[index as usize].armed_ns == at_ns);
        }
    }
}

impl Flow {
    /// Whether [`Flow::poll`] would surely find nothing: a quick look, which may say no where nothing is found. Fast path.
    #[inline]
    pub(crate) fn is_at_rest(&self, shared: &Shared, now_ns: u64) -> bool {
        let sender = &self.sender;
        self.received.due_ns() > now_ns
            && self.controls.is_empty()
            && self.outgoing.fresh.is_empty()
            && self.outgoing.streams.is_empty()
            && sender.urgent.is_none()
            && !sender.ring.has_lost()
            && sender.sizing.due_ns() > now_ns
            && self.heartbeat_ns(&shared.config) > now_ns
            && sender.paths.next_probe_ns() > now_ns
            && self.quiet_ask_ns(shared) > now_ns
    }
}

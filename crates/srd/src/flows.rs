// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Between flows: whose turn it is to send, who gets credit next, whose deadline comes first
//! (srd-protocol 8.6, 11.1), and the beginning and the end of each flow (6.4, 13.1).
//!
//! Owned by machine; contact begins and ends flows.

use std::collections::VecDeque;
use weft_wire::time::Instant;

use crate::config::Config;
use crate::events::{Failure, PostError, Transmit};
use crate::flow::{Flow, Rest};
use crate::remotes::{Remotes, Slot};
use crate::shared::Shared;
use crate::timeouts::Outcome;
use crate::timers::Deadlines;
use crate::transmit::Turn;

/// See the module.
#[derive(Debug)]
pub(crate) struct Flows {
    pub(crate) shared: Shared,
    pub(crate) remotes: Remotes,
    /// Remotes that may have something to send, in turn.
    turns: VecDeque<u32>,
    /// Remotes that wait for grants, in turn.
    grants: VecDeque<u32>,
    deadlines: Deadlines,
}

impl Flows {
    pub(crate) fn new(config: Config, incarnation: u64) -> Self {
        Self {
            shared: Shared::new(config, incarnation),
            remotes: Remotes::default(),
            turns: VecDeque::new(),
            grants: VecDeque::new(),
            deadlines: Deadlines::default(),
        }
    }

    /// The flow of a remote, unfolded if need be.
    pub(crate) fn flow(&mut self, index: u32, now_ns: Instant) -> (&mut Flow, &mut Shared) {
        let Slot { flow, rest, .. } = &mut self.remotes[index];
        let shared = &mut self.shared;
        let flow = flow.get_or_insert_with(|| Box::new(Flow::new(index, rest, shared, now_ns)));
        (flow, shared)
    }

    /// The flow of a remote, if something is under way with it.
    ///
    /// # Errors
    /// [`PostError::Unknown`] if not.
    pub(crate) fn known_flow(&mut self, index: u32) -> Result<(&mut Flow, &mut Shared), PostError> {
        let slot = self.remotes.get_mut(index).ok_or(PostError::Unknown)?;
        let flow = slot.flow.as_deref_mut().ok_or(PostError::Unknown)?;
        Ok((flow, &mut self.shared))
    }

    /// After a change: arms the flow's timer, and gives it a turn if it may have something to send.
    pub(crate) fn settle(&mut self, index: u32, now_ns: Instant, turn: bool) {
        let slot = &mut self.remotes[index];
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
        if self.deadlines.len() > 64 + 4 * self.remotes.count() {
            let remotes = &self.remotes;
            self.deadlines
                .retain(|at_ns, index| remotes[index].armed_ns == at_ns);
        }
    }

    /// A message of this remote was accepted: it waits for credit, if it wants any.
    pub(crate) fn want_grant(&mut self, index: u32) {
        let Some(flow) = &mut self.remotes[index].flow else {
            return;
        };
        let receiver = &mut flow.receiver;
        if receiver.account.wants() && !receiver.awaits_grant {
            receiver.awaits_grant = true;
            self.grants.push_back(index);
        }
    }

    /// Gives credit to accepted messages in turn (srd-protocol 11.1).
    #[inline]
    pub(crate) fn grant(&mut self, now_ns: Instant) {
        if !self.grants.is_empty() {
            self.grant_in_turn(now_ns);
        }
    }

    fn grant_in_turn(&mut self, now_ns: Instant) {
        while self.shared.pool.has_room() {
            let Some(index) = self.grants.pop_front() else {
                return;
            };
            let Some(flow) = self.remotes[index].flow.as_mut() else {
                continue;
            };
            if !flow.receiver.account.wants() {
                flow.receiver.awaits_grant = false;
                continue;
            }
            flow.receiver.grant(&mut self.shared.pool, now_ns);
            self.grants.push_back(index);
            self.settle(index, now_ns, true);
        }
    }

    /// Writes the next packet of the flow whose turn it is to a place; answers whether there is
    /// one. Fast path.
    pub(crate) fn poll_transmit(&mut self, now_ns: Instant, place: &mut Transmit) -> bool {
        while let Some(index) = self.turns.front().copied() {
            let slot = &mut self.remotes[index];
            if let Some(flow) = &mut slot.flow {
                let mut turn = Turn {
                    flow,
                    shared: &mut self.shared,
                    now_ns,
                    place,
                };
                if turn.poll() {
                    // Remotes take turns by batch: whoever has begun one ends it.
                    if self.turns.len() > 1 && !flow.sender.batch.is_open() {
                        self.turns.rotate_left(1);
                    }
                    self.settle(index, now_ns, false);
                    return true;
                }
            }
            slot.in_turn = false;
            self.turns.pop_front();
            self.settle(index, now_ns, false);
        }
        false
    }

    /// Whether [`Self::poll_transmit`] would surely find nothing; says no where several remotes may
    /// have something to send. Fast path.
    #[inline]
    pub(crate) fn is_at_rest(&self, now_ns: Instant) -> bool {
        let flow = match (self.turns.len(), self.turns.front()) {
            (0, _) => return true,
            (1, Some(index)) => &self.remotes[*index].flow,
            _ => return false,
        };
        let rests = |flow: &Flow| flow.is_at_rest(&self.shared, now_ns);
        flow.as_deref().is_none_or(rests)
    }

    /// Does what is due by now.
    pub(crate) fn handle_timeout(&mut self, now_ns: Instant) {
        while let Some((at_ns, index)) = self.deadlines.first() {
            if at_ns > now_ns {
                break;
            }
            self.fire(at_ns, index, now_ns);
        }
        self.grant(now_ns);
    }

    /// Does what is due by now up to the first deadline at which something is judged; answers
    /// whether there is one.
    pub(crate) fn handle_moved_timeouts(&mut self, now_ns: Instant) -> bool {
        while let Some((at_ns, index)) = self.deadlines.first() {
            if at_ns > now_ns {
                break;
            }
            let slot = &self.remotes[index];
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

    /// The first deadline.
    pub(crate) fn deadline_ns(&self) -> Option<Instant> {
        self.deadlines.first().map(|entry| entry.0)
    }

    /// The first deadline has come.
    fn fire(&mut self, at_ns: Instant, index: u32, now_ns: Instant) {
        self.deadlines.pop();
        let slot = &mut self.remotes[index];
        if slot.armed_ns != at_ns {
            return;
        }
        slot.armed_ns = Instant::NEVER;
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

    /// The remote is another process now (srd-protocol 6.4); the one before was `gone`.
    pub(crate) fn restart(&mut self, index: u32, gone: u64) {
        let slot = &mut self.remotes[index];
        slot.former = [gone, slot.former[0]];
        slot.rest = Rest::new(slot.rest.identity.anew(&self.shared.config));
        if let Some(mut flow) = slot.flow.take() {
            flow.fail(&mut self.shared, Failure::Restarted);
        }
    }

    /// Ends a flow for good (srd-protocol 13.1).
    pub(crate) fn end(&mut self, index: u32, why: Failure) {
        let slot = &mut self.remotes[index];
        slot.ended = Some(why);
        if let Some(mut flow) = slot.flow.take() {
            flow.fail(&mut self.shared, why);
            let before = &flow.identity;
            slot.rest = Rest::new(before.anew(&self.shared.config));
            slot.rest.identity.incarnation = before.incarnation;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lanes of our region by their slots: which are in use, which are polled, and whose slots are
//! kept from others.

use std::collections::BTreeSet;

use weft_os::crash_point;
use weft_ring::Consumer;
use weft_ring::layout::SLOT_COUNT;

use crate::contact::lane::{Inbound, Polling};
use crate::contact::own::Own;

/// Lanes that are polled however silent they are. Chosen: polling them costs less than ringing for
/// them.
const ALWAYS_POLLED: usize = 4;

/// All lanes.
#[derive(Debug)]
pub(crate) struct Lanes {
    inbound: Vec<Option<Inbound>>,
    /// Slots whose lanes are polled.
    polled: Vec<usize>,
    /// Slots of remotes that were cut off, until these are dead.
    shut: BTreeSet<usize>,
    /// Messages and bytes received up to the last tick.
    received: [u64; 2],
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self {
            inbound: (0..SLOT_COUNT).map(|_| None).collect(),
            polled: Vec::new(),
            shut: BTreeSet::new(),
            received: [0; 2],
        }
    }

    /// The lane of a slot, if it is in use.
    #[inline(always)]
    pub(crate) fn get(&self, slot: usize) -> Option<&Inbound> {
        self.inbound[slot].as_ref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Inbound> {
        self.inbound[slot].as_mut()
    }

    /// All that are in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Inbound> {
        self.inbound.iter().flatten()
    }

    /// One of the slots that are polled, in their order.
    #[inline(always)]
    pub(crate) fn polled(&self, index: usize) -> Option<usize> {
        self.polled.get(index).copied()
    }

    /// Whether a message lies in a lane that is polled. Fast path.
    #[inline(always)]
    pub(crate) fn have_message(&self) -> bool {
        for &slot in &self.polled {
            if let Some(lane) = &self.inbound[slot]
                && lane.has_message()
            {
                return true;
            }
        }
        false
    }

    /// Messages and bytes received up to the last tick.
    pub(crate) fn received(&self) -> [u64; 2] {
        self.received
    }

    /// Whether somebody who rings for this slot is still to be met.
    pub(crate) fn is_new(&self, slot: usize) -> bool {
        self.inbound.get(slot).is_some_and(Option::is_none) && !self.shut.contains(&slot)
    }

    /// Takes a lane into use.
    pub(crate) fn adopt(&mut self, slot: usize, lane: Inbound) {
        self.inbound[slot] = Some(lane);
    }

    /// Polls the lane of a slot from now on; false if it is not in use.
    pub(crate) fn start_polling(&mut self, slot: usize) -> bool {
        let Some(lane) = self.inbound.get_mut(slot).and_then(Option::as_mut) else {
            return false;
        };
        lane.start_polling();
        if !self.polled.contains(&slot) {
            self.polled.push(slot);
        }
        true
    }

    /// Has the senders of all lanes that are polled ring, or not.
    pub(crate) fn set_polled(&mut self, is_polled: bool) {
        for slot in &self.polled {
            if let Some(lane) = self.inbound[*slot].as_mut() {
                lane.set_polled(is_polled);
            }
        }
    }

    /// A tick has passed: publishes what came, and ceases to poll lanes that have been silent.
    pub(crate) fn tick(&mut self, own: &Own) {
        let mut index = 0;
        while index < self.polled.len() {
            let many = self.polled.len() > ALWAYS_POLLED;
            let slot = self.polled[index];
            let Some(lane) = self.inbound[slot].as_mut() else {
                self.polled.swap_remove(index);
                continue;
            };
            let (inflow, polling) = lane.tick(many);
            if let Some(inflow) = inflow {
                let [messages, bytes] = inflow.all;
                self.received[0] += inflow.new[0];
                self.received[1] += inflow.new[1];
                own.slots().publish_inflow(slot, messages, bytes);
            }
            match polling {
                Polling::Polled => {}
                Polling::Marked => {
                    crash_point!(
                        39,
                        "rest: a silent lane is to be rung for, and still polled"
                    );
                }
                Polling::Over => {
                    self.polled.swap_remove(index);
                    continue;
                }
            }
            index += 1;
        }
    }

    /// Gives the lane of one that is gone to whoever claims its slot next.
    pub(crate) fn free(&mut self, slot: usize, own: &Own) {
        if let Some(mut lane) = self.drop_lane(slot) {
            crash_point!(45, "loss: noticed, the lane not reset");
            lane.reset();
            crash_point!(46, "loss: the lane is reset, its slot not free");
            own.slots().free(slot);
        }
    }

    /// Cuts off a sender that lives, and may go on writing there: nobody else gets the slot before
    /// it is dead (shm-layout, clause 3).
    pub(crate) fn shut(&mut self, slot: usize) {
        self.drop_lane(slot);
        self.shut.insert(slot);
    }

    /// Takes nothing more from a sender that cannot be answered; it finds that out, and takes back
    /// what was not taken.
    pub(crate) fn refuse(&mut self, slot: usize, own: &Own) {
        let Some(mut lane) = self.drop_lane(slot) else {
            return;
        };
        lane.settle();
        own.slots().refuse(slot);
        // It may sleep.
        own.ring(lane.claimant().incarnation);
    }

    fn drop_lane(&mut self, slot: usize) -> Option<Inbound> {
        self.polled.retain(|&other| other != slot);
        self.inbound[slot].take()
    }

    /// Frees slots whose claimants died before they rang for the first time: nobody adopted them;
    /// and those of the dead that were cut off while they lived.
    pub(crate) fn free_abandoned(&mut self, own: &Own) {
        for slot in 0..own.slots().claimed_count() {
            if self.inbound[slot].is_some() {
                continue;
            }
            let Some(incarnation) = own.slots().holder(slot) else {
                continue;
            };
            // The order matters: who is dead now and has rung before is heard in the next round.
            let is_dead = match own.slots().claimant(slot) {
                Some(claimant) => own.is_gone(&claimant),
                // It died before it could write more than its incarnation.
                None => own.has_closed(incarnation),
            };
            if is_dead
                && !own.doorbell().is_rung()
                && let Some(mut lane) = Consumer::attach(own.region().mapping(), slot)
            {
                lane.reset();
                self.shut.remove(&slot);
                own.slots().free(slot);
            }
        }
    }
}

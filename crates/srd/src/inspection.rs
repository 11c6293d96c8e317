// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a machine shows of itself: to people (`weft top`), and to tests and the simulator. Changes nothing.

use crate::events::{Condition, Remote};
use crate::machine::{Machine, Slot};

impl Machine {
    /// How things stand with a remote; `None` when nothing has been under way with it lately. Slow path.
    pub fn condition(&self, remote: Remote) -> Option<Condition> {
        let flow = self.slots.get(remote.0 as usize)?.flow.as_ref()?;
        Some(Condition {
            srtt_ns: flow.sender.round_trip.srtt_ns(),
            window_bytes: flow.sender.window.bytes(),
            in_flight_bytes: flow.sender.in_flight_bytes,
            good_path_count: flow.sender.paths.good_count(),
            path_count: flow.sender.paths.open_count(),
            heard_ns: flow.silence.heard_ns,
            sent_bytes: flow.sender.sent_bytes,
            retransmitted_count: flow.sender.again_count,
            datagram_bytes: flow.identity.datagram_bytes,
        })
    }

    /// Memory behind one remote in bytes, payloads not counted; 0 for an unknown one. Slow path.
    pub fn footprint_bytes(&self, remote: Remote) -> usize {
        let Some(slot) = self.slots.get(remote.0 as usize) else {
            return 0;
        };
        size_of::<Slot>() + slot.flow.as_ref().map_or(0, |flow| flow.footprint_bytes())
    }

    /// Asserts what must hold at all times: for tests and the simulator. Slow path.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn check_invariants(&self) {
        let flows = || self.slots.iter().filter_map(|slot| slot.flow.as_ref());
        let held: u64 = flows().map(|flow| flow.order.held_bytes()).sum();
        assert_eq!(held, self.shared.held_bytes, "held bytes");
        let granted: u64 = flows().map(|flow| flow.account.outstanding_bytes()).sum();
        assert!(self.shared.pool.outstanding_bytes() <= granted, "credit");
        for flow in flows() {
            flow.sender.check();
            assert!(
                flow.footprint_bytes() < 64 << 10,
                "{} bytes of state",
                flow.footprint_bytes()
            );
        }
    }
}

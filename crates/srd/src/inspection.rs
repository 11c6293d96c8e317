// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a machine shows of itself: to its driver, to people (`weft top`), to tests and the
//! simulator. Changes nothing.

use std::net::SocketAddr;
use weft_wire::time::Instant;

use crate::events::{Condition, Failure, Remote, Statistics};
use crate::flow::Flow;
use crate::flows::Flows;
use crate::remotes::Slot;

/// A look at a machine; see [`Machine::inspect`](crate::Machine::inspect).
#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    pub(crate) flows: &'a Flows,
}

impl Inspection<'_> {
    fn slot(&self, remote: Remote) -> Option<&Slot> {
        self.flows.remotes.get(remote.0)
    }

    /// Counts since the machine began.
    pub fn statistics(&self) -> Statistics {
        self.flows.shared.statistics
    }

    /// Our incarnation.
    pub fn incarnation(&self) -> u64 {
        self.flows.shared.incarnation
    }

    /// Whether the datagram that was given out last is the last of its batch. The next one that
    /// [`poll_transmit`](crate::Machine::poll_transmit) gives out takes another path. So send what
    /// you have before you ask for it, because a datagram's travel time counts from when it was
    /// given out.
    #[inline]
    pub fn batch_has_ended(&self) -> bool {
        self.flows.shared.batch_has_ended
    }

    /// Payload bytes of messages that wait for earlier messages or for their other segments.
    pub fn held_bytes(&self) -> u64 {
        self.flows.shared.held_bytes
    }

    /// Whether anything is under way with anybody.
    pub fn is_busy(&self) -> bool {
        self.flows.remotes.flows().any(|flow| flow.is_busy())
    }

    /// Whether nothing is on its way to a remote, and nothing waits to be sent to it. Fast path.
    #[inline]
    pub fn is_quiet(&self, remote: Remote) -> bool {
        let flow = self.slot(remote).and_then(|slot| slot.flow.as_ref());
        flow.is_none_or(|flow| flow.sender.in_flight_bytes == 0 && !flow.queue.has_unsent())
    }

    /// Whether a message of this many bytes can be expected to leave now and to arrive without
    /// further calls: nothing waits before it, with it at most `most_bytes` are on their way, and
    /// nothing was lost lately. Fast path.
    #[inline]
    pub fn carries_alone(&self, remote: Remote, length_bytes: u64, most_bytes: u64) -> bool {
        let flow = self.slot(remote).and_then(|slot| slot.flow.as_ref());
        flow.is_some_and(|flow| {
            let sender = &flow.sender;
            flow.identity.knows_us
                && !flow.queue.has_unsent()
                && sender.in_flight_bytes + length_bytes <= most_bytes
                && sender.ring.recent_losses.are_none()
        })
    }

    /// Whether what is sent to a remote can be expected to arrive: the remote has named us, and
    /// nothing was lost lately.
    pub fn is_well(&self, remote: Remote) -> bool {
        let flow = self.slot(remote).and_then(|slot| slot.flow.as_ref());
        flow.is_some_and(|flow| flow.identity.knows_us && flow.sender.ring.recent_losses.are_none())
    }

    /// Whether messages to a remote have bytes that have not left.
    pub fn has_unsent(&self, remote: Remote) -> bool {
        let flow = self.slot(remote).and_then(|slot| slot.flow.as_ref());
        flow.is_some_and(|flow| flow.queue.has_unsent())
    }

    /// Whether remotes still lack messages or answers of ours that we send without being asked.
    /// Slow path.
    pub fn owes(&self) -> bool {
        self.flows.remotes.flows().any(owes)
    }

    /// The addresses of those remotes. Slow path.
    pub fn owed(&self) -> impl Iterator<Item = SocketAddr> {
        let owed = self.flows.remotes.flows().filter(|flow| owes(flow));
        owed.map(|flow| flow.identity.address)
    }

    /// How many remotes there are; they are numbered from 0.
    pub fn remote_count(&self) -> usize {
        self.flows.remotes.count()
    }

    /// The address of a remote; `None` if this machine has no such remote.
    pub fn address(&self, remote: Remote) -> Option<SocketAddr> {
        Some(self.slot(remote)?.rest.identity.address)
    }

    /// Why a remote has ended; `None` if it has not ended, or has come back as another incarnation.
    pub fn ended(&self, remote: Remote) -> Option<Failure> {
        self.slot(remote)?.ended
    }

    /// The remote that has named this port to us, or whose address has it. Slow path: a scan of all
    /// remotes.
    pub fn remote_with_port(&self, at: SocketAddr) -> Option<Remote> {
        let has = |slot: &Slot| slot.identity().answers_at(at);
        let index = self.flows.remotes.iter().position(has)?;
        Some(Remote(index as u32))
    }

    /// Remotes from which nothing was heard for half of `dead_after` although an answer is
    /// expected, with their addresses. A driver that is able to asks their hosts (srd-protocol
    /// 13.5). Slow path.
    pub fn silent(&self, now_ns: Instant) -> Vec<(Remote, SocketAddr)> {
        let patience_ns = self.flows.shared.config.timing.dead_after_ns / 2;
        let silent = |slot: &Slot| {
            let flow = slot.flow.as_ref()?;
            let waits = flow.silence.unanswered_ns.saturating_add(patience_ns) <= now_ns;
            waits.then(|| flow.identity.target(flow.receiver.received.ack_only_path()))
        };
        let slots = self.flows.remotes.iter().enumerate();
        slots
            .filter_map(|(index, slot)| Some((Remote(index as u32), silent(slot)?)))
            .collect()
    }

    /// The state of a remote; `None` if nothing has been under way with it lately. Slow path.
    pub fn condition(&self, remote: Remote) -> Option<Condition> {
        let flow = self.slot(remote)?.flow.as_ref()?;
        Some(Condition {
            srtt_ns: flow.sender.round_trip.srtt_ns(),
            cwnd_bytes: flow.sender.window.cwnd_bytes(),
            in_flight_bytes: flow.sender.in_flight_bytes,
            good_path_count: flow.sender.paths.good_count(),
            path_count: flow.sender.paths.open_count(),
            heard_ns: flow.silence.heard_ns,
            sent_bytes: flow.sender.sent_bytes,
            retransmitted_count: flow.sender.again_count,
            datagram_bytes: flow.identity.size.in_use_bytes(),
        })
    }

    /// Memory behind one remote in bytes, payloads not counted; 0 for an unknown one. Slow path.
    pub fn footprint_bytes(&self, remote: Remote) -> usize {
        let Some(slot) = self.slot(remote) else {
            return 0;
        };
        size_of::<Slot>() + slot.flow.as_ref().map_or(0, |flow| flow.footprint_bytes())
    }

    /// Asserts what must hold at all times: for tests and the simulator. Slow path.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn check_invariants(&self) {
        let (flows, shared) = (|| self.flows.remotes.flows(), &self.flows.shared);
        let held: u64 = flows().map(|flow| flow.receiver.order.held_bytes()).sum();
        assert_eq!(held, shared.held_bytes, "held bytes");
        let granted = flows().map(|flow| flow.receiver.account.outstanding_bytes());
        let granted: u64 = granted.sum();
        assert!(shared.pool.outstanding_bytes() <= granted, "credit");
        for flow in flows() {
            flow.sender.check();
            let bytes = flow.footprint_bytes();
            assert!(bytes < 64 << 10, "{bytes} bytes of state");
        }
    }
}

/// Whether the remote still lacks messages or answers of ours that we send without being asked.
fn owes(flow: &Flow) -> bool {
    !flow.sender.ring.is_empty() || flow.queue.owes()
}

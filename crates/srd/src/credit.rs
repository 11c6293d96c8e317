// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may send how much to us: credits for accepted messages, limits for unmatched ones
//! (srd-protocol 11).
//!
//! Called by receiver (arrivals), flow (write-offs) and flows (grants in turn). Source: EQDS, Homa.

use crate::config::{BATCH_BYTES, FIRST_CONTACT_BYTES};
use weft_wire::time::{Instant, Nanos};

/// The least time after which a flow that sends nothing is left out of the pool (srd-protocol
/// 11.2).
const STALL_LEAST_NS: Nanos = Nanos(1_000_000);

/// Granted and not arrived bytes of all flows of a receiver (srd-protocol 11.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    limit_bytes: u64,
    outstanding_bytes: u64,
}

impl Pool {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            outstanding_bytes: 0,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.outstanding_bytes < self.limit_bytes
    }

    /// Granted and not arrived, without what was written off.
    pub(crate) fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }
}

/// The credit of one flow, as the receiver keeps it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    granted_bytes: u64,
    arrived_bytes: u64,
    wanted_bytes: u64,
    arrival_ns: Instant,
    /// The flow is stalled: its credit does not count against the pool (srd-protocol 11.2).
    written_off: bool,
}

impl Account {
    /// Goes on from what an idle flow was granted, all of which has arrived.
    pub(crate) fn new(granted_bytes: u64) -> Self {
        Self {
            granted_bytes,
            arrived_bytes: granted_bytes,
            ..Self::default()
        }
    }

    /// `Acknowledgement::credit_limit`.
    pub(crate) fn limit(&self) -> u64 {
        self.granted_bytes
    }

    /// Granted, and not arrived.
    pub(crate) fn outstanding_bytes(&self) -> u64 {
        self.granted_bytes - self.arrived_bytes
    }

    /// Whether it waits for grants.
    pub(crate) fn wants(&self) -> bool {
        self.wanted_bytes > 0
    }

    /// A message was accepted.
    pub(crate) fn want(&mut self, bytes: u64) {
        self.wanted_bytes += bytes;
    }

    /// Grants a batch.
    pub(crate) fn grant(&mut self, pool: &mut Pool, now_ns: Instant) {
        let bytes = self.wanted_bytes.min(u64::from(BATCH_BYTES));
        if self.outstanding_bytes() == 0 {
            self.arrival_ns = now_ns;
        }
        self.wanted_bytes -= bytes;
        self.granted_bytes += bytes;
        if !self.written_off {
            pool.outstanding_bytes += bytes;
        }
    }

    /// Whether the sender was granted that much.
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        self.arrived_bytes + bytes <= self.granted_bytes
    }

    /// Payload of data arrived.
    pub(crate) fn on_arrived(&mut self, bytes: u64, pool: &mut Pool, now_ns: Instant) {
        if self.written_off {
            self.written_off = false;
            pool.outstanding_bytes += self.outstanding_bytes();
        }
        self.arrival_ns = now_ns;
        self.arrived_bytes += bytes;
        pool.outstanding_bytes -= bytes;
    }

    /// When to stop counting it, if nothing arrives until then (srd-protocol 11.2).
    #[inline]
    pub(crate) fn stalled_ns(&self, srtt_ns: Nanos) -> Instant {
        if self.outstanding_bytes() == 0 || self.written_off {
            return Instant::NEVER;
        }
        self.arrival_ns + (8 * srtt_ns).max(STALL_LEAST_NS)
    }

    /// srd-protocol 11.2.
    pub(crate) fn write_off(&mut self, pool: &mut Pool) {
        self.written_off = true;
        pool.outstanding_bytes -= self.outstanding_bytes();
    }

    /// The flow ends.
    pub(crate) fn close(&mut self, pool: &mut Pool) {
        if !self.written_off {
            pool.outstanding_bytes -= self.outstanding_bytes();
        }
        *self = Self::default();
    }
}

/// How much of unmatched messages a remote may send to us (srd-protocol 11.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inbox {
    /// Cost of messages of which something arrived.
    arrived: u64,
    /// Cost of messages handed to the owner.
    handed: u64,
    limit: u64,
    told: u64,
    /// Bytes that the owner keeps unread.
    unread: u64,
}

impl Inbox {
    /// Goes on from what has been handed out; 0 for a new flow.
    pub(crate) fn new(handed: u64, limit: u64) -> Self {
        let limit = limit.max(handed + FIRST_CONTACT_BYTES);
        Self {
            arrived: handed,
            handed,
            limit,
            told: limit,
            unread: 0,
        }
    }

    pub(crate) fn handed(&self) -> u64 {
        self.handed
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The limit, to be told to the remote now.
    pub(crate) fn tell(&mut self) -> u64 {
        self.told = self.limit;
        self.limit
    }

    pub(crate) fn covers(&self, cost: u64) -> bool {
        self.arrived + cost <= self.limit
    }

    pub(crate) fn on_arrived(&mut self, cost: u64) {
        self.arrived += cost;
    }

    /// A message was handed to the owner. Answers whether the remote should hear of the new limit
    /// soon.
    pub(crate) fn on_handed(&mut self, cost: u64, window: u64) -> bool {
        self.handed += cost;
        self.raise(window)
    }

    pub(crate) fn set_unread(&mut self, bytes: u64, window: u64) -> bool {
        self.unread = bytes;
        self.raise(window)
    }

    fn raise(&mut self, window: u64) -> bool {
        let limit = self.handed + window.saturating_sub(self.unread);
        self.limit = self.limit.max(limit);
        self.limit - self.told >= window / 2
    }
}

/// The same two limits, as the sender keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allowance {
    pub(crate) receive_limit: u64,
    pub(crate) receive_used: u64,
    pub(crate) credit_limit: u64,
    pub(crate) credit_used: u64,
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self {
            receive_limit: FIRST_CONTACT_BYTES,
            receive_used: 0,
            credit_limit: 0,
            credit_used: 0,
        }
    }

    /// Limits never fall.
    pub(crate) fn learn(&mut self, receive_limit: u64, credit_limit: u64) {
        self.receive_limit = self.receive_limit.max(receive_limit);
        self.credit_limit = self.credit_limit.max(credit_limit);
    }

    pub(crate) fn credit_left(&self) -> u64 {
        self.credit_limit.saturating_sub(self.credit_used)
    }

    pub(crate) fn receive_left(&self) -> u64 {
        self.receive_limit.saturating_sub(self.receive_used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_arrive_and_leave_the_pool_and_stalled_ones_do_not_count() {
        let mut pool = Pool::new(40_000);
        let (mut busy, mut stalled) = (Account::default(), Account::default());
        busy.want(100_000);
        stalled.want(20_000);
        stalled.grant(&mut pool, Instant::START);
        busy.grant(&mut pool, Instant::START);
        assert!(pool.has_room());
        busy.grant(&mut pool, Instant::START);
        assert!(!pool.has_room());
        assert_eq!(stalled.stalled_ns(Nanos(1_000)), Instant(1_000_000));
        assert_eq!(stalled.stalled_ns(Nanos(200_000)), Instant(1_600_000));
        stalled.write_off(&mut pool);
        assert!(pool.has_room());
        assert_eq!(stalled.stalled_ns(Nanos(1_000)), Instant::NEVER);
        assert!(stalled.covers(16_384));
        stalled.on_arrived(16_384, &mut pool, Instant(5));
        busy.on_arrived(32_768, &mut pool, Instant(5));
        assert_eq!(pool.outstanding_bytes(), 0);
        assert!(!busy.covers(1));
    }

    #[test]
    fn a_limit_never_falls_however_much_is_unread() {
        let mut inbox = Inbox::new(0, 0);
        assert_eq!(inbox.limit(), FIRST_CONTACT_BYTES);
        inbox.on_arrived(1000);
        assert!(inbox.on_handed(1000, 256 << 10));
        let limit = inbox.tell();
        assert_eq!(limit, 1000 + (256 << 10));
        assert!(!inbox.set_unread(1 << 30, 256 << 10));
        assert_eq!(inbox.limit(), limit);
        assert!(!inbox.covers(256 << 10 | 1));
    }
}

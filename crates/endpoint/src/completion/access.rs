// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How one-sided operations end, for the user: at the initiator, and at the target where it is to hear of them.
//!
//! Called by one_sided. fi_cq(3), fi_cntr(3), fi_endpoint(3) for which counter counts what.

use super::{Reporter, Sinks, bare};
use crate::completion_queue::{Completion, ErrorCompletion};
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, FiAddr};
use crate::one_sided::AccessKind;

fn kind_flags(kind: AccessKind) -> u64 {
    match kind {
        AccessKind::Read => flags::RMA | flags::READ,
        AccessKind::Write => flags::RMA | flags::WRITE,
        AccessKind::AtomicFetch => flags::ATOMIC | flags::READ,
        AccessKind::AtomicWrite => flags::ATOMIC | flags::WRITE,
    }
}

impl Reporter {
    /// Whether the user counts what remotes do to registered memory, so that nothing must be done without our knowing.
    pub(crate) fn hears_accesses(&self) -> bool {
        self.counters.remote_read().is_some() || self.counters.remote_write().is_some()
    }

    fn access_counter(&self, kind: AccessKind) -> Option<CounterId> {
        match kind {
            AccessKind::Read | AccessKind::AtomicFetch => self.counters.read(),
            AccessKind::Write | AccessKind::AtomicWrite => self.counters.write(),
        }
    }

    /// An operation of ours succeeded. Fast path.
    #[inline]
    pub(crate) fn accessed(
        &mut self,
        sinks: &mut Sinks,
        kind: AccessKind,
        context: usize,
        flags: u64,
    ) {
        if self.transmit.wants_entry(flags) {
            sinks.push(self.transmit.queue, bare(context, kind_flags(kind)));
        }
        self.accessed_silently(sinks, kind);
    }

    /// An operation of ours succeeded that gets no entry. Fast path.
    #[inline]
    pub(crate) fn accessed_silently(&mut self, sinks: &mut Sinks, kind: AccessKind) {
        sinks.count(self.access_counter(kind));
    }

    /// An operation of ours failed.
    #[cold]
    pub(crate) fn access_failed(
        &mut self,
        sinks: &mut Sinks,
        kind: AccessKind,
        context: usize,
        error: Error,
    ) {
        self.counts.error_count += 1;
        sinks.push_error(
            self.transmit.queue,
            ErrorCompletion {
                completion: bare(context, kind_flags(kind)),
                overflow_bytes: 0,
                error,
            },
        );
        sinks.count_error(self.access_counter(kind));
    }

    /// A remote's operation was carried out on our memory. Fast path.
    #[inline]
    pub(crate) fn touched(&mut self, sinks: &mut Sinks, kind: AccessKind) {
        sinks.count(match kind {
            AccessKind::Read | AccessKind::AtomicFetch => self.counters.remote_read(),
            AccessKind::Write | AccessKind::AtomicWrite => self.counters.remote_write(),
        });
    }

    /// A remote wrote to our memory and gave data for an entry; there always is one.
    pub(crate) fn written_with_data(
        &mut self,
        sinks: &mut Sinks,
        source: FiAddr,
        length_bytes: usize,
        cq_data: u64,
    ) {
        let entry = bare(0, flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA);
        sinks.push(
            self.receive.queue,
            Completion {
                length_bytes,
                cq_data,
                source: if self.source { source } else { FiAddr::UNSPEC },
                ..entry
            },
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ends of one-sided operations: answers of their targets, results that land, payload that is sent, remotes that are
//! lost. Called by target.rs, parcel.rs and progress.rs; tells the user through completion/access.rs.

use weft_contract::{RemoteId, TransferError};
use weft_memory::UserBuffer;

use super::{AccessKind, Ending, OneSided, Operation};
use crate::completion::{Reporter, Sinks};
use crate::error::Error;

/// The name of an operation that wants no answer. Specified: docs/one-sided.md, clause 2.
pub(super) const NOBODY: u32 = u32::MAX;

/// Tells the user of a success.
#[inline]
pub(super) fn tell(
    report: &mut Reporter,
    sinks: &mut Sinks,
    kind: AccessKind,
    context: usize,
    ending: Ending,
) {
    match ending {
        Ending::Entry(flags) => report.accessed(sinks, kind, context, flags),
        Ending::Silent => report.accessed_silently(sinks, kind),
        Ending::Told => {}
    }
}

impl OneSided {
    /// The operation that `remote` answers, if it is one that waits for it.
    fn asked_of(&mut self, remote: RemoteId, id: u32) -> Option<&mut Operation> {
        self.operations
            .get_mut(id)
            .filter(|operation| operation.remote == remote && operation.awaits_answer)
    }

    /// An answer without a result.
    #[inline]
    pub(super) fn answered(
        &mut self,
        remote: RemoteId,
        id: u32,
        outcome: Result<(), Error>,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) {
        if id == NOBODY {
            // A refusal of what was told to have ended: a second word is all that is left.
            if let Err(error) = outcome {
                report.access_failed(sinks, AccessKind::Write, 0, error);
            }
            return;
        }
        let Some(operation) = self.asked_of(remote, id) else {
            return;
        };
        operation.awaits_answer = false;
        operation.failed = operation.failed.or(outcome.err());
        self.conclude(id, report, sinks);
    }

    /// Where the result of an operation goes, if `length_bytes` is as long as it must be. `by_parts` says that it
    /// comes later, and [`Self::landed`] after it.
    pub(super) fn place_of_result(
        &mut self,
        remote: RemoteId,
        id: u32,
        length_bytes: u64,
        by_parts: bool,
    ) -> Option<UserBuffer> {
        let operation = self.asked_of(remote, id)?;
        let is_result =
            operation.kind == AccessKind::Read || operation.kind == AccessKind::AtomicFetch;
        if !is_result || operation.buffer.length_bytes() as u64 != length_bytes {
            return None;
        }
        if by_parts {
            operation.awaits_answer = false;
            operation.lands = true;
        }
        Some(operation.buffer.clone())
    }

    /// A result is in its place, or is not.
    pub(super) fn landed(
        &mut self,
        id: u32,
        outcome: Result<(), TransferError>,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) {
        if let Some(operation) = self.operations.get_mut(id) {
            operation.lands = false;
            operation.failed = operation.failed.or(outcome.err().map(Error::Transfer));
            self.conclude(id, report, sinks);
        }
    }

    /// The payload of a long write is sent, or is not.
    pub(crate) fn payload_sent(
        &mut self,
        id: u32,
        outcome: Result<(), Error>,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) {
        if let Some(operation) = self.operations.get_mut(id) {
            operation.awaits_sent = false;
            if let Err(error) = outcome {
                operation.awaits_answer = false;
                operation.failed = operation.failed.or(Some(error));
            }
            self.conclude(id, report, sinks);
        }
    }

    /// A remote is gone: whatever waits for it ends, but for what its route still uses, which ends when that does.
    pub(crate) fn lost(
        &mut self,
        remote: RemoteId,
        why: TransferError,
        report: &mut Reporter,
        sinks: &mut Sinks,
    ) {
        self.drop_parcels(remote, Error::Transfer(why), report, sinks);
        for id in self
            .operations
            .numbers_where(|operation| operation.remote == remote)
        {
            if let Some(operation) = self.operations.get_mut(id) {
                operation.awaits_answer = false;
                operation.failed = operation.failed.or(Some(Error::Transfer(why)));
            }
            self.conclude(id, report, sinks);
        }
        self.forget_incoming(remote);
    }

    /// Ends an operation that waits for nothing any more.
    #[inline]
    fn conclude(&mut self, id: u32, report: &mut Reporter, sinks: &mut Sinks) {
        let waits = |operation: &mut Operation| {
            operation.awaits_answer || operation.awaits_sent || operation.lands
        };
        if self.operations.get_mut(id).is_none_or(waits) {
            return;
        }
        let Some(operation) = self.operations.remove(id) else {
            return;
        };
        self.count_outstanding(operation.remote, -1);
        self.confirm(operation.remote, operation.serial);
        let Operation {
            kind,
            context,
            ending,
            ..
        } = operation;
        match operation.failed {
            None => tell(report, sinks, kind, context, ending),
            Some(error) => report.access_failed(sinks, kind, context, error),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of an initiator that wait: for answers, for results that land, for payload that
//! is sent.
//!
//! Filled by initiator.rs; ended by service.rs and state.rs. Tells the user of each end.

use slab::Slab;
use weft_contract::{Peer, PostError, Posted, RemoteId, TransferError};
use weft_memory::{Scratch, UserBuffer};

use super::request::{Kind, Tag};
use super::send_queues::service;
use super::token;
use crate::completion::completions::{AccessKind, Completions};
use crate::completion::transmit::{Ending, TransmitReports};
use crate::error::Error;

/// The name of an operation that wants no answer. Specified: docs/one-sided.md, clause 2.
pub(super) const NOBODY: u32 = u32::MAX;

/// An operation of ours that waits for its target.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) remote: RemoteId,
    /// When it was posted, as a number that only grows.
    serial: u64,
    pub(super) kind: AccessKind,
    pub(super) context: usize,
    pub(super) ending: Ending,
    /// The payload of a long write, the place for the result of the others.
    pub(super) buffer: UserBuffer,
    /// What `buffer` is part of, if the payload had to be copied.
    pub(super) copy: Option<Scratch>,
    awaits_answer: bool,
    /// The payload of a long write is not sent yet.
    pub(super) awaits_sent: bool,
    /// The result is on its way into `buffer`.
    lands: bool,
    failed: Option<Error>,
}

impl Operation {
    /// One whose request was just sent.
    pub(super) fn new(
        remote: RemoteId,
        kind: AccessKind,
        context: usize,
        ending: Ending,
        buffer: UserBuffer,
    ) -> Self {
        Self {
            remote,
            serial: 0,
            kind,
            context,
            ending,
            buffer,
            copy: None,
            awaits_answer: true,
            awaits_sent: false,
            lands: false,
            failed: None,
        }
    }

    fn fail(&mut self, error: Option<Error>) {
        self.failed = self.failed.or(error);
    }
}

/// What an endpoint knows of the operations that it has posted to one remote.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Those that wait for an answer.
    outstanding: u32,
    /// Serial of the last request without an answer that may not be carried out yet; 0 if there is
    /// none.
    unconfirmed: u64,
}

/// The operations of one endpoint.
#[derive(Default)]
pub(super) struct Operations {
    /// By the name that their targets know them by.
    waiting: Slab<Operation>,
    accounts: Vec<Account>,
    last_serial: u64,
}

impl Operations {
    fn account(&mut self, remote: RemoteId) -> &mut Account {
        if self.accounts.len() <= remote.index() {
            self.accounts.resize(remote.index() + 1, Account::default());
        }
        &mut self.accounts[remote.index()]
    }

    fn known(&self, remote: RemoteId) -> Account {
        let known = self.accounts.get(remote.index());
        known.copied().unwrap_or_default()
    }

    /// Operations that wait for an answer of `remote`.
    pub(super) fn outstanding(&self, remote: RemoteId) -> u32 {
        self.known(remote).outstanding
    }

    /// Whether requests without an answer may not have been carried out yet.
    pub(super) fn is_unconfirmed(&self, remote: RemoteId) -> bool {
        self.known(remote).unconfirmed > 0
    }

    /// The name of the next operation.
    pub(super) fn next_id(&self) -> u32 {
        self.waiting.vacant_key() as u32
    }

    /// Notes an operation that waits for its answer; answers its name.
    #[inline]
    pub(super) fn insert(&mut self, mut operation: Operation) -> u32 {
        self.last_serial += 1;
        operation.serial = self.last_serial;
        self.account(operation.remote).outstanding += 1;
        self.waiting.insert(operation) as u32
    }

    /// A request without an answer was sent.
    pub(super) fn note_unconfirmed(&mut self, remote: RemoteId) {
        self.last_serial += 1;
        self.account(remote).unconfirmed = self.last_serial;
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut Operation> {
        self.waiting.get_mut(id as usize)
    }

    /// The operation that `remote` answers, if it is one that waits for it.
    fn asked_of(&mut self, remote: RemoteId, id: u32) -> Option<&mut Operation> {
        self.get_mut(id)
            .filter(|operation| operation.remote == remote && operation.awaits_answer)
    }

    /// An answer without a result.
    #[inline]
    pub(super) fn answered(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        remote: RemoteId,
        id: u32,
        outcome: Result<(), Error>,
    ) {
        if id == NOBODY {
            // A refusal of what was told to have ended: a second word is all that is left.
            if let Err(error) = outcome {
                reports.access_failed(completions, AccessKind::Write, 0, error);
            }
            return;
        }
        let Some(operation) = self.asked_of(remote, id) else {
            return;
        };
        operation.awaits_answer = false;
        operation.fail(outcome.err());
        self.conclude(reports, completions, id);
    }

    /// Where the result of an operation goes, if `length_bytes` is as long as it must be.
    /// `comes_later` says that [`Self::landed`] follows.
    pub(super) fn place_of_result(
        &mut self,
        remote: RemoteId,
        id: u32,
        length_bytes: u64,
        comes_later: bool,
    ) -> Option<UserBuffer> {
        let operation = self.asked_of(remote, id)?;
        let is_result = matches!(operation.kind, AccessKind::Read | AccessKind::AtomicFetch);
        if !is_result || operation.buffer.length_bytes() as u64 != length_bytes {
            return None;
        }
        if comes_later {
            operation.awaits_answer = false;
            operation.lands = true;
        }
        Some(operation.buffer.clone())
    }

    /// A result is in its place, or is not.
    pub(super) fn landed(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        id: u32,
        outcome: Result<(), TransferError>,
    ) {
        if let Some(operation) = self.get_mut(id) {
            operation.lands = false;
            operation.fail(outcome.err().map(Error::Transfer));
            self.conclude(reports, completions, id);
        }
    }

    /// Sends the payload of a long write; true if it is sent wholly.
    pub(super) fn send_payload<P: Peer>(
        &mut self,
        route: &mut P,
        remote: RemoteId,
        id: u32,
    ) -> Result<bool, PostError> {
        let Some(operation) = self.get_mut(id) else {
            return Ok(false);
        };
        let tag = Tag::new(Kind::Payload, id);
        let op = service(remote, tag, token::of_operation(id), false);
        Ok(route.post_send(&op, &operation.buffer)? == Posted::Complete)
    }

    /// The payload of a long write is sent, or is not.
    pub(super) fn payload_sent(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        id: u32,
        outcome: Result<(), Error>,
    ) {
        if let Some(operation) = self.get_mut(id) {
            operation.awaits_sent = false;
            operation.awaits_answer &= outcome.is_ok();
            operation.fail(outcome.err());
            self.conclude(reports, completions, id);
        }
    }

    /// A remote is gone: whatever waits for it ends, but for what its route still uses, which ends
    /// when that does.
    pub(super) fn remote_lost(
        &mut self,
        reports: &mut TransmitReports,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        let mut lost = Vec::new();
        for (id, operation) in &mut self.waiting {
            if operation.remote == remote {
                operation.awaits_answer = false;
                operation.fail(Some(Error::Transfer(why)));
                lost.push(id as u32);
            }
        }
        for id in lost {
            self.conclude(reports, completions, id);
        }
    }

    /// Ends an operation that waits for nothing any more, and with it confirms all requests to that
    /// remote that were sent before it.
    #[inline]
    fn conclude(&mut self, reports: &mut TransmitReports, completions: &mut Completions, id: u32) {
        let waits = |operation: &mut Operation| {
            operation.awaits_answer || operation.awaits_sent || operation.lands
        };
        if self.get_mut(id).is_none_or(waits) {
            return;
        }
        let operation = self.waiting.remove(id as usize);
        let account = self.account(operation.remote);
        account.outstanding = account.outstanding.saturating_sub(1);
        if account.unconfirmed < operation.serial {
            account.unconfirmed = 0;
        }
        let (kind, context) = (operation.kind, operation.context);
        match operation.failed {
            None => reports.accessed(completions, kind, context, operation.ending),
            Some(error) => reports.access_failed(completions, kind, context, error),
        }
    }
}

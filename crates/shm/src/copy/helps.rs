// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cooperative copy, the sender's side (docs/shm-layout.md, clause 7a): messages of ours whose
//! receivers asked us to copy, too. Called by the transport, when a CTS names chunk claims and in
//! every round.

use weft_contract::RemoteId;
use weft_memory::{UserBuffer, single_copy};
use weft_os::crash_point;
use weft_ring::ChunkClaims;

use crate::contact::attached::Attached;
use crate::contact::contacts::Contacts;
use crate::copy::cooperative::Division;
use crate::copy::single::copy_all;
use crate::protocol::cell::{Cts, Transfer};
use crate::send::sends::Sends;
use crate::settings::SingleCopy;

/// One message.
#[derive(Debug)]
struct Help {
    send_id: usize,
    remote: RemoteId,
    payload: UserBuffer,
    claims: ChunkClaims,
    division: Division,
    /// Where the message's first byte goes in the receiver's memory.
    target: u64,
    /// Chunks from here on are not ours to take any more.
    left: usize,
}

/// All of them, in the order of asking.
#[derive(Debug)]
pub(crate) struct Helps {
    helps: Vec<Help>,
    single_copy: SingleCopy,
}

impl Helps {
    pub(crate) fn new(single_copy: SingleCopy) -> Self {
        Self {
            helps: Vec::new(),
            single_copy,
        }
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.helps.len()
    }

    /// A CTS asked us to copy these bytes of a message, too, and named the chunk claims, which tell
    /// who copies what. The request was checked against the send.
    pub(crate) fn start(&mut self, contacts: &Contacts, sends: &Sends, cts: &Cts) {
        let Transfer::Copy {
            pipe,
            ticket,
            address,
        } = cts.by
        else {
            return;
        };
        let send_id = cts.send_id as usize;
        let Some(remote) = sends.remote(send_id) else {
            return;
        };
        let (Some(attached), Some(payload)) = (
            contacts.remote(remote).attached(),
            sends.payload(send_id, remote),
        ) else {
            return;
        };
        let division = Division::of(cts.bytes.start as usize..cts.bytes.end as usize);
        let (region, count) = (attached.region().mapping(), division.count());
        let Some(claims) = ChunkClaims::attach(region, pipe, ticket, count) else {
            return;
        };
        self.helps.push(Help {
            send_id,
            remote,
            payload: payload.clone(),
            claims,
            division,
            target: address,
            left: count,
        });
    }

    /// Copies a chunk of the first message that we help with; answers whether there was one.
    pub(crate) fn advance(&mut self, contacts: &mut Contacts) -> usize {
        let Some(help) = self.helps.first_mut() else {
            return 0;
        };
        contacts.contact(help.remote);
        let attached = contacts.remote_mut(help.remote).attached_mut();
        let goes_on = self.single_copy != SingleCopy::Never
            && attached.is_some_and(|attached| attached.may_be_read() && help.copy(attached));
        if !goes_on {
            self.helps.remove(0);
        }
        1
    }

    /// A send is over, or goes by another method.
    pub(crate) fn end(&mut self, send_id: usize) {
        self.helps.retain(|help| help.send_id != send_id);
    }

    /// Ends what goes to a remote.
    pub(crate) fn lose(&mut self, remote: RemoteId) {
        self.helps.retain(|help| help.remote != remote);
    }
}

impl Help {
    /// Copies the last chunk that nobody copies; false if there is none, or we may not.
    fn copy(&mut self, attached: &Attached) -> bool {
        let Some(index) = (0..self.left).rev().find(|&index| self.claims.help(index)) else {
            return false;
        };
        self.left = index;
        crash_point!(58, "chunk claims: a chunk is taken to help, not written");
        let (memory, target, payload) = (attached.memory(), self.target, &self.payload);
        let copied = copy_all(self.division.chunk(index), |at, count| {
            single_copy::push(&memory, target.wrapping_add(at as u64), payload, at, count)
        });
        if copied.is_ok() {
            self.claims.hand_over(index);
            return index > 0;
        }
        self.claims.give_back(index);
        false
    }
}

#[cfg(test)]
impl Helps {
    /// Chunks that we took, or found taken.
    pub(crate) fn helped(&self) -> usize {
        let helps = self.helps.iter();
        helps.map(|help| help.claims.count() - help.left).sum()
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner's numbers for remotes and the machine's, turned into each other. Asked for every
//! message.

use std::net::SocketAddr;

use weft_contract::{Owner, RemoteId};
use weft_srd::{Machine, Remote};

/// Marks a number of the machine's that the owner has none for yet.
const NOBODY: RemoteId = RemoteId(u32::MAX);

/// What is known of one remote.
#[derive(Debug)]
struct Entry {
    address: SocketAddr,
    /// The machine's number, once something was under way.
    machine: Option<Remote>,
    /// Bytes of its messages that the owner keeps.
    unread_bytes: u64,
}

/// All remotes.
#[derive(Debug, Default)]
pub(crate) struct Remotes {
    by_id: Vec<Entry>,
    by_machine: Vec<RemoteId>,
}

impl Remotes {
    /// The next id leads to this address.
    pub(crate) fn add(&mut self, address: SocketAddr) {
        self.by_id.push(Entry {
            address,
            machine: None,
            unread_bytes: 0,
        });
    }

    pub(crate) fn count(&self) -> usize {
        self.by_id.len()
    }

    /// Those with which something was under way. Slow path.
    pub(crate) fn met_count(&self) -> u64 {
        let met = |entry: &&Entry| entry.machine.is_some();
        self.by_id.iter().filter(met).count() as u64
    }

    fn join(&mut self, id: RemoteId, remote: Remote) {
        self.by_id[id.index()].machine = Some(remote);
        let index = remote.0 as usize;
        if index >= self.by_machine.len() {
            self.by_machine.resize(index + 1, NOBODY);
        }
        self.by_machine[index] = id;
    }

    /// The machine's number for `id`; `None` if the machine is full of remotes, or the id is
    /// nobody's. Fast path.
    #[inline]
    pub(crate) fn of_id(&mut self, id: RemoteId, machine: &mut Machine) -> Option<Remote> {
        let entry = self.by_id.get(id.index())?;
        if entry.machine.is_some() {
            return entry.machine;
        }
        let remote = machine.remote(entry.address)?;
        self.join(id, remote);
        Some(remote)
    }

    /// The owner's number for one of the machine's. Fast path but for strangers.
    #[inline]
    pub(crate) fn of_machine<O: Owner>(
        &mut self,
        remote: Remote,
        machine: &Machine,
        owner: &mut O,
    ) -> RemoteId {
        match self.by_machine.get(remote.0 as usize) {
            Some(&id) if id != NOBODY => id,
            _ => self.meet(remote, machine, owner),
        }
    }

    #[cold]
    fn meet<O: Owner>(&mut self, remote: Remote, machine: &Machine, owner: &mut O) -> RemoteId {
        // The machine never forgets a remote that it has named.
        let address = machine
            .inspect()
            .address(remote)
            .expect("the machine named this remote");
        let id = owner.remote_at(address);
        while self.by_id.len() <= id.index() {
            self.add(address);
        }
        self.join(id, remote);
        id
    }

    /// Bytes that the owner keeps of a remote, after adding and taking away some.
    pub(crate) fn keep(&mut self, remote: Remote, added: u64, taken: u64) -> u64 {
        let id = self.by_machine.get(remote.0 as usize);
        let Some(entry) = id.and_then(|id| self.by_id.get_mut(id.index())) else {
            return 0;
        };
        entry.unread_bytes = (entry.unread_bytes + added).saturating_sub(taken);
        entry.unread_bytes
    }
}

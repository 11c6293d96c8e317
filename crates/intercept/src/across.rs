// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Communicators that span hosts (docs/collectives.md, clause 6a): on each host the ranks meet in
//! shared memory, and the first of them, its leader, meets the other hosts' leaders by the MPI's
//! own messages. Made by agreement; called by movement and reduction.

use std::ffi::c_int;

use weft_collectives::Reduction;
use weft_memory::{BytesView, BytesViewMut};

use crate::buffers::{Bytes, Checked};
use crate::functions::Handle;
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::served::Served;

/// The leader's rank on its host.
const LEADER: usize = 0;

/// One rank's end of a communicator that spans hosts.
#[derive(Debug)]
pub struct Across {
    /// The ranks of this host.
    pub here: Served,
    /// Each rank's host and its rank there.
    pub places: Vec<Place>,
    /// The leaders' communicator, in the order of hosts; none on other ranks.
    pub leaders: Option<Handle>,
    /// This rank's place.
    pub own: Place,
}

/// Where a rank is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Hosts are counted by their first ranks.
    pub host: usize,
    /// Its rank among those of its host.
    pub rank: usize,
}

/// The places of ranks on these hosts, one for each rank, whatever identifies a host.
pub fn places(hosts: &[u32]) -> Vec<Place> {
    let mut seen: Vec<(u32, usize)> = Vec::new();
    let place = |host: &u32| {
        let found = seen.iter().position(|(one, _)| one == host);
        let at = found.unwrap_or_else(|| {
            seen.push((*host, 0));
            seen.len() - 1
        });
        let rank = seen[at].1;
        seen[at].1 += 1;
        Place { host: at, rank }
    };
    hosts.iter().map(place).collect()
}

impl Across {
    /// What the leaders do; all ranks of this host hear how it ended.
    fn among_leaders(&mut self, act: impl FnOnce(Handle) -> c_int) -> Outcome {
        let mut word = [self.leaders.map_or(0, act) as u32 as u64];
        let (team, waiting) = (&mut self.here.team, &mut self.here.waiting);
        team.bcast(waiting, BytesViewMut::from_words(&mut word), LEADER)?;
        match word[0] as u32 as c_int {
            0 => Ok(()),
            code => Err(Stop::Code(code)),
        }
    }

    /// MPI_Barrier.
    ///
    /// # Errors
    /// [`Stop::Code`] of the leaders' call, [`Stop::Fault`], here and below.
    pub fn barrier(&mut self, mpi: &Mpi) -> Outcome {
        self.here.team.barrier(&mut self.here.waiting)?;
        // SAFETY: a communicator of ours, which all leaders call now, here and below.
        self.among_leaders(|leaders| unsafe { (mpi.functions.barrier)(leaders) })
    }

    /// MPI_Bcast.
    ///
    /// # Errors
    /// As above; [`Stop::Left`] for a root that is none.
    ///
    /// # Safety
    /// The data are the program's, which all ranks describe as long.
    pub unsafe fn broadcast(&mut self, mpi: &Mpi, data: Checked, passed_root: c_int) -> Outcome {
        let root = usize::try_from(passed_root).ok();
        let root = *root
            .and_then(|root| self.places.get(root))
            .ok_or(Stop::Left)?;
        let is_root = root == self.own;
        // SAFETY: the caller's promise; the root's bytes are not written.
        let mut bytes = unsafe {
            match is_root {
                true => data.read(mpi)?,
                false => data.room(),
            }
        };
        let is_at_root = self.own.host == root.host;
        if is_at_root {
            // SAFETY: as above.
            self.bring(unsafe { bytes.view_mut() }, root.rank)?;
        }
        // SAFETY: as above.
        let base = unsafe { bytes.view_mut().base() };
        // SAFETY: as above; the bytes are as many on all leaders.
        self.among_leaders(|leaders| unsafe {
            let (count, host) = (data.bytes as c_int, root.host as c_int);
            (mpi.functions.broadcast)(base.cast(), count, mpi.datatypes.byte, host, leaders)
        })?;
        if !is_at_root {
            // SAFETY: as above.
            self.bring(unsafe { bytes.view_mut() }, LEADER)?;
        }
        match (is_root, &bytes) {
            // SAFETY: as above.
            (false, Bytes::Copy(_)) => unsafe { data.written(mpi, &bytes) },
            _ => Ok(()),
        }
    }

    /// Brings bytes of a rank of this host to all of them.
    fn bring(&mut self, bytes: BytesViewMut<'_>, root: usize) -> Outcome {
        let (team, waiting) = (&mut self.here.team, &mut self.here.waiting);
        Ok(team.bcast(waiting, bytes, root)?)
    }

    /// MPI_Allreduce: each host's ranks for its leader, then the leaders, then back.
    ///
    /// # Errors
    /// As above.
    pub fn allreduce(&mut self, mpi: &Mpi, terms: Terms<'_>) -> Outcome {
        let Terms {
            send,
            mut recv,
            reduction,
            count,
            kind,
            operation,
        } = terms;
        let (team, waiting) = (&mut self.here.team, &mut self.here.waiting);
        let length_bytes = recv.length_bytes();
        team.reduce(waiting, send, recv.part(0, length_bytes), reduction, LEADER)?;
        let base = recv.base();
        self.among_leaders(|leaders| {
            let in_place = mpi.abi.in_place() as *const std::ffi::c_void;
            let allreduce = mpi.functions.allreduce;
            // SAFETY: the buffer has room for so many elements; all leaders call now.
            unsafe { allreduce(in_place, base.cast(), count, kind, operation, leaders) }
        })?;
        self.bring(recv, LEADER)
    }
}

/// A reduction's arguments.
#[derive(Debug)]
pub struct Terms<'a> {
    /// What this rank gives; none if that lies in `recv`.
    pub send: Option<BytesView<'a>>,
    /// Where the result goes.
    pub recv: BytesViewMut<'a>,
    /// What is done with it.
    pub reduction: Reduction,
    /// The same in the MPI's words: elements.
    pub count: c_int,
    /// Their type.
    pub kind: Handle,
    /// The operation.
    pub operation: Handle,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_counted_by_their_first_ranks_and_ranks_on_each_host() {
        let found = places(&[7, 7, 3, 7, 3, 9]);
        let pairs: Vec<_> = found.iter().map(|one| (one.host, one.rank)).collect();
        assert_eq!(pairs, [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0)]);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Communicators that span hosts (docs/collectives.md, clause 6a): on each host the ranks meet in
//! shared memory, and the first of them, its leader, meets the other hosts' leaders by the MPI's
//! own messages. Made by agreement; called by movement and reduction.

use std::ffi::c_int;

use weft_collectives::{Reduction, Reductions};
use weft_memory::{BytesView, BytesViewMut};

use crate::buffers::Checked;
use crate::calls::Call;
use crate::leaders::Leaders;
use crate::limits::{are_read_in_place, unless_refused};
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::served::Served;
use crate::waiting::Waiting;

/// The leader's rank on its host.
const LEADER: usize = 0;

/// One rank's end of a communicator that spans hosts.
#[derive(Debug)]
pub struct Across {
    /// The ranks of this host.
    pub here: Served,
    /// Each rank's host and its rank there.
    pub places: Vec<Place>,
    /// This rank's end of what the leaders have in common; none on other ranks.
    pub leaders: Option<Leaders>,
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
pub fn places<Host: Copy + PartialEq>(hosts: &[Host]) -> Vec<Place> {
    let mut seen: Vec<(Host, usize)> = Vec::new();
    let place = |host: &Host| {
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
    /// What the leaders do among each other. If it fails, the other ranks' call fails, too.
    fn among_leaders(
        &mut self,
        act: impl FnOnce(&mut Leaders, &mut Waiting) -> Outcome,
    ) -> Outcome {
        let Some(leaders) = &mut self.leaders else {
            return Ok(());
        };
        let outcome = act(leaders, &mut self.here.waiting);
        if outcome.is_err() {
            self.here.team.abandon(&mut self.here.waiting);
        }
        outcome
    }

    /// Brings bytes of a rank of this host to all of them.
    fn bring(&mut self, mut bytes: BytesViewMut<'_>, root: usize) -> Outcome {
        let length_bytes = bytes.length_bytes();
        if are_read_in_place(Call::Bcast, length_bytes, &mut self.here) {
            let (mut direct, waiting) = self.here.direct()?;
            let whole = bytes.part(0, length_bytes);
            let outcome = direct.bcast(waiting, whole, length_bytes, root);
            let outcome = outcome.map_err(Stop::from);
            let here = &mut self.here;
            if let Some(outcome) = unless_refused(Call::Bcast, length_bytes, here, outcome) {
                return outcome;
            }
        }
        let (team, waiting) = (&mut self.here.team, &mut self.here.waiting);
        Ok(team.bcast(waiting, bytes, root)?)
    }

    /// MPI_Barrier.
    ///
    /// # Errors
    /// [`Stop::Code`] of the leaders' messages, [`Stop::Fault`], here and below.
    pub fn barrier(&mut self, mpi: &Mpi) -> Outcome {
        self.here.team.report(&mut self.here.waiting, LEADER)?;
        self.among_leaders(|leaders, waiting| leaders.barrier(mpi, waiting))?;
        let mut word = [0];
        self.bring(BytesViewMut::from_words(&mut word), LEADER)
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
        // SAFETY: as above.
        let mut view = unsafe { bytes.view_mut() };
        let length_bytes = view.length_bytes();
        let is_at_root = self.own.host == root.host;
        if is_at_root {
            self.bring(view.part(0, length_bytes), root.rank)?;
        }
        let whole = view.part(0, length_bytes);
        self.among_leaders(|leaders, waiting| leaders.broadcast(mpi, waiting, whole, root.host))?;
        if !is_at_root {
            self.bring(view, LEADER)?;
        }
        match is_root {
            true => Ok(()),
            // SAFETY: as above.
            false => unsafe { data.written(mpi, &bytes) },
        }
    }

    /// MPI_Allreduce: each host's ranks for its leader, then the leaders, then back.
    ///
    /// # Errors
    /// As above.
    pub fn allreduce(
        &mut self,
        mpi: &Mpi,
        send: Option<BytesView<'_>>,
        mut recv: BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Outcome {
        let length_bytes = recv.length_bytes();
        let sum = recv.part(0, length_bytes);
        let (team, waiting) = (&mut self.here.team, &mut self.here.waiting);
        team.reduce(waiting, send, sum, reduction, LEADER)?;
        let mut sum = recv.part(0, length_bytes);
        self.among_leaders(|leaders, waiting| {
            leaders.allreduce(mpi, waiting, &mut sum, reduction)
        })?;
        self.bring(recv, LEADER)
    }
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A communicator whose ranks meet in shared memory, as one of them sees it. Made by agreement, in
//! which all its ranks agree; used by all that serve a call.

use std::ffi::c_int;
use std::sync::Arc;

use weft_collectives::{Direct, Team};
use weft_os::map::RawMap;

use crate::in_place_tries::InPlaceTries;
use crate::outcome::Stop;
use crate::pending::Pending;
use crate::reach::Memories;
use crate::waiting::Waiting;

/// One rank's end of a communicator that is served. The team goes before what it lies in.
#[derive(Debug)]
pub struct Served {
    /// The algorithms.
    pub team: Team,
    /// What is done while they wait.
    pub waiting: Waiting,
    /// The ranks' memory, where all share theirs.
    pub memories: Option<Memories>,
    /// How reading data of middle lengths there went lately.
    pub in_place_tries: InPlaceTries,
    /// Whether it pays that all ranks wait for all in calls where the MPI's ranks would not: they
    /// have a core each, or Weft is to serve in any case. Alike on all ranks.
    pub waits_pay: bool,
    /// Calls that do not wait, where they go on by themselves on all ranks.
    pub pending: Option<Arc<Pending>>,
    /// What it all lies in.
    pub segment: Arc<RawMap>,
}

impl Served {
    /// The algorithms that read the ranks' data in place, and what is done while they wait.
    ///
    /// # Errors
    /// [`Stop::Left`] if not all ranks share their memory.
    #[inline]
    pub fn direct(&mut self) -> Result<(Direct<'_>, &mut Waiting), Stop> {
        let memories = self.memories.as_mut().ok_or(Stop::Left)?;
        Ok((Direct::new(&mut self.team, memories), &mut self.waiting))
    }

    /// A root as the program passed it.
    ///
    /// # Errors
    /// [`Stop::Left`] if the MPI must refuse it.
    #[inline]
    pub fn root(&self, passed: c_int) -> Result<usize, Stop> {
        let root = usize::try_from(passed).ok();
        root.filter(|&root| root < self.team.ranks())
            .ok_or(Stop::Left)
    }
}

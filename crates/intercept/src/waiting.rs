// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a rank does while it waits in a collective: drives the MPI's progress, so that others'
//! messages to it go on; offers its processor to others; and looks whether a rank has died. Made by
//! agreement, called by crates/collectives.

use std::ffi::c_void;

use weft_collectives::{Fault, Stopped, Wait};

use crate::functions::{Functions, Handle};
use crate::idle_request::IdleRequest;
use crate::liveness::Liveness;
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::yielding::Yielding;

/// Yields between two calls for progress, where ranks share cores. Chosen: who is waited for may
/// wait for messages itself, but most often it only waits for its turn.
const YIELDS_PER_PROGRESS: u32 = 4;

/// Looks after which a rank with a core of its own offers it to others all the same, now and then:
/// something else may run there, such as another job. Chosen: about fifty microseconds, more than
/// ranks in step wait for each other.
const SPINS_ALONE: u32 = 2_000;

/// Calls between two such offers. Chosen: ten microseconds, of which an offer takes a twentieth.
const CALLS_PER_OFFER: u32 = 8;

/// Looks after which it offers its core each time. Chosen: some milliseconds.
const SPINS_IN_VAIN: u32 = 100_000;

/// One communicator's waiting.
#[derive(Debug)]
pub struct Waiting {
    mpi: &'static Functions,
    status_ignore: usize,
    request: IdleRequest,
    liveness: Liveness,
    /// Ranks have to share processors.
    shares_cores: bool,
    yielding: Yielding,
    calls: u32,
    /// The rank whose process has ended.
    pub ended: Option<usize>,
}

impl Waiting {
    /// For ranks of those processes. `None` if the MPI gives no request.
    pub fn new(mpi: &'static Mpi, liveness: Liveness, shares_cores: bool) -> Option<Self> {
        Some(Self {
            mpi: &mpi.functions,
            status_ignore: mpi.abi.status_ignore(),
            request: IdleRequest::take(mpi)?,
            liveness,
            shares_cores,
            yielding: Yielding::NEW,
            calls: 0,
            ended: None,
        })
    }

    /// Whether ranks have to share processors.
    pub fn shares_cores(&self) -> bool {
        self.shares_cores
    }

    /// Has the MPI take what has come. Also called behind a barrier: a program may then ask once
    /// for what another rank did before it (MPI_Win_test, MPI_Iprobe), and an MPI whose own barrier
    /// takes such messages may look at them only after it has answered.
    #[inline]
    pub fn progress(&mut self) {
        self.request.progress();
    }

    /// Has the MPI complete requests, and waits for them as for the other ranks of the host.
    ///
    /// # Errors
    /// [`Stop::Code`], and [`Stop::Fault`] if a rank of the host has ended.
    pub fn until_complete(&mut self, requests: &mut [Handle]) -> Outcome {
        let status = self.status_ignore as *mut c_void;
        for request in requests {
            for spins in 0.. {
                let mut flag = 0;
                // SAFETY: the caller's own request, and a place of ours.
                match unsafe { (self.mpi.test)(request, &mut flag, status) } {
                    0 if flag != 0 => break,
                    0 => self.leave_to_others(spins).map_err(Fault::from)?,
                    code => return Err(Stop::Code(code)),
                }
            }
        }
        Ok(())
    }

    /// What comes behind each call for progress.
    fn leave_to_others(&mut self, spins: u32) -> Result<(), Stopped> {
        self.calls = self.calls.wrapping_add(1);
        let offers = self.shares_cores
            || spins > SPINS_IN_VAIN
            || (spins > SPINS_ALONE && self.calls.is_multiple_of(CALLS_PER_OFFER));
        if offers {
            self.yielding.offer();
        }
        self.ended = self.liveness.ended();
        match self.ended {
            Some(_) => Err(Stopped),
            None => Ok(()),
        }
    }
}

impl Wait for Waiting {
    fn pause(&mut self, spins: u32) -> Result<(), Stopped> {
        if !self.shares_cores || self.calls.is_multiple_of(YIELDS_PER_PROGRESS) {
            self.progress();
        }
        self.leave_to_others(spins)
    }
}

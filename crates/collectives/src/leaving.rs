// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that the ranks of a team leave to the MPI because of their length (docs/collectives.md,
//! clause 8). Called by whoever has a team.

use crate::barrier;
use crate::exchange::Notices;
use crate::fault::Fault;
use crate::kind::Kind;
use crate::team::Team;
use crate::wait::Wait;

/// A team whose ranks leave a long call to the MPI.
#[derive(Debug)]
pub struct Leaving<'a>(pub &'a mut Team);

impl Leaving<'_> {
    /// Returns once all ranks have called it with the same `call`, root and length in bytes: then
    /// all are about to leave the same call. `call` is any number below 16. Waits for all ranks.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`].
    pub fn agree(
        &mut self,
        wait: &mut dyn Wait,
        call: u8,
        root: usize,
        length_bytes: usize,
    ) -> Result<(), Fault> {
        let Self(team) = self;
        let call_and_length = length_bytes.wrapping_shl(4) | usize::from(call);
        team.begin(Kind::Agree as u8, root, call_and_length)?;
        barrier::run(&mut team.exchange, wait)
    }

    /// Notes that this rank leaves a call to the MPI because of its length, as all ranks must that
    /// name the same one. A rank that carries out a call of the team instead is told
    /// ([`Fault::Left`], [`Fault::Mismatch`]). Waits for nobody.
    pub fn note(&mut self) {
        let Self(team) = self;
        Notices(&mut team.exchange).leave();
    }
}

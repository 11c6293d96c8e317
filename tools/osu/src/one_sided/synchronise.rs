// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of the calls that begin and end accesses, for each synchronisation method.
//!
//! Called by one_sided inside the timed loop; calls weft-mpi's windows. Source: OSU's -s option.

use clap::ValueEnum;
use weft_mpi::{Result, Window};

/// How it is said that accesses have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Synchronisation {
    /// MPI_Win_lock and MPI_Win_unlock around each.
    Lock,
    /// One lock around all, MPI_Win_flush after each.
    Flush,
    /// One lock around all, MPI_Win_flush_local after each.
    #[value(name = "flush_local")]
    FlushLocal,
    /// MPI_Win_lock_all and MPI_Win_unlock_all around each.
    #[value(name = "lock_all")]
    LockAll,
    /// MPI_Win_post, start, complete and wait.
    Pscw,
    /// MPI_Win_fence.
    Fence,
}

impl Synchronisation {
    /// As the header names it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lock => "MPI_Win_lock/unlock",
            Self::Flush => "MPI_Win_flush",
            Self::FlushLocal => "MPI_Win_flush_local",
            Self::LockAll => "MPI_Win_lock_all/unlock_all",
            Self::Pscw => "MPI_Win_post/start/complete/wait",
            Self::Fence => "MPI_Win_fence",
        }
    }

    /// Whether both ranks take part in it.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Pscw | Self::Fence)
    }

    /// Whether one lock is held throughout.
    pub fn holds_lock(self) -> bool {
        matches!(self, Self::Flush | Self::FlushLocal)
    }

    /// Accesses of rank 0 alone; rank 1 joins where it must.
    #[inline]
    pub fn one_way(
        self,
        window: &mut Window<'_>,
        leads: bool,
        accesses: impl Fn(&mut Window<'_>) -> Result<()>,
    ) -> Result<()> {
        match (self, leads) {
            (Self::Fence, _) => {
                window.fence()?;
                if leads {
                    accesses(window)?;
                }
                window.fence()
            }
            (Self::Pscw, true) => {
                window.start()?;
                accesses(window)?;
                window.complete()
            }
            (Self::Pscw, false) => {
                window.post()?;
                window.wait()
            }
            (_, false) => Ok(()),
            (Self::Lock, true) => {
                window.lock(1)?;
                accesses(window)?;
                window.unlock(1)
            }
            (Self::LockAll, true) => {
                window.lock_all()?;
                accesses(window)?;
                window.unlock_all()
            }
            (Self::Flush, true) => {
                accesses(window)?;
                window.flush(1)
            }
            (Self::FlushLocal, true) => {
                accesses(window)?;
                window.flush_local(1)
            }
        }
    }

    /// An access of rank 0, then one of rank 1; only for the active ways.
    #[inline]
    pub fn round_trip(
        self,
        window: &mut Window<'_>,
        leads: bool,
        accesses: impl Fn(&mut Window<'_>) -> Result<()>,
    ) -> Result<()> {
        match (self, leads) {
            (Self::Pscw, true) => {
                window.start()?;
                accesses(window)?;
                window.complete()?;
                window.post()?;
                window.wait()
            }
            (Self::Pscw, false) => {
                window.post()?;
                window.wait()?;
                window.start()?;
                accesses(window)?;
                window.complete()
            }
            (_, true) => {
                window.fence()?;
                accesses(window)?;
                window.fence()?;
                window.fence()
            }
            (_, false) => {
                window.fence()?;
                window.fence()?;
                accesses(window)?;
                window.fence()
            }
        }
    }

    /// Accesses of both ranks at once; only for the active ways.
    #[inline]
    pub fn both(
        self,
        window: &mut Window<'_>,
        accesses: impl Fn(&mut Window<'_>) -> Result<()>,
    ) -> Result<()> {
        if self == Self::Pscw {
            window.post()?;
            window.start()?;
            accesses(window)?;
            window.complete()?;
            window.wait()
        } else {
            window.fence()?;
            accesses(window)?;
            window.fence()
        }
    }
}

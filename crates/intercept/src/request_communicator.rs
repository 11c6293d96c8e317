// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The communicator of calls that do not wait: its error handler hears of those that fail, as long
//! as it is there, and a program may free it before they have ended. Made by agreement;
//! communicators says when it is freed, pending when a call has failed. Source: MPI 4.1, 9.3 (error
//! handling) and 7.4.3 (freed communicators).

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_mpi_abi::Abi;

use crate::functions::Handle;
use crate::mpi::Mpi;

/// Those whose calls may be under way though nothing else is known of the communicator: the program
/// wanted to free it, and a delete function of its own refused.
static KEPT: Mutex<Vec<Arc<RequestCommunicator>>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Arc<RequestCommunicator>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The communicator of calls that do not wait, there or freed.
#[derive(Debug)]
pub struct RequestCommunicator {
    communicator: Handle,
    is_freed: Mutex<bool>,
}

impl RequestCommunicator {
    /// Of a communicator that is there.
    pub fn new(communicator: Handle) -> Arc<Self> {
        Arc::new(Self {
            communicator,
            is_freed: Mutex::new(false),
        })
    }

    /// From now on its handle may be another's.
    pub fn note_freed(&self) {
        *self.is_freed() = true;
    }

    /// The MPI has not freed it after all; it may do so later.
    pub fn keep(this: Arc<Self>) {
        *this.is_freed() = false;
        kept().push(this);
    }

    /// Takes those of a communicator that the MPI is now freeing once more.
    pub fn take_kept(communicator: Handle) -> Vec<Arc<Self>> {
        let mut all = kept();
        let (taken, others) = mem::take(&mut *all)
            .into_iter()
            .partition(|one| one.communicator == communicator);
        *all = others;
        taken
    }

    fn is_freed(&self) -> MutexGuard<'_, bool> {
        self.is_freed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the program's error handler for a request that failed: the communicator's, or
    /// MPI_COMM_WORLD's if that is gone. The MPI calls one besides, since the request has no
    /// communicator for it: Open MPI and Intel MPI that of MPI_COMM_WORLD, MPICH that of
    /// MPI_COMM_SELF. Open MPI is told by its interface, so its program hears once.
    pub fn report_failure(&self, mpi: &Mpi, code: i32) {
        let world = mpi.communicators.world;
        // No longer locked while the handler is called.
        let is_freed = *self.is_freed();
        let hears = if is_freed { world } else { self.communicator };
        if hears == world && mpi.abi == Abi::OpenMpi {
            return;
        }
        mpi.call_error_handler(hears, code);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether calls that do not wait go on by themselves in this process, and in which threads.
//! Weft's provider calls us when a read of its queue finds nothing (crates/provider, also), but a
//! provider that is loaded need not be the one that the MPI reads: libfabric loads it whenever
//! anybody asks what there is. So it is tried. Asked by agreement; pending asks in each call.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::OnceLock;

use weft_mpi_abi::Abi;
use weft_os::at_fork;
use weft_os::loaded::Loaded;

use crate::liveness::Liveness;
use crate::mpi::Mpi;
use crate::waiting::Waiting;

/// How the provider is asked to call a function; whether it will.
type Ask = unsafe extern "C" fn(extern "C" fn()) -> bool;

/// Calls for progress in which the MPI must have read the provider's queue. Chosen: all MPIs read
/// it in each, or in one of some, and a thousand take a millisecond.
const TRIES: u32 = 1_000;

/// Which threads may go on.
#[derive(Clone, Copy, Debug)]
enum Threads {
    Any,
    /// By [`own_thread`].
    Only(usize),
}

static ALLOWED: OnceLock<Threads> = OnceLock::new();

/// The MPI ends.
static ENDED: OnceLock<()> = OnceLock::new();

/// This is a child of the process: what its parent's calls lie in is not mapped here. Set by the
/// child's only thread, which so waits for nobody.
static IS_CHILD: OnceLock<()> = OnceLock::new();

thread_local! {
    /// How often the provider has called us in this thread.
    static RUNS: Cell<u64> = const { Cell::new(0) };
}

/// A number of this thread that no other has, as long as it lives.
fn own_thread() -> usize {
    RUNS.with(|runs| std::ptr::from_ref(runs).addr())
}

/// The provider calls. Fast path.
#[inline]
pub fn note_run() {
    RUNS.with(|runs| runs.set(runs.get().wrapping_add(1)));
}

/// Whether calls may go on in this thread now. Below MPI_THREAD_MULTIPLE another may not call the
/// MPI, though it may read a queue of the provider's for somebody else. Fast path.
#[inline]
pub fn may_go_on() -> bool {
    if ENDED.get().is_some() || IS_CHILD.get().is_some() {
        return false;
    }
    match ALLOWED.get() {
        Some(Threads::Any) => true,
        Some(Threads::Only(allowed)) => *allowed == own_thread(),
        None => false,
    }
}

/// From now on nothing goes on: the MPI ends.
pub fn stop() {
    ENDED.get_or_init(|| ());
}

/// Whether the MPI ends, or has ended.
pub fn has_stopped() -> bool {
    ENDED.get().is_some()
}

fn stop_in_child(_: usize) {
    IS_CHILD.get_or_init(|| ());
}

/// Which threads may go on; `None` if no choice is safe. MPI_THREAD_SERIALIZED: nobody tells us
/// which thread may call the MPI now. MPI_THREAD_MULTIPLE: MPICH and its relatives read queues
/// under a lock that MPI_Grequest_complete takes, too (seen: MPICH 5.0.2 ends the program).
fn threads(mpi: &Mpi) -> Option<Threads> {
    let (funneled, multiple) = match mpi.abi {
        Abi::OpenMpi | Abi::Mpich => (1, 3),
        Abi::Standard => (1024, 4096),
    };
    let mut level = 0;
    // SAFETY: a place of ours.
    let code: c_int = unsafe { (mpi.functions.thread_level)(&mut level) };
    match mpi.abi {
        _ if code != 0 => None,
        _ if level <= funneled => Some(Threads::Only(own_thread())),
        Abi::OpenMpi if level == multiple => Some(Threads::Any),
        _ => None,
    }
}

/// Whether calls go on by themselves in this process, by `go_on`. Tried once, in a call of the
/// program's that waits, in which any thread that calls the MPI may be.
pub fn can_go_on(mpi: &'static Mpi, go_on: extern "C" fn()) -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| try_it(mpi, go_on).is_some())
}

fn try_it(mpi: &'static Mpi, go_on: extern "C" fn()) -> Option<()> {
    ALLOWED.set(threads(mpi)?).ok()?;
    at_fork::in_child(0, stop_in_child);
    let name = c"weft_also_when_idle";
    let function = Loaded::with(name)?.function(name)?;
    // SAFETY: the name is our own, this is its type, and it lives as long as the process.
    let is_taken = unsafe {
        let ask = mem::transmute::<*mut c_void, Ask>(function.as_ptr());
        ask(go_on)
    };
    if !is_taken {
        return None;
    }
    let mut waiting = Waiting::new(mpi, Liveness::new(Vec::new()), false)?;
    let before = RUNS.get();
    (0..TRIES)
        .any(|_| {
            waiting.progress();
            RUNS.get() != before
        })
        .then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_may_call_the_mpi_goes_on_and_none_once_it_ends() {
        let elsewhere = || {
            let thread = std::thread::spawn(may_go_on);
            thread.join().expect("no panic")
        };
        assert!(!may_go_on(), "nobody has said which");
        ALLOWED.set(Threads::Only(own_thread())).expect("once");
        assert!(may_go_on() && !elsewhere(), "only this one may");
        stop();
        assert!(!may_go_on(), "the MPI has ended");
    }
}

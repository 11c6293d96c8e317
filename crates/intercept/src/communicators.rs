// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of each communicator, from its first collective call until it is freed. Called by
//! movement and reduction for each call; calls agreement once for each communicator.
//!
//! A communicator gets an attribute, so that the MPI tells when it is freed, however that happens
//! (MPI 4.1, 7.7.2); so does MPI_COMM_SELF, since its attributes go first at MPI_Finalize (11.2.4).
//! Of one communicator there is one call at a time (6.14); calls on several may come from several
//! threads.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use weft_collectives::Fault;

use crate::agreement::{self, Served};
use crate::functions::Handle;
use crate::mpi::{self, Mpi};

/// Calls of a communicator before its ranks agree. Chosen: an agreement takes as long as some tens
/// of short calls, which communicators that are soon freed never make.
const CALLS_BEFORE: u32 = 4;

enum State {
    /// So many calls have come.
    New(u32),
    /// The MPI serves it.
    Left,
    /// Weft does.
    Served(Box<Served>),
}

type Communicator = Arc<Mutex<State>>;

/// By handle. Few, and looked through.
static TABLE: RwLock<Vec<(Handle, Communicator)>> = RwLock::new(Vec::new());

/// The key of our attribute; `None` if the MPI gives none, or has ended.
static KEY: OnceLock<Option<c_int>> = OnceLock::new();

/// Carries a call out, if the communicator is served; `None` hands it to the MPI. All ranks of the
/// communicator make the call.
#[inline]
pub fn serve(
    passed: usize,
    act: impl FnOnce(&'static Mpi, &mut Served) -> Option<Result<c_int, Fault>>,
) -> Option<c_int> {
    let mpi = mpi::of_this_process()?;
    let handle = mpi.handle(passed);
    let communicator = find(handle).or_else(|| enter(mpi, handle))?;
    let mut state = lock(&communicator);
    let answer = match &mut *state {
        State::Left => None,
        State::Served(served) => act(mpi, served).map(|result| (result, served.waiting.ended)),
        State::New(_) => match begin(mpi, handle, &mut state) {
            Some(served) => act(mpi, served).map(|result| (result, served.waiting.ended)),
            None => None,
        },
    };
    drop(state);
    match answer? {
        (Ok(code), _) => Some(code),
        (Err(fault), ended) => Some(fail(mpi, handle, fault, ended)),
    }
}

/// One more call of a communicator that is new; its ranks agree when it is time.
#[cold]
fn begin<'a>(mpi: &'static Mpi, handle: Handle, state: &'a mut State) -> Option<&'a mut Served> {
    let State::New(calls) = state else {
        return None;
    };
    *calls += 1;
    if *calls < CALLS_BEFORE && handle != mpi.communicators.world {
        return None;
    }
    *state = match agreement::agree(mpi, handle) {
        Some(served) => State::Served(Box::new(served)),
        None => State::Left,
    };
    match state {
        State::Served(served) => Some(served),
        _ => None,
    }
}

fn lock(communicator: &Mutex<State>) -> MutexGuard<'_, State> {
    communicator.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn find(handle: Handle) -> Option<Communicator> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table.iter().find(|(one, _)| *one == handle);
    found.map(|(_, communicator)| Arc::clone(communicator))
}

/// Begins to follow a communicator; `None` if it is none.
#[cold]
fn enter(mpi: &'static Mpi, handle: Handle) -> Option<Communicator> {
    if handle == mpi.communicators.null {
        return None;
    }
    let key = (*KEY.get_or_init(|| make_key(mpi)))?;
    // SAFETY: the program's communicator, and a key of this MPI.
    let code = unsafe { (mpi.functions.set_attribute)(handle, key, std::ptr::null_mut()) };
    if code != 0 {
        return None;
    }
    let made = Communicator::new(Mutex::new(State::New(0)));
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.push((handle, Arc::clone(&made)));
    Some(made)
}

/// Makes the key, and sees to the end.
fn make_key(mpi: &'static Mpi) -> Option<c_int> {
    let (mut key, nothing) = (0, std::ptr::null_mut());
    // SAFETY: functions of the standard's types, which live as long as the process.
    let code = unsafe { (mpi.functions.create_key)(never_copied, freed, &mut key, nothing) };
    let set = |key| {
        // SAFETY: as above.
        unsafe { (mpi.functions.set_attribute)(mpi.communicators.own, key, nothing) }
    };
    (code == 0 && set(key) == 0).then_some(key)
}

/// A duplicate begins anew.
// structure: allow arguments because the standard has them
unsafe extern "C" fn never_copied(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the MPI gives a place to write.
    unsafe { flag.write(0) };
    0
}

/// The MPI frees a communicator, or ends.
unsafe extern "C" fn freed(passed: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    let Some(mpi) = mpi::of_this_process() else {
        return 0;
    };
    let handle = mpi.handle(passed);
    let is_end = handle == mpi.communicators.own;
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let gone: Vec<_> = if is_end {
        table.drain(..).collect()
    } else {
        let at = table.iter().position(|(one, _)| *one == handle);
        at.map(|at| table.swap_remove(at)).into_iter().collect()
    };
    // What they hold calls the MPI when it goes.
    drop(table);
    drop(gone);
    0
}

/// A call that cannot be carried on: the communicator's error handler decides.
#[cold]
fn fail(mpi: &Mpi, handle: Handle, fault: Fault, ended: Option<usize>) -> c_int {
    let code = match fault {
        Fault::Mismatch { .. } | Fault::Length { .. } => mpi.abi.error_truncate(),
        _ => mpi.abi.error_other(),
    };
    match ended {
        Some(rank) => say(&format!("rank {rank} of a communicator has ended: {fault}")),
        None => say(&fault.to_string()),
    }
    // SAFETY: the program's communicator.
    unsafe { (mpi.functions.call_error_handler)(handle, code) };
    code
}

/// Writes one line, at once: the launcher joins what the ranks write as it comes. A stderr that
/// cannot be written to is no reason to fail.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("weft: {text}\n").as_bytes());
}

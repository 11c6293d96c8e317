// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of each communicator, from its first collective call until it is freed. Called by
//! movement and reduction for each call; calls agreement once for each communicator.
//!
//! A communicator gets an attribute, so that the MPI tells when it is freed, however that happens
//! (MPI 4.1, 7.7.2); so does MPI_COMM_SELF, since its attributes go first at MPI_Finalize (11.2.4).
//! Of one communicator there is one call at a time (6.14); calls on several may come from several
//! threads.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use weft_collectives::{Fault, Leaving};

use crate::across::Across;
use crate::agreement::{self, Agreed};
use crate::calls::{Call, Calls};
use crate::driver;
use crate::functions::Handle;
use crate::idle_request;
use crate::leaders;
use crate::mpi::{self, Mpi};
use crate::other_tool;
use crate::outcome::{Outcome, Stop, code_of, say};
use crate::published::{self, Slot};
use crate::request_communicator::RequestCommunicator;
use crate::served::Served;

/// Calls of a communicator before its ranks agree. Chosen: an agreement takes as long as some tens
/// of short calls, which communicators that are soon freed never make.
const CALLS_BEFORE: u32 = 4;

enum State {
    /// So many calls have come.
    New(u32),
    /// The MPI serves it.
    Left,
    /// It has one rank, whose calls reach nobody: the MPI serves it, and nobody counts them.
    Alone,
    /// Weft does.
    Served(Box<Served>),
    /// Weft does, between hosts by the MPI's messages.
    Across(Box<Across>),
    /// It is freed; its handle may have become another's.
    Gone,
}

/// What is known of a communicator.
struct Known {
    state: State,
    calls: Calls,
    /// Where they are shown.
    slot: Option<Slot>,
}

type Communicator = Arc<Mutex<Known>>;

/// The calls of communicators that are freed.
static EARLIER: Mutex<Calls> = Mutex::new(Calls::NONE);

thread_local! {
    /// Communicators that the program is freeing in this thread: a function of its own, which the
    /// MPI calls when an attribute goes, may still make calls on them, which are the MPI's. Another
    /// thread may have the handle for a new communicator before this one is back. Never dropped: a
    /// program may free communicators in functions of exit(3), which run after a thread's values
    /// have gone.
    static GOING: RefCell<ManuallyDrop<Vec<Handle>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// By handle. Few, and looked through.
static TABLE: RwLock<Vec<(Handle, Communicator)>> = RwLock::new(Vec::new());

thread_local! {
    /// The communicator of this thread's last call, which is mostly that of the next.
    static LAST: RefCell<Option<(Handle, Communicator)>> = const { RefCell::new(None) };
}

/// The key of our attribute; `None` if the MPI gives none, or has ended.
static KEY: OnceLock<Option<c_int>> = OnceLock::new();

/// Carries a call out, if the communicator is served; `None` hands it to the MPI. All ranks of the
/// communicator make the call.
#[inline]
pub fn serve(
    call: Call,
    passed: usize,
    act: impl FnOnce(&'static Mpi, &mut Served) -> Outcome,
) -> Option<c_int> {
    serve_all(call, passed, act, |_, _| Err(Stop::Left))
}

/// The same for calls that are also served on communicators that span hosts.
#[inline]
pub fn serve_all(
    call: Call,
    passed: usize,
    act: impl FnOnce(&'static Mpi, &mut Served) -> Outcome,
    act_across: impl FnOnce(&'static Mpi, &mut Across) -> Outcome,
) -> Option<c_int> {
    let carry_out = |mpi, handle, state: &mut State| {
        if let State::New(_) = state {
            begin(mpi, handle, state);
        }
        match state {
            State::Served(served) => {
                let outcome = act(mpi, served);
                if outcome == Err(Stop::Long) {
                    // A rank that serves a shorter one finds out so.
                    Leaving(&mut served.team).note();
                }
                (outcome, served.waiting.ended)
            }
            State::Across(across) => (act_across(mpi, across), across.here.waiting.ended),
            _ => (Err(Stop::Left), None),
        }
    };
    with_state(call, passed, carry_out)
}

/// Begins a call that does not wait for the other ranks, if the communicator is served; `None`
/// hands it to the MPI. Ranks cannot agree in such a call, since it must not wait.
pub fn serve_nonblocking(
    call: Call,
    passed: usize,
    act: impl FnOnce(&'static Mpi, &Served) -> Outcome,
) -> Option<c_int> {
    with_state(call, passed, |mpi, _, state| match state {
        State::Served(served) => (act(mpi, served), None),
        _ => (Err(Stop::Left), None),
    })
}

/// Has a call carried out with what is known of its communicator, and counts it.
#[inline]
fn with_state(
    call: Call,
    passed: usize,
    carry_out: impl FnOnce(&'static Mpi, Handle, &mut State) -> (Outcome, Option<usize>),
) -> Option<c_int> {
    let Some(mpi) = mpi::of_this_process() else {
        other_tool::note_call();
        return None;
    };
    let handle = mpi.handle(passed);
    // A thread that ends has none any more.
    let last = LAST.try_with(RefCell::take).ok().flatten();
    let mut communicator = match last.filter(|(one, _)| *one == handle) {
        Some((_, last)) => last,
        None => find(mpi, handle)?,
    };
    let mut known = lock(&communicator);
    if let State::Gone = known.state {
        drop(known);
        communicator = find(mpi, handle)?;
        known = lock(&communicator);
    }
    let (outcome, ended) = carry_out(mpi, handle, &mut known.state);
    if !matches!(known.state, State::Alone) {
        let is_served = !outcome.is_err_and(Stop::is_for_the_mpi);
        let count = known.calls.add(call, is_served);
        if let Some(slot) = &known.slot {
            slot.show(call, is_served, count);
        }
    }
    drop(known);
    let _ = LAST.try_with(|last| last.replace(Some((handle, communicator))));
    match outcome {
        Ok(()) => Some(0),
        Err(Stop::Left | Stop::Long | Stop::Followed) => None,
        Err(Stop::Code(code)) => Some(code),
        Err(Stop::Unheard(code)) => {
            mpi.call_error_handler(handle, code);
            Some(code)
        }
        Err(Stop::Fault(fault)) => Some(fail(mpi, handle, fault, ended)),
    }
}

/// One more call of a communicator that is new; its ranks agree when it is time.
#[cold]
fn begin(mpi: &'static Mpi, handle: Handle, state: &mut State) {
    let State::New(calls) = state else {
        return;
    };
    if let Some(key) = KEY.get().copied().flatten()
        && follow(mpi, handle, key) == Some(true)
    {
        *calls = 0;
    }
    *calls += 1;
    if *calls == 1 && is_alone(mpi, handle) {
        *state = State::Alone;
        return;
    }
    if *calls < CALLS_BEFORE && handle != mpi.communicators.world {
        return;
    }
    *state = match agreement::agree(mpi, handle) {
        Some(Agreed::Here(served)) => State::Served(served),
        Some(Agreed::Across(across)) => State::Across(across),
        None => State::Left,
    };
}

/// Whether a communicator has this process's rank alone. An intercommunicator has the ranks of its
/// other group, too.
fn is_alone(mpi: &Mpi, communicator: Handle) -> bool {
    let (mut ranks, mut is_inter) = (0, 0);
    // SAFETY: the program's communicator, and places of ours.
    let codes = unsafe {
        (
            (mpi.functions.size)(communicator, &mut ranks),
            (mpi.functions.test_inter)(communicator, &mut is_inter),
        )
    };
    codes == (0, 0) && ranks == 1 && is_inter == 0
}

/// Sees to it that the communicator has our attribute; whether it had none. `None` if it is no
/// communicator. MPICH may free one as its last operation ends. A function of the program's may
/// then make calls on it once ours was called, and an attribute that is set there is lost: what is
/// known belongs to a communicator of before. One that a delete function has kept may have ours
/// still: to set it again would be to delete it.
fn follow(mpi: &Mpi, handle: Handle, key: c_int) -> Option<bool> {
    let (mut value, mut flag, nothing) = (0usize, 0, std::ptr::null_mut());
    let place = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the program's communicator, a key of this MPI, and places of ours.
    unsafe {
        if (mpi.functions.get_attribute)(handle, key, place, &mut flag) != 0 {
            return None;
        }
        if flag != 0 {
            return Some(false);
        }
        ((mpi.functions.set_attribute)(handle, key, nothing) == 0).then_some(true)
    }
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of a communicator, from now on if it is new; `None` if it is none.
fn find(mpi: &'static Mpi, handle: Handle) -> Option<Communicator> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table.iter().find(|(one, _)| *one == handle);
    let found = found.map(|(_, communicator)| Arc::clone(communicator));
    drop(table);
    found.or_else(|| enter(mpi, handle))
}

/// Begins to follow a communicator; `None` if it is none.
#[cold]
fn enter(mpi: &'static Mpi, handle: Handle) -> Option<Communicator> {
    other_tool::note_call();
    // MPI_COMM_SELF has one rank, and our attribute already: to set it again would be to delete it.
    // A session's communicator may outlive MPI_COMM_WORLD (11.3), which agreement asks.
    let is_none = handle == mpi.communicators.null || handle == mpi.communicators.own;
    if is_none || driver::has_stopped() || GOING.with_borrow(|all| all.contains(&handle)) {
        return None;
    }
    let key = (*KEY.get_or_init(|| make_key(mpi)))?;
    follow(mpi, handle, key)?;
    let made = Communicator::new(Mutex::new(Known {
        state: State::New(0),
        calls: Calls::NONE,
        slot: Slot::take(),
    }));
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.push((handle, Arc::clone(&made)));
    Some(made)
}

/// MPI_Init or MPI_Init_thread has answered. Attributes of MPI_COMM_SELF go at MPI_Finalize, the
/// oldest last (11.2.4), so ours goes behind all of the program's: on every rank their functions
/// make calls as before, and end calls that are under way.
pub fn note_begin(code: c_int) -> c_int {
    if code == 0
        && let Some(mpi) = mpi::of_this_process()
    {
        KEY.get_or_init(|| make_key(mpi));
    }
    code
}

/// Makes the key, and sees to the end.
fn make_key(mpi: &'static Mpi) -> Option<c_int> {
    let (mut key, mut has_ended, nothing) = (0, 0, std::ptr::null_mut());
    // SAFETY: a place of ours.
    if unsafe { (mpi.functions.finalized)(&mut has_ended) } != 0 || has_ended != 0 {
        return None;
    }
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
    forget(mpi, handle);
    if handle == mpi.communicators.own {
        idle_request::end_all(mpi);
        tell();
    }
    0
}

/// Tells of all calls, once.
fn tell() {
    mem::replace(&mut *lock(&EARLIER), Calls::NONE).tell();
}

/// MPI_Finalize has answered. Open MPI calls no further delete functions of MPI_COMM_SELF's
/// attributes behind one that fails, so ours may not have been called.
pub fn note_end(code: c_int) -> c_int {
    driver::stop();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let left = mem::take(&mut *table);
    drop(table);
    for (_, communicator) in left {
        // What it holds would call the MPI, which is gone.
        mem::forget(leave(&communicator));
    }
    tell();
    code
}

/// MPI_Comm_free and MPI_Comm_disconnect, by the MPI's own function: nothing is known of the
/// communicator any more. `None` if there is no such function, or it refuses the communicator.
///
/// # Safety
/// The place is one for a handle of this MPI.
pub unsafe fn free(place: *mut c_void, next: Option<NonNull<c_void>>) -> Option<c_int> {
    type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
    let (mpi, next) = (mpi::of_this_process()?, next?);
    if place.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let handle = unsafe { mpi.handle_at(place, 0) };
    if handle == mpi.communicators.own || handle == mpi.communicators.world {
        return None;
    }
    GOING.with_borrow_mut(|all| all.push(handle));
    let requests = forget(mpi, handle);
    // Those of leaders go with MPI_COMM_WORLD; a session's communicators may outlive that.
    if !driver::has_stopped() {
        leaders::free_gone(mpi);
    }
    // SAFETY: functions of those names have this type; the caller's promise.
    let code = unsafe { mem::transmute::<*mut c_void, Free>(next.as_ptr())(place) };
    GOING.with_borrow_mut(|all| {
        all.pop();
        // An empty one has no memory that a thread would leave behind.
        all.shrink_to_fit();
    });
    if code != 0 {
        // A delete function of the program's may refuse it.
        requests.into_iter().for_each(RequestCommunicator::keep);
    }
    Some(code)
}

/// Nothing is known of a communicator any more; of none if it is MPI_COMM_SELF, since the MPI ends.
/// Answers those that may have calls under way.
fn forget(mpi: &Mpi, handle: Handle) -> Vec<Arc<RequestCommunicator>> {
    let mut requests = RequestCommunicator::take_kept(handle);
    requests.iter().for_each(|one| one.note_freed());
    let is_end = handle == mpi.communicators.own;
    if is_end {
        driver::stop();
    }
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let gone: Vec<_> = if is_end {
        table.drain(..).collect()
    } else {
        let at = table.iter().position(|(one, _)| *one == handle);
        at.map(|at| table.swap_remove(at)).into_iter().collect()
    };
    drop(table);
    for (_, communicator) in gone {
        // What it holds calls the MPI when it goes.
        let state = leave(&communicator);
        if let State::Served(served) = &state
            && let Some(pending) = &served.pending
        {
            pending.communicator.note_freed();
            requests.push(Arc::clone(&pending.communicator));
        }
        if let (State::Across(across), false) = (state, is_end)
            && let Some(leaders) = across.leaders
        {
            leaders.leave();
        }
    }
    requests
}

/// A communicator is gone; its calls stay counted. Answers what it held.
fn leave(communicator: &Communicator) -> State {
    let mut known = lock(communicator);
    let mut earlier = lock(&EARLIER);
    earlier.add_all(&mem::replace(&mut known.calls, Calls::NONE));
    known.slot = None;
    published::show_gone(&earlier);
    drop(earlier);
    mem::replace(&mut known.state, State::Gone)
}

/// A call that cannot be carried on: the communicator's error handler decides.
#[cold]
fn fail(mpi: &Mpi, handle: Handle, fault: Fault, ended: Option<usize>) -> c_int {
    let code = code_of(mpi, fault);
    match ended {
        Some(rank) => say(&format!("rank {rank} of a communicator has ended: {fault}")),
        None => say(&fault.to_string()),
    }
    mpi.call_error_handler(handle, code);
    code
}

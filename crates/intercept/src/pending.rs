// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Non-blocking collectives that are under way (docs/collectives.md, clause 6b). Begun by
//! nonblocking; goes on whenever the MPI has Weft's provider look for messages, in whatever call
//! and thread that is, and then completes the program's request.
//!
//! The request is a generalised one (MPI 4.1, 13.2), so that the MPI's own MPI_Wait, MPI_Test and
//! their relatives know it. Locks: a communicator's calls, then the list of all; who goes on holds
//! the list and takes no lock that is held. No lock is held while the MPI is called to complete.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use weft_collectives::{Fault, Nonblocking};
use weft_os::map::RawMap;

use crate::buffers::Bytes;
use crate::driver;
use crate::functions::Handle;
use crate::liveness::Liveness;
use crate::mpi::{self, Mpi};
use crate::outcome::{Stop, code_of, say};
use crate::request_communicator::RequestCommunicator;
use crate::result_buffer::ResultBuffer;
use crate::shared_count::SharedCount;

/// A communicator's calls under way.
#[derive(Debug)]
pub struct Pending {
    calls: Mutex<Calls>,
    /// Whose they are.
    pub communicator: Arc<RequestCommunicator>,
}

/// The calls go before what they lie in.
#[derive(Debug)]
struct Calls {
    algorithms: Nonblocking,
    begun: VecDeque<Begun>,
    liveness: Liveness,
    fault: Option<Fault>,
    /// It is in [`UNDER_WAY`].
    is_listed: bool,
    _segment: Arc<RawMap>,
}

/// One call's data, until it ends.
#[derive(Debug)]
pub struct Buffers {
    /// What is given, if that is a copy.
    pub given: Option<Bytes>,
    /// Where the result goes, and from where, if it must be unpacked.
    pub taken: Option<(ResultBuffer, Bytes)>,
}

impl Buffers {
    /// All lies where the program has it.
    pub const NONE: Self = Self {
        given: None,
        taken: None,
    };
}

/// A call that will be served.
#[derive(Debug)]
pub struct Opening<B> {
    /// Its data.
    pub buffers: Buffers,
    /// Begins it. Must not fail but for what an earlier call has failed with: the program has its
    /// request.
    pub begin: B,
}

/// One call of the program.
#[derive(Debug)]
struct Begun {
    request: Handle,
    told: Arc<Told>,
    buffers: Buffers,
}

/// What the MPI is told of a call, and tells of its request.
#[derive(Debug)]
struct Told {
    /// Whose error handler hears of an error.
    communicator: Arc<RequestCommunicator>,
    /// It has.
    is_heard: OnceLock<()>,
    /// How it ended.
    code: OnceLock<c_int>,
    /// The request is gone. Some MPIs free it as soon as the program says so, others when it is
    /// complete.
    is_freed: OnceLock<()>,
}

// SAFETY: the pointers are to the program's buffers, which belong to the process and not to a
// thread.
unsafe impl Send for Begun {}

/// Communicators with calls under way.
static UNDER_WAY: Mutex<Vec<Arc<Pending>>> = Mutex::new(Vec::new());

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many they are, to be read without the lock.
static LISTED: SharedCount = SharedCount::zero();

/// Whether calls go on by themselves in this process. Set-up.
pub fn can_go_on(mpi: &'static Mpi) -> bool {
    driver::can_go_on(mpi, go_on)
}

impl Pending {
    /// Of a communicator with a segment for them.
    pub fn new(
        communicator: Arc<RequestCommunicator>,
        algorithms: Nonblocking,
        liveness: Liveness,
        segment: Arc<RawMap>,
    ) -> Self {
        let calls = Mutex::new(Calls {
            algorithms,
            begun: VecDeque::new(),
            liveness,
            fault: None,
            is_listed: false,
            _segment: segment,
        });
        Self {
            calls,
            communicator,
        }
    }

    /// Begins a call, and goes on with it as far as that goes now. Answers the program's request.
    ///
    /// # Errors
    /// [`Stop::Code`] if the MPI gives no request; [`Stop::Fault`] if an earlier call failed.
    pub fn begin<B>(
        self: &Arc<Self>,
        mpi: &'static Mpi,
        opening: Opening<B>,
    ) -> Result<Handle, Stop>
    where
        B: FnOnce(&mut Nonblocking) -> Result<(), Fault>,
    {
        let mut calls = lock(&self.calls);
        if let Some(fault) = calls.fault {
            return Err(Stop::Fault(fault));
        }
        // Before the call is begun, which cannot be taken back.
        let begun = Begun::new(mpi, Arc::clone(&self.communicator), opening.buffers)?;
        let request = begun.request;
        let ended = match (opening.begin)(&mut calls.algorithms) {
            Ok(()) => {
                calls.begun.push_back(begun);
                calls.go_on()
            }
            Err(fault) => vec![(begun, Err(fault))],
        };
        if !calls.begun.is_empty() && !calls.is_listed {
            calls.is_listed = true;
            let mut listed = lock(&UNDER_WAY);
            listed.push(Arc::clone(self));
            LISTED.set(listed.len());
        }
        drop(calls);
        ended
            .into_iter()
            .for_each(|(begun, end)| begun.end(mpi, end));
        Ok(request)
    }
}

/// How a call ended.
type End = Result<(), Fault>;

impl Calls {
    /// Goes on with all calls as far as that goes now; those that ended.
    fn go_on(&mut self) -> Vec<(Begun, End)> {
        if self.begun.is_empty() {
            return Vec::new();
        }
        if self.fault.is_none() {
            match self.algorithms.advance() {
                Ok(0) => {}
                Ok(count) => return self.begun.drain(..count).map(|one| (one, Ok(()))).collect(),
                Err(fault) => self.fail(fault),
            }
            if self.liveness.ended().is_some() {
                self.fail(Fault::Stopped);
            }
        }
        match self.fault {
            Some(fault) => self.begun.drain(..).map(|one| (one, Err(fault))).collect(),
            None => Vec::new(),
        }
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        say(&fault.to_string());
        self.fault = Some(fault);
    }
}

/// Goes on with all calls under way. Called by the provider when it has nothing to tell the MPI,
/// in whatever thread reads a queue of it.
extern "C" fn go_on() {
    driver::note_run();
    if LISTED.is_zero() || !driver::may_go_on() {
        return;
    }
    let Ok(mut listed) = UNDER_WAY.try_lock() else {
        return;
    };
    let mut ended = Vec::new();
    listed.retain(|pending| {
        let Ok(mut calls) = pending.calls.try_lock() else {
            return true;
        };
        ended.append(&mut calls.go_on());
        calls.is_listed = !calls.begun.is_empty();
        calls.is_listed
    });
    LISTED.set(listed.len());
    drop(listed);
    if let Some(mpi) = mpi::of_this_process() {
        ended
            .into_iter()
            .for_each(|(begun, end)| begun.end(mpi, end));
    }
}

impl Begun {
    /// With a request of the MPI's.
    ///
    /// # Errors
    /// [`Stop::Code`].
    fn new(
        mpi: &Mpi,
        communicator: Arc<RequestCommunicator>,
        buffers: Buffers,
    ) -> Result<Self, Stop> {
        let told = Arc::new(Told {
            communicator,
            is_heard: OnceLock::new(),
            code: OnceLock::new(),
            is_freed: OnceLock::new(),
        });
        let handed = Arc::into_raw(Arc::clone(&told)).cast_mut().cast();
        let mut request = 0;
        // SAFETY: functions of the standard's types, and a place of ours; the MPI hands `handed`
        // back to them.
        let code =
            unsafe { (mpi.functions.start_request)(query, free, cancel, handed, &mut request) };
        if code != 0 {
            // SAFETY: the MPI has not taken it.
            unsafe { free(handed) };
            return Err(Stop::Code(code));
        }
        Ok(Self {
            request: mpi.handle(request),
            told,
            buffers,
        })
    }

    /// Tells the MPI, which then tells the program.
    fn end(self, mpi: &Mpi, end: End) {
        let code = match (end, &self.buffers.taken) {
            (Ok(()), None) => 0,
            // SAFETY: the program's promise about its buffer lasts until it has heard of the end.
            (Ok(()), Some((data, bytes))) => match unsafe { data.written(mpi, bytes) } {
                Err(Stop::Code(code) | Stop::Unheard(code)) => code,
                _ => 0,
            },
            (Err(fault), _) => code_of(mpi, fault),
        };
        self.told.code.get_or_init(|| code);
        if self.told.is_freed.get().is_none() {
            // SAFETY: our own request, which is there, and is completed once.
            unsafe { (mpi.functions.complete_request)(self.request) };
        }
    }
}

/// The MPI asks how a call ended, whose request is complete.
unsafe extern "C" fn query(result: *mut c_void, status: *mut c_void) -> c_int {
    let Some(mpi) = mpi::of_this_process() else {
        return 0;
    };
    // SAFETY: what `new` handed in, not freed yet, and the MPI's status.
    let told = unsafe {
        (mpi.functions.set_elements)(status, mpi.datatypes.byte, 0);
        (mpi.functions.set_cancelled)(status, 0);
        &*result.cast::<Told>()
    };
    match told.code.get() {
        None | Some(0) => 0,
        Some(&code) => {
            // The MPI may ask more than once (MPI_Request_get_status).
            if told.is_heard.set(()).is_ok() {
                told.communicator.report_failure(mpi, code);
            }
            code
        }
    }
}

/// The request goes.
unsafe extern "C" fn free(result: *mut c_void) -> c_int {
    // SAFETY: what `new` handed in; the MPI frees a request once.
    let told = unsafe { Arc::from_raw(result.cast::<Told>()) };
    told.is_freed.get_or_init(|| ());
    0
}

/// A collective cannot be cancelled (MPI 4.1, 6.12).
unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

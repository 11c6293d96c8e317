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
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use weft_collectives::{Fault, Nonblocking};
use weft_mpi_abi::Abi;
use weft_os::loaded::Loaded;
use weft_os::map::RawMap;

use crate::buffers::Bytes;
use crate::functions::Handle;
use crate::lasting::Lasting;
use crate::lives::Lives;
use crate::mpi::{self, Mpi};
use crate::outcome::{Stop, code_of, say};

/// A communicator's calls under way.
#[derive(Debug)]
pub struct Pending(Mutex<Calls>);

/// The calls go before what they lie in.
#[derive(Debug)]
struct Calls {
    algorithms: Nonblocking,
    begun: VecDeque<Begun>,
    lives: Lives,
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
    pub taken: Option<(Lasting, Bytes)>,
}

impl Buffers {
    /// All lies where the program has it.
    pub const NONE: Self = Self {
        given: None,
        taken: None,
    };
}

/// One call of the program.
#[derive(Debug)]
struct Begun {
    request: Handle,
    result: *mut c_int,
    buffers: Buffers,
}

// SAFETY: the pointers are to the program's buffers and to memory of this call's own, which belong
// to the process and not to a thread.
unsafe impl Send for Begun {}

/// Communicators with calls under way.
static UNDER_WAY: Mutex<Vec<Arc<Pending>>> = Mutex::new(Vec::new());

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the provider is asked to call a function (crates/provider, also).
type Ask = unsafe extern "C" fn(extern "C" fn());

/// What asks it, if this process has it.
fn provider() -> Option<Ask> {
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    *ASK.get_or_init(|| {
        let name = c"weft_also_when_idle";
        let function = Loaded::with(name)?.function(name)?;
        // SAFETY: the name is our own, and this is its type.
        Some(unsafe { mem::transmute::<*mut c_void, Ask>(function.as_ptr()) })
    })
}

/// MPI_THREAD_MULTIPLE of an interface.
const fn any_thread(abi: Abi) -> c_int {
    match abi {
        Abi::OpenMpi | Abi::Mpich => 3,
        Abi::Standard => 4096,
    }
}

/// Whether calls would go on by themselves in this process. Where any thread may call the MPI,
/// MPICH and its relatives read queues under a lock that MPI_Grequest_complete takes, too (seen:
/// MPICH 5.0.2 ends the program).
pub fn can_go_on(mpi: &Mpi) -> bool {
    let mut level = 0;
    // SAFETY: a place of ours.
    let code = unsafe { (mpi.functions.thread_level)(&mut level) };
    let is_free = mpi.abi == Abi::OpenMpi || (code == 0 && level < any_thread(mpi.abi));
    is_free && provider().is_some()
}

/// Has the provider call us from now on. Set-up.
fn begin_to_go_on() {
    static BEGUN: OnceLock<()> = OnceLock::new();
    BEGUN.get_or_init(|| {
        if let Some(ask) = provider() {
            // SAFETY: the function lives as long as the process.
            unsafe { ask(go_on) };
        }
    });
}

impl Pending {
    /// Of a communicator with a segment for them.
    pub fn new(algorithms: Nonblocking, lives: Lives, segment: Arc<RawMap>) -> Self {
        Self(Mutex::new(Calls {
            algorithms,
            begun: VecDeque::new(),
            lives,
            fault: None,
            is_listed: false,
            _segment: segment,
        }))
    }

    /// Begins a call by `begin`, and goes on with it as far as that goes now. Answers the program's
    /// request.
    ///
    /// # Errors
    /// What `begin` answers; [`Stop::Code`] if the MPI gives no request.
    pub fn begin(
        self: &Arc<Self>,
        mpi: &'static Mpi,
        begin: impl FnOnce(&mut Nonblocking) -> Result<Buffers, Stop>,
    ) -> Result<Handle, Stop> {
        begin_to_go_on();
        let mut calls = lock(&self.0);
        // Before the call is begun, which cannot be taken back.
        let mut begun = Begun::new(mpi)?;
        let request = begun.request;
        match begin(&mut calls.algorithms) {
            Ok(buffers) => begun.buffers = buffers,
            Err(stop) => {
                begun.take_back(mpi);
                return Err(stop);
            }
        }
        calls.begun.push_back(begun);
        let ended = calls.go_on();
        if !calls.begun.is_empty() && !calls.is_listed {
            calls.is_listed = true;
            lock(&UNDER_WAY).push(Arc::clone(self));
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
            if self.lives.ended().is_some() {
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

/// Goes on with all calls under way. Called by the provider when it has nothing to tell the MPI.
extern "C" fn go_on() {
    let Ok(mut listed) = UNDER_WAY.try_lock() else {
        return;
    };
    if listed.is_empty() {
        return;
    }
    let mut ended = Vec::new();
    listed.retain(|pending| {
        let Ok(mut calls) = pending.0.try_lock() else {
            return true;
        };
        ended.append(&mut calls.go_on());
        calls.is_listed = !calls.begun.is_empty();
        calls.is_listed
    });
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
    fn new(mpi: &Mpi) -> Result<Self, Stop> {
        let result = Box::into_raw(Box::new(0));
        let mut request = 0;
        // SAFETY: functions of the standard's types, and a place of ours; the MPI hands `result`
        // back to them.
        let code = unsafe {
            (mpi.functions.start_request)(query, free, cancel, result.cast(), &mut request)
        };
        if code != 0 {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(result) });
            return Err(Stop::Code(code));
        }
        Ok(Self {
            request: mpi.handle(request),
            result,
            buffers: Buffers::NONE,
        })
    }

    /// Of a call that was not begun.
    fn take_back(self, mpi: &Mpi) {
        let mut request = self.request;
        let status = mpi.abi.status_ignore() as *mut c_void;
        // SAFETY: our own request, which nobody else has seen.
        unsafe {
            if (mpi.functions.complete_request)(request) == 0 {
                (mpi.functions.wait)(&mut request, status);
            }
        }
    }

    /// Tells the MPI, which then tells the program.
    fn end(self, mpi: &Mpi, end: End) {
        let code = match (end, &self.buffers.taken) {
            (Ok(()), None) => 0,
            // SAFETY: the program's promise about its buffer lasts until it has heard of the end.
            (Ok(()), Some((data, bytes))) => match unsafe { data.written(mpi, bytes) } {
                Err(Stop::Code(code)) => code,
                _ => 0,
            },
            (Err(fault), _) => code_of(mpi, fault),
        };
        // SAFETY: ours until the request is complete, and then the MPI's; a request that is
        // completed once.
        unsafe {
            self.result.write(code);
            (mpi.functions.complete_request)(self.request);
        }
    }
}

/// The MPI asks how a call ended, whose request is complete.
unsafe extern "C" fn query(result: *mut c_void, status: *mut c_void) -> c_int {
    let Some(mpi) = mpi::of_this_process() else {
        return 0;
    };
    // SAFETY: what `new` handed in, not freed yet, and the MPI's status.
    unsafe {
        (mpi.functions.set_elements)(status, mpi.datatypes.byte, 0);
        (mpi.functions.set_cancelled)(status, 0);
        match *result.cast::<c_int>() {
            0 => 0,
            code => {
                (mpi.functions.call_error_handler)(mpi.communicators.world, code);
                code
            }
        }
    }
}

/// The request goes.
unsafe extern "C" fn free(result: *mut c_void) -> c_int {
    // SAFETY: what `new` handed in; the MPI frees a request once.
    drop(unsafe { Box::from_raw(result.cast::<c_int>()) });
    0
}

/// A collective cannot be cancelled (MPI 4.1, 6.12).
unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}

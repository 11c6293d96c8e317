// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The life of MPI in this process: find the library, initialise, ask for names and the clock,
//! finalise or abort.
//!
//! Called by programs; calls locate and library once, then hands out communicators that use the
//! function table.

use crate::abi::{Datatype, Operation};
use crate::error::{Error, Problem, Result};
use crate::library::{Library, read_string};
use crate::locate::{self, Surroundings};
use crate::table::{Functions, Handle};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weft_mpi_abi::{Abi, Constant, Place};

/// How many threads may call MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// Only one thread exists.
    Single,
    /// Only the initialising thread calls MPI.
    Funneled,
    /// One thread at a time calls MPI.
    Serialized,
    /// Any thread at any time.
    Multiple,
}

/// An initialised MPI. Stays on the thread that initialised it.
pub struct Session {
    pub(crate) functions: Functions,
    pub(crate) types: [Handle; Datatype::ALL.len()],
    pub(crate) operations: [Handle; Operation::ALL.len()],
    pub(crate) abi: Abi,
    pub(crate) no_info: Handle,
    pub(crate) world: Handle,
    library: Library,
    granted: ThreadLevel,
    init_duration: Duration,
    _stays_on_its_thread: PhantomData<*mut ()>,
}

/// Whether this process has had a session; MPI 3 allows no second initialisation, not even after
/// finalising.
static INITIALISED: OnceLock<()> = OnceLock::new();

impl Session {
    /// Finds the library of the launcher that started this process, opens it and calls `MPI_Init`.
    /// Setup; blocks until all ranks have called it.
    ///
    /// # Errors
    /// `NoLibrary` or `Unusable` when no MPI fits (see [`Library::open`]), `AlreadyInitialised`,
    /// `Call` when MPI itself fails.
    pub fn init() -> Result<Self> {
        let mut session = Self::open()?;
        let begin = Instant::now();
        // SAFETY: MPI 2 and later allow null for both arguments; INITIALISED makes this the only
        // call.
        let code =
            unsafe { (session.functions.environment.init)(ptr::null_mut(), ptr::null_mut()) };
        session.init_duration = begin.elapsed();
        session.initialised("MPI_Init", code)
    }

    /// As [`Session::init`] with a thread level; returns what the library grants, which may be
    /// less. Setup.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn init_thread(level: ThreadLevel) -> Result<(Self, ThreadLevel)> {
        let mut session = Self::open()?;
        let mut provided: c_int = 0;
        let init_thread = session.functions.environment.init_thread;
        let begin = Instant::now();
        // SAFETY: null arguments are allowed, `provided` is writable; INITIALISED makes this the
        // only call.
        let code = unsafe {
            init_thread(
                ptr::null_mut(),
                ptr::null_mut(),
                level as c_int,
                &mut provided,
            )
        };
        session.init_duration = begin.elapsed();
        let granted = match provided {
            0 => ThreadLevel::Single,
            1 => ThreadLevel::Funneled,
            2 => ThreadLevel::Serialized,
            _ => ThreadLevel::Multiple,
        };
        session.granted = granted;
        Ok((session.initialised("MPI_Init_thread", code)?, granted))
    }

    fn open() -> Result<Self> {
        let library = Library::open(&locate::candidates(&Surroundings::of_this_process()))?;
        let functions = Functions::load(&library)?;
        let abi = library.abi();
        let mut types = [0; Datatype::ALL.len()];
        for kind in Datatype::ALL {
            types[kind as usize] = predefined(&library, kind.handle())?;
        }
        let mut operations = [0; Operation::ALL.len()];
        for operation in Operation::ALL {
            operations[operation as usize] = predefined(&library, operation.handle())?;
        }
        let world = predefined(&library, weft_mpi_abi::COMM_WORLD)?;
        let no_info = predefined(&library, weft_mpi_abi::INFO_NULL)?;
        if INITIALISED.set(()).is_err() {
            return Err(Problem::AlreadyInitialised.into());
        }
        Ok(Self {
            functions,
            types,
            operations,
            abi,
            no_info,
            world,
            library,
            granted: ThreadLevel::Single,
            init_duration: Duration::ZERO,
            _stays_on_its_thread: PhantomData,
        })
    }

    /// Asks for errors as return codes, so that they become [`Error`]s that say what failed.
    fn initialised(self, function: &'static str, code: c_int) -> Result<Self> {
        self.check(function, code)?;
        let handler = self.errors_return()?;
        // SAFETY: MPI is initialised; both handles are predefined ones of this library.
        let code = unsafe { (self.functions.environment.set_error_handler)(self.world, handler) };
        self.check("MPI_Comm_set_errhandler", code)?;
        Ok(self)
    }

    /// The handle of `MPI_ERRORS_RETURN`.
    pub(crate) fn errors_return(&self) -> Result<Handle> {
        predefined(&self.library, weft_mpi_abi::ERRORS_RETURN)
    }

    /// How long `MPI_Init` took, without opening the library.
    pub fn init_duration(&self) -> Duration {
        self.init_duration
    }

    /// How many threads MPI allows to call it.
    pub fn granted(&self) -> ThreadLevel {
        self.granted
    }

    /// `MPI_Finalize`. Blocks until all ranks are done with each other.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    pub fn finalize(self) -> Result<()> {
        // SAFETY: initialised, once (self is consumed); no communicator borrows the session any
        // more.
        let code = unsafe { (self.functions.environment.finalize)() };
        self.check("MPI_Finalize", code)
    }

    /// `MPI_Abort` on all ranks with an exit code.
    pub fn abort(&self, exit_code: i32) -> ! {
        // SAFETY: initialised; the handle is MPI_COMM_WORLD.
        unsafe { (self.functions.environment.abort)(self.world, exit_code) };
        std::process::exit(exit_code)
    }

    /// `MPI_Wtime`, in seconds since some moment. Its resolution differs between MPIs.
    #[inline]
    pub fn wtime(&self) -> f64 {
        // SAFETY: takes nothing and is allowed whenever MPI is initialised.
        unsafe { (self.functions.environment.wtime)() }
    }

    /// `MPI_Get_processor_name`: the node's name, as the MPI sees it.
    pub fn processor_name(&self) -> String {
        // SAFETY: read_string gives more room than MPI_MAX_PROCESSOR_NAME of either interface.
        read_string(|text, length| unsafe {
            (self.functions.environment.processor_name)(text, length)
        })
    }

    /// First words of `MPI_Get_library_version` on one line.
    pub fn library_version(&self) -> String {
        self.library.version()
    }

    /// The opened library: its path and binary interface.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Turns a return code into a result. Fast path.
    #[inline]
    pub(crate) fn check(&self, function: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.failed(function, code))
        }
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> Error {
        // SAFETY: read_string gives more room than MPI_MAX_ERROR_STRING of either interface.
        let text = read_string(|text, length| unsafe {
            (self.functions.environment.error_string)(code, text, length)
        });
        Problem::Call {
            function,
            code,
            text,
        }
        .into()
    }
}

/// A predefined handle: the address of an exported object for Open MPI, a fixed number for others.
fn predefined(library: &Library, constant: Constant) -> Result<Handle> {
    match constant.place(library.abi()) {
        Place::Number(handle) => Ok(handle),
        Place::Symbol(symbol) => library
            .address(symbol)
            .map(|address| address.as_ptr() as usize)
            .ok_or_else(|| {
                let reason = format!("it does not export {}", symbol.to_string_lossy());
                Problem::Unusable {
                    path: library.path().display().to_string(),
                    reason,
                }
                .into()
            }),
    }
}

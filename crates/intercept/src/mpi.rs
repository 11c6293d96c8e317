// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI of this process: its binary interface, its predefined handles, and the functions of it
//! that this library calls for itself. Those are called by their second names (`PMPI_`), so that no
//! other tool counts them. Found at the first collective call; used by everything below entries.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;

use weft_mpi_abi::{Abi, Constant, LONGEST_STRING_BYTES, Place, recognise};
use weft_os::loaded::{self, Loaded};

use crate::datatypes::Datatypes;
use crate::functions::{Functions, Handle};

/// What is known of the MPI.
#[derive(Debug)]
pub struct Mpi {
    /// Its binary interface.
    pub abi: Abi,
    /// Its functions.
    pub functions: Functions,
    /// Its predefined types and operations.
    pub datatypes: Datatypes,
    /// Its predefined communicators.
    pub communicators: Predefined,
    /// MPI_ERRORS_RETURN.
    errors_return: Handle,
    /// See [`Mpi::quiet`].
    quiet: OnceLock<Handle>,
}

/// Predefined communicators.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    /// MPI_COMM_WORLD.
    pub world: Handle,
    /// MPI_COMM_SELF.
    pub own: Handle,
    /// MPI_COMM_NULL.
    pub null: Handle,
}

static MPI: OnceLock<Option<Mpi>> = OnceLock::new();

/// The MPI of this process; `None` if it has none that Weft knows, and before MPI_Init: a program
/// may have called collectives on a session's communicators by then (MPI 4.1, 11.3).
#[inline]
pub fn of_this_process() -> Option<&'static Mpi> {
    match MPI.get() {
        Some(found) => found.as_ref(),
        None => find_once(),
    }
}

#[cold]
fn find_once() -> Option<&'static Mpi> {
    static IS_INITIALIZED: OnceLock<Option<Ask>> = OnceLock::new();
    let ask = (*IS_INITIALIZED.get_or_init(|| {
        let found = function(c"PMPI_Initialized")?.as_ptr();
        // SAFETY: this is the standard's type for that name.
        Some(unsafe { std::mem::transmute::<*mut c_void, Ask>(found) })
    }))?;
    let mut initialized = 0;
    // SAFETY: the place is ours to write; the standard allows the call at any time.
    let code = unsafe { ask(&mut initialized) };
    if code != 0 || initialized == 0 {
        return None;
    }
    MPI.get_or_init(find).as_ref()
}

/// Asks whether something is so.
type Ask = unsafe extern "C" fn(*mut c_int) -> c_int;

/// A function of the MPI's.
fn function(name: &CStr) -> Option<NonNull<c_void>> {
    let library = || Loaded::with(c"PMPI_Comm_size")?.function(name);
    loaded::next_definition(name).or_else(library)
}

fn find() -> Option<Mpi> {
    let library = Loaded::with(c"PMPI_Comm_size");
    let abi = interface(&function)?;
    let functions = Functions::find(&function)?;
    let handle = |constant: Constant| match constant.place(abi) {
        Place::Number(number) => Some(number),
        // A program may hold the object itself (a copy relocation), and then the MPI uses that.
        Place::Symbol(name) => loaded::anywhere(name)
            .or_else(|| library?.function(name))
            .map(|address| address.as_ptr() as usize),
    };
    let communicators = Predefined {
        world: handle(weft_mpi_abi::COMM_WORLD)?,
        own: handle(weft_mpi_abi::COMM_SELF)?,
        null: handle(weft_mpi_abi::COMM_NULL)?,
    };
    let errors_return = handle(weft_mpi_abi::ERRORS_RETURN)?;
    let datatypes = Datatypes::ask(&handle, &functions)?;
    Some(Mpi {
        abi,
        functions,
        datatypes,
        communicators,
        errors_return,
        quiet: OnceLock::new(),
    })
}

/// Which interface the MPI has.
fn interface(find: &impl Fn(&CStr) -> Option<NonNull<c_void>>) -> Option<Abi> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    let function = find(c"PMPI_Get_library_version")?;
    // SAFETY: this is the standard's type for that name.
    let version = unsafe { std::mem::transmute::<*mut c_void, Version>(function.as_ptr()) };
    let mut text = vec![0u8; LONGEST_STRING_BYTES + 1];
    let mut length = 0;
    // SAFETY: the room is what the function may use.
    unsafe { version(text.as_mut_ptr().cast(), &mut length) };
    let path = loaded::file_of(function.as_ptr() as usize)?;
    let path = path.to_string_lossy();
    let file_name = Path::new(path.as_ref()).file_name()?.to_string_lossy();
    let objects = find(c"ompi_mpi_comm_world").is_some();
    recognise(&file_name, objects, &String::from_utf8_lossy(&text))
}

impl Mpi {
    /// A handle as the program passed it.
    #[inline]
    pub fn handle(&self, passed: usize) -> Handle {
        self.abi.handle(passed)
    }

    /// Calls the error handler of a communicator that is there.
    pub fn call_error_handler(&self, communicator: Handle, code: c_int) {
        // SAFETY: the standard's function, of which the handler is the program's.
        unsafe { (self.functions.call_error_handler)(communicator, code) };
    }

    /// A communicator of this process alone, on which the MPI returns errors: no error handler of
    /// the program's hears of what this library asks. MPI_COMM_SELF if the MPI
    /// makes none. Not duplicated from that, which would copy the program's attributes. Made once,
    /// and freed by MPI_Finalize.
    pub fn quiet(&self) -> Handle {
        *self.quiet.get_or_init(|| {
            let (own, mut made) = (self.communicators.own, 0);
            // SAFETY: a collective of this process alone, and a place and a communicator of ours.
            unsafe {
                if (self.functions.split)(own, 0, 0, &mut made) != 0 {
                    return own;
                }
                let made = self.handle(made);
                (self.functions.set_error_handler)(made, self.errors_return);
                made
            }
        })
    }

    /// Number `at` of an array of handles.
    ///
    /// # Safety
    /// The array must have so many.
    pub unsafe fn handle_at(&self, list: *const c_void, at: usize) -> Handle {
        // SAFETY: the caller's promise; a handle has as many bytes as the interface says.
        unsafe {
            match self.abi {
                Abi::Mpich => *list.cast::<u32>().add(at) as Handle,
                Abi::OpenMpi | Abi::Standard => *list.cast::<Handle>().add(at),
            }
        }
    }

    /// Whether an address is MPI_IN_PLACE.
    #[inline]
    pub fn is_in_place(&self, address: *const c_void) -> bool {
        address as usize == self.abi.in_place()
    }
}

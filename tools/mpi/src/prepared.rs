// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A collective with its memory, in any of its forms. It can run any number of times.
//!
//! Made by programs from a communicator; calls entry through [`Call`]. The memory belongs to the
//! collective: its bytes are reachable only while none of its requests is in flight, so MPI never
//! touches memory that Rust code uses. collective_call says what arguments each collective has.

use crate::abi::{Datatype, Operation};
use crate::buffer::Buffer;
use crate::collective_call::{Arguments, Call, Collective, Places};
use crate::communicator::Communicator;
use crate::entry::{End, Form};
use crate::error::{Error, Result};
use crate::table::{Handle, Target};
use std::ffi::c_int;

/// What is prepared.
#[derive(Clone, Copy, Debug)]
pub struct Specification {
    /// Which collective.
    pub which: Collective,
    /// In which form.
    pub form: Form,
    /// Type of the elements.
    pub kind: Datatype,
    /// What reductions do.
    pub operation: Operation,
    /// Largest size in bytes that it will be resized to.
    pub largest_bytes: usize,
}

/// Where its request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No request.
    Idle,
    /// A persistent request that is not started.
    Ready,
    /// A request that MPI works on.
    Started,
}

/// A collective with its memory.
pub struct Prepared<'a> {
    communicator: &'a Communicator<'a>,
    specification: Specification,
    call: Call,
    places: Places,
    given: Buffer,
    taken: Buffer,
    root: usize,
    /// Zero first: MPICH writes only the low half.
    request: Handle,
    state: State,
}

impl<'a> Prepared<'a> {
    /// Looks the function up and makes the memory. Setup; every rank must prepare the same. The
    /// size is 0 until resized.
    ///
    /// # Errors
    /// `Unusable` when this MPI lacks the function, which happens with persistent forms; `Argument`
    /// when a neighbourhood collective is prepared on a communicator without neighbours.
    pub fn new(communicator: &'a Communicator<'a>, specification: Specification) -> Result<Self> {
        let Specification {
            which,
            form,
            kind,
            largest_bytes,
            ..
        } = specification;
        let call = Call::load(communicator.session.library(), which, form)?;
        let parts = which.parts(communicator)?;
        Ok(Self {
            communicator,
            specification,
            call,
            places: Places::new(communicator, which, kind, 0)?,
            given: Buffer::new(parts.0 * largest_bytes),
            taken: Buffer::new(parts.1 * largest_bytes),
            root: 0,
            request: 0,
            state: State::Idle,
        })
    }

    /// Chooses the size: bytes of one part, or of the whole for reductions that scatter. Setup.
    ///
    /// # Errors `Argument` when it is above the largest specified or no whole number of elements;
    /// `Call` when MPI fails.
    pub fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.release()?;
        let Specification {
            which,
            kind,
            largest_bytes,
            ..
        } = self.specification;
        if size_bytes > largest_bytes {
            let limit = format!("must be at most {largest_bytes}");
            return Err(Error::argument("size of a collective", size_bytes, limit));
        }
        self.places = Places::new(self.communicator, which, kind, size_bytes)?;
        self.prepare()
    }

    /// Names the root of a rooted collective for the runs to come. Costs a preparation for
    /// the persistent form, else nothing.
    ///
    /// # Errors
    /// `Argument` for a rank that there is not; `Call` when MPI fails.
    #[inline]
    pub fn set_root(&mut self, root: usize) -> Result<()> {
        if root == self.root {
            return Ok(());
        }
        if root >= self.communicator.size() {
            let limit = format!("must be below {}", self.communicator.size());
            return Err(Error::argument("root of a collective", root, limit));
        }
        self.release()?;
        self.root = root;
        self.prepare()
    }

    /// What this rank gives: all its parts, back to back. A broadcast gives and takes in one place,
    /// [`Prepared::taken`].
    ///
    /// # Panics
    /// While a request is in flight.
    pub fn given(&mut self) -> &mut [u8] {
        self.assert_idle();
        let used = self.places.given_bytes();
        &mut self.given.bytes()[..used]
    }

    /// Where this rank takes: all its parts, back to back.
    ///
    /// # Panics
    /// While a request is in flight.
    pub fn taken(&mut self) -> &mut [u8] {
        self.assert_idle();
        let used = self.places.taken_bytes();
        &mut self.taken.bytes()[..used]
    }

    /// Runs it from start to end. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        self.start()?;
        if self.state == State::Started {
            self.wait()?;
        }
        Ok(())
    }

    /// Starts it; the blocking form has then ended already. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    ///
    /// # Panics
    /// While a request is in flight.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        self.assert_idle();
        match self.specification.form {
            Form::Blocking => self.launch(),
            Form::Nonblocking => {
                self.launch()?;
                self.state = State::Started;
                Ok(())
            }
            Form::Persistent => {
                let session = self.communicator.session;
                // SAFETY: `release` and `prepare` left an inactive persistent request; its buffers
                // live as long as it does.
                let code = unsafe { (session.functions.point.start)(self.request_room()) };
                session.check("MPI_Start", code)?;
                self.state = State::Started;
                Ok(())
            }
        }
    }

    /// `MPI_Test`: whether it has ended; lets MPI make progress. True when nothing is in flight.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    #[inline]
    pub fn test(&mut self) -> Result<bool> {
        if self.state != State::Started {
            return Ok(true);
        }
        let session = self.communicator.session;
        let (mut ended, ignore) = (0, session.abi.status_ignore() as Target);
        // SAFETY: the request is in flight; the status may be ignored.
        let code =
            unsafe { (session.functions.point.test)(self.request_room(), &mut ended, ignore) };
        session.check("MPI_Test", code)?;
        if ended != 0 {
            self.ended();
        }
        Ok(ended != 0)
    }

    /// `MPI_Wait`; returns at once when nothing is in flight. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails; it then counts as ended.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        if self.state != State::Started {
            return Ok(());
        }
        let session = self.communicator.session;
        let ignore = session.abi.status_ignore() as Target;
        // SAFETY: the request is in flight; the status may be ignored.
        let code = unsafe { (session.functions.point.wait)(self.request_room(), ignore) };
        self.ended();
        session.check("MPI_Wait", code)
    }

    #[inline]
    fn ended(&mut self) {
        self.state = match self.specification.form {
            Form::Persistent => State::Ready,
            Form::Blocking | Form::Nonblocking => State::Idle,
        };
    }

    #[inline]
    fn request_room(&mut self) -> Target {
        (&raw mut self.request).cast()
    }

    #[inline]
    fn assert_idle(&self) {
        assert!(
            self.state != State::Started,
            "a collective's memory is not touched while it is in flight"
        );
    }

    /// Calls the function: runs the blocking form, starts the non-blocking one, prepares the
    /// persistent one.
    #[inline]
    fn launch(&mut self) -> Result<()> {
        let session = self.communicator.session;
        let arguments = Arguments {
            given: self.given.start().as_ptr().cast_const().cast(),
            taken: self.taken.start().as_ptr().cast(),
            kind: self.communicator.type_handle(self.specification.kind),
            operation: session.operations[self.specification.operation as usize],
            root: self.root as c_int,
        };
        let end = End {
            communicator: self.communicator.handle,
            no_info: session.no_info,
            request: &mut self.request,
        };
        // SAFETY: both buffers hold what the places say (resize checked the size against the
        // largest, and new made the memory for that); they are neither touched nor freed while
        // the request lives (assert_idle, Drop).
        let code = unsafe { self.call.run(&self.places, arguments, end) };
        session.check(self.specification.which.name(), code)
    }

    fn prepare(&mut self) -> Result<()> {
        if self.specification.form == Form::Persistent {
            self.launch()?;
            self.state = State::Ready;
        }
        Ok(())
    }

    /// Waits for what is in flight and frees a persistent request.
    fn release(&mut self) -> Result<()> {
        self.wait()?;
        if self.state == State::Ready {
            self.state = State::Idle;
            let session = self.communicator.session;
            // SAFETY: an inactive persistent request, freed once.
            let code = unsafe { (session.functions.point.request_free)(self.request_room()) };
            self.request = 0;
            session.check("MPI_Request_free", code)?;
        }
        Ok(())
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.state == State::Started {
            eprintln!("weft-mpi: a panic while a collective was in flight; ending the process");
            std::process::abort();
        }
        let _ = self.release();
    }
}

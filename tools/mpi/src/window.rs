// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A window: memory of each rank that the others reach, its local buffers, and the methods to
//! complete accesses.
//!
//! Made by programs from a communicator; one_sided holds the accesses. All ranks' windows have one
//! length, so offsets are checked here before MPI gets them. The local buffers belong to the window
//! and are reachable only while no access is open, so MPI never reads or writes memory that Rust
//! code uses. Source: MPI 3.1, chapter 11.

use crate::buffer::Buffer;
use crate::communicator::Communicator;
use crate::error::Result;
use crate::table::{Handle, Target};
use crate::window_memory::WindowMemory;
use std::ptr::NonNull;

/// How a window comes to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `MPI_Win_create`: ordinary memory.
    Create,
    /// `MPI_Win_allocate`: memory that MPI chooses.
    Allocate,
    /// `MPI_Win_create_dynamic` and `MPI_Win_attach`: ordinary memory, reached by its address.
    Dynamic,
}

/// A window.
pub struct Window<'a> {
    pub(crate) communicator: &'a Communicator<'a>,
    pub(crate) handle: Handle,
    pub(crate) memory: WindowMemory,
    is_attached: bool,
    /// What goes out.
    pub(crate) outgoing: Buffer,
    /// What comes in.
    pub(crate) incoming: Buffer,
    /// What a swap compares with.
    pub(crate) compared: Buffer,
    /// The rank whose accesses have not been completed.
    pub(crate) open: Option<i32>,
    group: Handle,
}

impl<'a> Window<'a> {
    /// A window of `length` bytes on each rank, and local buffers of the same length. Collective;
    /// setup.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    pub fn new(communicator: &'a Communicator<'a>, origin: Origin, length: usize) -> Result<Self> {
        let mut window = Self {
            communicator,
            handle: 0,
            memory: WindowMemory::new(length, communicator.size(), origin != Origin::Allocate),
            is_attached: false,
            outgoing: Buffer::new(length),
            incoming: Buffer::new(length),
            compared: Buffer::new(length.min(8)),
            open: None,
            group: 0,
        };
        window.make(origin)?;
        let session = communicator.session;
        let handler = session.errors_return()?;
        let set = session.functions.window.set_error_handler;
        // SAFETY: a live window and a predefined handler.
        let code = unsafe { set(window.handle, handler) };
        session.check("MPI_Win_set_errhandler", code)?;
        Ok(window)
    }

    fn make(&mut self, origin: Origin) -> Result<()> {
        let session = self.communicator.session;
        let (calls, length) = (&session.functions.window, self.memory.length as isize);
        let (no_info, world) = (session.no_info, self.communicator.handle);
        let start: Target = self.memory.start.as_ptr().cast();
        match origin {
            Origin::Create => {
                // SAFETY: the memory is `length` bytes long and lives until after MPI_Win_free.
                let code =
                    unsafe { (calls.create)(start, length, 1, no_info, world, &mut self.handle) };
                session.check("MPI_Win_create", code)
            }
            Origin::Allocate => {
                let mut found: Target = std::ptr::null_mut();
                // SAFETY: both outputs are writable; MPI's memory lives until MPI_Win_free.
                let code = unsafe {
                    (calls.allocate)(length, 1, no_info, world, &mut found, &mut self.handle)
                };
                session.check("MPI_Win_allocate", code)?;
                self.memory.start = NonNull::new(found.cast()).unwrap_or(NonNull::dangling());
                Ok(())
            }
            Origin::Dynamic => {
                // SAFETY: the output is writable.
                let code = unsafe { (calls.create_dynamic)(no_info, world, &mut self.handle) };
                session.check("MPI_Win_create_dynamic", code)?;
                // SAFETY: the memory is `length` bytes long and stays until it is detached.
                let code = unsafe { (calls.attach)(self.handle, start, length) };
                session.check("MPI_Win_attach", code)?;
                self.is_attached = true;
                self.exchange_bases()
            }
        }
    }

    /// Tells every rank where each one's dynamic memory lies.
    fn exchange_bases(&mut self) -> Result<()> {
        let own = (self.memory.start.as_ptr() as isize).to_ne_bytes();
        let mut all = vec![0; own.len() * self.communicator.size()];
        self.communicator
            .allgather(&own, &mut all, crate::abi::Datatype::Byte)?;
        for (base, bytes) in self
            .memory
            .bases
            .iter_mut()
            .zip(all.chunks_exact(own.len()))
        {
            *base = isize::from_ne_bytes(bytes.try_into().expect("chunks of this length"));
        }
        Ok(())
    }

    /// This rank's own bytes, which the others access.
    pub fn own(&mut self) -> &mut WindowMemory {
        &mut self.memory
    }

    /// What goes out.
    ///
    /// # Panics
    /// While an access is open; the same for the two below.
    pub fn outgoing(&mut self) -> &mut [u8] {
        self.assert_closed();
        self.outgoing.bytes()
    }

    /// What came in.
    pub fn incoming(&mut self) -> &mut [u8] {
        self.assert_closed();
        self.incoming.bytes()
    }

    /// What a swap compares with: up to 8 bytes.
    pub fn compared(&mut self) -> &mut [u8] {
        self.assert_closed();
        self.compared.bytes()
    }

    fn assert_closed(&self) {
        assert!(
            self.open.is_none(),
            "the buffers of a window are not touched while an access is open"
        );
    }

    /// Names the other rank for [`Window::post`] and [`Window::start`]. Setup.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    pub fn pair_with(&mut self, rank: i32) -> Result<()> {
        let session = self.communicator.session;
        let calls = &session.functions.environment;
        let mut all = 0;
        // SAFETY: a live communicator and a writable output.
        let code = unsafe { (calls.group)(self.communicator.handle, &mut all) };
        session.check("MPI_Comm_group", code)?;
        let mut group = 0;
        // SAFETY: one rank, as said; MPI checks that there is such a one.
        let code = unsafe { (calls.group_include)(all, 1, &rank, &mut group) };
        // SAFETY: made above, freed once.
        unsafe { (calls.group_free)(&mut all) };
        session.check("MPI_Group_incl", code)?;
        self.free_group();
        self.group = group;
        Ok(())
    }

    pub(crate) fn group(&self) -> Handle {
        self.group
    }

    fn free_group(&mut self) {
        if self.group != 0 {
            let free = self.communicator.session.functions.environment.group_free;
            // SAFETY: made in pair_with, freed once.
            unsafe { free(&mut self.group) };
            self.group = 0;
        }
    }
}

impl Drop for Window<'_> {
    /// Collective: all ranks drop a window at the same point.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("weft-mpi: a panic while a window was open; ending the process");
            std::process::abort();
        }
        self.free_group();
        if self.handle == 0 {
            return;
        }
        let calls = &self.communicator.session.functions.window;
        if self.is_attached {
            // SAFETY: attached in make; no access of this rank is open any more, and others' have
            // ended by contract.
            unsafe { (calls.detach)(self.handle, self.memory.start.as_ptr().cast_const().cast()) };
        }
        // SAFETY: made once, freed once; the memory is freed after this.
        unsafe { (calls.free)(&mut self.handle) };
    }
}

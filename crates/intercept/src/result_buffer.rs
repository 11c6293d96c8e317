// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the result of a call goes that ends later. The program may free the datatype as soon as
//! the call has begun (MPI 4.1, 5.1.9), so such data get a type of their own until the call ends:
//! the program's elements in a row. (MPI_Type_dup would call what the program has the MPI call
//! when a type is copied.) Made by nonblocking, used by pending.

use crate::buffers::{Bytes, Checked};
use crate::functions::Handle;
use crate::mpi::{self, Mpi};
use crate::outcome::Stop;

/// Where a result goes; its type is there until the call ends.
#[derive(Debug)]
pub struct ResultBuffer {
    data: Checked,
    /// The type, if it is ours.
    made: Option<Handle>,
}

impl ResultBuffer {
    /// Of data of the call that begins.
    ///
    /// # Errors
    /// [`Stop::Code`].
    pub fn new(data: Checked, mpi: &Mpi) -> Result<Self, Stop> {
        if !data.is_packed() {
            return Ok(Self { data, made: None });
        }
        let (data, made) = data.of_new_type(mpi)?;
        Ok(Self {
            data,
            made: Some(made),
        })
    }

    /// Puts the bytes that were written into the room where they belong.
    ///
    /// # Errors
    /// [`Stop::Code`].
    ///
    /// # Safety
    /// As [`Checked::written`].
    pub unsafe fn written(&self, mpi: &Mpi, room: &Bytes) -> Result<(), Stop> {
        // SAFETY: the caller's promise.
        unsafe { self.data.written(mpi, room) }
    }
}

impl Drop for ResultBuffer {
    fn drop(&mut self) {
        if let (Some(mut made), Some(mpi)) = (self.made, mpi::of_this_process()) {
            // SAFETY: our own type, freed once; the MPI still lives, since calls under way end
            // before MPI_Finalize or never.
            unsafe { (mpi.functions.type_free)(&mut made) };
        }
    }
}

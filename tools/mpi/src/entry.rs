// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The collective functions by signature, each in three forms: blocking, non-blocking and
//! persistent.
//!
//! prepared looks them up when it prepares a collective. So an MPI without the persistent forms
//! (new in MPI 4) is refused only when one of them is asked for. The forms of one collective differ
//! only in their last arguments:
//!
//! - blocking: the communicator
//! - non-blocking: the communicator and a request
//! - persistent: the communicator, hints and a request
//!
//! Source: MPI 4.0, chapter 6. Open MPI 4 has the persistent forms under the names of the proposal,
//! `MPIX_...`.

use crate::error::Result;
use crate::library::Library;
use crate::table::{Counts, Handle, Source, Target};
use std::ffi::{CString, c_int};

/// How a collective is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ends before it returns: `MPI_Bcast`.
    Blocking,
    /// Returns at once, with a request to wait for: `MPI_Ibcast`.
    Nonblocking,
    /// Prepared once and started as often as wished: `MPI_Bcast_init`.
    Persistent,
}

/// What follows the arguments that the forms share.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) communicator: Handle,
    pub(crate) no_info: Handle,
    /// Where the request goes; not looked at by the blocking form.
    pub(crate) request: *mut Handle,
}

/// The function's name in a form, and the name it had before the standard took it up.
fn names(form: Form, stem: &str) -> (CString, CString) {
    let lower = stem[..1].to_lowercase() + &stem[1..];
    let (name, earlier) = match form {
        Form::Blocking => (format!("MPI_{stem}"), format!("MPI_{stem}")),
        Form::Nonblocking => (format!("MPI_I{lower}"), format!("MPI_I{lower}")),
        Form::Persistent => (format!("MPI_{stem}_init"), format!("MPIX_{stem}_init")),
    };
    let terminated = |text: String| CString::new(text).expect("a name without a zero");
    (terminated(name), terminated(earlier))
}

macro_rules! entries {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(crate) enum $name {
            Blocking(unsafe extern "C" fn($($kind,)* Handle) -> c_int),
            Nonblocking(unsafe extern "C" fn($($kind,)* Handle, *mut Handle) -> c_int),
            Persistent(unsafe extern "C" fn($($kind,)* Handle, Handle, *mut Handle) -> c_int),
        }

        impl $name {
            /// `stem` must name a collective of this signature.
            pub(crate) fn load(library: &Library, form: Form, stem: &str) -> Result<Self> {
                let (name, earlier) = names(form, stem);
                Ok(match form {
                    Form::Blocking => {
                        // SAFETY: the signature is the standard's for this form of the collective,
                        // handles widened as abi explains.
                        Self::Blocking(unsafe { library.function_or(&name, &earlier) }?)
                    }
                    Form::Nonblocking => {
                        // SAFETY: the signature is the standard's for this form of the collective.
                        Self::Nonblocking(unsafe { library.function_or(&name, &earlier) }?)
                    }
                    Form::Persistent => {
                        // SAFETY: the signature is the standard's for this form of the collective.
                        Self::Persistent(unsafe { library.function_or(&name, &earlier) }?)
                    }
                })
            }

            /// # Safety
            /// The arguments are what the function asks for, and the buffers live until the request
            /// has ended.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "they are those of MPI's functions")]
            pub(crate) unsafe fn call(&self, $($argument: $kind,)* end: End) -> c_int {
                match self {
                    // SAFETY: the caller's promise.
                    Self::Blocking(function) => unsafe {
                        function($($argument,)* end.communicator)
                    },
                    // SAFETY: the caller's promise.
                    Self::Nonblocking(function) => unsafe {
                        function($($argument,)* end.communicator, end.request)
                    },
                    // SAFETY: the caller's promise.
                    Self::Persistent(function) => unsafe {
                        function($($argument,)* end.communicator, end.no_info, end.request)
                    },
                }
            }
        }
    )* };
}

entries! {
    /// Barrier.
    Nothing();
    /// Bcast.
    OneBuffer(bytes: Target, count: c_int, kind: Handle, root: c_int);
    /// Reduce.
    RootedReduction(
        given: Source, taken: Target, count: c_int, kind: Handle, operation: Handle, root: c_int
    );
    /// Allreduce, Reduce_scatter_block.
    Reduction(given: Source, taken: Target, count: c_int, kind: Handle, operation: Handle);
    /// Reduce_scatter.
    ScatteredReduction(
        given: Source, taken: Target, counts: Counts, kind: Handle, operation: Handle
    );
    /// Gather, Scatter.
    Rooted(
        given: Source, count: c_int, kind: Handle, taken: Target, room: c_int, into: Handle,
        root: c_int
    );
    /// Gatherv.
    RootedUnevenTaken(
        given: Source, count: c_int, kind: Handle, taken: Target, counts: Counts, places: Counts,
        into: Handle, root: c_int
    );
    /// Scatterv.
    RootedUnevenGiven(
        given: Source, counts: Counts, places: Counts, kind: Handle, taken: Target, room: c_int,
        into: Handle, root: c_int
    );
    /// Allgather, Alltoall and the same between neighbours.
    Even(given: Source, count: c_int, kind: Handle, taken: Target, room: c_int, into: Handle);
    /// Allgatherv and the same between neighbours.
    UnevenTaken(
        given: Source, count: c_int, kind: Handle, taken: Target, counts: Counts, places: Counts,
        into: Handle
    );
    /// Alltoallv and the same between neighbours.
    Uneven(
        given: Source, counts: Counts, places: Counts, kind: Handle, taken: Target, rooms: Counts,
        into: Counts, as_kind: Handle
    );
    /// Alltoallw; the places are C `int`s.
    Typed(
        given: Source, counts: Counts, places: Counts, kinds: Source, taken: Target, rooms: Counts,
        into: Counts, as_kinds: Source
    );
    /// Neighbor_alltoallw; the places are addresses.
    NeighbourTyped(
        given: Source, counts: Counts, places: *const isize, kinds: Source, taken: Target,
        rooms: Counts, into: *const isize,
        as_kinds: Source
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_the_standards_name() {
        for (form, name, earlier) in [
            (Form::Blocking, c"MPI_Bcast", c"MPI_Bcast"),
            (Form::Nonblocking, c"MPI_Ibcast", c"MPI_Ibcast"),
            (Form::Persistent, c"MPI_Bcast_init", c"MPIX_Bcast_init"),
        ] {
            assert_eq!(names(form, "Bcast"), (name.into(), earlier.into()));
        }
        let neighbours = names(Form::Nonblocking, "Neighbor_alltoallw").0;
        assert_eq!(neighbours.as_c_str(), c"MPI_Ineighbor_alltoallw");
    }
}

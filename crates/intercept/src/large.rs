// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls with counts of `MPI_Count` (`MPI_Bcast_c` and so on) for an MPI that does not have them:
//! programs that ask the loader whether there are such functions find ours, so that they must work.
//! They become calls with counts of `int`. Used by entries.

use std::ffi::{c_int, c_void};

use crate::mpi;

/// What a call answers whose counts do not fit: MPI_ERR_COUNT of all interfaces.
pub const ERROR_COUNT: c_int = 2;

/// An argument that may have to become shorter.
pub trait Narrow {
    /// What keeps it while the call lasts.
    type Held: Held;

    /// Makes it shorter, in a call on a communicator; `None` if it does not fit.
    ///
    /// # Safety
    /// A list must have an entry for each rank of the communicator, or be null.
    unsafe fn hold(self, communicator: usize) -> Option<Self::Held>;
}

/// A shorter argument.
pub trait Held {
    /// Its type.
    type Plain;

    /// What is passed on.
    fn plain(&self) -> Self::Plain;
}

/// A value of its own.
#[derive(Debug)]
pub struct Value<T>(T);

impl<T: Copy> Held for Value<T> {
    type Plain = T;

    fn plain(&self) -> T {
        self.0
    }
}

macro_rules! as_it_is {
    ($($kind:ty),*) => {
        $(impl Narrow for $kind {
            type Held = Value<$kind>;

            unsafe fn hold(self, _: usize) -> Option<Value<$kind>> {
                Some(Value(self))
            }
        })*
    };
}

as_it_is!(c_int, usize, *const c_void, *mut c_void);

impl Narrow for i64 {
    type Held = Value<c_int>;

    unsafe fn hold(self, _: usize) -> Option<Value<c_int>> {
        c_int::try_from(self).ok().map(Value)
    }
}

/// A list; `None` for a null pointer.
#[derive(Debug)]
pub struct List(Option<Vec<c_int>>);

impl Held for List {
    type Plain = *const c_int;

    fn plain(&self) -> *const c_int {
        self.0
            .as_ref()
            .map_or(std::ptr::null(), |list| list.as_ptr())
    }
}

impl Narrow for *const i64 {
    type Held = List;

    unsafe fn hold(self, communicator: usize) -> Option<List> {
        if self.is_null() {
            return Some(List(None));
        }
        let mut list = Vec::new();
        for rank in 0..ranks(communicator)? {
            // SAFETY: the caller's promise.
            list.push(c_int::try_from(unsafe { *self.add(rank) }).ok()?);
        }
        Some(List(Some(list)))
    }
}

/// How many ranks there are in lists of calls on a communicator.
fn ranks(communicator: usize) -> Option<usize> {
    let mpi = mpi::of_this_process()?;
    let communicator = mpi.handle(communicator);
    let (mut is_inter, mut ranks) = (0, 0);
    // SAFETY: the program's communicator, and places of ours.
    let code = unsafe {
        (mpi.functions.test_inter)(communicator, &mut is_inter);
        if is_inter == 0 {
            (mpi.functions.size)(communicator, &mut ranks)
        } else {
            (mpi.functions.remote_size)(communicator, &mut ranks)
        }
    };
    usize::try_from(ranks).ok().filter(|_| code == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_does_not_fit_is_refused() {
        // SAFETY: no lists.
        unsafe {
            assert_eq!(7i64.hold(0).map(|held| held.plain()), Some(7));
            assert!((1i64 << 31).hold(0).is_none());
            assert!(std::ptr::null::<i64>().hold(0).unwrap().plain().is_null());
        }
    }
}

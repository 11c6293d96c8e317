// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all objects share: the head of a `fid`, and the calls that most kinds of object do not
//! offer.
//!
//! Used by every module that opens objects. Source: fabric.h.

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use weft_fabric_sys::errno::FI_ENOSYS;
use weft_fabric_sys::fid::{FiOps, Fid};
use weft_os::at_fork;

use crate::inherited;
use crate::refusal::{NotOffered, Refusal};

/// The head of a new object.
pub const fn head(class: usize, context: *mut c_void, ops: &'static FiOps) -> Fid {
    Fid {
        fclass: class,
        context,
        ops,
    }
}

/// A table of the three calls that objects differ in.
pub const fn table(
    close: unsafe extern "C" fn(*mut Fid) -> c_int,
    bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
) -> FiOps {
    FiOps {
        size: size_of::<FiOps>(),
        close,
        bind,
        control,
        ops_open: NotOffered::ANSWER,
        tostr: NotOffered::ANSWER,
        ops_set: NotOffered::ANSWER,
    }
}

/// For objects that nothing can be bound to.
///
/// # Safety
/// None is needed: no argument is looked at.
pub unsafe extern "C" fn no_bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    -FI_ENOSYS
}

/// For objects that take no commands.
///
/// # Safety
/// None is needed: no argument is looked at.
pub unsafe extern "C" fn no_control(_: *mut Fid, _: c_int, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

/// Stores an opened object where the application wants it; in child processes it is disabled.
///
/// # Safety
/// `place` must be valid for writing; the object must be `repr(C)` and begin with the structure of
/// C's that its class names.
pub unsafe fn hand_out<T, F>(object: T, place: *mut *mut F) -> *mut T {
    let object = Box::into_raw(Box::new(object));
    at_fork::in_child(object as usize, inherited::disable);
    // SAFETY: the contract.
    unsafe { *place = object.cast::<F>() };
    object
}

/// Takes an object back that its application closes.
///
/// # Safety
/// It must come from [`hand_out`], and nothing may refer to it any more.
pub unsafe fn take_back<T>(object: *mut T) -> Box<T> {
    at_fork::forget(object as usize, inherited::disable);
    // SAFETY: the contract.
    unsafe { Box::from_raw(object) }
}

/// The object of ours behind a pointer of C's. Fast path.
///
/// # Safety
/// `fid` must come from [`hand_out`] of a `T`, and be open.
#[inline(always)]
pub unsafe fn opened<'a, T>(fid: *const impl Sized) -> &'a T {
    // SAFETY: the contract: the structure of C is the first member of the `T` that was handed out.
    unsafe { &*fid.cast() }
}

/// The class of an object that the application passed, or `None` for null.
///
/// # Safety
/// `fid` must be null or an open object.
pub unsafe fn class_of(fid: *const Fid) -> Option<usize> {
    // SAFETY: the contract.
    unsafe { fid.as_ref() }.map(|fid| fid.fclass)
}

/// How many objects depend on another object, which must not be closed before them. Setup only.
#[derive(Debug, Default)]
pub struct Dependents(Mutex<usize>);

impl Dependents {
    /// None.
    pub const fn none() -> Self {
        Self(Mutex::new(0))
    }

    /// One more.
    pub fn add(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    /// One less.
    pub fn remove(&self) {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
    }

    /// Whether there are any.
    pub fn exist(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) != 0
    }
}

/// An object from which others are opened. It refuses to be closed while any of them is open.
pub trait Parent {
    /// Those that are open.
    fn children(&self) -> &Dependents;
}

/// Held by an object: keeps the object from which it was opened open for as long.
#[derive(Debug)]
pub struct Held<P: Parent>(*const P);

impl<P: Parent> Held<P> {
    /// # Safety
    /// `parent` must be an open object.
    pub unsafe fn new(parent: *const P) -> Self {
        // SAFETY: the contract.
        unsafe { &*parent }.children().add();
        Self(parent)
    }
}

impl<P: Parent> Deref for Held<P> {
    type Target = P;

    #[inline(always)]
    fn deref(&self) -> &P {
        // SAFETY: it was open when it was taken hold of, and cannot be closed before it is let go.
        unsafe { &*self.0 }
    }
}

impl<P: Parent> Drop for Held<P> {
    fn drop(&mut self) {
        self.children().remove();
    }
}

/// A list of open objects. It tells which pointers in hints are objects of ours.
#[derive(Debug, Default)]
pub struct OpenList(Mutex<Vec<usize>>);

impl OpenList {
    /// Nothing is open.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn with<R>(&self, work: impl FnOnce(&mut Vec<usize>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes an opened object.
    pub fn add<T>(&self, object: *const T) {
        self.with(|list| list.push(object as usize));
    }

    /// Forgets a closed object.
    pub fn remove<T>(&self, object: *const T) {
        self.with(|list| list.retain(|&entry| entry != object as usize));
    }

    /// Whether an object is open.
    pub fn contains<T>(&self, object: *const T) -> bool {
        self.with(|list| list.contains(&(object as usize)))
    }
}

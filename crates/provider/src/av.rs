// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Address vectors: insert, look up, remove.
//!
//! Opened from a domain; calls the endpoint crate's vectors. Names are expanded in av_names.
//! Source: fi_av(3).

use std::ffi::{c_char, c_int, c_void};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::{ptr, slice};

use weft_endpoint::{FiAddr, VectorId, VectorKind};
use weft_fabric_sys::av::{FiAvAttr, FidAv};
use weft_fabric_sys::errno::{FI_EBUSY, FI_EINVAL, FI_ENOEQ, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::{FI_CLASS_AV, FI_CLASS_EQ, Fid};
use weft_fabric_sys::flags::{FI_AV_USER_ID, FI_COMPLETION, FI_READ, FI_SYNC_ERR};
use weft_fabric_sys::info::{FI_AV_MAP, FI_AV_TABLE};
use weft_fabric_sys::{FI_ADDR_NOTAVAIL, FiAddr as RawFiAddr};

use crate::address::{self, copy_out};
use crate::av_names;
use crate::domain::Domain;
use crate::eq::{EventQueue, Failure};
use crate::errno;
use crate::lock::Lock;
use crate::object::{Held, class_of, hand_out, head, no_control, opened, table, take_back};
use crate::peer;

/// An address vector.
#[repr(C)]
#[derive(Debug)]
pub struct AddressVector<L> {
    fid: FidAv,
    domain: Held<Domain<L>>,
    id: VectorId,
    /// The application wants the results of insertions as events (FI_EVENT).
    events: bool,
    event_queue: Mutex<Option<*const EventQueue>>,
}

/// The kind of event that reports insertions (specified: FI_AV_COMPLETE).
const INSERTED: u32 = 5;

/// Opens an address vector.
///
/// # Safety
/// The arguments must be those of fi_av_open(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    attr: *mut FiAvAttr,
    vector: *mut *mut FidAv,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the contract; null attributes are checked.
    let (domain, Some(attr)) = (unsafe { Held::new(domain.cast::<Domain<L>>()) }, unsafe {
        attr.as_ref()
    }) else {
        return -FI_EINVAL;
    };
    if vector.is_null() || attr.r#type > FI_AV_TABLE {
        return -FI_EINVAL;
    }
    // Vectors shared between processes under a name, and contexts inside addresses, are not
    // offered.
    if !attr.name.is_null() || attr.flags & FI_READ != 0 || attr.rx_ctx_bits != 0 {
        return -FI_ENOSYS;
    }
    let kind = if attr.r#type == FI_AV_MAP {
        VectorKind::Map
    } else {
        VectorKind::Table
    };
    let fid = FidAv {
        fid: head(
            FI_CLASS_AV,
            context,
            const { &table(close::<L>, bind::<L>, no_control) },
        ),
        ops: L::vector(),
    };
    let id = domain.with(|guarded| guarded.vectors().open(kind));
    let events = attr.flags & FI_COMPLETION != 0;
    let opened = AddressVector {
        fid,
        domain,
        id,
        events,
        event_queue: Mutex::new(None),
    };
    // SAFETY: the place is not null and the application's.
    unsafe { hand_out(opened, vector) };
    FI_SUCCESS
}

impl<L: Lock> AddressVector<L> {
    /// Its name in the endpoint crate.
    pub fn id(&self) -> VectorId {
        self.id
    }

    /// The domain it belongs to.
    pub fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    /// The event queue bound to it.
    fn event_queue(&self) -> Option<&EventQueue> {
        let queue = *self
            .event_queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: an event queue stays open while it has users, of which this vector is one.
        queue.map(|queue| unsafe { &*queue })
    }

    /// Inserts what `addresses` yields; `None` is an address that cannot be used.
    ///
    /// # Safety
    /// `names` must be null or, like `context` with FI_SYNC_ERR, writable for as many entries as
    /// there are addresses.
    unsafe fn insert(
        &self,
        addresses: impl Iterator<Item = Option<SocketAddr>>,
        names: *mut RawFiAddr,
        flags: u64,
        context: *mut c_void,
    ) -> c_int {
        let queue = self.event_queue();
        if self.events && queue.is_none() {
            return -FI_ENOEQ;
        }
        let errors = if flags & FI_SYNC_ERR != 0 {
            context.cast::<c_int>()
        } else {
            ptr::null_mut()
        };
        let mut inserted = 0;
        for (index, address) in addresses.enumerate() {
            let usable = address.filter(|address| address.port() != 0);
            let source = if flags & FI_AV_USER_ID != 0 && !names.is_null() {
                // SAFETY: the contract: with this flag the application's numbers are there.
                Some(FiAddr(unsafe { *names.add(index) }))
            } else {
                None
            };
            let name = usable.and_then(|address| {
                self.domain()
                    .with(|guarded| guarded.vectors().insert_as(self.id, address, source))
                    .ok()
            });
            inserted += c_int::from(name.is_some());
            if let (None, true, Some(queue)) = (name, self.events, queue) {
                queue.push_failure(self.failure(context, index));
            }
            // SAFETY: the contract.
            unsafe {
                if !names.is_null() {
                    *names.add(index) = name.map_or(FI_ADDR_NOTAVAIL, |name| name.0);
                }
                if !errors.is_null() {
                    *errors.add(index) = if name.is_some() {
                        FI_SUCCESS
                    } else {
                        FI_EINVAL
                    };
                }
            }
        }
        let owners = self.domain().owners().clone();
        for owner in owners {
            // SAFETY: it is taken out of the list before its endpoint is closed.
            unsafe { peer::name_sources::<L>(owner) };
        }
        if let (true, Some(queue)) = (self.events, queue) {
            queue.push(INSERTED, self.event(context, inserted));
            return FI_SUCCESS;
        }
        inserted
    }

    /// The error entry for the address at an index.
    fn failure(&self, context: *mut c_void, index: usize) -> Failure {
        Failure {
            fid: (&raw const *self).cast_mut().cast(),
            context,
            data: index as u64,
            code: FI_EINVAL,
        }
    }

    /// The bytes of `struct fi_eq_entry`: this object, the context, how many were inserted.
    fn event(&self, context: *mut c_void, inserted: c_int) -> Vec<u8> {
        let words = [
            &raw const *self as usize,
            context as usize,
            inserted as usize,
        ];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn insert<L: Lock>(
    vector: *mut FidAv,
    addresses: *const c_void,
    count: usize,
    names: *mut RawFiAddr,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if addresses.is_null() && count > 0 {
        return -FI_EINVAL;
    }
    let mut next = addresses.cast::<u8>();
    let each = (0..count).map(move |_| {
        // SAFETY: the application passes `count` addresses one after the other, each as long as its
        // family says.
        unsafe {
            let address = address::from_raw(next.cast());
            next = next.add(
                address
                    .as_ref()
                    .map_or(size_of::<libc::sockaddr_in>(), address::raw_length_bytes),
            );
            address
        }
    });
    // SAFETY: the arguments are those of fi_av_insert(3).
    unsafe { opened::<AddressVector<L>>(vector).insert(each, names, flags, context) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn insert_service<L: Lock>(
    vector: *mut FidAv,
    node: *const c_char,
    service: *const c_char,
    name: *mut RawFiAddr,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of fi_av_insertsvc(3): one node, one service.
    unsafe { insert_range::<L>(vector, node, 1, service, 1, name, flags, context) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn insert_range<L: Lock>(
    vector: *mut FidAv,
    node: *const c_char,
    node_count: usize,
    service: *const c_char,
    service_count: usize,
    names: *mut RawFiAddr,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if node.is_null() || service.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the application passes C strings.
    let range = unsafe { av_names::Range::new(node, node_count, service, service_count) };
    let Some(range) = range else {
        return -FI_EINVAL;
    };
    // SAFETY: the arguments are those of fi_av_insertsym(3).
    unsafe {
        opened::<AddressVector<L>>(vector).insert(range.addresses(flags), names, flags, context)
    }
}

pub(crate) unsafe extern "C" fn remove<L: Lock>(
    vector: *mut FidAv,
    names: *mut RawFiAddr,
    count: usize,
    flags: u64,
) -> c_int {
    if flags != 0 || (names.is_null() && count > 0) {
        return -FI_EINVAL;
    }
    // SAFETY: this table belongs to address vectors of this kind of lock only; the application
    // passes `count` names.
    let (vector, names) = unsafe {
        let names = if count == 0 {
            &[]
        } else {
            slice::from_raw_parts(names, count)
        };
        (opened::<AddressVector<L>>(vector), names)
    };
    let mut answer = FI_SUCCESS;
    for &name in names {
        let removed = vector
            .domain()
            .with(|guarded| guarded.vectors().remove(vector.id, FiAddr(name)));
        if removed.is_err() {
            answer = -FI_EINVAL;
        }
    }
    answer
}

pub(crate) unsafe extern "C" fn lookup<L: Lock>(
    vector: *mut FidAv,
    name: RawFiAddr,
    buffer: *mut c_void,
    length: *mut usize,
) -> c_int {
    if length.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: this table belongs to address vectors of this kind of lock only.
    let vector = unsafe { opened::<AddressVector<L>>(vector) };
    match vector
        .domain()
        .with(|guarded| guarded.vectors().lookup(vector.id, FiAddr(name)))
    {
        Ok(address) => {
            // SAFETY: the application's buffer is writable for the length it says (fi_av(3)).
            unsafe { copy_out(&address, buffer, length) };
            FI_SUCCESS
        }
        Err(_) => -FI_EINVAL,
    }
}

unsafe extern "C" fn bind<L: Lock>(fid: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    // SAFETY: null or an open object of the application.
    if unsafe { class_of(other) } != Some(FI_CLASS_EQ) {
        return -FI_EINVAL;
    }
    // SAFETY: this table belongs to address vectors of this kind of lock only; the class says what
    // the other is.
    let (vector, queue) = unsafe {
        (
            opened::<AddressVector<L>>(fid),
            other.cast::<EventQueue>().cast_const(),
        )
    };
    let mut bound = vector
        .event_queue
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if bound.is_some() {
        return -FI_EBUSY;
    }
    *bound = Some(queue);
    // SAFETY: the application passed an open event queue.
    unsafe { &*queue }.users().add();
    FI_SUCCESS
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to address vectors of this kind of lock only.
    let vector = unsafe { opened::<AddressVector<L>>(fid) };
    let closed = errno::code(
        vector
            .domain()
            .with(|guarded| guarded.vectors().close(vector.id)),
    );
    if closed == FI_SUCCESS {
        if let Some(queue) = vector.event_queue() {
            queue.users().remove();
        }
        // SAFETY: it came from `hand_out`, and nothing refers to it any more.
        drop(unsafe { take_back(fid.cast::<AddressVector<L>>()) });
    }
    closed
}

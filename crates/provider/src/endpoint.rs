// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints: opening, binding, enabling, their address, closing.
//!
//! Opened from a domain; its messages are in message and tagged, its options in options. Source:
//! fi_endpoint(3), fi_cm(3).

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use weft_endpoint::{EndpointId, EndpointSettings, Error, QueueBinding};
use weft_fabric_sys::endpoint::EndpointObject;
use weft_fabric_sys::errno::*;
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::fid::*;
use weft_fabric_sys::flags::*;
use weft_fabric_sys::info::{FI_EP_RDM, FI_EP_UNSPEC, FiInfo};
use weft_fabric_sys::peer::FidPeerSrx;
use weft_fabric_sys::version::fi_version;

use crate::address::{self, copy_out};
use crate::av::AddressVector;
use crate::counter::Counter;
use crate::cq::Queue;
use crate::domain::Domain;
use crate::hints::Hints;
use crate::lock::Lock;
use crate::log::{Subsystem, warn};
use crate::object::{Held, class_of, hand_out, head, opened, table, take_back};
use crate::peer::SharedReceives;
use crate::routes::Guarded;
use crate::{errno, offer, parameters, report, usage};

/// An endpoint.
#[repr(C)]
#[derive(Debug)]
pub struct Endpoint<L> {
    fid: EndpointObject,
    domain: Held<Domain<L>>,
    id: EndpointId,
    /// Completion queues that are bound to it.
    queues: Mutex<Vec<*const Queue<L>>>,
    /// Counters that are bound to it.
    counters: Mutex<Vec<*const Counter<L>>>,
    /// The provider that owns its receives, if another one does.
    owner: OnceLock<*mut FidPeerSrx>,
}

/// Opens an endpoint.
///
/// # Safety
/// The arguments must be those of fi_endpoint(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    info: *mut FiInfo,
    endpoint: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || endpoint.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: an application's fi_info, of which only members that every version has are read.
    let asked = unsafe { Hints::read(info, fi_version(1, 17)) };
    let settings = match settings(&asked) {
        Ok(settings) => settings,
        Err(code) => return -code,
    };
    // SAFETY: the contract.
    let domain = unsafe { Held::new(domain.cast::<Domain<L>>()) };
    let id = domain.with(|guarded| guarded.endpoints().open(settings));
    let opened = Endpoint {
        fid: fid::<L>(context),
        domain,
        id,
        queues: Mutex::default(),
        counters: Mutex::default(),
        owner: OnceLock::new(),
    };
    // SAFETY: the place is not null and the application's.
    unsafe { hand_out(opened, endpoint) };
    FI_SUCCESS
}

pub(crate) unsafe extern "C" fn open_with_flags<L: Lock>(
    domain: *mut FidDomain,
    info: *mut FiInfo,
    endpoint: *mut *mut FidEp,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_ENOSYS;
    }
    // SAFETY: the arguments are those of fi_endpoint(3).
    unsafe { open::<L>(domain, info, endpoint, context) }
}

/// What the application's info asks of the endpoint.
fn settings(asked: &Hints) -> Result<EndpointSettings, c_int> {
    if !matches!(asked.endpoint.r#type, FI_EP_UNSPEC | FI_EP_RDM) {
        return Err(FI_EINVAL);
    }
    if asked.endpoint.tx_ctx_cnt > 1 || asked.endpoint.rx_ctx_cnt > 1 {
        return Err(FI_ENOSYS);
    }
    let (transmit_flags, receive_flags) = (asked.transmit.op_flags, asked.receive.op_flags);
    if transmit_flags & !offer::TRANSMIT_FLAGS != 0 || receive_flags & !offer::RECEIVE_FLAGS != 0 {
        return Err(FI_EBADFLAGS);
    }
    let caps = asked.info.caps | asked.receive.caps;
    // SAFETY: an application's address is as long as its family says (fi_getinfo(3)).
    let mut address = unsafe { address::from_raw(asked.info.src_addr) };
    // The address of nobody in particular, as fi_getinfo gives it to servers: this host's usual
    // one, and all others.
    let everywhere = address.is_some_and(|address| address.ip().is_unspecified());
    if let (true, Some(address)) = (everywhere, &mut address) {
        let settings = parameters::settings().ok_or(FI_EINVAL)?;
        address.set_ip(address::default_for(address.ip(), settings));
    }
    Ok(EndpointSettings {
        address,
        everywhere,
        transmit_flags,
        receive_flags,
        source: caps & FI_SOURCE != 0,
        directed_receive: caps & FI_DIRECTED_RECV != 0,
        accesses_after_sends: asked.transmit.msg_order & (FI_ORDER_RAS | FI_ORDER_WAS) != 0,
    })
}

fn fid<L: Lock>(context: *mut c_void) -> EndpointObject {
    EndpointObject {
        fid: head(
            FI_CLASS_EP,
            context,
            const { &table(close::<L>, bind::<L>, control::<L>) },
        ),
        ops: L::endpoint(),
        cm: L::names(),
        msg: L::messages(),
        rma: L::remote_memory(),
        tagged: L::tagged(),
        atomic: L::atomics(),
        collective: std::ptr::null(),
    }
}

impl<L: Lock> Endpoint<L> {
    /// The domain it belongs to.
    #[inline(always)]
    pub fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    /// The endpoint crate's domain, and this endpoint's name there; no other thread uses the domain
    /// until the result is dropped. Fast path.
    ///
    /// # Safety
    /// As for [`Lock::enter`].
    #[inline(always)]
    pub unsafe fn enter(&self) -> (L::Entered<'_>, EndpointId) {
        // SAFETY: the contract.
        (unsafe { self.domain().enter() }, self.id)
    }

    /// Calls `work` with the endpoint crate's domain and this endpoint's name there.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&mut Guarded, EndpointId) -> R) -> R {
        self.domain().with(|guarded| work(guarded, self.id))
    }

    /// # Safety
    /// `other` must be an open object whose class is one of those handled here, and ours.
    unsafe fn bind(&self, other: *mut Fid, class: usize, flags: u64) -> c_int {
        match class {
            FI_CLASS_EQ => FI_SUCCESS,
            // SAFETY: the class says what the object is.
            FI_CLASS_AV => self.bind_vector(unsafe { &*other.cast::<AddressVector<L>>() }),
            // SAFETY: the class says what the object is.
            FI_CLASS_CQ => self.bind_queue(unsafe { &*other.cast::<Queue<L>>() }, flags),
            // SAFETY: the class says what the object is.
            FI_CLASS_SRX_CTX => self.bind_receives(unsafe { &*other.cast::<SharedReceives<L>>() }),
            // SAFETY: the class says what the object is.
            FI_CLASS_CNTR => self.bind_counter(unsafe { &*other.cast::<Counter<L>>() }, flags),
            _ => -FI_EINVAL,
        }
    }

    fn bind_vector(&self, vector: &AddressVector<L>) -> c_int {
        if !self.is_sibling(vector.domain()) {
            return -FI_EDOMAIN;
        }
        errno::code(self.with(|guarded, id| guarded.endpoints().bind_vector(id, vector.id())))
    }

    fn bind_queue(&self, queue: &Queue<L>, flags: u64) -> c_int {
        if !self.is_sibling(queue.domain()) {
            return -FI_EDOMAIN;
        }
        if flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 {
            return -FI_EBADFLAGS;
        }
        let binding = QueueBinding {
            transmit: flags & FI_TRANSMIT != 0,
            receive: flags & FI_RECV != 0,
            selective: flags & FI_SELECTIVE_COMPLETION != 0,
        };
        let bound = errno::code(
            self.with(|guarded, id| guarded.endpoints().bind_queue(id, queue.id(), binding)),
        );
        if bound == FI_SUCCESS {
            self.queues
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(&raw const *queue);
        }
        bound
    }

    fn bind_counter(&self, counter: &Counter<L>, flags: u64) -> c_int {
        if !self.is_sibling(counter.domain()) {
            return -FI_EDOMAIN;
        }
        let bound = errno::code(
            self.with(|guarded, id| guarded.endpoints().bind_counter(id, counter.id(), flags)),
        );
        if bound == FI_SUCCESS {
            self.counters
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(&raw const *counter);
        }
        bound
    }

    fn bind_receives(&self, receives: &SharedReceives<L>) -> c_int {
        if !self.is_sibling(receives.domain()) {
            return -FI_EDOMAIN;
        }
        let bound = errno::code(self.with(|guarded, id| {
            guarded
                .endpoints()
                .bind_shared_context(id, Box::new(receives.import(id)))
        }));
        if bound == FI_SUCCESS {
            self.owner.set(receives.owner()).ok();
            self.domain().owners().push(receives.owner());
        }
        bound
    }

    fn is_sibling(&self, domain: &Domain<L>) -> bool {
        std::ptr::eq(self.domain(), domain)
    }

    fn enable(&self) -> c_int {
        let enabled = self.with(|guarded, id| guarded.endpoints().enable(id));
        match enabled {
            Ok(()) => {}
            Err(Error::NotBound) => return -FI_ENOAV,
            Err(error) => {
                let words = self.with(|guarded, _| guarded.last_failure().map(str::to_owned));
                let why =
                    words.map_or_else(|| error.to_string(), |words| format!("{error}: {words}"));
                warn(
                    Subsystem::Endpoint,
                    format_args!("the endpoint cannot be enabled: {why}"),
                );
                report::line(&format!("the endpoint cannot be enabled: {why}"));
                return -errno::number(error);
            }
        }
        self.wake_readers();
        usage::opened();
        FI_SUCCESS
    }

    /// Has everybody who may sleep learn of the new transport.
    fn wake_readers(&self) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for &queue in queues.iter() {
            // SAFETY: a queue cannot be closed while it is bound to an endpoint.
            let queue = unsafe { &*queue };
            queue
                .waiter
                .learn_transports(self.domain(), queue.id().into());
        }
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        for &counter in counters.iter() {
            // SAFETY: a counter cannot be closed while it is bound to an endpoint.
            let counter = unsafe { &*counter };
            counter
                .waiter
                .learn_transports(self.domain(), counter.id().into());
        }
        self.domain().learn_transports();
    }

    /// The flags of the side that `sides` names.
    fn flags_of(&self, sides: u64) -> Result<u64, c_int> {
        let (transmit, receive) = self
            .with(|guarded, id| guarded.endpoints().operation_flags(id))
            .map_err(errno::number)?;
        match sides & (FI_TRANSMIT | FI_RECV) {
            FI_TRANSMIT => Ok(transmit),
            FI_RECV => Ok(receive),
            _ => Err(FI_EINVAL),
        }
    }

    /// Sets the flags of the side that they name.
    fn set_flags(&self, flags: u64) -> Result<(), c_int> {
        let side = flags & (FI_TRANSMIT | FI_RECV);
        let flags = flags & !(FI_TRANSMIT | FI_RECV);
        let (offered, transmits) = match side {
            FI_TRANSMIT => (offer::TRANSMIT_FLAGS, true),
            FI_RECV => (offer::RECEIVE_FLAGS, false),
            _ => return Err(FI_EINVAL),
        };
        if flags & !offered != 0 {
            return Err(FI_EBADFLAGS);
        }
        let set = self.with(|guarded, id| {
            let (transmit, receive) = guarded.endpoints().operation_flags(id)?;
            if transmits {
                guarded.endpoints().set_operation_flags(id, flags, receive)
            } else {
                guarded.endpoints().set_operation_flags(id, transmit, flags)
            }
        });
        set.map_err(errno::number)
    }
}

unsafe extern "C" fn bind<L: Lock>(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: null or an open object of the application.
    let Some(class) = (unsafe { class_of(other) }) else {
        return -FI_EINVAL;
    };
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    unsafe { opened::<Endpoint<L>>(fid).bind(other, class, flags) }
}

unsafe extern "C" fn control<L: Lock>(
    fid: *mut Fid,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(fid) };
    match command {
        FI_ENABLE => endpoint.enable(),
        FI_GETOPSFLAG | FI_SETOPSFLAG if argument.is_null() => -FI_EINVAL,
        FI_GETOPSFLAG | FI_SETOPSFLAG => {
            // SAFETY: both commands take a pointer to flags, which name one side (fi_endpoint(3)).
            let flags = unsafe { &mut *argument.cast::<u64>() };
            let done = if command == FI_SETOPSFLAG {
                endpoint.set_flags(*flags)
            } else {
                endpoint.flags_of(*flags).map(|found| *flags = found)
            };
            done.map_or_else(|code| -code, |()| FI_SUCCESS)
        }
        _ => -FI_ENOSYS,
    }
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(fid) };
    // Told first: what is owed to remotes may keep the endpoint open for a while, and a launcher
    // may not wait.
    if let Ok(carried) = endpoint.with(|guarded, id| guarded.endpoints().statistics(id)) {
        usage::closed(&carried);
    }
    let closed = errno::code(endpoint.with(|guarded, id| guarded.endpoints().close(id)));
    if closed == FI_SUCCESS {
        if let Some(owner) = endpoint.owner.get() {
            let mut owners = endpoint.domain().owners();
            if let Some(index) = owners.iter().position(|known| known == owner) {
                owners.swap_remove(index);
            }
        }
        // SAFETY: it came from `hand_out`, and nothing refers to it any more.
        drop(unsafe { take_back(fid.cast::<Endpoint<L>>()) });
    }
    closed
}

pub(crate) unsafe extern "C" fn getname<L: Lock>(
    fid: *mut Fid,
    buffer: *mut c_void,
    length: *mut usize,
) -> c_int {
    if length.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(fid) };
    match endpoint.with(|guarded, id| guarded.endpoints().local_address(id)) {
        // SAFETY: the application's buffer is writable for the length it says (fi_cm(3)).
        Ok(address) if unsafe { copy_out(&address, buffer, length) } => FI_SUCCESS,
        Ok(_) => -FI_ETOOSMALL,
        Err(error) => -errno::number(error),
    }
}

pub(crate) unsafe extern "C" fn setname<L: Lock>(
    fid: *mut Fid,
    name: *mut c_void,
    length: usize,
) -> c_int {
    if name.is_null() || length < size_of::<libc::sockaddr_in>() {
        return -FI_EINVAL;
    }
    // SAFETY: the application's address is at least as long as the shorter of the two forms, and
    // says which it is.
    let address = unsafe { address::from_raw(name) };
    let Some(address) = address.filter(|address| length >= address::raw_length_bytes(address))
    else {
        return -FI_EINVAL;
    };
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(fid) };
    errno::code(endpoint.with(|guarded, id| guarded.endpoints().set_address(id, address)))
}

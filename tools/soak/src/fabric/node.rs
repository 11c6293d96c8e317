// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One endpoint with its domain, address vector, completion queue and registered memory.
//!
//! Opened and closed by the worker; post and completion act on it. Source: fi_endpoint(3),
//! fi_domain(3), fi_mr(3).

use std::ffi::{CString, c_int, c_void};
use std::net::SocketAddr;
use std::ptr;

use weft_fabric_sys::av::{FiAvAttr, FidAv};
use weft_fabric_sys::cq::{FI_CQ_FORMAT_TAGGED, FiCqAttr, FidCq};
use weft_fabric_sys::domain::DomainObject;
use weft_fabric_sys::endpoint::{EndpointObject, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV};
use weft_fabric_sys::fabric::FabricObject;
use weft_fabric_sys::fid::{FI_ENABLE, Fid, FidDomain, FidEp, FidFabric};
use weft_fabric_sys::flags::*;
use weft_fabric_sys::info::{FI_AV_TABLE, FI_EP_RDM, FiInfo};
use weft_fabric_sys::mr::FidMr;
use weft_fabric_sys::version::fi_version;

use super::in_flight::InFlight;
use super::registered_memory::{MEMORY_KEY, RegisteredMemory};
use super::{Failure, Library};

/// How to open an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct NodeOptions {
    /// Its own address, with the port.
    pub address: SocketAddr,
    /// Entries of the completion queue; 0 leaves it to the provider.
    pub queue_entries: usize,
    /// Bytes of memory that it registers.
    pub registered_bytes: usize,
    /// Bytes that must be left in a multi-receive buffer.
    pub least_left_bytes: usize,
}

/// An endpoint with its tables of functions.
pub(super) fn object(endpoint: *mut FidEp) -> *mut EndpointObject {
    endpoint.cast()
}

/// An open endpoint.
pub struct Node {
    library: Library,
    pub(super) endpoint: *mut FidEp,
    pub(super) queue: *mut FidCq,
    vector: *mut FidAv,
    region: *mut FidMr,
    domain: *mut FidDomain,
    fabric: *mut FidFabric,
    info: *mut FiInfo,
    pub(super) memory: RegisteredMemory,
    pub(super) in_flight: InFlight,
}

impl Node {
    /// Opens an endpoint of the provider `weft` at its address. Set-up.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(library: Library, options: &NodeOptions) -> Result<Self, Failure> {
        let info = info(&library, options.address)?;
        let mut node = Self {
            library,
            endpoint: ptr::null_mut(),
            queue: ptr::null_mut(),
            vector: ptr::null_mut(),
            region: ptr::null_mut(),
            domain: ptr::null_mut(),
            fabric: ptr::null_mut(),
            info,
            memory: RegisteredMemory::new(options.registered_bytes),
            in_flight: InFlight::default(),
        };
        node.open_all(options)?;
        Ok(node)
    }

    fn open_all(&mut self, options: &NodeOptions) -> Result<(), Failure> {
        let mut queue = FiCqAttr {
            size: options.queue_entries,
            flags: 0,
            format: FI_CQ_FORMAT_TAGGED,
            wait_obj: 0,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: ptr::null_mut(),
            xpu_ctx: ptr::null_mut(),
        };
        let mut vector = FiAvAttr {
            r#type: FI_AV_TABLE,
            rx_ctx_bits: 0,
            count: 0,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let nothing = ptr::null_mut::<c_void>();
        // SAFETY: each call takes objects that the calls before it have opened, and attributes that
        // live through the call.
        unsafe {
            let attributes = (*self.info).fabric_attr;
            let open = self.library.open_fabric;
            let code = open(attributes, &raw mut self.fabric, nothing);
            self.check("fi_fabric", code)?;
            let open = (*(*self.fabric.cast::<FabricObject>()).ops).domain;
            let code = open(self.fabric, self.info, &raw mut self.domain, nothing);
            self.check("fi_domain", code)?;
            let ops = &*(*self.domain.cast::<DomainObject>()).ops;
            let code = (ops.endpoint)(self.domain, self.info, &raw mut self.endpoint, nothing);
            self.check("fi_endpoint", code)?;
            let code = (ops.av_open)(self.domain, &raw mut vector, &raw mut self.vector, nothing);
            self.check("fi_av_open", code)?;
            let code = (ops.cq_open)(self.domain, &raw mut queue, &raw mut self.queue, nothing);
            self.check("fi_cq_open", code)?;
        }
        self.register()?;
        self.bind_and_enable(options.least_left_bytes)
    }

    /// Registers the memory, for others to read and write.
    fn register(&mut self) -> Result<(), Failure> {
        let access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
        // SAFETY: the domain is open; the memory lives until the region is closed.
        let code = unsafe {
            ((*(*self.domain.cast::<DomainObject>()).mr).reg)(
                self.domain.cast(),
                self.memory.base().cast_const().cast(),
                self.memory.length_bytes(),
                access,
                0,
                MEMORY_KEY,
                0,
                &raw mut self.region,
                ptr::null_mut(),
            )
        };
        self.check("fi_mr_reg", code)
    }

    fn bind_and_enable(&mut self, least_left_bytes: usize) -> Result<(), Failure> {
        let endpoint: *mut Fid = self.endpoint.cast();
        // SAFETY: all objects are open; options are read during the call.
        unsafe {
            let ops = &*(*endpoint).ops;
            let code = (ops.bind)(endpoint, self.vector.cast(), 0);
            self.check("fi_ep_bind", code)?;
            let code = (ops.bind)(endpoint, self.queue.cast(), FI_TRANSMIT | FI_RECV);
            self.check("fi_ep_bind", code)?;
            let code = (ops.control)(endpoint, FI_ENABLE, ptr::null_mut());
            self.check("fi_enable", code)?;
            let code = ((*(*object(self.endpoint)).ops).setopt)(
                endpoint,
                FI_OPT_ENDPOINT,
                FI_OPT_MIN_MULTI_RECV,
                (&raw const least_left_bytes).cast(),
                size_of::<usize>(),
            );
            self.check("fi_setopt", code)
        }
    }

    /// Names a remote, perhaps again after it was restarted. Slow path.
    ///
    /// # Errors
    /// The address is not taken.
    pub fn name(&mut self, address: SocketAddr) -> Result<u64, Failure> {
        let raw = raw_address(address);
        let mut number = 0;
        // SAFETY: the vector is open; one address of its format, one place for the answer.
        let count = unsafe {
            ((*(*self.vector).ops).insert)(
                self.vector,
                raw.as_ptr().cast(),
                1,
                &raw mut number,
                0,
                ptr::null_mut(),
            )
        };
        self.check("fi_av_insert", if count == 1 { 0 } else { count.min(-1) })?;
        Ok(number)
    }

    /// Closes everything, in order.
    ///
    /// # Errors
    /// The first object that cannot be closed; the rest stays open then.
    pub fn close(mut self) -> Result<(), Failure> {
        self.close_all()
    }

    /// Closes the endpoint alone, as a forked child does that cleans up after itself.
    pub fn close_endpoint(&mut self) {
        let _ = close(
            &self.library,
            &mut self.endpoint,
            "fi_close of the endpoint",
        );
    }

    fn close_all(&mut self) -> Result<(), Failure> {
        close(
            &self.library,
            &mut self.endpoint,
            "fi_close of the endpoint",
        )?;
        close(
            &self.library,
            &mut self.region,
            "fi_close of the memory registration",
        )?;
        close(&self.library, &mut self.queue, "fi_close of the queue")?;
        close(&self.library, &mut self.vector, "fi_close of the vector")?;
        close(&self.library, &mut self.domain, "fi_close of the domain")?;
        close(&self.library, &mut self.fabric, "fi_close of the fabric")?;
        if !self.info.is_null() {
            // SAFETY: it came from fi_getinfo and is freed once.
            unsafe { (self.library.free_info)(self.info) };
            self.info = ptr::null_mut();
        }
        Ok(())
    }

    /// A number that changes when something arrives in a buffer under way, as good as surely.
    pub fn arriving(&self) -> u64 {
        self.in_flight.arriving()
    }

    /// What libfabric calls an error number; positive.
    pub fn error_text(&self, error: i32) -> String {
        self.library.error_text(error)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        outcome(&self.library, call, code)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.close_all().is_err() {
            // Something may still write there: better never freed than freed too early.
            std::mem::forget(std::mem::take(&mut self.in_flight));
            self.memory.forget();
        }
    }
}

fn outcome(library: &Library, call: &'static str, code: c_int) -> Result<(), Failure> {
    if code == 0 {
        return Ok(());
    }
    Err(Failure::Call {
        call,
        error: -code,
        text: library.error_text(-code),
    })
}

/// Closes one object if it is open.
fn close<T>(library: &Library, object: &mut *mut T, call: &'static str) -> Result<(), Failure> {
    if object.is_null() {
        return Ok(());
    }
    let fid: *mut Fid = object.cast();
    // SAFETY: every object begins with its head, and it is closed once: the pointer is taken away
    // on success.
    let code = unsafe { ((*(*fid).ops).close)(fid) };
    outcome(library, call, code)?;
    *object = ptr::null_mut();
    Ok(())
}

/// What the provider offers at this address.
fn info(library: &Library, address: SocketAddr) -> Result<*mut FiInfo, Failure> {
    let node = CString::new(address.ip().to_string()).unwrap_or_default();
    let service = CString::new(address.port().to_string()).unwrap_or_default();
    // SAFETY: hints are made and freed by libfabric; the name is freed with them, hence strdup.
    unsafe {
        let hints = (library.duplicate_info)(ptr::null());
        (*(*hints).fabric_attr).prov_name = libc::strdup(c"weft".as_ptr());
        (*(*hints).ep_attr).r#type = FI_EP_RDM;
        (*(*hints).domain_attr).av_type = FI_AV_TABLE;
        (*hints).caps = FI_MSG
            | FI_TAGGED
            | FI_RMA
            | FI_ATOMIC
            | FI_DIRECTED_RECV
            | FI_SOURCE
            | FI_MULTI_RECV
            | FI_LOCAL_COMM
            | FI_REMOTE_COMM;
        let mut found = ptr::null_mut();
        let code = (library.get_info)(
            fi_version(1, 17),
            node.as_ptr(),
            service.as_ptr(),
            FI_SOURCE | FI_NUMERICHOST,
            hints,
            &raw mut found,
        );
        (library.free_info)(hints);
        outcome(library, "fi_getinfo", code)?;
        Ok(found)
    }
}

/// An IPv4 address in C's form (ip(7)).
fn raw_address(address: SocketAddr) -> Vec<u8> {
    let mut raw = vec![0; size_of::<libc::sockaddr_in>()];
    raw[0..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    raw[2..4].copy_from_slice(&address.port().to_be_bytes());
    if let SocketAddr::V4(address) = address {
        raw[4..8].copy_from_slice(&address.ip().octets());
    }
    raw
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `fi_getinfo`: one offer, fitted to the application's hints, with its addresses resolved.
//!
//! Called by the host through `fi_provider.getinfo`; uses hints, offer, address, c_memory. Source:
//! fi_getinfo(3).

use std::ffi::{CStr, c_char, c_int};
use std::net::SocketAddr;
use std::ptr;

use weft_fabric_sys::errno::{FI_EINVAL, FI_ENODATA, FI_ENOMEM, FI_SUCCESS};
use weft_fabric_sys::flags::*;
use weft_fabric_sys::info::*;
use weft_fabric_sys::version::VERSION_ERR_DATA_SIZE;

use crate::address::{self, Lookup};
use crate::c_memory::{NoMemory, free_info, place, place_bytes, place_name};
use crate::hints::Hints;
use crate::log::{Subsystem, info as log_info};
use crate::parameters::{self, Settings};
use crate::{domain, fabric, host, offer};

/// `fi_getinfo` as the host calls it.
///
/// # Safety
/// The arguments must be those of fi_getinfo(3).
// structure: allow arguments because libfabric's callers pass them so
pub unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const FiInfo,
    info: *mut *mut FiInfo,
) -> c_int {
    if info.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the host passes null or C strings, and hints of its own version.
    let (node, service, hints) = unsafe {
        (
            c_str(node),
            c_str(service),
            Hints::read(hints, host::version()),
        )
    };
    let names = Names {
        node,
        service,
        flags,
    };
    match answer(version, &names, &hints) {
        Ok(found) => {
            // SAFETY: not null, and the host's to be written.
            unsafe { *info = found };
            FI_SUCCESS
        }
        Err(code) => -code,
    }
}

/// The names in a call of fi_getinfo.
struct Names<'a> {
    node: Option<&'a CStr>,
    service: Option<&'a CStr>,
    flags: u64,
}

/// Reads a C string.
///
/// # Safety
/// `text` must be null or a C string that lives for `'a`.
unsafe fn c_str<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: not null here, a C string by contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

fn answer(version: u32, names: &Names<'_>, hints: &Hints) -> Result<*mut FiInfo, c_int> {
    let Some(settings) = parameters::settings() else {
        return Err(FI_EINVAL);
    };
    let refuse = |why: &str| {
        log_info(
            Subsystem::Core,
            format_args!("nothing to offer: the hints ask for {why}"),
        );
        FI_ENODATA
    };
    hints.check().map_err(refuse)?;
    if hints.transmit.inject_size > settings.inject_size_bytes {
        return Err(refuse("longer injected messages"));
    }
    if !fabric::is_open(hints.fabric.fabric) || !domain::is_open(hints.domain.domain) {
        return Err(refuse("a fabric or domain that is not open here"));
    }
    let addresses = Addresses::find(names, hints, settings)
        .ok_or_else(|| refuse("an address that does not resolve"))?;
    build(version, hints, settings, &addresses).map_err(|NoMemory| FI_ENOMEM)
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addresses {
    local: SocketAddr,
    target: Option<SocketAddr>,
}

impl Addresses {
    fn find(names: &Names<'_>, hints: &Hints, settings: &Settings) -> Option<Self> {
        // SAFETY: an application's addresses are as long as their families say (fi_getinfo(3)).
        let (hinted_local, hinted_target) = unsafe {
            (
                address::from_raw(hints.info.src_addr),
                address::from_raw(hints.info.dest_addr),
            )
        };
        let family = match hints.info.addr_format {
            FI_SOCKADDR_IN => libc::AF_INET,
            FI_SOCKADDR_IN6 => libc::AF_INET6,
            _ => libc::AF_UNSPEC,
        };
        let lookup = Lookup::with_flags(family, names.flags);
        let named = names.node.is_some() || names.service.is_some();
        let names_local = names.flags & FI_SOURCE != 0;
        let target = if named && !names_local {
            Some(address::resolve(names.node, names.service, lookup)?)
        } else {
            hinted_target
        };
        let local = if named && names_local {
            let mut local = address::resolve(names.node, names.service, lookup)?;
            if names.node.is_none() {
                local.set_ip(address::for_server(&local, lookup.family, settings));
            }
            local
        } else if let Some(local) = hinted_local {
            local
        } else {
            let towards = target.and_then(address::local_towards);
            SocketAddr::new(
                towards.unwrap_or_else(|| address::default_address(lookup.family, settings)),
                0,
            )
        };
        let fits = |address: &SocketAddr| match family {
            libc::AF_INET => address.is_ipv4(),
            libc::AF_INET6 => address.is_ipv6(),
            _ => true,
        };
        (fits(&local) && target.as_ref().is_none_or(fits)).then_some(Self { local, target })
    }
}

fn build(
    version: u32,
    hints: &Hints,
    settings: &Settings,
    addresses: &Addresses,
) -> Result<*mut FiInfo, NoMemory> {
    let caps = granted_caps(hints.info.caps, offer::CAPS);
    let info = place(FiInfo {
        next: ptr::null_mut(),
        caps,
        mode: 0,
        addr_format: address::format(&addresses.local),
        src_addrlen: 0,
        dest_addrlen: 0,
        src_addr: ptr::null_mut(),
        dest_addr: ptr::null_mut(),
        handle: ptr::null_mut(),
        tx_attr: ptr::null_mut(),
        rx_attr: ptr::null_mut(),
        ep_attr: ptr::null_mut(),
        domain_attr: ptr::null_mut(),
        fabric_attr: ptr::null_mut(),
        nic: ptr::null_mut(),
    })?;
    // SAFETY: `info` was just placed, nobody else knows it, and its pointers are null or placed.
    let parts = unsafe { &mut *info };
    fill(parts, version, hints, settings, addresses)
        .map(|()| info)
        .inspect_err(|NoMemory| {
            // SAFETY: placed by `place`, with pointers that are null or placed; nothing uses
            // `parts` after this.
            unsafe { free_info(info) };
        })
}

fn fill(
    info: &mut FiInfo,
    version: u32,
    hints: &Hints,
    settings: &Settings,
    addresses: &Addresses,
) -> Result<(), NoMemory> {
    info.src_addr = place_bytes(address::to_raw(&addresses.local).as_bytes())?;
    info.src_addrlen = address::raw_length_bytes(&addresses.local);
    if let Some(target) = addresses.target {
        info.dest_addr = place_bytes(address::to_raw(&target).as_bytes())?;
        info.dest_addrlen = address::raw_length_bytes(&target);
    }
    info.tx_attr = place(transmit(info.caps, hints, settings))?;
    info.rx_attr = place(receive(info.caps, hints))?;
    info.ep_attr = place(endpoint())?;
    info.domain_attr = place(domain_attributes(version, hints))?;
    info.fabric_attr = place(FiFabricAttr {
        fabric: hints.fabric.fabric,
        name: ptr::null_mut(),
        prov_name: ptr::null_mut(),
        prov_version: 0,
        api_version: 0,
    })?;
    // SAFETY: both were just placed.
    unsafe {
        (*info.domain_attr).name = place_name(offer::NAME)?;
        (*info.fabric_attr).name = place_name(if info.caps & FI_PEER != 0 {
            offer::PEER_FABRIC
        } else {
            offer::NAME
        })?;
    }
    Ok(())
}

/// Kinds of transfers other than messages.
const OTHER_KINDS: u64 = FI_RMA | FI_ATOMIC;

/// The capabilities an application gets: what it asked for and every secondary one, but its
/// messages' sources only if it asked, since they cost a look-up for each message. Without hints:
/// everything.
fn granted_caps(asked: u64, offered: u64) -> u64 {
    if asked == 0 {
        return offered;
    }
    let mut secondary = offered & offer::SECONDARY_CAPS;
    if asked & (FI_RMA | FI_ATOMIC) == 0 {
        secondary &= !FI_RMA_EVENT;
    }
    let mut granted = (asked | secondary) & !(FI_SOURCE & !asked);
    for (kinds, directions) in offer::DIRECTIONS {
        // An application that asks for no kind of transfer at all means messages.
        let names_kind = granted & kinds != 0 || (asked & OTHER_KINDS == 0 && kinds & FI_MSG != 0);
        if names_kind && granted & directions == 0 {
            granted |= offered & directions;
        }
    }
    granted
}

fn transmit(caps: u64, hints: &Hints, settings: &Settings) -> FiTxAttr {
    let asked = &hints.transmit;
    FiTxAttr {
        caps: side_caps(caps, asked.caps, offer::TRANSMIT_CAPS),
        mode: 0,
        op_flags: asked.op_flags,
        msg_order: if asked.msg_order != 0 {
            asked.msg_order
        } else {
            offer::MESSAGE_ORDER_REPORTED
        },
        comp_order: 0,
        inject_size: settings.inject_size_bytes,
        size: if asked.size != 0 {
            asked.size
        } else {
            offer::DEPTH
        },
        iov_limit: asked.iov_limit.max(offer::PIECES_REPORTED),
        rma_iov_limit: asked.rma_iov_limit.max(offer::PIECES_REPORTED),
        tclass: FI_TC_UNSPEC,
    }
}

fn receive(caps: u64, hints: &Hints) -> FiRxAttr {
    let asked = &hints.receive;
    FiRxAttr {
        caps: side_caps(caps, asked.caps, offer::RECEIVE_CAPS),
        mode: 0,
        op_flags: asked.op_flags,
        msg_order: if asked.msg_order != 0 {
            asked.msg_order
        } else {
            offer::MESSAGE_ORDER_REPORTED
        },
        comp_order: 0,
        total_buffered_recv: 0,
        size: if asked.size != 0 {
            asked.size
        } else if caps & FI_PEER != 0 {
            offer::PEER_DEPTH
        } else {
            offer::DEPTH
        },
        iov_limit: asked.iov_limit.max(offer::PIECES_REPORTED),
    }
}

fn side_caps(granted: u64, asked: u64, side: u64) -> u64 {
    let secondary = granted & side & offer::SECONDARY_CAPS;
    if asked == 0 {
        granted & side
    } else {
        (asked & side) | secondary
    }
}

fn endpoint() -> FiEpAttr {
    FiEpAttr {
        r#type: FI_EP_RDM,
        protocol: offer::PROTOCOL,
        protocol_version: offer::PROTOCOL_VERSION,
        max_msg_size: offer::MESSAGE_SIZE_BYTES,
        msg_prefix_size: 0,
        max_order_raw_size: offer::ORDERED_BYTES,
        max_order_war_size: offer::ORDERED_BYTES,
        max_order_waw_size: offer::ORDERED_BYTES,
        mem_tag_format: offer::TAG_FORMAT,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: ptr::null_mut(),
        xpu_ctx: ptr::null_mut(),
    }
}

fn domain_attributes(version: u32, hints: &Hints) -> FiDomainAttr {
    let asked = &hints.domain;
    let or = |asked: u32, default: u32| if asked != 0 { asked } else { default };
    FiDomainAttr {
        domain: asked.domain,
        name: ptr::null_mut(),
        threading: or(asked.threading, FI_THREAD_SAFE),
        control_progress: or(asked.control_progress, FI_PROGRESS_MANUAL),
        data_progress: or(asked.data_progress, FI_PROGRESS_MANUAL),
        resource_mgmt: FI_RM_ENABLED,
        // Either kind will do, so an application that names none is told none.
        av_type: asked.av_type,
        mr_mode: region_mode(version, asked.mr_mode),
        mr_key_size: offer::KEY_BYTES,
        cq_data_size: offer::QUEUE_DATA_BYTES,
        cq_cnt: offer::OBJECTS,
        ep_cnt: offer::OBJECTS,
        tx_ctx_cnt: offer::OBJECTS,
        rx_ctx_cnt: offer::OBJECTS,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: 0,
        cntr_cnt: offer::OBJECTS,
        mr_iov_limit: offer::PIECES,
        caps: offer::DOMAIN_CAPS | (hints.info.caps & offer::peer_caps()),
        mode: 0,
        auth_key: ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: 0,
        mr_cnt: offer::REGIONS,
        tclass: FI_TC_UNSPEC,
        max_ep_auth_key: 0,
        max_group_id: 0,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        max_xpu_ctx_cnt: 0,
    }
}

/// Registration requires nothing. Applications older than 1.5 know only the two old names, and
/// those who use them get them back.
fn region_mode(version: u32, asked: c_int) -> c_int {
    let old = asked & (FI_MR_BASIC | FI_MR_SCALABLE);
    if old != 0 {
        old
    } else if version < VERSION_ERR_DATA_SIZE {
        FI_MR_SCALABLE
    } else {
        0
    }
}

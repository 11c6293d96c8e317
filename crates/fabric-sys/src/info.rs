// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fi_info` and the attributes that hang on it: what an application asks for and what a
//! provider offers.
//!
//! Used by the provider's info and hints modules. The attribute structures have more than 15
//! members because C's have. Source: fabric.h, fi_getinfo(3).

use crate::fid::{Fid, FidDomain, FidFabric};
use libc::{c_char, c_int, c_void};

/// No endpoint type asked for.
pub const FI_EP_UNSPEC: u32 = 0;
/// Connected streams of messages.
pub const FI_EP_MSG: u32 = 1;
/// Unreliable datagrams.
pub const FI_EP_DGRAM: u32 = 2;
/// Reliable datagrams: messages to any address without connecting.
pub const FI_EP_RDM: u32 = 3;

/// No protocol asked for.
pub const FI_PROTO_UNSPEC: u32 = 0;

/// No address format asked for.
pub const FI_FORMAT_UNSPEC: u32 = 0;
/// Some `struct sockaddr`.
pub const FI_SOCKADDR: u32 = 1;
/// `struct sockaddr_in`.
pub const FI_SOCKADDR_IN: u32 = 2;
/// `struct sockaddr_in6`.
pub const FI_SOCKADDR_IN6: u32 = 3;
/// Either of the two above (2.x).
pub const FI_SOCKADDR_IP: u32 = 17;

/// No kind of address vector asked for.
pub const FI_AV_UNSPEC: u32 = 0;
/// Addresses are opaque numbers.
pub const FI_AV_MAP: u32 = 1;
/// Addresses are indices counted from 0.
pub const FI_AV_TABLE: u32 = 2;

/// No progress model asked for.
pub const FI_PROGRESS_UNSPEC: u32 = 0;
/// The provider advances by itself.
pub const FI_PROGRESS_AUTO: u32 = 1;
/// The provider advances inside the application's calls.
pub const FI_PROGRESS_MANUAL: u32 = 2;
/// As manual, control through the same calls as data (2.x).
pub const FI_PROGRESS_CONTROL_UNIFIED: u32 = 3;

/// No threading model asked for.
pub const FI_THREAD_UNSPEC: u32 = 0;
/// Any thread may call anything.
pub const FI_THREAD_SAFE: u32 = 1;
/// The application serialises calls on one object.
pub const FI_THREAD_FID: u32 = 2;
/// The application serialises calls on all objects of a domain.
pub const FI_THREAD_DOMAIN: u32 = 3;
/// The application serialises calls that share a completion queue or counter.
pub const FI_THREAD_COMPLETION: u32 = 4;
/// The application serialises calls on one endpoint.
pub const FI_THREAD_ENDPOINT: u32 = 5;

/// Nothing asked for.
pub const FI_RM_UNSPEC: u32 = 0;
/// The application keeps queues from overflowing.
pub const FI_RM_DISABLED: u32 = 1;
/// The provider keeps queues from overflowing.
pub const FI_RM_ENABLED: u32 = 2;

/// Service nobody asked for in particular.
pub const FI_TC_UNSPEC: u32 = 0;

/// The sending side (`struct fi_tx_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiTxAttr {
    /// Capabilities of this side.
    pub caps: u64,
    /// What the application must do.
    pub mode: u64,
    /// Flags that calls without flags get.
    pub op_flags: u64,
    /// Order of messages.
    pub msg_order: u64,
    /// Order of completions.
    pub comp_order: u64,
    /// Largest injected message in bytes.
    pub inject_size: usize,
    /// Operations under way at once.
    pub size: usize,
    /// Elements of one vector.
    pub iov_limit: usize,
    /// Remote elements of one vector.
    pub rma_iov_limit: usize,
    /// Traffic class.
    pub tclass: u32,
}

layout! { FiTxAttr = "struct fi_tx_attr", 80: caps 0, mode 8, op_flags 16, msg_order 24,
comp_order 32, inject_size 40, size 48, iov_limit 56, rma_iov_limit 64, tclass 72 }

/// The receiving side (`struct fi_rx_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiRxAttr {
    /// Capabilities of this side.
    pub caps: u64,
    /// What the application must do.
    pub mode: u64,
    /// Flags that calls without flags get.
    pub op_flags: u64,
    /// Order of messages.
    pub msg_order: u64,
    /// Order of completions.
    pub comp_order: u64,
    /// Bytes of unexpected messages that are held.
    pub total_buffered_recv: usize,
    /// Receives posted at once.
    pub size: usize,
    /// Elements of one vector.
    pub iov_limit: usize,
}

layout! { FiRxAttr = "struct fi_rx_attr", 64: caps 0, mode 8, op_flags 16, msg_order 24,
comp_order 32, total_buffered_recv 40, size 48, iov_limit 56 }

/// The endpoint as a whole (`struct fi_ep_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiEpAttr {
    /// Kind of endpoint, `FI_EP_*`.
    pub r#type: u32,
    /// Wire protocol.
    pub protocol: u32,
    /// Its version.
    pub protocol_version: u32,
    /// Largest message in bytes.
    pub max_msg_size: usize,
    /// Room the application leaves before each message.
    pub msg_prefix_size: usize,
    /// Bytes over which reads after writes are ordered.
    pub max_order_raw_size: usize,
    /// Bytes over which writes after reads are ordered.
    pub max_order_war_size: usize,
    /// Bytes over which writes after writes are ordered.
    pub max_order_waw_size: usize,
    /// Which tag bits are matched.
    pub mem_tag_format: u64,
    /// Sending contexts of the endpoint.
    pub tx_ctx_cnt: usize,
    /// Receiving contexts of the endpoint.
    pub rx_ctx_cnt: usize,
    /// Bytes of `auth_key`.
    pub auth_key_size: usize,
    /// Key that endpoints of one job share.
    pub auth_key: *mut u8,
    /// Accelerator context (after 2.6).
    pub xpu_ctx: *mut c_void,
}

layout! { FiEpAttr = "struct fi_ep_attr", 104: r#type 0, protocol 4, protocol_version 8,
max_msg_size 16, msg_prefix_size 24, max_order_raw_size 32, max_order_war_size 40,
max_order_waw_size 48, mem_tag_format 56, tx_ctx_cnt 64, rx_ctx_cnt 72, auth_key_size 80,
auth_key 88, xpu_ctx 96 }

/// The domain (`struct fi_domain_attr`); 32 members, as in C.
// structure: allow struct-fields because C's structure has them
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiDomainAttr {
    /// An open domain, or null.
    pub domain: *mut FidDomain,
    /// The domain's name.
    pub name: *mut c_char,
    /// `FI_THREAD_*`.
    pub threading: u32,
    /// `FI_PROGRESS_*` of control operations.
    pub control_progress: u32,
    /// `FI_PROGRESS_*` of data operations.
    pub data_progress: u32,
    /// `FI_RM_*`.
    pub resource_mgmt: u32,
    /// `FI_AV_*`.
    pub av_type: u32,
    /// `FI_MR_*`.
    pub mr_mode: c_int,
    /// Bytes of a memory key.
    pub mr_key_size: usize,
    /// Bytes of remote completion data.
    pub cq_data_size: usize,
    /// Completion queues that fit.
    pub cq_cnt: usize,
    /// Endpoints that fit.
    pub ep_cnt: usize,
    /// Sending contexts that fit.
    pub tx_ctx_cnt: usize,
    /// Receiving contexts that fit.
    pub rx_ctx_cnt: usize,
    /// Sending contexts of one endpoint.
    pub max_ep_tx_ctx: usize,
    /// Receiving contexts of one endpoint.
    pub max_ep_rx_ctx: usize,
    /// Shared sending contexts of one endpoint.
    pub max_ep_stx_ctx: usize,
    /// Shared receiving contexts of one endpoint.
    pub max_ep_srx_ctx: usize,
    /// Counters that fit.
    pub cntr_cnt: usize,
    /// Elements of one registration.
    pub mr_iov_limit: usize,
    /// Capabilities of the domain.
    pub caps: u64,
    /// What the application must do.
    pub mode: u64,
    /// Key that endpoints of one job share.
    pub auth_key: *mut u8,
    /// Bytes of `auth_key`.
    pub auth_key_size: usize,
    /// Bytes of error data.
    pub max_err_data: usize,
    /// Registrations that fit.
    pub mr_cnt: usize,
    /// Traffic class.
    pub tclass: u32,
    /// Keys of one endpoint (1.20).
    pub max_ep_auth_key: usize,
    /// Largest group (2.0).
    pub max_group_id: u32,
    /// Largest counter value (2.5).
    pub max_cntr_value: u64,
    /// Largest counter error value (2.5).
    pub max_err_cntr_value: u64,
    /// Accelerator contexts that fit (after 2.6).
    pub max_xpu_ctx_cnt: usize,
}

layout! { FiDomainAttr = "struct fi_domain_attr", 232: domain 0, name 8, threading 16,
control_progress 20, data_progress 24, resource_mgmt 28, av_type 32, mr_mode 36,
mr_key_size 40, cq_data_size 48, cq_cnt 56, ep_cnt 64, tx_ctx_cnt 72, rx_ctx_cnt 80,
max_ep_tx_ctx 88, max_ep_rx_ctx 96, max_ep_stx_ctx 104, max_ep_srx_ctx 112, cntr_cnt 120,
mr_iov_limit 128, caps 136, mode 144, auth_key 152, auth_key_size 160, max_err_data 168,
mr_cnt 176, tclass 184, max_ep_auth_key 192, max_group_id 200, max_cntr_value 208,
max_err_cntr_value 216, max_xpu_ctx_cnt 224 }

/// The fabric (`struct fi_fabric_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiFabricAttr {
    /// An open fabric, or null.
    pub fabric: *mut FidFabric,
    /// The fabric's name.
    pub name: *mut c_char,
    /// The provider's name; filled by the library.
    pub prov_name: *mut c_char,
    /// The provider's version; filled by the library.
    pub prov_version: u32,
    /// The interface version of the application; filled by the library.
    pub api_version: u32,
}

layout! { FiFabricAttr = "struct fi_fabric_attr", 32: fabric 0, name 8, prov_name 16,
prov_version 24, api_version 28 }

/// One offer, or an application's hints (`struct fi_info`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiInfo {
    /// The next offer.
    pub next: *mut FiInfo,
    /// Capabilities.
    pub caps: u64,
    /// What the application must do.
    pub mode: u64,
    /// Form of addresses.
    pub addr_format: u32,
    /// Bytes of `src_addr`.
    pub src_addrlen: usize,
    /// Bytes of `dest_addr`.
    pub dest_addrlen: usize,
    /// Local address.
    pub src_addr: *mut c_void,
    /// Address of the other side.
    pub dest_addr: *mut c_void,
    /// A connection request, or null.
    pub handle: *mut Fid,
    /// The sending side.
    pub tx_attr: *mut FiTxAttr,
    /// The receiving side.
    pub rx_attr: *mut FiRxAttr,
    /// The endpoint.
    pub ep_attr: *mut FiEpAttr,
    /// The domain.
    pub domain_attr: *mut FiDomainAttr,
    /// The fabric.
    pub fabric_attr: *mut FiFabricAttr,
    /// The network card, or null.
    pub nic: *mut c_void,
}

layout! { FiInfo = "struct fi_info", 120: next 0, caps 8, mode 16, addr_format 24, src_addrlen 32,
dest_addrlen 40, src_addr 48, dest_addr 56, handle 64, tx_attr 72, rx_attr 80, ep_attr 88,
domain_attr 96, fabric_attr 104, nic 112 }

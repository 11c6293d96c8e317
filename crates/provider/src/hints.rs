// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application's hints: copied out of C as far as the running libfabric knows them, and checked
//! against the offer.
//!
//! Called by info; knows offer. The checks are those that libfabric's own providers share. Source:
//! fi_getinfo(3).

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

use weft_fabric_sys::flags::{FI_MR_BASIC, FI_MR_SCALABLE, FI_PEER};
use weft_fabric_sys::info::*;
use weft_fabric_sys::version::fi_version;

use crate::offer;

/// Hints, copied. Where the application gave none, everything is zero, which asks for nothing.
#[derive(Debug)]
pub struct Hints {
    /// The outermost structure; its pointers are no longer followed.
    pub info: FiInfo,
    /// The sending side.
    pub transmit: FiTxAttr,
    /// The receiving side.
    pub receive: FiRxAttr,
    /// The endpoint.
    pub endpoint: FiEpAttr,
    /// The domain.
    pub domain: FiDomainAttr,
    /// The fabric.
    pub fabric: FiFabricAttr,
    /// The domain's name, if asked for.
    pub domain_name: Option<CString>,
    /// The fabric's name, if asked for.
    pub fabric_name: Option<CString>,
}

impl Hints {
    /// Copies hints; members that `library_version` does not know read as zero.
    ///
    /// # Safety
    /// `hints` must be null or a `struct fi_info` as libfabric of that version hands to providers.
    pub unsafe fn read(hints: *const FiInfo, library_version: u32) -> Self {
        // SAFETY: the caller vouches for the structure and, with it, for the attributes it points
        // to; each copy stays within what that version's structure has.
        unsafe {
            let info = copy(hints, size_of::<FiInfo>());
            let domain = copy(info.domain_attr, domain_bytes(library_version));
            let fabric = copy(info.fabric_attr, size_of::<FiFabricAttr>());
            Self {
                transmit: copy(info.tx_attr, size_of::<FiTxAttr>()),
                receive: copy(info.rx_attr, size_of::<FiRxAttr>()),
                endpoint: copy(info.ep_attr, endpoint_bytes(library_version)),
                domain_name: copy_name(domain.name),
                fabric_name: copy_name(fabric.name),
                info,
                domain,
                fabric,
            }
        }
    }

    /// Checks everything that is asked for.
    ///
    /// # Errors
    /// What cannot be offered, in words for the log.
    pub fn check(&self) -> Result<(), &'static str> {
        self.check_endpoint()?;
        self.check_domain()?;
        self.check_names()?;
        self.check_sides()?;
        demand(
            self.info.caps & !(offer::CAPS | offer::peer_caps()) == 0,
            "capabilities that are not offered",
        )?;
        demand(
            offer::address_format_is_served(self.info.addr_format),
            "an address format other than IP",
        )
    }

    fn check_endpoint(&self) -> Result<(), &'static str> {
        let asked = &self.endpoint;
        demand(
            matches!(asked.r#type, FI_EP_UNSPEC | FI_EP_RDM),
            "an endpoint type other than FI_EP_RDM",
        )?;
        demand(
            matches!(asked.protocol, FI_PROTO_UNSPEC | offer::PROTOCOL),
            "another protocol",
        )?;
        demand(
            asked.protocol_version <= offer::PROTOCOL_VERSION,
            "a newer protocol",
        )?;
        demand(
            asked.max_msg_size <= offer::MESSAGE_SIZE_BYTES,
            "longer messages",
        )?;
        demand(
            asked.tx_ctx_cnt <= 1 && asked.rx_ctx_cnt <= 1,
            "several or shared contexts per endpoint",
        )?;
        let ordered = asked.max_order_raw_size.max(asked.max_order_war_size);
        demand(
            ordered.max(asked.max_order_waw_size) <= offer::ORDERED_BYTES,
            "order among longer remote operations",
        )?;
        // Every mem_tag_format fits: all 64 bits of a tag are matched.
        demand(asked.auth_key_size == 0, "authentication keys")
    }

    fn check_domain(&self) -> Result<(), &'static str> {
        let asked = &self.domain;
        demand(
            offer::threading_is_known(asked.threading),
            "an unknown threading model",
        )?;
        demand(
            offer::progress_is_served(asked.control_progress)
                && offer::progress_is_served(asked.data_progress),
            "an unknown progress model",
        )?;
        demand(
            asked.av_type <= FI_AV_TABLE,
            "an unknown kind of address vector",
        )?;
        demand(
            asked.cq_data_size <= offer::QUEUE_DATA_BYTES,
            "more remote completion data",
        )?;
        demand(asked.cntr_cnt <= offer::OBJECTS, "more counters")?;
        demand(
            asked.mr_iov_limit <= offer::PIECES,
            "more pieces in a registered region",
        )?;
        demand(asked.mr_cnt <= offer::REGIONS, "more registered regions")?;
        demand(
            asked.caps & !(offer::DOMAIN_CAPS | offer::peer_caps()) == 0,
            "domain capabilities that are not offered",
        )?;
        demand(
            asked.auth_key_size == 0 && asked.max_ep_auth_key == 0,
            "authentication keys",
        )?;
        demand(asked.max_err_data == 0, "error data")?;
        let old_mode = asked.mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE);
        demand(
            old_mode == 0 || asked.mr_mode == old_mode,
            "FI_MR_BASIC or FI_MR_SCALABLE together with other modes",
        )
    }

    fn check_names(&self) -> Result<(), &'static str> {
        let fits = |name: &Option<CString>| {
            name.as_ref()
                .is_none_or(|name| name.as_c_str() == offer::NAME)
        };
        let peers = self.info.caps & FI_PEER != 0
            && self.fabric_name.as_deref() == Some(offer::PEER_FABRIC);
        demand(peers || fits(&self.fabric_name), "another fabric's name")?;
        demand(fits(&self.domain_name), "another domain's name")
    }

    fn check_sides(&self) -> Result<(), &'static str> {
        let (transmit, receive) = (&self.transmit, &self.receive);
        // Applications often give both sides the capabilities of both; what belongs to the other
        // side is ignored.
        let both = offer::TRANSMIT_CAPS | offer::RECEIVE_CAPS;
        demand(
            transmit.caps & !both == 0,
            "capabilities of the sending side that are not offered",
        )?;
        demand(
            receive.caps & !both == 0,
            "capabilities of the receiving side that are not offered",
        )?;
        demand(
            transmit.op_flags & !offer::TRANSMIT_FLAGS == 0,
            "send flags that are not offered",
        )?;
        demand(
            receive.op_flags & !offer::RECEIVE_FLAGS == 0,
            "receive flags that are not offered",
        )?;
        let order = transmit.msg_order | receive.msg_order;
        demand(
            order & !offer::MESSAGE_ORDER == 0,
            "an order of messages that is not offered",
        )?;
        demand(
            transmit.comp_order == 0 && receive.comp_order == 0,
            "an order of completions",
        )?;
        demand(
            receive.total_buffered_recv == 0,
            "a guarantee for buffered messages",
        )?;
        demand(
            transmit.size <= offer::DEPTH && receive.size <= offer::DEPTH,
            "more operations at once",
        )?;
        let pieces = transmit.iov_limit.max(receive.iov_limit);
        demand(
            pieces <= offer::PIECES && transmit.rma_iov_limit <= offer::RANGES,
            "more pieces in a buffer",
        )
    }
}

fn demand(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Bytes of `struct fi_domain_attr` in a version of the library.
fn domain_bytes(version: u32) -> usize {
    match version {
        v if v < fi_version(1, 20) => std::mem::offset_of!(FiDomainAttr, max_ep_auth_key),
        v if v < fi_version(2, 0) => std::mem::offset_of!(FiDomainAttr, max_group_id),
        v if v < fi_version(2, 5) => std::mem::offset_of!(FiDomainAttr, max_cntr_value),
        v if v < fi_version(2, 7) => std::mem::offset_of!(FiDomainAttr, max_xpu_ctx_cnt),
        _ => size_of::<FiDomainAttr>(),
    }
}

/// Bytes of `struct fi_ep_attr` in a version of the library.
fn endpoint_bytes(version: u32) -> usize {
    if version < fi_version(2, 7) {
        std::mem::offset_of!(FiEpAttr, xpu_ctx)
    } else {
        size_of::<FiEpAttr>()
    }
}

/// Copies the first `known_bytes` of a structure of numbers and pointers; the rest, and everything
/// of a null one, is 0.
///
/// # Safety
/// `from` must be null or readable for `known_bytes`, and zeros must be a valid `T`.
unsafe fn copy<T: Copy>(from: *const T, known_bytes: usize) -> T {
    let mut into = MaybeUninit::<T>::zeroed();
    if !from.is_null() {
        let count = known_bytes.min(size_of::<T>());
        // SAFETY: the source is readable for that many bytes (contract), and the target has room
        // for a whole T.
        unsafe {
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), into.as_mut_ptr().cast::<u8>(), count)
        };
    }
    // SAFETY: every byte is zero or copied from a T, and zeros are valid (contract).
    unsafe { into.assume_init() }
}

/// Copies a C string.
///
/// # Safety
/// `name` must be null or a C string.
unsafe fn copy_name(name: *const c_char) -> Option<CString> {
    // SAFETY: not null here, and a C string by contract.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric_sys::flags::{FI_MSG, FI_ORDER_SAS, FI_TRIGGER};

    fn nothing() -> Hints {
        // SAFETY: null asks for nothing.
        unsafe { Hints::read(std::ptr::null(), fi_version(2, 6)) }
    }

    #[test]
    fn no_hints_ask_for_nothing() {
        assert_eq!(nothing().check(), Ok(()));
    }

    #[test]
    fn what_is_not_offered_is_refused_by_name() {
        let refused = |change: fn(&mut Hints)| {
            let mut hints = nothing();
            change(&mut hints);
            hints.check().expect_err("refused")
        };
        assert!(refused(|hints| hints.endpoint.r#type = FI_EP_MSG).contains("FI_EP_RDM"));
        assert!(refused(|hints| hints.endpoint.r#type = FI_EP_DGRAM).contains("FI_EP_RDM"));
        assert!(refused(|hints| hints.info.caps = FI_MSG | FI_TRIGGER).contains("capabilities"));
        assert!(refused(|hints| hints.info.caps = 1 << 47).contains("capabilities"));
        assert!(refused(|hints| hints.domain.data_progress = 77).contains("progress"));
        assert!(refused(|hints| hints.transmit.comp_order = 1).contains("completions"));
        assert!(refused(|hints| hints.receive.total_buffered_recv = 1).contains("buffered"));
        assert!(refused(|hints| hints.domain.mr_mode = FI_MR_BASIC | 4).contains("FI_MR_BASIC"));
        assert!(refused(|hints| hints.domain_name = Some(c"eth0".to_owned())).contains("domain"));
        assert!(refused(|hints| hints.info.addr_format = 9).contains("address"));
        assert!(refused(|hints| hints.endpoint.rx_ctx_cnt = usize::MAX).contains("contexts"));
    }

    #[test]
    fn what_mpi_libraries_ask_for_is_offered() {
        let mut hints = nothing();
        hints.info.caps = offer::CAPS;
        hints.info.mode = 1 << 59;
        hints.transmit.msg_order = FI_ORDER_SAS;
        hints.receive.msg_order = FI_ORDER_SAS;
        hints.transmit.op_flags = offer::TRANSMIT_FLAGS;
        hints.receive.op_flags = offer::RECEIVE_FLAGS;
        hints.domain.threading = FI_THREAD_DOMAIN;
        hints.domain.data_progress = FI_PROGRESS_MANUAL;
        hints.domain.mr_mode = 1 << 9;
        hints.domain.av_type = FI_AV_TABLE;
        hints.endpoint.r#type = FI_EP_RDM;
        assert_eq!(hints.check(), Ok(()));
    }

    #[test]
    fn members_younger_than_the_library_are_not_read() {
        let mut domain = nothing().domain;
        domain.max_ep_auth_key = 77;
        let mut info = nothing().info;
        info.domain_attr = &mut domain;
        // SAFETY: both structures are whole and outlive the calls.
        let (old, new) = unsafe {
            (
                Hints::read(&info, fi_version(1, 17)),
                Hints::read(&info, fi_version(1, 20)),
            )
        };
        assert_eq!(
            (old.domain.max_ep_auth_key, new.domain.max_ep_auth_key),
            (0, 77)
        );
    }
}

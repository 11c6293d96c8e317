// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the provider decides when it opens a domain or an object of it, and the forms of its calls.

use std::net::SocketAddr;

use weft_contract::Class;

use crate::ids::FiAddr;

/// Default of the inject limit. Chosen: the longest message that every route takes whole, without
/// waiting for the remote.
pub const DEFAULT_INJECT_LIMIT_BYTES: usize = weft_facts::limit::INJECT_BYTES;
/// Default of FI_OPT_MIN_MULTI_RECV. Chosen: as other providers for shared memory; users of
/// multi-receive set their own.
pub const DEFAULT_MIN_MULTI_RECEIVE_BYTES: usize = 4096;

/// How many sends to one remote may wait for room. Further sends get
/// [`Error::Again`](crate::Error::Again). The provider reports it as `fi_tx_attr.size`.
pub const SEND_DEPTH: usize = weft_facts::limit::SEND_DEPTH;

/// Settings of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainSettings {
    /// Longest message of an inject call; the `inject_size` that the provider reports.
    pub inject_limit_bytes: usize,
}

impl Default for DomainSettings {
    fn default() -> Self {
        Self {
            inject_limit_bytes: DEFAULT_INJECT_LIMIT_BYTES,
        }
    }
}

/// Settings of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointSettings {
    /// The address that the endpoint shall get. With port 0, or with no address, the transport
    /// chooses.
    pub address: Option<SocketAddr>,
    /// Whether processes of this host shall reach the endpoint under every address of the host,
    /// with the same port.
    pub everywhere: bool,
    /// Flags of sends that give none (`fi_tx_attr.op_flags`).
    pub transmit_flags: u64,
    /// Flags of receives that give none (`fi_rx_attr.op_flags`).
    pub receive_flags: u64,
    /// Whether completions name the source (FI_SOURCE).
    pub source: bool,
    /// Whether a receive takes messages only from its source (FI_DIRECTED_RECV). Otherwise the
    /// source is ignored (fi_getinfo(3)).
    pub directed_receive: bool,
    /// Whether accesses of a remote's memory must not overtake earlier messages to that remote
    /// (FI_ORDER_RAS, FI_ORDER_WAS). Then accesses go by message, even if direct access to the
    /// memory is possible.
    pub accesses_after_sends: bool,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        Self {
            address: None,
            everywhere: false,
            transmit_flags: 0,
            receive_flags: 0,
            source: true,
            directed_receive: true,
            accesses_after_sends: false,
        }
    }
}

/// Settings of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueSettings {
    /// How many entries to make room for at first; 0 lets us choose. The queue grows as needed.
    pub size_hint: usize,
}

/// How a completion queue is bound to an endpoint (flags of fi_ep_bind).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueBinding {
    /// For completions of sends (FI_TRANSMIT).
    pub transmit: bool,
    /// For completions of receives (FI_RECV).
    pub receive: bool,
    /// Entries only for operations with FI_COMPLETION (FI_SELECTIVE_COMPLETION).
    pub selective: bool,
}

/// The two kinds of address vector. Both number addresses from 0, although FI_AV_MAP does not
/// promise that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorKind {
    /// FI_AV_TABLE.
    Table,
    /// FI_AV_MAP.
    Map,
}

/// A send: fi_send, fi_tsend, their data forms, and fi_sendmsg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Send {
    /// With or without a tag.
    pub class: Class,
    /// The tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Data for the remote's completion, if any (FI_REMOTE_CQ_DATA).
    pub cq_data: Option<u64>,
    /// Flags of fi_sendmsg; `None` for the forms without flags, which take the endpoint's.
    pub flags: Option<u64>,
    /// Comes back in the completion.
    pub context: usize,
}

/// An inject: fi_inject, fi_tinject and their data forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inject {
    /// With or without a tag.
    pub class: Class,
    /// The tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Data for the remote's completion, if any.
    pub cq_data: Option<u64>,
}

/// A receive: fi_recv, fi_trecv, fi_recvmsg, fi_trecvmsg, with FI_MULTI_RECV, FI_PEEK, FI_CLAIM,
/// FI_DISCARD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receive {
    /// With or without a tag.
    pub class: Class,
    /// From whom; [`FiAddr::UNSPEC`] for anyone.
    pub source: FiAddr,
    /// The tag wanted; 0 for [`Class::Message`].
    pub tag: u64,
    /// Bits of the tag that do not count; 0 for [`Class::Message`].
    pub ignore: u64,
    /// Flags of fi_recvmsg; `None` for the forms without flags, which take the endpoint's.
    pub flags: Option<u64>,
    /// Comes back in the completion; joins FI_CLAIM to its FI_PEEK.
    pub context: usize,
}

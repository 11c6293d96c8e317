// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoint: the owner of everything that one libfabric domain has.
//!
//! The provider turns each fi_* call into one call of [`Domain`]. A send finds its remote and that
//! remote's route and hands the message to a transport. A receive takes an unexpected message or is
//! posted. Reading an empty completion queue makes progress: the transports bound to it call back,
//! an arriving message is matched, copied into the user's buffer and completed on the queue in one
//! pass.
//!
//! There is no lock here, and no shared ownership: objects live in tables inside the one [`Domain`]
//! and are named by number. What a transport's callbacks change (`core`) lies beside the transport,
//! so both can be borrowed at once.
//!
//! Modules, in the order a message meets them:
//! - `settings`, `ids`, `domain`, `endpoint`, `opening`: what there is, and how it is opened, bound
//!   and closed;
//! - `address_vector`, `remotes`, `send`: on the way down; [`joined`]: two routes as one;
//! - `later`, `backlog`: sends that their route cannot take now;
//! - `receive`, `multi_receive`, `multi_buffer`, `peek`: what a receive may ask for; `watch`: whose
//!   death would leave it waiting;
//! - `one_sided`: reads, writes and atomics of registered memory, carried by messages between the
//!   endpoints;
//! - `foreign`, `foreign_calls`, `foreign_arrivals`: when somebody else matches;
//! - `progress`, `arrivals`, `core`, `slots`, `unexpected`: on the way up;
//! - `completion`, `completion_queue`, `counter`, `statistics`, `sleep`, `alarm`: what the user
//!   hears of it, and when;
//! - [`error`], [`flags`]: the words for it; [`in_process`]: a transport to measure others by.
#![forbid(unsafe_code)]

mod address_vector;
mod alarm;
mod arrivals;
mod backlog;
mod completion;
mod completion_queue;
mod core;
mod counter;
mod domain;
mod endpoint;
pub mod error;
pub mod flags;
mod foreign;
mod foreign_arrivals;
mod foreign_calls;
mod ids;
pub mod in_process;
pub mod joined;
mod later;
mod multi_buffer;
mod multi_receive;
mod one_sided;
mod opening;
mod peek;
mod progress;
mod receive;
mod remotes;
mod send;
mod settings;
mod sleep;
mod slots;
mod statistics;
mod unexpected;
mod watch;

pub use completion_queue::{Completion, ErrorCompletion};
pub use domain::Domain;
pub use error::Error;
pub use foreign::{ForeignMessage, ForeignReceive, ForeignReceives, Found};
pub use ids::{CounterId, EndpointId, FiAddr, QueueId, VectorId};
pub use one_sided::{ATOMIC_LIMIT_BYTES, Access, Atomic, KeyChoice, RANGE_LIMIT, RegionSettings};
pub use settings::{
    DEFAULT_INJECT_LIMIT_BYTES, DEFAULT_MIN_MULTI_RECEIVE_BYTES, DomainSettings, EndpointSettings,
    Inject, QueueBinding, QueueSettings, Receive, SEND_DEPTH, Send, VectorKind,
};
pub use sleep::Waitable;
pub use statistics::{Counts, Statistics, Waiting};
pub use weft_contract::{Class, MESSAGE_LIMIT_BYTES, Range, TransferError};
pub use weft_memory::{Element, IOV_LIMIT, Operator, UserBuffer};

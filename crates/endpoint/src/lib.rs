// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoint: it owns everything that one libfabric domain has.
//!
//! - *Purpose*: messages, one-sided operations, completion queues and counters over a list of
//!   routes.
//! - *Used by*: only the provider, which turns each fi_* call into one call of [`Domain`].
//! - *Start at*: `calls/endpoint.rs` for a call on its way down, `endpoint/arrivals.rs` for a
//!   message on its way up.
//!
//! A send looks up its remote and the remote's route, and gives the message to a transport. A
//! receive takes an unexpected message or is posted. Reading an empty completion queue makes
//! progress: the transports bound to it call back, and an arriving message is matched, copied into
//! the user's buffer and completed on the queue in one pass.
//!
//! This crate has no lock and no shared ownership: objects live in tables inside the one [`Domain`]
//! and have numbers as names. The state that a transport's callbacks change lies beside the
//! transport, so both can be borrowed at the same time.
//!
//! Modules, from the top down; each imports only those below it:
//! - `domain`: contains all parts, and gives each call the parts that it needs;
//! - `calls`: the calls of libfabric, a file for each kind of object;
//! - `endpoints`, `endpoint`: progress on several endpoints; one endpoint, and the callbacks of its
//!   transport;
//! - `send`: the sending side, with the sends that their route cannot take now;
//! - `receive`: the receiving side, with matching, unexpected messages, multi-receives, peeks and
//!   shared receive contexts;
//! - `one_sided`: reads, writes and atomics of registered memory, carried by messages between the
//!   endpoints: initiator and target;
//! - `shared_objects`, `completion`: completion queues and counters, and which of them an operation
//!   reports to;
//! - `remotes`, `address_vector`: the user's names for remotes; [`routes`]: all routes as one;
//! - `settings`, `statistics`, `ids`, [`error`], [`flags`]: types that all others use.
#![forbid(unsafe_code)]

mod address_vector;
mod calls;
mod completion;
mod domain;
mod endpoint;
mod endpoints;
pub mod error;
pub mod flags;
mod ids;
mod one_sided;
mod receive;
mod remotes;
pub mod routes;
mod send;
mod settings;
mod shared_objects;
mod statistics;

pub use calls::counter::CounterCalls;
pub use calls::endpoint::EndpointCalls;
pub use calls::open::OpenCalls;
pub use calls::queue::QueueCalls;
pub use calls::region::RegionCalls;
pub use calls::vector::VectorCalls;
pub use calls::wait::{WaitCalls, Waitable};
pub use completion::queue::{Completion, ErrorCompletion};
pub use domain::Domain;
pub use error::Error;
pub use ids::{CounterId, EndpointId, FiAddr, QueueId, VectorId};
pub use one_sided::access::{ATOMIC_LIMIT_BYTES, Access, Atomic};
pub use one_sided::region::{KeyChoice, RegionSettings};
pub use one_sided::request::RANGE_LIMIT;
pub use receive::shared::{Found, SharedContext, SharedMessage, SharedReceive};
pub use settings::{
    DEFAULT_INJECT_LIMIT_BYTES, DEFAULT_MIN_MULTI_RECEIVE_BYTES, DomainSettings, EndpointSettings,
    Inject, QueueBinding, QueueSettings, Receive, SEND_DEPTH, Send, VectorKind,
};
pub use statistics::{Counts, Statistics, Waiting};
pub use weft_contract::{Class, MESSAGE_LIMIT_BYTES, Range, TransferError};
pub use weft_memory::{Element, IOV_LIMIT, Operator, UserBuffer};

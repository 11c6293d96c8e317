// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libweft-fi.so: Weft's provider for libfabric.
//!
//! - *Purpose*: turns C calls of libfabric into calls of the endpoint, and the results into C.
//! - *Used by*: libfabric, which loads it. No crate links to it.
//! - *Start at*: [`calls`], the list of all calls; [`tagged`] for one of them.
//!
//! libfabric finds this library in FI_PROVIDER_PATH, loads it and calls `fi_prov_ini`, the only
//! exported function beside the name in [`idle_hook`]. After that, every fi_* call of an
//! application takes this way: a table of C functions in this crate; one call of
//! [`weft_endpoint::Domain`]; and back as a C error number or a C structure. This crate keeps no
//! message and decides nothing about one.
//!
//! An object that an application opens is a structure whose first member is the `fid` of C; the
//! application's pointer is cast back. All objects of a domain refer to one [`lock::Lock`] around
//! the endpoint crate's domain. There are two kinds of lock: a real one, and one that does nothing.
//! Each table of functions exists once for each kind, so the fast path need not check which it has.
//!
//! [`calls`] lists all calls; [`tables`] declares their tables and [`entry_points`] fills them.
//! These modules are above all others except loading. [`refusal`] refuses calls that are not
//! offered or not possible.
//!
//! Modules, in the order in which a program uses them:
//!
//! - loading: [`prov_ini`], [`host`], [`parameters`], [`log`], [`report`], [`usage`], [`summary`];
//! - choosing: [`info`], [`hints`], [`offer`], [`address`], [`interfaces`], [`c_memory`];
//! - opening: [`fabric`], [`eq`], [`domain`], [`region_mode`], [`routes`], [`lock`], [`av`],
//!   [`mr`], [`endpoint`], [`options`], [`object`], and in child processes [`inherited`];
//! - sending and receiving: [`message`], [`tagged`], [`post`]; remote memory: [`rma`], [`atomic`],
//!   [`atomic_call`], [`atomic_offer`];
//! - completing: [`cq`], [`idle_hook`], [`entry`], [`cq_wait`], [`waiter`], [`wait`], [`wait_set`],
//!   [`try_wait`], [`counter`], [`poll`], [`errno`]; automatic progress: [`progress_thread`]; for
//!   another provider: [`peer`], [`peer_queue`].

pub mod address;
pub mod atomic;
pub mod atomic_call;
pub mod atomic_offer;
pub mod av;
pub mod av_names;
pub mod c_memory;
pub mod calls;
pub mod counter;
pub mod cq;
pub mod cq_wait;
pub mod domain;
pub mod endpoint;
pub mod entry;
pub mod entry_points;
pub mod eq;
pub mod errno;
pub mod fabric;
pub mod hints;
pub mod host;
pub mod idle_hook;
pub mod info;
pub mod inherited;
pub mod interfaces;
pub mod lock;
pub mod log;
pub mod message;
pub mod mr;
pub mod object;
pub mod offer;
pub mod options;
pub mod parameters;
pub mod peer;
pub mod peer_queue;
pub mod poll;
pub mod post;
pub mod progress_thread;
pub mod prov_ini;
pub mod refusal;
pub mod region_mode;
pub mod report;
pub mod rma;
pub mod routes;
pub mod summary;
pub mod tables;
pub mod tagged;
pub mod try_wait;
pub mod usage;
pub mod wait;
pub mod wait_set;
pub mod waiter;

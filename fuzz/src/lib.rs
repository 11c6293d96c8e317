// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random input against what reads claims of others: packets, sealed datagrams, pieces of packets,
//! the SRD machine between packets, calls and time, and files of jobs. (Random calls of the C
//! interface: tests/fuzz.)
//!
//! A target takes bytes and interprets them: the same bytes always do the same. It panics when
//! something does not hold. The driver makes the bytes from a seed and prints it, so that a finding
//! can be repeated; no tool beyond cargo is needed:
//!
//! `cargo run --release -p weft-fuzz -- machine --seconds 600`
//!
//! A finding becomes a test beside the code it was found in.
//!
//! Modules: [`input`]: bytes as decisions; [`wire`], [`seal`], [`pieces`], [`cells`],
//! [`machine`], [`job`]: the targets;
//! [`driver`]: runs one for some time.
#![forbid(unsafe_code)]

pub mod cells;
pub mod driver;
pub mod input;
pub mod job;
pub mod machine;
mod named;
pub mod pieces;
pub mod seal;
pub mod wire;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 7] = [
    ("wire", wire::run),
    ("seal", seal::run),
    ("pieces", pieces::run),
    ("cells", cells::run),
    ("machine", machine::run_honest),
    ("hostile", machine::run_hostile),
    ("job", job::run),
];

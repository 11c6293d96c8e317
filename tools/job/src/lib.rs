// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Job files: the description of a job, read from YAML or JSON, and checked before anything starts.
//! docs/job-file.md specifies the format; docs/job-file.schema.json is its schema.
//!
//! `weft run --spec` reads a file by [`JobFile::read`] and does what it says. `weft import` makes a
//! job file from the files of other systems, and `weft export` makes those files from a job file.
//! Nothing here looks at the machine or starts a process.
//!
//! The modules, in the order in which a file passes through them:
//!
//! - `parse`: the text as a tree of values with their lines (`node`).
//! - `decode`: the tree as a `job::Job`, by serde; `whole`, `size` and `time` are its numbers,
//!   `nearest` suggests a name for a misspelled one, `fault` says what is wrong and where.
//! - `check`: fields that must agree; `mount`: a mounted bucket as one word.
//! - `file`: all of this behind one call, with the `places` of the fields.
//! - `convert`: files of AWS Batch and ParallelCluster as jobs (`imported`).
//! - `write`: a job as the text of a job file; `import`: the command.
//! - `export`: a job as the files of other systems, and the command for it.
//! - `sbatch`: a job as a batch script for Slurm; `shell` quotes its words.
//!
//! `answer` prints what clap says in place of a run, for all commands that stand above this crate.
#![forbid(unsafe_code)]

pub mod answer;
mod check;
mod convert;
mod decode;
pub mod export;
pub mod fault;
pub mod file;
pub mod import;
pub mod imported;
pub mod job;
pub mod mount;
pub mod nearest;
pub mod node;
pub mod parse;
mod places;
pub mod sbatch;
#[cfg(test)]
mod schema;
pub mod shell;
pub mod size;
pub mod time;
pub mod whole;
pub mod write;

pub use fault::Fault;
pub use file::{JobFile, Unread};
pub use job::Job;

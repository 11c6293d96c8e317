// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks of files for `weft bench`, run by many ranks at once.
//!
//! - [`ior`]: parallel reading and writing of files, with the options and output of IOR
//! - [`mdtest`]: many files and directories, with the options and output of mdtest
//! - `command_line`: options as both spell them
#![forbid(unsafe_code)]

mod command_line;
pub mod ior;
pub mod mdtest;

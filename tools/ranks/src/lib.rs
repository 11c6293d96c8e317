// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The common part of all programs that run as several ranks, whatever they measure.
//!
//! - [`session`]: from the arguments to the exit code, with MPI's begin and end
//! - [`refusal`]: why a program does not run, or ends; one rank prints it for all
//! - [`mod@say`]: a line on stderr, in one piece
//! - [`agree`]: figures that the ranks compute together
//! - [`calendar`]: dates for the outputs
//! - [`mod@mix`]: numbers spread over 64 bits, for contents that are checked
#![forbid(unsafe_code)]

pub mod agree;
pub mod calendar;
pub mod mix;
pub mod refusal;
pub mod say;
pub mod session;

/// Exit code of success.
pub const EXIT_OK: u8 = 0;
/// Exit code when a run failed or validation found wrong bytes.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of bad usage.
pub const EXIT_USAGE: u8 = 2;

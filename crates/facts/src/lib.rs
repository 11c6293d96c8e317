// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What users can look up or set, once: the FI_WEFT_* variables, the limits, the protocols by which
//! a message is sent, the methods by which it is copied.
//!
//! Plain constants, without dependencies. The provider reads its parameters by this table, and its
//! limits are these; `weft doctor`, `weft info`, `weft top` and docs/parameters.md show the same
//! rows. A test writes and compares that page (tests/document.rs).
//!
//! - [`parameter`]: the variables; [`limit`]: the limits; [`protocol`]: how a message is sent;
//!   [`copy`]: how a long one is copied.

#![forbid(unsafe_code)]

pub mod copy;
pub mod limit;
pub mod parameter;
pub mod protocol;

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Things, which the row names.
    Count,
}

impl Unit {
    /// Its plural in text; nothing for a mere count.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::Count => "",
        }
    }
}

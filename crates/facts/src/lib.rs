// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What users can look up or set: variables, limits, protocols and copy methods, as tables.
//!
//! - *Purpose*: each fact is written in one place. Plain constants, without dependencies.
//! - *Used by*: the provider and the endpoint, which use these values; `weft doctor`, `weft info`,
//!   `weft top` and `weft run`, which show them; docs/parameters.md, which a test writes from them
//!   (tests/document.rs).
//! - *Start at*: [`parameter`], the FI_WEFT_* variables.
//!
//! - [`parameter`]: the variables; [`limit`]: the limits; [`protocol`]: how a message is sent;
//!   [`copy`]: how a long one is copied; [`collective`]: which collectives are counted;
//!   [`mod@rank`]: where a launcher says which rank this is.

#![forbid(unsafe_code)]

pub mod collective;
pub mod copy;
pub mod limit;
pub mod parameter;
pub mod protocol;
pub mod rank;

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

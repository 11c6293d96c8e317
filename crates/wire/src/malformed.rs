// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a datagram is not a packet: the field, its value and the rule it broke. Made by every parser
//! of this crate.

use core::fmt;

/// What was wrong with a datagram. Small and `Copy`; the sentence is made only when somebody prints
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The field as `docs/srd-protocol.md` names it.
    pub field: &'static str,
    /// Its value, widened; for a datagram that ended early, the number of bytes there were.
    pub value: u64,
    /// What the value should have been.
    pub rule: &'static str,
}

impl Malformed {
    #[cold]
    pub(crate) fn new(field: &'static str, value: u64, rule: &'static str) -> Self {
        Self { field, value, rule }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not an SRD packet: {} is {}, but {}",
            self.field, self.value, self.rule
        )
    }
}

impl core::error::Error for Malformed {}

/// `Ok` if the rule holds.
#[inline]
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: u64,
    rule: &'static str,
) -> Result<(), Malformed> {
    if holds {
        Ok(())
    } else {
        Err(Malformed::new(field, value, rule))
    }
}

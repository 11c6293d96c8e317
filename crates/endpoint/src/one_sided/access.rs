// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations as the user asks for them. fi_rma(3), fi_atomic(3).
//!
//! Made by the provider; posted by initiator.rs.

use weft_contract::Range;
use weft_memory::{Element, Operator, UserBuffer};

use super::request::HEAD_LIMIT_BYTES;
use crate::error::Error;
use crate::ids::FiAddr;
use crate::settings::DEFAULT_INJECT_LIMIT_BYTES;

/// Longest request with all that travels in it, and longest answer that is copied when it is made.
/// Specified by what every route takes whole.
pub(crate) const REQUEST_LIMIT_BYTES: usize = DEFAULT_INJECT_LIMIT_BYTES;

/// Most bytes of operands, comparands and results together in one atomic operation. Chosen: a
/// request, less the longest head.
pub const ATOMIC_LIMIT_BYTES: usize = REQUEST_LIMIT_BYTES - HEAD_LIMIT_BYTES;

/// What all one-sided operations have in common.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Whose memory.
    pub to: FiAddr,
    /// The target's memory: at most [`RANGE_LIMIT`](crate::RANGE_LIMIT) ranges, together as long as
    /// the local buffer.
    pub ranges: &'a [Range],
    /// Data for a completion at the target, if any (writes only).
    pub cq_data: Option<u64>,
    /// Flags of the call; `None` for the forms without flags, which take the endpoint's.
    pub flags: Option<u64>,
    /// For the inject forms: no entry is written if it succeeds.
    pub inject: bool,
    /// Comes back in the completion.
    pub context: usize,
}

/// What an atomic operation does; fi_atomic, fi_fetch_atomic and fi_compare_atomic.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'a> {
    /// The operation.
    pub operator: Operator,
    /// The type of the elements.
    pub element: Element,
    /// One operand for each element; empty for [`Operator::Read`].
    pub operands: &'a UserBuffer,
    /// One comparand for each element; empty unless the operation compares.
    pub comparands: &'a UserBuffer,
}

impl Atomic<'_> {
    /// Whether the operation holds together; answers the length of its target.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it has no meaning for the type or takes a result that is not
    /// given, [`Error::Invalid`] if buffers differ in length, [`Error::TooLong`] beyond
    /// [`ATOMIC_LIMIT_BYTES`].
    pub(crate) fn check(
        &self,
        access: &Access<'_>,
        result: Option<&UserBuffer>,
    ) -> Result<usize, Error> {
        let size = self.element.size_bytes() as u64;
        let operator = self.operator;
        let fetches_only = operator.only_reads() || operator.compares();
        if !self.element.allows(operator) || (fetches_only && result.is_none()) {
            return Err(Error::Unsupported);
        }
        let mut ranges = access.ranges.iter();
        if ranges.any(|range| range.length_bytes % size != 0) {
            return Err(Error::Invalid);
        }
        let total = access.ranges.iter().map(|range| range.length_bytes);
        let length_bytes = total.fold(0, u64::saturating_add);
        let operands = self.operands.length_bytes() as u64;
        let comparands = self.comparands.length_bytes() as u64;
        let fits = |given, taken: bool| given == if taken { length_bytes } else { 0 };
        if !fits(operands, !operator.only_reads())
            || !fits(comparands, operator.compares())
            || result.is_some_and(|result| result.length_bytes() as u64 != length_bytes)
        {
            return Err(Error::Invalid);
        }
        if length_bytes.max(operands + comparands) > ATOMIC_LIMIT_BYTES as u64 {
            return Err(Error::TooLong);
        }
        Ok(length_bytes as usize)
    }
}

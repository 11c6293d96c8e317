// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keyed tag over a whole datagram (srd-protocol 14.1): layout and seam. The key and its function come from outside.
//!
//! Called by the driver of the sockets: [`seal`] on the way out, [`open`] before a datagram is parsed.

use crate::header::HEADER_BYTES;
use crate::malformed::{Malformed, require};

/// Where the tag lies in a datagram (srd-protocol 2).
pub const TAG_RANGE: core::ops::Range<usize> = 24..32;

/// A keyed function over a datagram, such as SipHash-2-4 or GMAC under the job's key.
pub trait Keyed {
    /// The tag over the parts one after another. Fast path; must not depend on where the parts are cut.
    fn tag(&self, parts: &[&[u8]]) -> u64;
}

fn compute(key: &impl Keyed, head: &[u8], payload: &[u8]) -> u64 {
    key.tag(&[
        &head[..TAG_RANGE.start],
        &[0; 8],
        &head[TAG_RANGE.end..],
        payload,
    ])
}

/// Puts the tag into a packet's head. `head` is what [`crate::Packet::write`] made.
pub fn seal(key: &impl Keyed, head: &mut crate::Head, payload: &[u8]) {
    let tag = compute(key, head.as_bytes(), payload);
    head.as_bytes_mut()[TAG_RANGE].copy_from_slice(&tag.to_le_bytes());
}

/// Checks the tag of a datagram.
///
/// # Errors
/// When the datagram is shorter than a header or its tag is not that of the key: drop it, it is not from this job.
pub fn open(key: &impl Keyed, datagram: &[u8]) -> Result<(), Malformed> {
    let length = datagram.len();
    require(
        length >= HEADER_BYTES,
        "datagram length",
        length as u64,
        "a header has 48 bytes",
    )?;
    let mut written = [0; 8];
    written.copy_from_slice(&datagram[TAG_RANGE]);
    let written = u64::from_le_bytes(written);
    let difference = written ^ compute(key, datagram, &[]);
    require(
        difference == 0,
        "keyed tag",
        written,
        "the job's key gives another tag: the sender belongs to another job, or the datagram was changed",
    )
}

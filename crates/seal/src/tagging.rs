// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keyed tag over a whole datagram (srd-protocol 14.1): the AEGIS-128L MAC, cut to 64 bits.
//! Called by protection.
//!
//! Source: draft-irtf-cfrg-aegis-aead, "AEGIS-128L MAC"; why this one: docs/adr.

use aegis::aegis128l::Aegis128LMac;
use ring::hkdf::Prk;

use crate::job_key::derive;

/// Where the tag lies (srd-protocol 2).
pub(crate) const TAG_RANGE: std::ops::Range<usize> = 24..32;

/// Datagrams up to here are copied to be read with zeros for their tag, others in two steps
/// (chosen: a single message's; each step costs as much as 100 bytes).
const COPIED_BYTES: usize = 256;

/// The job's key for tags. What one datagram has made of the state is undone before the next, which
/// costs less than a copy for each.
pub(crate) struct Tagging {
    state: Aegis128LMac<16>,
    /// Where a datagram's front is read with zeros for its tag.
    front: [u8; COPIED_BYTES],
}

impl Tagging {
    pub(crate) fn new(root: &Prk) -> Self {
        let key = derive::<16>(root, &[b"tag"]);
        Self {
            state: Aegis128LMac::new(&key),
            front: [0; COPIED_BYTES],
        }
    }

    /// The tag over a datagram, whose own tag is taken as 0. Fast path: 45 ns and 22 bytes per ns.
    #[inline]
    pub(crate) fn tag(&mut self, datagram: &[u8]) -> u64 {
        self.begin(datagram);
        self.end()
    }

    /// The same of a datagram whose payload lies elsewhere: `show` shows it, stretch by stretch.
    /// Fast path.
    #[inline]
    pub(crate) fn tag_apart(
        &mut self,
        head: &[u8],
        show: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> u64 {
        self.begin(head);
        show(&mut |part| self.state.update(part));
        self.end()
    }

    #[inline]
    fn begin(&mut self, head: &[u8]) {
        let (copied, rest) = head.split_at(head.len().min(COPIED_BYTES));
        let front = &mut self.front[..copied.len()];
        front.copy_from_slice(copied);
        front[TAG_RANGE].fill(0);
        self.state.update(front);
        if !rest.is_empty() {
            self.state.update(rest);
        }
    }

    #[inline]
    fn end(&mut self) -> u64 {
        let tag = self.state.finalize_and_reset();
        let mut short = [0; 8];
        short.copy_from_slice(&tag[..8]);
        u64::from_le_bytes(short)
    }
}

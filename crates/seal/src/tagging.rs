// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keyed tag over a whole datagram (srd-protocol 14.1): the AEGIS-128L MAC, cut to 64 bits. Called by guard.
//!
//! Source: draft-irtf-cfrg-aegis-aead, "AEGIS-128L MAC"; why this one: docs/adr.

use aegis::aegis128l::Aegis128LMac;
use ring::hkdf::Prk;

use crate::job_key::derive;

/// Where the tag lies (srd-protocol 2).
pub(crate) const TAG_RANGE: std::ops::Range<usize> = 24..32;

/// A payload that lies elsewhere is read in steps of so much (chosen: it stays in the nearest cache).
const CHUNK_BYTES: usize = 4096;

/// The job's key for tags, ready to be copied for each datagram.
pub(crate) struct Tagging {
    start: Aegis128LMac<16>,
}

impl Tagging {
    pub(crate) fn new(root: &Prk) -> Self {
        let key = derive::<16>(root, &[b"tag"]);
        Self {
            start: Aegis128LMac::new(&key),
        }
    }

    /// The tag over a datagram, whose own tag is taken as 0. Fast path: 45 ns and 22 bytes per ns.
    pub(crate) fn tag(&self, datagram: &[u8]) -> u64 {
        short(self.begin(datagram))
    }

    /// The same of a datagram whose payload lies elsewhere: `read` copies a stretch of it, from an offset on. Fast path.
    pub(crate) fn tag_apart(
        &self,
        head: &[u8],
        length_bytes: usize,
        mut read: impl FnMut(usize, &mut [u8]),
    ) -> u64 {
        let mut state = self.begin(head);
        let mut chunk = [0; CHUNK_BYTES];
        for offset in (0..length_bytes).step_by(CHUNK_BYTES) {
            let part = &mut chunk[..CHUNK_BYTES.min(length_bytes - offset)];
            read(offset, part);
            state.update(part);
        }
        short(state)
    }

    fn begin(&self, head: &[u8]) -> Aegis128LMac<16> {
        let mut state = self.start.clone();
        let (front, back) = head.split_at(TAG_RANGE.start);
        state.update(front);
        state.update(&[0; 8]);
        state.update(&back[8..]);
        state
    }
}

fn short(state: Aegis128LMac<16>) -> u64 {
    let tag = state.finalize();
    let mut short = [0; 8];
    short.copy_from_slice(&tag[..8]);
    u64::from_le_bytes(short)
}

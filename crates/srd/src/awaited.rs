// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long packets that have left and of which no echo has come (srd-protocol 9.1). Kept by sent,
//! asked by loss.

use std::collections::VecDeque;

use weft_wire::Path;
use weft_wire::time::Instant;

/// Those whose echoes are waited for (chosen: a window of batches).
const AWAITED_LIMIT: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Awaited(VecDeque<Left>);

/// When a packet left, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Left {
    sent_ns: Instant,
    path: Path,
}

impl Awaited {
    pub(crate) fn add(&mut self, path: Path, sent_ns: Instant) {
        if self.0.len() == AWAITED_LIMIT {
            self.0.pop_front();
        }
        self.0.push_back(Left { sent_ns, path });
    }

    /// Whether an echo is of one of them, which counts once. Fast path while there are none.
    #[inline]
    pub(crate) fn take(&mut self, path: Path, sent_ns: Instant) -> bool {
        let place = self
            .0
            .iter()
            .position(|left| *left == Left { sent_ns, path });
        place.and_then(|place| self.0.remove(place)).is_some()
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Left>()
    }
}

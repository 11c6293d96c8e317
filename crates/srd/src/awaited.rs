// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long packets that have left and of which no echo has come (srd-protocol 9.1). Kept by sent,
//! asked by loss.

use std::collections::VecDeque;

use weft_wire::Path;
use weft_wire::time::Instant;

/// Those whose echoes are waited for (chosen: a window of batches).
const AWAITED_LIMIT: usize = 32;

/// See the module. Takes room only from the first long packet on.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Option<Box<Kept>>);

/// What is kept from the first one on, oldest first.
#[derive(Debug, Default)]
struct Kept {
    all: VecDeque<Left>,
}

/// When a packet left, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Left {
    sent_ns: Instant,
    path: Path,
}

impl Awaited {
    pub(crate) fn add(&mut self, path: Path, sent_ns: Instant) {
        let all = &mut self.0.get_or_insert_default().all;
        if all.len() == AWAITED_LIMIT {
            all.pop_front();
        }
        all.push_back(Left { sent_ns, path });
    }

    /// Whether an echo is of one of them, which counts once. Fast path while there were none.
    #[inline]
    pub(crate) fn take(&mut self, path: Path, sent_ns: Instant) -> bool {
        let Some(kept) = &mut self.0 else {
            return false;
        };
        let all = &mut kept.all;
        let place = all.iter().position(|left| *left == Left { sent_ns, path });
        place.and_then(|place| all.remove(place)).is_some()
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        let each = size_of::<Left>();
        let of = |kept: &Kept| size_of::<Kept>() + kept.all.capacity() * each;
        self.0.as_deref().map_or(0, of)
    }
}

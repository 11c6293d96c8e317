// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the other ranks' processes live, looked at now and then while a rank waits for them.
//! Asked by waiting and pending.

use weft_os::clock::monotonic_ns;
use weft_os::process_id::ProcessId;

/// How often the others are looked at. Chosen: an ended rank is noticed within a tenth of a second,
/// and a look at one process takes ten microseconds.
const LIFE_CHECK_NS: u64 = 100_000_000;

/// Questions between two looks at the clock. Chosen: what comes between two of them takes a tenth
/// of a microsecond or more.
const CALLS_PER_LOOK: u32 = 256;

/// Checks the processes of a communicator's ranks.
#[derive(Clone, Debug)]
pub struct Liveness {
    own: ProcessId,
    ranks: Vec<ProcessId>,
    calls: u32,
    next_check_ns: u64,
}

impl Liveness {
    /// Of these processes, in the order of ranks.
    pub fn new(ranks: Vec<ProcessId>) -> Self {
        Self {
            own: ProcessId::own(),
            ranks,
            calls: 0,
            next_check_ns: 0,
        }
    }

    /// A rank whose process has ended; mostly answers without a look.
    #[inline]
    pub fn ended(&mut self) -> Option<usize> {
        self.calls = self.calls.wrapping_add(1);
        match self.calls % CALLS_PER_LOOK {
            0 => self.look(),
            _ => None,
        }
    }

    fn look(&mut self) -> Option<usize> {
        let now_ns = monotonic_ns();
        if now_ns < self.next_check_ns {
            return None;
        }
        let is_first = self.next_check_ns == 0;
        self.next_check_ns = now_ns + LIFE_CHECK_NS;
        if is_first {
            return None;
        }
        let mut ranks = self.ranks.iter();
        ranks.position(|rank| rank.has_ended(&self.own))
    }
}

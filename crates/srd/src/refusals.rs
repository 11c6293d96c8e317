// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a host says of a process (ICMP port unreachable), and how it may contradict that: anybody
//! can forge such a word (srd-protocol 13.3). One for each flow; kept and asked by silence.

use weft_wire::time::{Instant, Nanos};

/// Refused datagrams that end a flow, how long a remote may contradict them, and heartbeats that
/// are asked for meanwhile (srd-protocol 13.3; chosen: a process that computes on a crowded host
/// answers within some tens of milliseconds, and a heartbeat may be lost).
const REFUSED_LIMIT: u32 = 3;
/// See [`REFUSED_LIMIT`].
const GRACE_PART: u64 = 4;
/// See [`REFUSED_LIMIT`].
const GRACE_MOST_NS: Nanos = Nanos(300_000_000);
/// See [`REFUSED_LIMIT`].
const GRACE_QUESTIONS: u32 = 3;

fn grace_ns(dead_after_ns: Nanos) -> Nanos {
    (dead_after_ns / GRACE_PART).min(GRACE_MOST_NS)
}

/// Time between two questions of those.
pub(crate) fn step_ns(dead_after_ns: Nanos) -> Nanos {
    grace_ns(dead_after_ns) / u64::from(GRACE_QUESTIONS)
}

/// What to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Nothing yet.
    Wait,
    /// Ask for a heartbeat.
    Ask,
    /// The process is gone.
    Gone,
}

/// Refusals of our datagrams with nothing heard between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusals {
    count: u32,
    /// Heartbeats asked for since the first one.
    asked_count: u32,
    first_ns: Instant,
    /// When to ask again or to judge; [`Instant::NEVER`] if nothing is refused.
    due_ns: Instant,
}

impl Refusals {
    /// Of a flow that begins.
    pub(crate) fn none() -> Self {
        Self {
            count: 0,
            asked_count: 0,
            first_ns: Instant::START,
            due_ns: Instant::NEVER,
        }
    }

    /// Something was heard.
    #[inline]
    pub(crate) fn contradict(&mut self) {
        self.count = 0;
    }

    /// A question of that time was answered.
    pub(crate) fn contradict_before(&mut self, asked_ns: Instant) {
        if asked_ns >= self.first_ns {
            self.count = 0;
        }
    }

    /// One more; the next heartbeat may be asked for at `next_ns`.
    pub(crate) fn add(&mut self, now_ns: Instant, next_ns: Instant) {
        if self.count == 0 {
            self.first_ns = now_ns;
            self.asked_count = 0;
        }
        self.count = self.count.saturating_add(1);
        if self.due_ns == Instant::NEVER {
            self.due_ns = next_ns.max(now_ns);
        }
    }

    /// A heartbeat is asked for.
    pub(crate) fn on_question(&mut self) {
        self.asked_count = self.asked_count.saturating_add(1);
    }

    /// When to call [`Refusals::judge`].
    #[inline]
    pub(crate) fn due_ns(&self) -> Instant {
        self.due_ns
    }

    /// What they come to, once all that has arrived was read: another heartbeat if one can be asked
    /// for, or, where none was answered, the end.
    pub(crate) fn judge(
        &mut self,
        now_ns: Instant,
        dead_after_ns: Nanos,
        can_ask: bool,
    ) -> Verdict {
        if now_ns < self.due_ns {
            return Verdict::Wait;
        }
        let end_ns = self.first_ns.saturating_add(grace_ns(dead_after_ns));
        if self.count > 0 && can_ask && self.asked_count < GRACE_QUESTIONS {
            self.due_ns = now_ns + step_ns(dead_after_ns).max(Nanos(1));
            return Verdict::Ask;
        }
        if self.count > 0 && now_ns < end_ns {
            self.due_ns = end_ns;
        } else if self.count < REFUSED_LIMIT {
            self.due_ns = Instant::NEVER;
        } else {
            return Verdict::Gone;
        }
        Verdict::Wait
    }
}

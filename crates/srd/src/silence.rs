// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When a remote was heard last, and when its silence means that it is dead (srd-protocol 13). One
//! for each flow: flow.rs reports what is heard, transmit.rs what is asked.

use crate::refusals::{self, Refusals, Verdict};
use weft_wire::time::{Instant, Nanos};

/// Retransmissions and probes that must stay without an answer before a remote is given up
/// (srd-protocol 13.1; chosen).
const TRIES_BEFORE_DEATH: u32 = 3;
/// If this process looks at a deadline later than this part of `dead_after`, it was away itself,
/// and the remote's silence does not count (srd-protocol 13.1; chosen).
const AWAY_PART: u64 = 5;

/// A remote that was silent for this part of `dead_after` gets a probe (srd-protocol 13.2; chosen:
/// so that several probes may be lost).
const QUIET_PART: u64 = 5;

/// A silent remote is asked for a heartbeat once in this part of `dead_after` (srd-protocol 13.6;
/// chosen: so that three answers may be lost).
const HEARTBEAT_PART: u64 = 5;

/// If only the remote's host answers, its process counts as alive for this many times `dead_after`
/// (srd-protocol 13.5; chosen: most programs send something within a minute of their start, and a
/// process in a debugger stands still for longer).
const VOUCHED_MOST: u64 = 10;

/// What is known of a remote's silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    pub(crate) heard_ns: Instant,
    /// The highest sent_ns of the remote's packets: only a newer packet shows that it lives
    /// (srd-protocol 14.7).
    pub(crate) newest_ns: Instant,
    /// Since when something waits for an answer of any kind; [`Instant::NEVER`] if nothing does.
    pub(crate) unanswered_ns: Instant,
    /// Retransmissions and probes since the remote was heard, or since we were away.
    pub(crate) tried_count: u32,
    /// We were away since the remote was heard or said that it lives, and that time was not counted
    /// as silence.
    excused: bool,
    /// When the last probe asked the remote for something, and how many such probes were sent since
    /// credit or limit last grew.
    pub(crate) asked_ns: Instant,
    pub(crate) asked_count: u32,
    /// When a heartbeat was last asked for.
    pub(crate) heartbeat_ns: Instant,
    /// Ask for a heartbeat at once: the host says that no process has the port.
    pub(crate) wants_heartbeat: bool,
    /// Since when only the host says that the process lives; [`Instant::NEVER`] if it has not said
    /// so since the process was heard.
    vouched_ns: Instant,
    /// What the remote's host says of the process.
    refusals: Refusals,
    /// The owner wants to hear of the end even if nothing is under way (srd-protocol 13.2).
    pub(crate) watched: bool,
}

impl Silence {
    /// Of a flow that begins now; `newest_ns` is what is known from an earlier one with this
    /// remote.
    pub(crate) fn new(now_ns: Instant, newest_ns: Instant) -> Self {
        Self {
            heard_ns: now_ns,
            newest_ns,
            unanswered_ns: Instant::NEVER,
            tried_count: 0,
            excused: false,
            asked_ns: now_ns,
            asked_count: 0,
            heartbeat_ns: Instant::START,
            wants_heartbeat: false,
            vouched_ns: Instant::NEVER,
            refusals: Refusals::none(),
            watched: false,
        }
    }

    /// Something of the remote has arrived that it cannot have sent before.
    pub(crate) fn on_heard(&mut self, now_ns: Instant) {
        self.heard_ns = now_ns;
        self.vouched_ns = Instant::NEVER;
        self.refusals.contradict();
        self.tried_count = 0;
        self.excused = false;
    }

    /// The process has said that it lives, in answer to what we asked at `asked_ns`: its silence
    /// counts from then on (srd-protocol 13.6). An answer that is played back says nothing new.
    pub(crate) fn on_alive(&mut self, asked_ns: Instant) {
        self.refusals.contradict_before(asked_ns);
        if self.unanswered_ns != Instant::NEVER && asked_ns > self.unanswered_ns {
            self.unanswered_ns = asked_ns;
            self.vouched_ns = Instant::NEVER;
            self.excused = false;
        }
    }

    /// The host lives, and does not say that the process is gone. Anybody could say so in its name:
    /// it is believed for some times `dead_after`, unless the process speaks meanwhile
    /// (srd-protocol 13.5).
    pub(crate) fn on_host_alive(&mut self, now_ns: Instant, dead_after_ns: Nanos) {
        if self.unanswered_ns == Instant::NEVER {
            return;
        }
        self.vouched_ns = self.vouched_ns.min(self.unanswered_ns);
        let patience_ns = dead_after_ns.saturating_mul(VOUCHED_MOST);
        if now_ns < self.vouched_ns.saturating_add(patience_ns) {
            self.unanswered_ns = now_ns;
        }
    }

    /// The host has refused a datagram (srd-protocol 13.3).
    pub(crate) fn on_refused(&mut self, now_ns: Instant, dead_after_ns: Nanos) {
        self.unanswered_ns = self.unanswered_ns.min(now_ns);
        // A flood of such words brings no flood of questions.
        let next_ns = self
            .heartbeat_ns
            .saturating_add(refusals::step_ns(dead_after_ns));
        self.refusals.add(now_ns, next_ns);
    }

    /// A heartbeat is asked for.
    pub(crate) fn on_heartbeat(&mut self, now_ns: Instant) {
        self.heartbeat_ns = now_ns;
        self.wants_heartbeat = false;
        self.tried_count += 1;
        self.refusals.on_question();
    }

    /// What the host's refusals come to, once all that has arrived was read; answers whether they
    /// end the flow.
    pub(crate) fn judge_refusals(
        &mut self,
        now_ns: Instant,
        dead_after_ns: Nanos,
        can_ask: bool,
    ) -> bool {
        let verdict = self.refusals.judge(now_ns, dead_after_ns, can_ask);
        self.wants_heartbeat |= verdict == Verdict::Ask;
        verdict == Verdict::Gone
    }

    /// When to ask the remote's heartbeat port, because nothing is heard (srd-protocol 13.6);
    /// [`Instant::NEVER`] where nothing waits for an answer. Fast path.
    #[inline]
    pub(crate) fn heartbeat_due_ns(&self, heartbeat_port: u16, dead_after_ns: Nanos) -> Instant {
        if heartbeat_port == 0 {
            return Instant::NEVER;
        }
        if self.wants_heartbeat {
            return Instant::START;
        }
        let asked_ns = self.heartbeat_ns.max(self.unanswered_ns);
        asked_ns.saturating_add(dead_after_ns / HEARTBEAT_PART)
    }

    /// A probe leaves that asks whether anybody is there.
    pub(crate) fn on_asked(&mut self, now_ns: Instant) {
        self.asked_ns = now_ns;
        self.asked_count += 1;
        self.tried_count += 1;
        self.await_answer(now_ns);
    }

    /// Something leaves that the remote answers.
    #[inline]
    pub(crate) fn await_answer(&mut self, now_ns: Instant) {
        self.unanswered_ns = self.unanswered_ns.min(now_ns);
    }

    /// When a remote is asked by a probe because it is quiet, while nothing else has to leave
    /// (srd-protocol 13.2).
    #[inline]
    pub(crate) fn quiet_ask_ns(&self, dead_after_ns: Nanos) -> Instant {
        self.last_word_ns() + dead_after_ns / QUIET_PART
    }

    /// When the remote was last heard, or asked for a word.
    #[inline]
    pub(crate) fn last_word_ns(&self) -> Instant {
        self.asked_ns.max(self.heard_ns)
    }

    /// Whether a packet is newer than all before it: then the remote lives (srd-protocol 14.7).
    pub(crate) fn is_news(&mut self, sent_ns: Instant) -> bool {
        let news = sent_ns > self.newest_ns;
        self.newest_ns = self.newest_ns.max(sent_ns);
        news
    }

    /// Something was due `late_ns` ago. Of a process that was stopped meanwhile that time is no
    /// silence of the remote, which may have been stopped too. Once until something is heard or
    /// the remote says that it lives, since a process that only looks in now and then is late each
    /// time (srd-protocol 13.1).
    pub(crate) fn excuse(&mut self, now_ns: Instant, late_ns: Nanos, dead_after_ns: Nanos) {
        if self.excused
            || self.unanswered_ns == Instant::NEVER
            || late_ns < dead_after_ns / AWAY_PART
        {
            return;
        }
        self.excused = true;
        self.tried_count = 0;
        let counted_ns = now_ns.saturating_since(self.unanswered_ns.saturating_add(late_ns));
        self.unanswered_ns = now_ns - counted_ns.min(dead_after_ns / 2);
    }

    /// When the remote is given up; [`Instant::NEVER`] before it was asked often enough
    /// (srd-protocol 13.1).
    pub(crate) fn dead_ns(&self, dead_after_ns: Nanos) -> Instant {
        if self.tried_count < TRIES_BEFORE_DEATH {
            return Instant::NEVER;
        }
        self.unanswered_ns.saturating_add(dead_after_ns)
    }

    /// When there is something to judge of the remote: its silence, or what its host says.
    pub(crate) fn judged_ns(&self, dead_after_ns: Nanos) -> Instant {
        self.dead_ns(dead_after_ns).min(self.refusals.due_ns())
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What time does to a flow (srd-protocol 8, 9, 11.2, 13): when something is due, and what to do
//! then. Called by flows.

use crate::config::Config;
use crate::flow::Flow;
use crate::idleness::Step;
use crate::loss;
use crate::shared::Shared;
use weft_wire::time::{Instant, Nanos};

/// What a timer made of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Lives,
    Dead,
    Folds,
}

impl Flow {
    /// Whether messages, offers or landings are open: then the remote must live.
    pub(crate) fn is_busy(&self) -> bool {
        !self.queue.is_empty()
            || !self.sender.ring.is_empty()
            || self.receiver.is_busy()
            || self.silence.watched
    }

    /// When to ask whether anybody is there (srd-protocol 11.2, 13.2).
    pub(crate) fn ask_ns(&self, shared: &Shared) -> Instant {
        if !self.is_busy() {
            return Instant::NEVER;
        }
        // Bytes want to leave, and the remote has not allowed them (srd-protocol 11.2).
        let is_starved = self.sender.in_flight_bytes == 0
            && !self.sender.ring.has_lost()
            && self.queue.has_unsent();
        if !is_starved {
            return self.quiet_ask_ns(shared);
        }
        let timing = &shared.config.timing;
        let rto_ns = self.sender.round_trip.rto_ns(timing, shared.jitter.ns());
        let wait_ns = (rto_ns << self.silence.asked_count.min(6)).min(timing.rto_ceiling_ns);
        self.silence.last_word_ns() + wait_ns
    }

    /// The same where nothing waits to leave.
    #[inline]
    fn quiet_ask_ns(&self, shared: &Shared) -> Instant {
        self.silence
            .quiet_ask_ns(shared.config.timing.dead_after_ns)
    }

    /// When to ask the remote's heartbeat port; [`Instant::NEVER`] where nothing waits for an
    /// answer.
    #[inline]
    pub(crate) fn heartbeat_ns(&self, config: &Config) -> Instant {
        let port = self.identity.reach.heartbeat_port;
        let dead_after_ns = config.timing.dead_after_ns;
        self.silence.heartbeat_due_ns(port, dead_after_ns)
    }

    /// Whether a packet would surely not leave: a quick look, which may say no where nothing is
    /// found. Fast path.
    #[inline]
    pub(crate) fn is_at_rest(&self, shared: &Shared, now_ns: Instant) -> bool {
        let sender = &self.sender;
        self.receiver.received.timer.due_ns() > now_ns
            && !self.queue.owes()
            && !self.queue.has_unsent()
            && sender.urgent.is_none()
            && !shared.is_closing
            && !sender.ring.has_lost()
            && self.mtu_search.due_ns() > now_ns
            && self.heartbeat_ns(&shared.config) > now_ns
            && sender.paths.health.next_probe_ns() > now_ns
            && self.quiet_ask_ns(shared) > now_ns
    }

    /// When to call [`Flow::on_timeout`] or to ask for packets again; what could leave now does not
    /// count.
    #[inline]
    pub(crate) fn deadline_ns(&self, shared: &Shared, now_ns: Instant) -> Instant {
        let mut first = self.judged_ns(&shared.config, shared.jitter.ns());
        let (probe_ns, ask_ns) = if self.is_busy() {
            let probe_ns = self.sender.paths.health.next_probe_ns();
            (probe_ns, self.ask_ns(shared))
        } else {
            (Instant::NEVER, Instant::NEVER)
        };
        let leaving = [
            self.receiver.received.timer.due_ns(),
            self.heartbeat_ns(&shared.config),
            ask_ns,
            probe_ns,
            self.sender.pacing.due_ns(),
            self.mtu_search.due_ns(),
        ];
        for at_ns in leaving {
            if at_ns > now_ns {
                first = first.min(at_ns);
            }
        }
        first.max(now_ns + Nanos(1))
    }

    /// When [`Flow::on_timeout`] has something to judge: silence, losses, death, idleness. Whatever
    /// else a deadline is for wants to leave.
    #[inline]
    pub(crate) fn judged_ns(&self, config: &Config, jitter_ns: Nanos) -> Instant {
        let srtt_ns = self.sender.round_trip.srtt_ns();
        let loss_ns = self.sender.clocks.loss_ns;
        loss_ns
            .min(self.sender.silence_ns(config, jitter_ns))
            .min(self.receiver.account.stalled_ns(srtt_ns))
            .min(self.silence.judged_ns(config.timing.dead_after_ns))
            .min(self.idleness.due_ns(config.timing.idle_after_ns))
    }

    /// Something may be due, and was to be looked at so long ago.
    pub(crate) fn on_timeout(
        &mut self,
        shared: &mut Shared,
        now_ns: Instant,
        late_ns: Nanos,
    ) -> Outcome {
        let dead_after_ns = shared.config.timing.dead_after_ns;
        self.silence.excuse(now_ns, late_ns, dead_after_ns);
        let can_ask = self.identity.reach.heartbeat_port != 0;
        if now_ns >= self.silence.dead_ns(dead_after_ns)
            || self.silence.judge_refusals(now_ns, dead_after_ns, can_ask)
        {
            return Outcome::Dead;
        }
        if now_ns >= self.sender.clocks.loss_ns {
            loss::find_lost(&mut self.sender, now_ns, &mut shared.statistics);
        }
        let jitter_ns = shared.jitter.ns();
        if now_ns >= self.sender.silence_ns(&shared.config, jitter_ns) {
            loss::on_silence(&mut self.sender, shared, now_ns);
        }
        if now_ns
            >= self
                .receiver
                .account
                .stalled_ns(self.sender.round_trip.srtt_ns())
        {
            self.receiver.account.write_off(&mut shared.pool);
        }
        let fold_after_ns = shared.config.timing.idle_after_ns;
        if now_ns < self.idleness.due_ns(fold_after_ns) {
            return Outcome::Lives;
        }
        let is_idle = !self.is_busy() && self.receiver.is_idle();
        match self.idleness.step(is_idle, now_ns, fold_after_ns) {
            Some(Step::Fold) => return Outcome::Folds,
            Some(Step::Trim) => {
                self.sender.ring.trim();
                self.sender.marks.trim();
                self.queue.trim();
                self.receiver.trim(self.silence.newest_ns);
            }
            None => {}
        }
        Outcome::Lives
    }
}

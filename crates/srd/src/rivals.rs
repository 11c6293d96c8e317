// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Others on the same links who fill queues until they overflow, as TCP does: whether there are
//! any, and what the window does then (srd-protocol 10.10).
//!
//! Who gives way to delay gets nothing beside them. So while a queue stands that does not answer to
//! our window, the window moves by losses. Called by window. Sources: Copa (NSDI 2018, 2.2) for two
//! ways of moving a window and a question that decides between them; RFC 9438.

use weft_wire::time::{Instant, Nanos};

use crate::cubic::Cubic;
use crate::overflow::Overflow;

/// A queue stands when for so long, and for so many round trips, no echo was below the target
/// (chosen: longer than an incast of messages of some MB, and as short as sharing can wait).
const STANDS_NS: Nanos = Nanos(20_000_000);
const STANDS_ROUND_TRIPS: u64 = 16;
/// The longest pause between two trials (chosen).
const RETRY_MOST_NS: Nanos = Nanos(2_000_000_000);
/// While it competes the window is halved for three round trips now and then, to see whether the
/// queue answers (chosen: it costs about 5 of 100 of the share).
const DIP_ROUND_TRIPS: u64 = 3;
const DIP_EVERY_ROUND_TRIPS: u64 = 40;
const DIP_EVERY_NS: Nanos = Nanos(100_000_000);
/// The queue is ours alone if the round trip shrinks to at most so many tenths when the window is
/// halved (a half of it if it is; three fourths beside one equal rival).
const OURS_TENTHS: u64 = 6;
/// And if it grows to at least so many tenths when the window is doubled (twenty if it is).
const OURS_DOUBLED_TENTHS: u64 = 17;

/// A trial is early while the window is less than so many times what it began with (chosen).
const EARLY_TIMES: u64 = 4;
/// Nothing overflowed if more than this part, a fourth, of what seemed lost was not (chosen).
const FALSE_PART: u64 = 4;

/// One acknowledgement with a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) now_ns: Instant,
    /// Smoothed, with its queues.
    pub(crate) rtt_ns: Nanos,
    pub(crate) acked_bytes: u64,
    pub(crate) packet_bytes: u64,
    pub(crate) cwnd_bytes: u64,
    /// The window was in use.
    pub(crate) in_use: bool,
    /// The echo was below the delay target.
    pub(crate) is_calm: bool,
    /// The round trip at that target.
    pub(crate) calm_rtt_ns: Nanos,
}

/// Packets were found lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) now_ns: Instant,
    /// Smoothed, with its queues.
    pub(crate) rtt_ns: Nanos,
    pub(crate) cwnd_bytes: u64,
    /// Before it.
    pub(crate) in_flight_bytes: u64,
    pub(crate) packet_bytes: u64,
    /// Bytes of them on paths that went on to carry others.
    pub(crate) overtaken_bytes: u64,
    /// There was a queue that may have overflowed.
    pub(crate) has_queue: bool,
}

/// What the window does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// It gives way to delay.
    Delay,
    /// It is this, whatever the delay.
    Set(u64),
}

/// Whether there are rivals. Most flows never have any: what is kept of them takes room only from
/// the first loss or trial on.
#[derive(Debug)]
pub(crate) struct Rivals {
    /// When the queue began to stand; never while it does not.
    stands_since_ns: Instant,
    sharing: Option<Box<Sharing>>,
}

/// What is kept of rivals and losses.
#[derive(Debug)]
struct Sharing {
    retry_ns: Nanos,
    phase: Phase,
    cubic: Option<Cubic>,
    /// Losses before this are of an event that was heeded.
    recovered_ns: Instant,
    overflow: Overflow,
    /// The window moves by losses because queues overflowed, and not because a trial found rivals.
    by_overflow: bool,
    /// Bytes lost since then, and of them, those that were not.
    lost_bytes: u64,
    false_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nobody is known.
    Alone,
    /// The window grows until something is lost.
    Trial(Trial),
    /// The window is that of CUBIC until the next dip.
    Shares { dip_ns: Instant },
    /// The window is halved, to see what the queue does.
    Dip { before: Mark, end_ns: Instant },
}

/// After a doubling and a round trip, at `judged_ns`, the queue has answered or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Trial {
    begun_bytes: u64,
    mark: Mark,
    judged_ns: Option<Instant>,
}

/// A window and the round trip that it made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    cwnd_bytes: u64,
    rtt_ns: Nanos,
}

impl Rivals {
    /// Nobody is known.
    pub(crate) fn new() -> Self {
        Self {
            stands_since_ns: Instant::NEVER,
            sharing: None,
        }
    }

    /// Whether the window moves by losses.
    #[inline]
    pub(crate) fn compete(&self) -> bool {
        self.sharing
            .as_ref()
            .is_some_and(|sharing| sharing.phase != Phase::Alone)
    }

    /// What an acknowledgement means for the window. Fast path while nothing is lost and no queue
    /// stands.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, news: &News) -> Rule {
        if self.sharing.is_none() && news.is_calm {
            self.stands_since_ns = Instant::NEVER;
            return Rule::Delay;
        }
        self.on_news(news)
    }

    fn on_news(&mut self, news: &News) -> Rule {
        if let Some(sharing) = &mut self.sharing {
            sharing
                .overflow
                .on_acknowledged(news.acked_bytes, news.packet_bytes);
            if sharing.phase != Phase::Alone {
                let rule = sharing.move_on(news);
                // Delay decides again; the queue begins to stand anew.
                self.stands_since_ns = news.now_ns;
                return rule;
            }
        }
        if news.is_calm {
            self.stands_since_ns = Instant::NEVER;
            return Rule::Delay;
        }
        self.watch(news)
    }

    /// A queue stands: for how long?
    fn watch(&mut self, news: &News) -> Rule {
        self.stands_since_ns = self.stands_since_ns.min(news.now_ns);
        let retry_ns = self
            .sharing
            .as_ref()
            .map_or(STANDS_NS, |kept| kept.retry_ns);
        let least_ns = retry_ns.max(STANDS_ROUND_TRIPS * news.rtt_ns);
        if news.now_ns.saturating_since(self.stands_since_ns) < least_ns || !news.in_use {
            return Rule::Delay;
        }
        self.sharing().begin_trial(news)
    }

    #[cold]
    fn sharing(&mut self) -> &mut Sharing {
        self.sharing.get_or_insert_with(|| Box::new(Sharing::new()))
    }

    /// Something was lost. While nobody is known, and queues do not overflow (overflow.rs), that
    /// means nothing here. Answers the window from now on, if it moves by losses.
    pub(crate) fn on_lost(&mut self, loss: &Loss) -> Option<u64> {
        self.sharing().on_lost(loss)
    }

    /// The network has marked packets: somebody's queue is long, and a loss is what comes next. So
    /// the window moves by losses from now on, and this is the first. Answers the window.
    pub(crate) fn on_marked(&mut self, loss: &Loss) -> u64 {
        self.sharing().on_marked(loss)
    }

    /// So many bytes that were taken for lost were not.
    pub(crate) fn on_false_loss(&mut self, bytes: u64) {
        if let Some(sharing) = &mut self.sharing {
            sharing.on_false_loss(bytes);
        }
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.sharing
            .as_ref()
            .map_or(0, |sharing| size_of_val(&**sharing))
    }
}

impl Sharing {
    fn new() -> Self {
        Self {
            retry_ns: STANDS_NS,
            phase: Phase::Alone,
            cubic: None,
            recovered_ns: Instant::START,
            overflow: Overflow::default(),
            by_overflow: false,
            lost_bytes: 0,
            false_bytes: 0,
        }
    }

    /// Packets that come late look lost; no queue overflowed then.
    fn on_false_loss(&mut self, bytes: u64) {
        self.overflow.on_false_loss(bytes);
        self.false_bytes += bytes;
        if self.by_overflow && self.false_bytes * FALSE_PART > self.lost_bytes {
            self.phase = Phase::Alone;
        }
    }

    fn move_on(&mut self, news: &News) -> Rule {
        match self.phase {
            Phase::Alone => Rule::Delay,
            Phase::Trial(trial) => self.try_more(news, trial),
            Phase::Shares { dip_ns } => self.share(news, dip_ns),
            Phase::Dip { before, end_ns } => self.judge_dip(news, before, end_ns),
        }
    }

    fn begin_trial(&mut self, news: &News) -> Rule {
        self.phase = Phase::Trial(Trial {
            begun_bytes: news.cwnd_bytes,
            mark: Mark {
                cwnd_bytes: news.cwnd_bytes,
                rtt_ns: news.rtt_ns,
            },
            judged_ns: None,
        });
        self.cubic = None;
        self.by_overflow = false;
        Rule::Set(news.cwnd_bytes)
    }

    /// A fourth more in every round trip, as long as that brings more.
    fn try_more(&mut self, news: &News, mut trial: Trial) -> Rule {
        let cwnd_bytes = news.cwnd_bytes + if news.in_use { news.acked_bytes / 4 } else { 0 };
        let mark = &mut trial.mark;
        match trial.judged_ns {
            None if cwnd_bytes >= 2 * mark.cwnd_bytes => {
                trial.judged_ns = Some(news.now_ns + news.rtt_ns);
            }
            Some(judged_ns) if news.now_ns >= judged_ns => {
                if news.rtt_ns * 10 >= mark.rtt_ns * OURS_DOUBLED_TENTHS {
                    return self.give_way();
                }
                (mark.cwnd_bytes, mark.rtt_ns) = (cwnd_bytes, news.rtt_ns);
                trial.judged_ns = None;
            }
            _ => {}
        }
        self.phase = Phase::Trial(trial);
        Rule::Set(cwnd_bytes)
    }

    fn share(&mut self, news: &News, dip_ns: Instant) -> Rule {
        if news.now_ns >= dip_ns {
            let before = Mark {
                cwnd_bytes: news.cwnd_bytes,
                rtt_ns: news.rtt_ns,
            };
            let end_ns = news.now_ns + DIP_ROUND_TRIPS * news.rtt_ns;
            self.phase = Phase::Dip { before, end_ns };
            return Rule::Set(news.cwnd_bytes / 2);
        }
        let cubic = self.cubic.as_mut().filter(|_| news.in_use);
        Rule::Set(cubic.map_or(news.cwnd_bytes, |cubic| {
            cubic.grown_bytes(news.cwnd_bytes, news.acked_bytes, news.now_ns, news.rtt_ns)
        }))
    }

    fn judge_dip(&mut self, news: &News, before: Mark, end_ns: Instant) -> Rule {
        if news.now_ns < end_ns {
            return Rule::Set(news.cwnd_bytes);
        }
        // Where queues overflow below the target, delay would not tell us when to stop.
        let tells = before.rtt_ns > news.calm_rtt_ns;
        if tells && (news.is_calm || news.rtt_ns * 10 <= before.rtt_ns * OURS_TENTHS) {
            return self.give_way();
        }
        self.share_from(news.now_ns, before.rtt_ns);
        Rule::Set(before.cwnd_bytes)
    }

    /// The queue is ours: delay decides again, and the next trial waits for longer.
    fn give_way(&mut self) -> Rule {
        self.phase = Phase::Alone;
        self.cubic = None;
        self.retry_ns = (self.retry_ns * 2).min(RETRY_MOST_NS);
        Rule::Delay
    }

    fn share_from(&mut self, now_ns: Instant, rtt_ns: Nanos) {
        let wait_ns = (DIP_EVERY_ROUND_TRIPS * rtt_ns).max(DIP_EVERY_NS);
        self.phase = Phase::Shares {
            dip_ns: now_ns + wait_ns,
        };
    }

    /// A full queue drops of everybody's packets: a loss early in a trial tells nothing of our
    /// share, and the trial goes on after it.
    fn is_early(&self, cwnd_bytes: u64) -> bool {
        matches!(self.phase, Phase::Trial(trial) if cwnd_bytes < EARLY_TIMES * trial.begun_bytes)
    }

    /// One reduction per round trip.
    fn on_lost(&mut self, loss: &Loss) -> Option<u64> {
        let overflows = self
            .overflow
            .on_lost(loss.overtaken_bytes, loss.packet_bytes);
        if self.phase == Phase::Alone {
            if !(overflows && loss.has_queue) {
                return None;
            }
            (self.lost_bytes, self.false_bytes) = (0, 0);
            self.by_overflow = true;
        }
        self.lost_bytes += loss.overtaken_bytes;
        Some(self.take_part(loss))
    }

    fn on_marked(&mut self, loss: &Loss) -> u64 {
        if self.phase == Phase::Alone {
            self.by_overflow = false;
        }
        self.take_part(loss)
    }

    /// Three tenths, once in a round trip; between, CUBIC's curve.
    fn take_part(&mut self, loss: &Loss) -> u64 {
        if loss.now_ns < self.recovered_ns {
            return loss.cwnd_bytes;
        }
        self.recovered_ns = loss.now_ns + loss.rtt_ns;
        let whole_bytes = match self.phase {
            Phase::Dip { before, .. } => before.cwnd_bytes,
            // Until now it may have been many times what the network takes.
            Phase::Alone => loss.cwnd_bytes.min(loss.in_flight_bytes),
            _ => loss.cwnd_bytes,
        };
        let before = self.cubic.as_ref();
        let cubic = Cubic::after_loss(before, whole_bytes, loss.packet_bytes, loss.now_ns);
        self.cubic = Some(cubic);
        self.retry_ns = STANDS_NS;
        if !self.is_early(whole_bytes) {
            self.share_from(loss.now_ns, loss.rtt_ns);
        }
        cubic.least_bytes()
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an acknowledgement means for the sender: what arrived, what is lost, how the paths fare
//! (srd-protocol 7.6, 8, 10).
//!
//! Called by flow. Sources: RFC 8985 (RACK-TLP), MRC and REPS for paths.

use weft_wire::acknowledgement::NO_SEQUENCE;
use weft_wire::time::{Instant, Nanos};
use weft_wire::{Acknowledgement, PATH_COUNT, Path};

use crate::congestion_marks::{Concern, is_marked};
use crate::events::Statistics;
use crate::lost_unseen::{take_unseen, was_needed};
use crate::sender::{HOSTS_MOST_NS, Sender};
use crate::sent::{Fate, Piece, Sent};
use crate::shared::Shared;
use crate::window::{Lost, Sample, Verdict};

/// Round trips for which duplicates make us wait longer (srd-protocol 8.2; specified: RFC 8985).
const PATIENCE_ROUND_TRIPS: u64 = 16;
/// The longest lateness that is heeded (chosen by simulation of incasts that drop: with more,
/// losses are found too late).
const LATENESS_MOST_NS: Nanos = Nanos(500_000);
/// The least time for which they do (measured: on paths with queues of their own 16 round trips are
/// over before the next packet is late, and nearly all that was sent again had been late).
const PATIENCE_LEAST_NS: Nanos = Nanos(10_000_000);

/// No network is slower; what a remote echoes is a claim (chosen).
const RTT_MOST_NS: Nanos = Nanos(4_000_000_000);

/// No network is faster: some of the way may be gone before a call that sends returns (chosen).
const RTT_LEAST_NS: Nanos = Nanos(1_000);

/// A remote that held an answer back for longer cannot say for how long (srd-protocol 4), so that
/// nobody knows what the network took.
const HOLD_UNKNOWN_NS: u32 = u32::MAX;

/// The section says what cannot be (srd-protocol 7.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Impossible;

/// A section, when it was read, and how long it had waited for that in our own host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard<'a> {
    pub(crate) section: &'a Acknowledgement,
    pub(crate) now_ns: Instant,
    pub(crate) waited_ns: Nanos,
    /// What the echoed packet took to leave our host.
    pub(crate) send_delay_ns: Nanos,
    /// It cannot have been played back: newer than everything of this remote before it.
    pub(crate) is_news: bool,
}

/// Whether the section speaks of things that were sent (srd-protocol 7.6).
#[inline]
fn is_possible(sender: &Sender, section: &Acknowledgement, end: u64, now_ns: Instant) -> bool {
    let known = section.echo_sequence == NO_SEQUENCE || section.echo_sequence < sender.ring.next();
    end <= sender.ring.next()
        && known
        && section.echo_sent_ns <= now_ns
        && section.received_bytes <= sender.sent_bytes
        && section.marks.is_none_or(|marks| {
            u64::from(marks.ce_count) <= sender.ring.next() + sender.again_count
        })
}

/// Takes a section. `acknowledged` is called once for every piece that is acknowledged for the
/// first time.
pub(crate) fn on_section(
    sender: &mut Sender,
    heard: &Heard<'_>,
    statistics: &mut Statistics,
    mut acknowledged: impl FnMut(Piece),
) -> Result<(), Impossible> {
    let Heard {
        section, now_ns, ..
    } = *heard;
    let end = section.end();
    if !is_possible(sender, section, end, now_ns) {
        return Err(Impossible);
    }
    let in_flight_bytes = sender.in_flight_bytes;
    let rtt_ns = take_echo(sender, heard);
    let (mut acked_bytes, mut unseen_bytes) = (0, 0);
    let mut oldest_ns = Instant::NEVER;
    for sequence in sender.ring.first()..end {
        let fresh = |sent: &Sent| sent.fate != Fate::Acknowledged && section.covers(sequence);
        let Some(sent) = sender.ring.get(sequence).copied().filter(fresh) else {
            continue;
        };
        let before = sender.ring.decide(sequence, Fate::Acknowledged);
        if before == Fate::InFlight {
            sender.in_flight_bytes -= u64::from(sent.bytes);
        }
        acked_bytes += u64::from(sent.bytes);
        if !sent.is_again() {
            sender.marks.on_arrived(sequence);
            oldest_ns = oldest_ns.min(sent.sent_ns);
        }
        learn_lateness(sender, &sent, before, heard);
        if heard.is_news && was_needed(&sent, before, section) {
            unseen_bytes += u64::from(sent.bytes);
        }
        judge_arrival(sender, &sent, section, now_ns, statistics);
        acknowledged(sent.piece);
    }
    sender.ring.advance();
    if oldest_ns != Instant::NEVER && sender.clocks.hosts_are_slower() {
        let read_ns = now_ns.saturating_sub(heard.waited_ns);
        let away_ns = read_ns.saturating_since(oldest_ns);
        sender.clocks.away_ns = sender.clocks.away_ns.max(away_ns);
    }
    settle_clocks(sender, heard, acked_bytes);
    take_unseen(sender, unseen_bytes, now_ns, statistics);
    let sample = Sample {
        now_ns,
        rtt_ns,
        send_delay_ns: heard.send_delay_ns,
        acked_bytes,
        in_flight_bytes,
        tried_bytes: sender.take_tried_bytes(),
    };
    let verdict = sender.window.on_acknowledged(&sample);
    if let Some(rtt_ns) = rtt_ns {
        judge_echo(sender, heard, rtt_ns, verdict);
    }
    if heard.is_news {
        heed_marks(sender, heard, in_flight_bytes);
        let srtt_ns = sender.round_trip.srtt_ns();
        sender.window.on_penalty(section.penalty, now_ns, srtt_ns);
    }
    // Judged by when the section came, not by when it was read: behind it in our sockets may lie
    // the one that tells of the rest. What is overdue by now is found when the timers are asked,
    // after all that waits has been read.
    find_lost(sender, now_ns.saturating_sub(heard.waited_ns), statistics);
    Ok(())
}

/// What a round trip through the network says of its path; `verdict` is what the window made of it.
#[inline]
fn judge_echo(sender: &mut Sender, heard: &Heard<'_>, rtt_ns: Nanos, verdict: Verdict) {
    let section = heard.section;
    let path = section.echo_path;
    let is_marked = is_marked(section.marks.as_ref(), path);
    let is_quick = verdict == Verdict::BelowTarget && !is_marked;
    sender.first_flight.on_echo(section.cumulative, is_quick);
    sender
        .paths
        .on_echo(path, section.echo_sent_ns, rtt_ns, is_quick);
    // Where many paths have queues, to pass over those that had one fills the others.
    if verdict == Verdict::SlowMinority && !sender.window.is_loaded() {
        let srtt_ns = sender.round_trip.srtt_ns();
        sender.paths.health.skip(path, heard.now_ns, srtt_ns);
    }
}

/// The network has marked packets instead of dropping them (srd-protocol 10.12).
#[inline]
fn heed_marks(sender: &mut Sender, heard: &Heard<'_>, in_flight_bytes: u64) {
    let section = heard.section;
    sender.marks.on_heard(section.paths_heard);
    if section.marks.is_some() {
        take_marks(sender, heard, in_flight_bytes);
    }
}

#[cold]
fn take_marks(sender: &mut Sender, heard: &Heard<'_>, in_flight_bytes: u64) {
    let (section, now_ns) = (heard.section, heard.now_ns);
    let Some(marks) = &section.marks else { return };
    let cwnd_bytes = sender.window.cwnd_bytes();
    sender.marks.validate(marks, section.echo_path, cwnd_bytes);
    let echo_sent_ns = section.echo_sent_ns;
    let Some(concern) = sender.marks.on_marked(marks, echo_sent_ns, now_ns) else {
        return;
    };
    if let Concern::Part { .. } = concern {
        let srtt_ns = sender.round_trip.srtt_ns();
        let health = &mut sender.paths.health;
        for number in (0..PATH_COUNT as u8).filter_map(Path::from_number) {
            if is_marked(Some(marks), number) {
                health.skip(number, now_ns, srtt_ns);
            }
        }
    }
    sender.window.on_marked(concern, now_ns, in_flight_bytes);
}

/// Whether this echo is news (srd-protocol 9.1, 14.7): newer than all before it, or of a sequence
/// that nothing has acknowledged yet, since who echoes one acknowledges it by that. Without the
/// latter a path with a queue would never be heard of: what left later on an empty one is echoed
/// sooner.
fn is_first_echo(sender: &mut Sender, section: &Acknowledgement) -> bool {
    // Of a long packet there is one echo, where several packets had several.
    let awaited = &mut sender.ring.awaited;
    if awaited.take(section.echo_path, section.echo_sent_ns) {
        return true;
    }
    let of_this =
        |sent: &Sent| sent.fate != Fate::Acknowledged && sent.sent_ns >= section.echo_sent_ns;
    section.echo_sent_ns > sender.clocks.last_echo_ns
        || sender.ring.get(section.echo_sequence).is_some_and(of_this)
}

/// The round trip of the echoed packet through the network, if it is news.
fn take_echo(sender: &mut Sender, heard: &Heard<'_>) -> Option<Nanos> {
    let section = heard.section;
    if !is_first_echo(sender, section) {
        return None;
    }
    sender
        .paths
        .health
        .on_delivered(section.echo_path, section.echo_sent_ns);
    let clocks = &mut sender.clocks;
    let away_ns = (heard.now_ns - section.echo_sent_ns).saturating_sub(heard.waited_ns);
    if section.echo_sent_ns > clocks.last_echo_ns {
        clocks.last_echo_ns = section.echo_sent_ns;
        clocks.delivered_ns = clocks.delivered_ns.max(section.echo_sent_ns);
        clocks.away_ns = away_ns;
    }
    // The tail probe counts from before the newest packet, which is the one that is echoed.
    let since_ns = heard
        .now_ns
        .saturating_sub(heard.waited_ns)
        .saturating_since(clocks.base_ns);
    let (ring, round_trip) = (&sender.ring, &mut sender.round_trip);
    let is_hurried = match ring.get(section.echo_sequence) {
        Some(sent) => sent.hurried || sent.is_again(),
        // A probe, which is answered at once.
        None => section.echo_sequence == NO_SEQUENCE,
    };
    match ring.get(section.echo_sequence) {
        _ if is_hurried => round_trip.on_hurried_answer(away_ns, !ring.recent_losses.are_none()),
        Some(_) => round_trip.on_answer(away_ns.max(since_ns)),
        None => round_trip.on_answer(away_ns),
    }
    if section.hold_ns == HOLD_UNKNOWN_NS {
        return None;
    }
    let rtt_ns = away_ns
        .saturating_sub(Nanos(section.hold_ns.into()))
        .clamp(Nanos(1), RTT_MOST_NS);
    sender.round_trip.sample(rtt_ns);
    let srtt_ns = sender.round_trip.srtt_ns();
    sender.pacing.on_round_trip(heard.now_ns, srtt_ns);
    // Timers count from when a packet was given out; queues are what is left of that time.
    let network_ns = rtt_ns
        .saturating_sub(heard.send_delay_ns)
        .max(rtt_ns.min(RTT_LEAST_NS));
    let hosts_ns = heard.send_delay_ns + heard.waited_ns + Nanos(section.hold_ns.into());
    clocks.share_round_trip(network_ns, hosts_ns.min(HOSTS_MOST_NS));
    Some(network_ns)
}

/// An acknowledged packet tells about its path, unless it went twice and nobody knows which one
/// arrived.
fn judge_arrival(
    sender: &mut Sender,
    sent: &Sent,
    section: &Acknowledgement,
    now_ns: Instant,
    statistics: &mut Statistics,
) {
    if !sent.is_again() {
        sender.paths.health.on_delivered(sent.path, sent.sent_ns);
        sender.clocks.delivered_ns = sender.clocks.delivered_ns.max(sent.sent_ns);
        return;
    }
    if !sent.is_echoed(section) || sent.prior_path == sent.path {
        return;
    }
    // Its retransmission has answered. If the path of the one before is not among those heard, it
    // is the path. If it is, the way back may be broken, or the remote was slow: that must happen
    // twice to count.
    let srtt_ns = sender.round_trip.srtt_ns();
    let paths = &mut sender.paths.health;
    let news = if section.paths_heard & sent.prior_path.bit() == 0 {
        paths.suspect(sent.prior_path, now_ns, srtt_ns)
    } else {
        paths.strike(sent.prior_path, now_ns, srtt_ns)
    };
    statistics.suspect_count += u64::from(news);
}

fn settle_clocks(sender: &mut Sender, heard: &Heard<'_>, acked_bytes: u64) {
    let now_ns = heard.now_ns;
    if heard.is_news {
        sender.round_trip.answered();
    }
    if acked_bytes > 0 {
        sender.clocks.base_ns = now_ns;
        sender.clocks.tail_probed = false;
        let gone = sender.urgent.is_some_and(|sequence| {
            sender
                .ring
                .get(sequence)
                .is_none_or(|sent| sent.fate == Fate::Acknowledged)
        });
        if gone {
            sender.urgent = None;
        }
    }
    let srtt_ns = sender.round_trip.srtt_ns();
    let clocks = &mut sender.clocks;
    if heard.is_news && heard.section.duplicate_count > 0 {
        // What came twice was no loss.
        clocks.lateness_ns = clocks.lateness_ns.max(srtt_ns);
        clocks.patient_until_ns = now_ns + patience_ns(srtt_ns);
        let duplicate_count = heard.section.duplicate_count;
        let false_count = sender.repeats.take_duplicates(duplicate_count);
        on_false_loss(sender, false_count);
    } else if clocks.lateness_ns > Nanos::ZERO && now_ns > clocks.patient_until_ns {
        clocks.lateness_ns = clocks.lateness_ns / 2;
        clocks.patient_until_ns = now_ns + patience_ns(srtt_ns);
        sender.window.forget_losses();
        sender.ring.recent_losses.keep();
    }
}

/// So many packets that were taken for lost were not.
fn on_false_loss(sender: &mut Sender, count: u64) {
    if sender.window.on_false_loss(count) {
        sender.ring.recent_losses.undo();
    }
}

/// How long lateness is remembered (srd-protocol 8.2).
fn patience_ns(srtt_ns: Nanos) -> Nanos {
    (PATIENCE_ROUND_TRIPS * srtt_ns).max(PATIENCE_LEAST_NS)
}

/// A packet that was taken for lost has arrived after all: how late it was is how long to wait from
/// now on.
fn learn_lateness(sender: &mut Sender, sent: &Sent, before: Fate, heard: &Heard<'_>) {
    let since_ns = heard
        .now_ns
        .saturating_sub(heard.waited_ns)
        .saturating_since(sent.sent_ns);
    if before != Fate::Lost {
        return;
    }
    on_false_loss(sender, 1);
    let srtt_ns = sender.round_trip.srtt_ns();
    let late_ns = since_ns.saturating_sub(srtt_ns);
    let clocks = &mut sender.clocks;
    clocks.lateness_ns = clocks.lateness_ns.max(late_ns).min(LATENESS_MOST_NS);
    clocks.patient_until_ns = heard.now_ns + patience_ns(srtt_ns);
}

/// How much longer than a round trip a packet may take before one sent later on another path makes
/// it lost (srd-protocol 8.2).
fn reordering_wait_ns(sender: &Sender) -> Nanos {
    let srtt_ns = sender.round_trip.srtt_ns();
    let spread_ns = (srtt_ns / 4).max(8 * sender.round_trip.rttvar_ns());
    let lateness_ns = sender.clocks.lateness_ns;
    spread_ns
        .min(2 * srtt_ns)
        .max(lateness_ns + lateness_ns / 4)
}

/// Finds what is lost by now, and when to look again (srd-protocol 8.1, 8.2).
pub(crate) fn find_lost(sender: &mut Sender, now_ns: Instant, statistics: &mut Statistics) {
    sender.clocks.loss_ns = Instant::NEVER;
    if sender.ring.is_empty() {
        return;
    }
    let srtt_ns = sender.round_trip.srtt_ns();
    let wait_ns = reordering_wait_ns(sender);
    let delivered_ns = sender.clocks.delivered_ns;
    // What a remote that was off its processor has not read yet, it has not lost: neither behind
    // the newest that it read, nor in another socket behind the oldest.
    let least_ns = srtt_ns.max(sender.clocks.away_ns);
    let (mut lost_bytes, mut lost_count, mut overtaken_bytes) = (0, 0, 0);
    for sequence in sender.ring.first()..sender.ring.next() {
        let Some(sent) = sender.ring.get(sequence).copied() else {
            break;
        };
        if !sent.is_again() && sent.sent_ns > delivered_ns {
            // First transmissions leave in order: nothing behind this one is older.
            break;
        }
        if sent.fate != Fate::InFlight {
            continue;
        }
        let overtaken = sender.paths.health.overtaken(sent.path, sent.sent_ns)
            || sender.ring.is_overtaken_in_batch(sequence);
        if !overtaken {
            if sent.sent_ns >= delivered_ns {
                continue;
            }
            let rtt_ns = least_ns.max(sender.paths.rtt_ns(sent.path));
            let due_ns = sent.sent_ns + rtt_ns + wait_ns;
            if due_ns > now_ns {
                sender.clocks.loss_ns = sender.clocks.loss_ns.min(due_ns);
                continue;
            }
        }
        sender.ring.decide(sequence, Fate::Lost);
        sender.in_flight_bytes -= u64::from(sent.bytes);
        lost_bytes += u64::from(sent.bytes);
        lost_count += 1;
        statistics.lost_count += 1;
        judge_loss(sender, &sent, now_ns, statistics);
        // Of a long packet one datagram was lost, as far as anybody knows (srd-protocol 19.6).
        if sent.follows {
            continue;
        }
        if !sent.is_again() {
            sender.marks.on_lost(sequence);
        }
        overtaken_bytes += u64::from(overtaken) * u64::from(sent.bytes);
    }
    if lost_bytes > 0 {
        let before_bytes = sender.in_flight_bytes + lost_bytes;
        sender.window.on_lost(&Lost {
            now_ns,
            bytes: lost_bytes,
            packet_count: lost_count,
            overtaken_bytes,
            in_flight_bytes: before_bytes,
        });
        sender.first_flight.forget();
        sender.end_batch();
        sender.ring.recent_losses.on_lost();
    }
}

/// Loss under low delay is a bad path; under high delay a full queue (srd-protocol 10.2; REPS).
fn judge_loss(sender: &mut Sender, sent: &Sent, now_ns: Instant, statistics: &mut Statistics) {
    let srtt_ns = sender.round_trip.srtt_ns();
    if sender.window.is_loaded() {
        sender.paths.health.skip(sent.path, now_ns, srtt_ns);
        // A full queue lets something through; a path of which nothing comes any more is no queue.
        let silent = !sender.paths.health.overtaken(sent.path, sent.sent_ns);
        if silent && sender.paths.health.strike(sent.path, now_ns, srtt_ns) {
            statistics.suspect_count += 1;
        }
    } else if sender.paths.health.suspect(sent.path, now_ns, srtt_ns) {
        statistics.suspect_count += 1;
    }
}

/// Everything in flight was turned away, which says nothing of paths or queues (srd-protocol 14.6).
pub(crate) fn resend_all(sender: &mut Sender, now_ns: Instant) {
    for sequence in sender.ring.first()..sender.ring.next() {
        let sent = sender.ring.get(sequence).copied();
        let Some(sent) = sent.filter(|sent| sent.fate == Fate::InFlight) else {
            continue;
        };
        sender.ring.decide(sequence, Fate::Lost);
        sender.in_flight_bytes -= u64::from(sent.bytes);
    }
    sender.urgent = None;
    sender.round_trip.answered();
    sender.clocks.base_ns = now_ns;
    sender.end_batch();
}

/// Nothing was acknowledged for long (srd-protocol 8.3, 8.4).
pub(crate) fn on_silence(sender: &mut Sender, shared: &mut Shared, now_ns: Instant) {
    let (timing, jitter_ns) = (&shared.config.timing, shared.jitter.ns());
    let rto_ns = sender.round_trip.rto_ns(timing, jitter_ns);
    if now_ns >= sender.clocks.base_ns.saturating_add(rto_ns) {
        sender.urgent = sender.ring.oldest();
        sender.round_trip.back_off(|| shared.random.number() as u16);
        sender.clocks.base_ns = now_ns;
        shared.statistics.rto_count += 1;
    } else if !sender.clocks.tail_probed {
        sender.urgent = sender.ring.newest();
        sender.clocks.tail_probed = true;
        shared.statistics.tail_probe_count += 1;
    }
}

#[cfg(test)]
#[path = "loss_tests.rs"]
mod tests;

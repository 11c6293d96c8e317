// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which packets ask the remote for an answer at once (srd-protocol 7.5). Called by transmit.

use crate::ack_timer::HELD_BYTES;
use crate::flow::Flow;
use crate::outgoing::Outgoing;
use crate::send_queue::SendQueue;
use crate::sender::Sender;
use crate::sent::{Fate, Piece};
use crate::shared::Shared;
use weft_wire::time::Instant;

/// Whether the remote should acknowledge a piece of a longer message at once, if no piece leaves
/// after it. It need not if the piece ends a message whose acknowledgement nobody waits for, and
/// enough more could leave: then the acknowledgement may come with the remote's next message.
/// `bytes`: of its packet.
pub(crate) fn wants_answer(flow: &Flow, piece: &Piece, bytes: u32, now_ns: Instant) -> bool {
    let Flow { sender, queue, .. } = flow;
    let Piece::Segment { slot, offset, .. } = *piece else {
        return true;
    };
    let Some(outgoing) = queue.messages.get(slot) else {
        return true;
    };
    let tried = &sender.tried;
    if outgoing.is_awaited || queue.has_unsent() || tried.owes || asked_in_vain(sender, now_ns) {
        return true;
    }
    if !is_held(outgoing) {
        return !sender.window_is_half_empty();
    }
    let (in_flight_bytes, cwnd_bytes) = (sender.in_flight_bytes, sender.window.cwnd_bytes());
    !sender.ring.recent_losses.are_none()
        || tried.asks(offset, in_flight_bytes, cwnd_bytes)
        || is_full_behind(flow, bytes)
}

/// Whether what is not part of a longer message asks for an answer at once. Either an awaited
/// message before it did not. Or it is a short message, the remote takes longer than it would with
/// the usual delay, and somebody waits for it, the window has no room for what comes next, or the
/// last question has had no answer.
#[inline]
pub(crate) fn hurries(flow: &Flow, piece: &Piece, packet_bytes: u16, now_ns: Instant) -> bool {
    let Flow { sender, queue, .. } = flow;
    if matches!(piece, Piece::Segment { .. } | Piece::Data { .. }) {
        return false;
    }
    if sender.tried.owes {
        return true;
    }
    let Piece::Eager { slot } = *piece else {
        return false;
    };
    let is_awaited = || queue.messages.get(slot).is_some_and(|one| one.is_awaited);
    let is_last = || is_full_behind(flow, packet_bytes.into());
    sender.round_trip.answers_late()
        && (is_awaited()
            || is_last()
            || asked_in_vain(sender, now_ns)
            || !sender.ring.recent_losses.are_none())
}

/// Whether the packet that asked last is not acknowledged, though an answer to such a packet is
/// late by now: it was lost, or its answer was, and nothing else tells of what it asked for.
fn asked_in_vain(sender: &Sender, now_ns: Instant) -> bool {
    let ring = &sender.ring;
    let asked = sender.tried.asked_from(ring.first());
    asked.and_then(|asked| ring.get(asked)).is_some_and(|sent| {
        let away_ns = now_ns.saturating_since(sent.sent_ns);
        sent.fate != Fate::Acknowledged && sender.round_trip.is_late(away_ns)
    })
}

/// Whether a probe must ask, since no packet will: the owner waits for the acknowledgement of all
/// that has left, or what comes next waits for the window, which has shrunk. With nothing held back
/// the answers come soon by themselves.
pub(crate) fn asks_alone(flow: &Flow, shared: &Shared) -> bool {
    let Flow { sender, queue, .. } = flow;
    let waits = match queue.has_unsent() {
        true => sender.round_trip.answers_late() && is_full_behind(flow, 0),
        // Who does not know us yet holds nothing back.
        false => shared.is_closing && flow.identity.knows_us && !sender.ring.is_empty(),
    };
    waits && sender.tried.has_unasked() && !sender.ring.has_lost()
}

/// Whether the answer to this piece, which asks for it, comes sooner than those of others that are
/// held back (srd-protocol 9.4).
pub(crate) fn is_hurried(flow: &Flow, piece: &Piece) -> bool {
    let Flow { sender, queue, .. } = flow;
    sender.round_trip.answers_late()
        && match *piece {
            Piece::Data { .. } => false,
            Piece::Segment { slot, .. } => queue.messages.get(slot).is_some_and(is_held),
            _ => true,
        }
}

/// Whether this piece is the last segment of a message that somebody waits for, and whose
/// acknowledgement may be held back.
#[inline]
pub(crate) fn ends_awaited(queue: &SendQueue, piece: &Piece) -> bool {
    let Piece::Segment { slot, .. } = *piece else {
        return false;
    };
    let ends = |one: &Outgoing| is_held(one) && one.is_awaited && one.left_bytes() == 0;
    queue.messages.get(slot).is_some_and(ends)
}

/// Whether the acknowledgement of a message in segments may be held back (srd-protocol 7.3).
fn is_held(outgoing: &Outgoing) -> bool {
    outgoing.message.length_bytes <= HELD_BYTES
}

/// Whether the window has no room for a full datagram behind so many bytes.
#[inline]
pub(crate) fn is_full_behind(flow: &Flow, bytes: u32) -> bool {
    let next_bytes = u64::from(flow.identity.size.in_use_bytes());
    let all_bytes = flow.sender.in_flight_bytes + u64::from(bytes) + next_bytes;
    all_bytes > flow.sender.window.cwnd_bytes()
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Losses that nobody saw: a tail probe or a time-out brought the packet again before it counted as
//! lost (srd-protocol 8.7). Called by loss.

use weft_wire::Acknowledgement;
use weft_wire::time::Instant;

use crate::events::Statistics;
use crate::sender::Sender;
use crate::sent::{Attempt, Fate, Sent};
use crate::window::Lost;

/// Whether a packet that a section acknowledges, and that had this fate before, was lost the time
/// before last that it left: the remote answers its repeat, and reports no duplicate.
#[inline]
pub(crate) fn was_needed(sent: &Sent, before: Fate, section: &Acknowledgement) -> bool {
    sent.attempt == Attempt::Repeat
        && before == Fate::InFlight
        && section.duplicate_count == 0
        && sent.is_echoed(section)
}

/// A section was taken, by which a packet of so many bytes was lost in this way, if any. Fast path.
#[inline]
pub(crate) fn take_unseen(
    sender: &mut Sender,
    lost_bytes: u64,
    now_ns: Instant,
    statistics: &mut Statistics,
) {
    sender.repeats.on_acknowledged(sender.ring.first());
    if lost_bytes > 0 {
        statistics.lost_count += 1;
        on_lost(sender, lost_bytes, now_ns);
    }
}

/// A single one says nothing of how much the network takes: so the window is not set to what was in
/// flight.
#[cold]
fn on_lost(sender: &mut Sender, bytes: u64, now_ns: Instant) {
    sender.repeats.on_needed();
    let in_flight_bytes = sender.window.cwnd_bytes();
    sender.window.on_lost(&Lost {
        now_ns,
        bytes,
        packet_count: 1,
        overtaken_bytes: 0,
        in_flight_bytes,
    });
    sender.first_flight.forget();
    sender.ring.recent_losses.on_lost();
}

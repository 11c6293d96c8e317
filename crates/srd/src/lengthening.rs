// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a packet may be that leaves now (srd-protocol 19.6). Called by transmit.

use weft_wire::header::FURTHER_LIMIT;
use weft_wire::time::Nanos;

use crate::config::Config;
use crate::flow::Flow;
use crate::long_packet::LongPacket;
use crate::sender::Sender;
use crate::sent::Piece;

/// The most that one has of payload (measured: half of a message of 64 KiB, so that its receiver
/// begins early).
const PAYLOAD_BYTES: u64 = 36 << 10;
/// Longer datagrams gain nothing by it (measured: the join costs what it saves).
const DATAGRAM_BYTES_MOST: u16 = 4096;
/// It is no longer than what the pace passes in so much (chosen by simulation of a clock that
/// jumps: longer ones give too few round trips).
const PACE_NS: Nanos = Nanos(1_000_000);

/// What leaves instead of this piece, which may leave now in a packet of so many bytes on the path
/// of the batch. Fast path for what is short.
#[inline]
pub(crate) fn lengthen(
    flow: &Flow,
    piece: Piece,
    packet_bytes: u16,
    config: &Config,
) -> LongPacket {
    match piece {
        Piece::Segment { .. } | Piece::Data { .. } if config.long_packets => {
            stretch(flow, piece, packet_bytes)
        }
        _ => LongPacket { piece, count: 1 },
    }
}

fn stretch(flow: &Flow, piece: Piece, packet_bytes: u16) -> LongPacket {
    let short = LongPacket { piece, count: 1 };
    let datagram_bytes = flow.identity.size.in_use_bytes();
    if datagram_bytes > DATAGRAM_BYTES_MOST || !allows(flow) {
        return short;
    }
    let length = u64::from(piece.length());
    let left_bytes = flow.queue.left_bytes(&piece);
    let sender = &flow.sender;
    let least = [
        left_bytes.div_ceil(length),
        PAYLOAD_BYTES / length,
        room_bytes(sender) / u64::from(packet_bytes),
        sender.ring.room_count(),
        u64::from(FURTHER_LIMIT) + 1,
    ];
    let count = least.into_iter().min().unwrap_or(1);
    let payload_bytes = left_bytes.min(count * length);
    if count < 2 || payload_bytes <= datagram_bytes.into() {
        return short;
    }
    LongPacket {
        piece: piece.part(0, payload_bytes as u16),
        count: count as u8,
    }
}

/// Whether packets of this flow may be long now.
fn allows(flow: &Flow) -> bool {
    let Flow {
        identity, sender, ..
    } = flow;
    identity.knows_us && sender.ring.recent_losses.are_none() && sender.marks.are_carried()
}

/// So much may leave at once on the path of the batch: within the batch, the window, and what the
/// pace passes. Nothing while no round trip is known.
fn room_bytes(sender: &Sender) -> u64 {
    let srtt_ns = sender.round_trip.srtt_ns();
    if srtt_ns == Nanos::ZERO {
        return 0;
    }
    let cwnd_bytes = sender.window.cwnd_bytes();
    let paced_bytes = cwnd_bytes * 5 * PACE_NS / (4 * srtt_ns);
    let free_bytes = cwnd_bytes.saturating_sub(sender.in_flight_bytes);
    let batch_bytes = sender.batch.left_bytes.into();
    paced_bytes.min(free_bytes).min(batch_bytes)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams with faults, several seeds: `stream SEEDS [AWAY_US] [MESSAGE_BYTES] [AWAY_EVERY_US]`.
use weft_netsim::stream::{Fault, Stream};

fn main() {
    let words: Vec<u64> = std::env::args()
        .skip(1)
        .map(|w| w.parse().unwrap())
        .collect();
    let seeds = words.first().copied().unwrap_or(3);
    for fault in [Fault::None, Fault::Hole, Fault::Slow, Fault::Loss(10_000)] {
        for seed in 1..=seeds {
            let stream = Stream {
                seed,
                fault,
                away_most_ns: 1000 * words.get(1).copied().unwrap_or(0),
                away_every_ns: 1_000 * words.get(3).copied().unwrap_or(20_000),
                message_bytes: words.get(2).copied().unwrap_or(65536),
                ..Stream::default()
            };
            let seen = stream.run();
            println!(
                "{fault:?} {seed}: pause {:.0} us (before {:.0}), {:.0} MB/s, during {:.0}, back \
                 {:?} ms, healed {:?} ms; again {} lost {} rto {} tail {} suspect {} dup {}",
                seen.pause_us,
                seen.pause_before_us,
                seen.before_mb_s,
                seen.during_mb_s,
                seen.back_ms,
                seen.healed_use_ms,
                seen.sender.retransmitted_count,
                seen.sender.lost_count,
                seen.sender.rto_count,
                seen.sender.tail_probe_count,
                seen.sender.suspect_count,
                seen.receiver.duplicate_count
            );
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flows that share a link, several seeds and buffers:
//! `bottleneck [SEEDS] [MBIT] [ONE_WAY_US] [SECONDS]`.
use weft_netsim::bottleneck::{Bottleneck, Sender};
use weft_netsim::rival::Control;

fn main() {
    let words: Vec<u64> = std::env::args()
        .skip(1)
        .map(|w| w.parse().unwrap())
        .collect();
    let weft = Sender::Weft;
    let (cubic, reno) = (Sender::Tcp(Control::Cubic), Sender::Tcp(Control::Reno));
    let (bbr, nobody) = (Sender::Tcp(Control::Bbr), Sender::Nobody);
    for buffer_bytes in [45_000, 200_000, 1_000_000] {
        for senders in [
            [weft, cubic],
            [cubic, weft],
            [weft, bbr],
            [bbr, weft],
            [cubic, bbr],
            [weft, reno],
            [weft, weft],
            [weft, nobody],
            [cubic, cubic],
        ] {
            for seed in 1..=words.first().copied().unwrap_or(1) {
                let shares = Bottleneck {
                    seed,
                    megabits: words.get(1).copied().unwrap_or(400),
                    one_way_ns: 1000 * words.get(2).copied().unwrap_or(20),
                    buffer_bytes,
                    counted_ns: 1_000_000_000 * words.get(3).copied().unwrap_or(4),
                    senders,
                    ..Bottleneck::default()
                }
                .run();
                println!(
                    "{buffer_bytes:>8} {senders:?} seed {seed}: {:.2} of the link {:.2?}, queue \
                     {:.0} us, again \
                     {} lost {}",
                    shares.part(),
                    shares.of_link,
                    shares.queue_us,
                    shares.sender.retransmitted_count,
                    shares.sender.lost_count
                );
            }
        }
    }
}

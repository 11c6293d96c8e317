// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Target: pieces of long packets from several ports, honest, doubled, changed and of anything.
//! What is kept of them stays within its limits; and a packet whose pieces all come after one
//! another from one port, in any order, is joined as it was.

use std::net::SocketAddr;

use weft_srd::Ecn;
use weft_udp::{Joined, Joining};
use weft_wire::Piece;
use weft_wire::piece::PIECE_HEAD_BYTES;

use crate::input::Input;

const OWN: u64 = 9;

/// Cuts a packet into pieces with this number and these lengths.
fn cut(packet: &[u8], number: u16, part_bytes: usize) -> Vec<Vec<u8>> {
    let count = packet.len().div_ceil(part_bytes) as u8;
    let piece = |(part, place): (&[u8], u8)| {
        let piece = Piece {
            number: place,
            count,
            packet: number,
            part_bytes: part_bytes as u16,
            target: OWN,
        };
        [&piece.head()[..], part].concat()
    };
    packet.chunks(part_bytes).zip(0..).map(piece).collect()
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut joining = Joining::new(OWN);
    let mut number = 0;
    while !input.is_over() {
        number += 1;
        let from = SocketAddr::from(([10, 0, 0, input.byte() % 8], u16::from(input.byte() % 32)));
        let socket_index = usize::from(input.byte() % 9);
        let length = 2 + input.below(4_000);
        let packet: Vec<u8> = (0..length).map(|at| (at * 7 + number) as u8).collect();
        let least = length.div_ceil(64);
        let part_bytes = least + input.below(length.div_ceil(2) - least + 1);
        let mut pieces = cut(&packet, number as u16, part_bytes);
        let swaps = input.below(pieces.len());
        for _ in 0..swaps {
            let (one, other) = (input.below(pieces.len()), input.below(pieces.len()));
            pieces.swap(one, other);
        }
        let what = input.byte() % 4;
        if what > 0 {
            let place = input.below(pieces.len());
            input.mutate(&mut pieces[place]);
        }
        if what > 1 {
            pieces.truncate(1 + input.below(pieces.len()));
        }
        let mut whole = Vec::new();
        for piece in &pieces {
            let ecn = Ecn::from_traffic_class(input.byte());
            if let Joined::Whole(bytes, _) = joining.take(from, socket_index, piece, ecn) {
                whole.push(bytes.to_vec());
            }
            joining.check();
        }
        if what == 0 {
            assert!(whole == [packet], "{length} bytes in parts of {part_bytes}");
        }
        let noise = input.take(usize::from(input_length(what)));
        joining.take(from, socket_index, noise, Ecn::Unknown);
        joining.check();
    }
}

/// Some noise is shorter than a head.
fn input_length(what: u8) -> u8 {
    what * PIECE_HEAD_BYTES as u8 / 2
}

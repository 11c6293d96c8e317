// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is joined from pieces, and what of them is kept (srd-protocol 19.3 to 19.5).

use super::*;
use weft_srd::random::Random;

const OWN: u64 = 77;

fn from(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

fn bytes_of(length: usize, seed: u64) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u64 * 31 + seed) as u8)
        .collect()
}

fn cut(packet: &[u8], number: u16, part_bytes: usize) -> Vec<Vec<u8>> {
    let count = packet.len().div_ceil(part_bytes) as u8;
    let parts = packet.chunks(part_bytes).zip(0..);
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
    parts.map(piece).collect()
}

/// What comes of these pieces from one port: packets, in order.
fn join(joining: &mut Joining, pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut whole = Vec::new();
    for piece in pieces {
        if let Joined::Whole(packet, _) = joining.take(from(1, 9), 0, piece, Ecn::Unknown) {
            whole.push(packet.to_vec());
        }
        joining.check();
    }
    whole
}

#[test]
fn a_packet_is_joined_from_pieces_in_any_order_that_may_come_twice() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut joining = Joining::new(OWN);
        for number in 0..5 {
            let length = 1_500 + random.below(40_000) as usize;
            let packet = bytes_of(length, seed + u64::from(number));
            let least = length.div_ceil(64);
            let most = length.div_ceil(2) - least + 1;
            let part_bytes = least + random.below(most as u64) as usize;
            let mut pieces = cut(&packet, number, part_bytes);
            for place in (1..pieces.len()).rev() {
                pieces.swap(place, random.below(place as u64 + 1) as usize);
            }
            let doubled = pieces[random.below(pieces.len() as u64) as usize].clone();
            pieces.insert(random.below(pieces.len() as u64) as usize, doubled);
            let whole = join(&mut joining, &pieces);
            assert!(whole == [packet], "{} of packet {number}", whole.len());
        }
    }
}

#[test]
fn a_piece_of_the_next_packet_ends_the_one_before_and_other_ports_do_not_mix() {
    let mut joining = Joining::new(OWN);
    let (first, second) = (bytes_of(4_000, 1), bytes_of(4_000, 2));
    let (ones, others) = (cut(&first, 1, 1_456), cut(&second, 2, 1_456));
    assert!(join(&mut joining, &ones[..2]).is_empty());
    for socket_index in [1, 2] {
        let kept = joining.take(from(1, 9), socket_index, &others[0], Ecn::Unknown);
        assert_eq!(kept, Joined::Kept);
    }
    let kept = joining.take(from(1, 10), 0, &others[0], Ecn::Unknown);
    assert_eq!(kept, Joined::Kept);
    assert_eq!(join(&mut joining, &ones[2..]), [first]);
    assert_eq!(join(&mut joining, &ones[..2]), Vec::<Vec<u8>>::new());
    assert_eq!(join(&mut joining, &others), [second]);
    assert!(join(&mut joining, &ones[2..]).is_empty(), "it had ended");
}

#[test]
fn what_is_for_others_or_breaks_a_rule_is_not_kept() {
    let mut joining = Joining::new(OWN + 1);
    let pieces = cut(&bytes_of(4_000, 1), 1, 1_456);
    let bad = joining.take(from(1, 9), 0, &pieces[0], Ecn::Unknown);
    assert_eq!(bad, Joined::Bad, "for another incarnation");
    let mut joining = Joining::new(OWN);
    let bad = joining.take(from(1, 9), 0, &pieces[0][..1_000], Ecn::Unknown);
    assert_eq!(bad, Joined::Bad, "cut short");
    assert!(joining.packets.is_empty());
}

#[test]
fn so_many_are_put_together_and_the_one_that_waited_longest_gives_way() {
    let mut joining = Joining::new(OWN);
    let packet = bytes_of(4_000, 1);
    let pieces = cut(&packet, 1, 1_456);
    for host in 0..10 {
        for port in 0..20 {
            joining.take(from(host, port), 0, &pieces[0], Ecn::Unknown);
            joining.check();
        }
    }
    assert_eq!(joining.packets.len(), PACKET_LIMIT);
    // Of the last address the newest 16 are there, and of the first ones none.
    for (host, port, is_there) in [(9, 19, true), (9, 4, true), (9, 3, false), (0, 19, false)] {
        let there = joining
            .packets
            .iter()
            .any(|one| one.ports.from == from(host, port));
        assert_eq!(there, is_there, "{host}, {port}");
    }
}

#[test]
fn a_packet_is_marked_if_a_piece_is_and_mangled_if_one_is() {
    let packet = bytes_of(4_000, 1);
    let pieces = cut(&packet, 1, 1_456);
    for (marks, all) in [
        ([Ecn::Ect0, Ecn::Ect0, Ecn::Ect0], Ecn::Ect0),
        ([Ecn::Ect0, Ecn::Ce, Ecn::Ect0], Ecn::Ce),
        ([Ecn::NotEct, Ecn::Ce, Ecn::Ect0], Ecn::Ce),
        ([Ecn::Ect0, Ecn::Ect0, Ecn::NotEct], Ecn::NotEct),
        ([Ecn::Unknown, Ecn::Unknown, Ecn::Unknown], Ecn::Unknown),
    ] {
        let mut joining = Joining::new(OWN);
        let mut heard = Vec::new();
        for (piece, ecn) in pieces.iter().zip(marks) {
            if let Joined::Whole(_, ecn) = joining.take(from(1, 9), 0, piece, ecn) {
                heard.push(ecn);
            }
        }
        assert_eq!(heard, [all]);
    }
}

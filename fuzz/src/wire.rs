// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Target: a datagram of anything. What parses is written back as it was.

use weft_wire::{Head, Packet, VERSION};

use crate::input::Input;

/// Runs one input: a datagram, and changes to one.
pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut input = Input::new(bytes);
    // A first byte that is valid, so that the parser gets further.
    let mut datagram = vec![
        VERSION << 4 | (1 + input.byte() % 12),
        input.byte() & 127,
        input.byte() & 63,
        0,
    ];
    if matches!(datagram[0] & 15, 2 | 5) {
        datagram[3] = input.byte() & 63;
    }
    datagram.extend_from_slice(input.take(400));
    read(&datagram);
    if let Some(reserved) = datagram.get_mut(24..32) {
        reserved.fill(0);
    }
    read(&datagram);
}

fn read(datagram: &[u8]) {
    let Ok(packet) = Packet::parse(datagram) else {
        return;
    };
    let count = packet.header.sequence_count() as u8;
    let parts = (0..count).map(|index| packet.part(index, 1).payload.len());
    assert_eq!(parts.sum::<usize>(), packet.payload.len());
    let mut head = Head::new();
    packet.write(&mut head);
    let mut again = [head.as_bytes(), packet.payload].concat();
    assert_eq!(again.len(), datagram.len());
    // The tag is not the parser's.
    again[24..32].copy_from_slice(&datagram[24..32]);
    assert_eq!(again, datagram);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the relay must know of a packet: where it goes, which path it takes, and how to change a
//! byte so that it still arrives.
//!
//! Called by relay. Sources: RFC 791 (IPv4), RFC 768 (UDP).

use std::hash::{DefaultHasher, Hasher};
use std::net::Ipv4Addr;

const PROTOCOL_UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;

/// Where an IPv4 packet goes; `None` for anything else.
pub(super) fn target(packet: &[u8]) -> Option<Ipv4Addr> {
    if packet.first()? >> 4 != 4 {
        return None;
    }
    let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    Some(address.into())
}

/// Where the UDP header begins; `None` when it is another protocol or a later fragment.
fn udp_header(packet: &[u8]) -> Option<usize> {
    let length = usize::from(packet.first()? & 15) * 4;
    let is_first = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) & 0x1fff == 0;
    let fits = packet.len() >= length + UDP_HEADER_BYTES;
    (packet[9] == PROTOCOL_UDP && is_first && fits).then_some(length)
}

/// Whether it is a datagram, and not what carries a question about a host.
pub(super) fn is_datagram(packet: &[u8]) -> bool {
    udp_header(packet).is_some()
}

/// Which of `count` equal-cost paths a switch would choose: by addresses and ports.
pub(super) fn path(packet: &[u8], count: u32) -> Option<u32> {
    let header = udp_header(packet)?;
    let ports = packet.get(header..header + 4)?;
    let addresses = packet.get(12..20)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(addresses);
    hasher.write(ports);
    Some((hasher.finish() % u64::from(count)) as u32)
}

/// Changes a byte behind the UDP header and takes the checksum away (RFC 768: 0 means none), so
/// that the kernel does not drop it. False when there is nothing to change.
pub(super) fn corrupt(packet: &mut [u8], place: usize, mask: u8) -> bool {
    let Some(header) = udp_header(packet) else {
        return false;
    };
    let payload = header + UDP_HEADER_BYTES;
    if packet.len() == payload {
        return false;
    }
    let at = payload + place % (packet.len() - payload);
    packet[at] ^= mask.max(1);
    packet[header + 6..header + 8].fill(0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of three bytes from 10.0.0.1:256 to 10.0.0.2:512.
    fn datagram() -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[9] = PROTOCOL_UDP;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([1, 0, 2, 0, 0, 11, 0xab, 0xcd, 7, 8, 9]);
        packet
    }

    #[test]
    fn targets_and_paths_are_read_and_follow_the_ports() {
        assert_eq!(target(&datagram()), Some(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(target(&[0x60; 40]), None);
        let paths = (0..=255).map(|port| {
            let mut packet = datagram();
            packet[21] = port;
            path(&packet, 4).unwrap()
        });
        let paths: std::collections::BTreeSet<u32> = paths.collect();
        assert_eq!(paths.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn one_byte_of_the_payload_changes_and_the_checksum_is_taken_away() {
        let mut packet = datagram();
        assert!(corrupt(&mut packet, 4, 0));
        assert_eq!(packet[29], 8 ^ 1);
        assert_eq!(packet[26..28], [0, 0]);
        let differs = packet.iter().zip(datagram()).filter(|(a, b)| **a != *b);
        assert_eq!(differs.count(), 3);
        assert!(!corrupt(&mut datagram()[..28], 0, 1));
        let mut fragment = datagram();
        fragment[7] = 1;
        assert!(!corrupt(&mut fragment, 0, 1) && !is_datagram(&fragment));
    }
}

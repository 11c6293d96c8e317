// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a switch chooses among equal-cost paths: CRC-32 over the 5-tuple, with the switch's own
//! salt. Called by topology.
//!
//! Source: the reflected polynomial of IEEE 802.3, which merchant silicon offers for ECMP.

/// What switches hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FiveTuple {
    /// Addresses stand for IP addresses.
    pub source: u32,
    /// See `source`.
    pub target: u32,
    /// UDP or TCP ports.
    pub source_port: u16,
    /// See `source_port`.
    pub target_port: u16,
    /// 17 for UDP, 6 for TCP.
    pub protocol: u8,
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                0xedb8_8320 ^ (value >> 1)
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

static TABLE: [u32; 256] = table();

fn crc32(start: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| TABLE[((crc ^ u32::from(*byte)) & 255) as usize] ^ (crc >> 8);
    !bytes.iter().fold(!start, step)
}

impl FiveTuple {
    /// One of `count` ways, as a switch with this salt chooses it.
    pub fn choose(&self, salt: u64, count: u32) -> u32 {
        let mut bytes = [0; 13];
        bytes[..4].copy_from_slice(&self.source.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.target.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.target_port.to_be_bytes());
        bytes[12] = self.protocol;
        // A CRC is linear: with a salted start alone all switches would split alike. The
        // multiplication breaks that.
        let mixed = (u64::from(crc32(0, &bytes)) ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (((mixed >> 32) * u64::from(count)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_standard_one() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn ports_spread_over_all_ways_and_switches_differ() {
        let mut counts = [0; 16];
        let mut alike = 0;
        for port in 0..64u16 {
            let tuple = FiveTuple {
                source: 1,
                target: 2,
                source_port: 1000 + port / 8,
                target_port: 2000 + port % 8,
                protocol: 17,
            };
            let way = tuple.choose(77, 16);
            counts[way as usize] += 1;
            alike += u32::from(tuple.choose(78_123_456_789, 16) == way);
        }
        assert!(
            counts.iter().filter(|count| **count > 0).count() >= 12,
            "{counts:?}"
        );
        assert!(alike < 20, "{alike} of 64");
    }
}

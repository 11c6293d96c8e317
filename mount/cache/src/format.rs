// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names, heads and entries as bytes: docs/mount-cache.md, clauses 1 and 2. [`crate::content`]
//! reads and writes them.

use crc_fast::{CrcAlgorithm, checksum};
use sha2::{Digest, Sha256};

/// Specified (1.2).
pub const BLOCK_BYTES: u64 = 128 << 10;
/// Specified (2.4).
pub const HEAD_BYTES: usize = 64;
/// Specified (2.5).
pub const ENTRY_BYTES: u64 = 8;
/// Specified (2.1).
pub const FOLDER: &str = "weft-cache-1";
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"WEFTCACH";

/// The name of a content, and how long that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentName {
    hash: [u8; 32],
    /// Of the content.
    pub size_bytes: u64,
}

impl ContentName {
    /// Of what `key` held under this entity tag; `source` names the store and the bucket.
    pub fn new(source: &str, key: &str, etag: &str, size_bytes: u64) -> Self {
        let mut digest = Sha256::new();
        for part in [source, key, etag] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self {
            hash: digest.finalize().into(),
            size_bytes,
        }
    }

    /// In hexadecimal.
    pub fn text(&self) -> String {
        let digits = self.hash.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// How many blocks the content has.
    pub fn block_count(&self) -> u64 {
        self.size_bytes.div_ceil(BLOCK_BYTES)
    }

    /// How many bytes a block has.
    pub fn block_bytes(&self, block: u64) -> u64 {
        BLOCK_BYTES.min(self.size_bytes - block * BLOCK_BYTES)
    }

    /// The head of the content's index.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        head[16..24].copy_from_slice(&self.size_bytes.to_le_bytes());
        head[24..56].copy_from_slice(&self.hash);
        let sum = checksum(CrcAlgorithm::Crc64Nvme, &head[..56]);
        head[56..].copy_from_slice(&sum.to_le_bytes());
        head
    }
}

/// The entry of a block; never 0.
pub fn entry(block: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, block) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_each_part_and_not_on_where_they_are_cut() {
        let of = |source, key, etag| ContentName::new(source, key, etag, 1);
        let name = of("s", "k", "e");
        assert_eq!(name, of("s", "k", "e"));
        for other in [
            of("t", "k", "e"),
            of("s", "l", "e"),
            of("s", "k", "f"),
            of("sk", "", "e"),
        ] {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn head_is_as_specified() {
        let head = ContentName::new("s", "k", "e", 0x0102_0304).head();
        assert_eq!(
            &head[..24],
            b"WEFTCACH\x01\0\0\0\0\0\x02\0\x04\x03\x02\x01\0\0\0\0"
        );
        // The check value of CRC-64/NVME in the catalogue of parametrised CRC algorithms.
        assert_eq!(
            checksum(CrcAlgorithm::Crc64Nvme, b"123456789"),
            0xAE8B_1486_0A79_9888
        );
    }

    #[test]
    fn entry_is_never_that_of_a_missing_block() {
        for length in [0, 1, 1000] {
            assert_ne!(entry(&vec![0; length]), 0);
        }
    }
}

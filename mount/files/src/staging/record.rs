// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a staged file's log, as docs/mount-stage.md specifies them, version 1.
//! [`crate::staging::log`] writes them, [`crate::staging::recovery`] reads them.

use crc_fast::{CrcAlgorithm, Digest};
use serde::{Deserialize, Serialize};
use weft_store::{Condition, ETag};

/// What a log begins with: a name, and the version in four bytes.
pub const HEAD: [u8; 16] = *b"weftlog\0\x01\0\0\0\0\0\0\0";
/// Specified: length, kind, and checksum before each record's body.
const FRAME_BYTES: usize = 16;
/// Specified: a record's body is no longer.
const MOST_BODY_BYTES: usize = 64 << 10;
const NOTE: u8 = 1;
const WRITE: u8 = 2;

/// What must be so for a staged file to be published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Whatever is there.
    Always,
    /// Only if there is no object.
    Absent,
    /// Only if the object has this entity tag.
    Match(String),
}

/// A record beside those of writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// The first record: whose bytes these are.
    Begin {
        /// Stands in the metadata of the object that is published.
        id: String,
        /// The object's.
        key: String,
        /// For publishing.
        when: When,
        /// Of the file.
        size_bytes: u64,
    },
    /// A range is that of an object.
    Copy {
        /// In the file.
        offset: u64,
        /// In bytes.
        length: u64,
        /// The object's.
        key: String,
        /// The object's.
        etag: String,
        /// Of the object.
        object_bytes: u64,
        /// In the object.
        at: u64,
    },
    /// All that the file was when the log began is said.
    Ready,
    /// The file has this length.
    Size(u64),
    /// The file has another name.
    Key {
        /// The new one.
        key: String,
        /// For publishing there.
        when: When,
    },
    /// An upload was begun.
    Upload {
        /// Of the upload.
        key: String,
        /// The store's name for it.
        upload: String,
    },
    /// All up to here is the object of this entity tag.
    Published {
        /// The object's.
        etag: String,
        /// What stands in the metadata of the next one.
        next_id: String,
    },
    /// The program has written what it wanted, up to here: it may be published.
    Whole,
    /// The name is gone: nothing is published.
    Unlinked,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Bytes were written.
    Write(Write),
    /// Something else.
    Note(Note),
}

/// Bytes of the file, and where they lie in the file of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// In the file.
    pub offset: u64,
    /// In the data.
    pub at: u64,
    /// In bytes.
    pub length: u64,
    /// CRC-64/NVME of the bytes.
    pub crc: u64,
}

impl When {
    /// From a store's words.
    pub fn of(condition: &Condition) -> Self {
        match condition {
            Condition::Always => Self::Always,
            Condition::IfAbsent => Self::Absent,
            Condition::IfMatch(etag) => Self::Match(etag.as_str().to_owned()),
        }
    }

    /// In a store's words.
    pub fn condition(&self) -> Condition {
        match self {
            Self::Always => Condition::Always,
            Self::Absent => Condition::IfAbsent,
            Self::Match(etag) => Condition::IfMatch(ETag::new(etag)),
        }
    }
}

/// The checksum of data.
pub fn crc(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

fn frame_crc(head: &[u8], body: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(head);
    digest.update(body);
    digest.finalize()
}

impl Record {
    /// As it stands in the log.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Write(write) => {
                let numbers = [write.offset, write.at, write.length, write.crc];
                let body = numbers.iter().flat_map(|one| one.to_le_bytes());
                (WRITE, body.collect())
            }
            // Names and numbers: JSON has no way to fail on them.
            Self::Note(note) => (NOTE, serde_json::to_vec(note).unwrap_or_default()),
        };
        let mut bytes = Vec::with_capacity(FRAME_BYTES + body.len());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[kind, 0, 0, 0]);
        let crc = frame_crc(&bytes, &body);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The record at the beginning of `bytes`, and its length; `None` where there is no whole one:
    /// there the log ends.
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(FRAME_BYTES)?;
        let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
        if length > MOST_BODY_BYTES {
            return None;
        }
        let body = rest.get(..length)?;
        let crc = u64::from_le_bytes(head[8..].try_into().ok()?);
        if crc != frame_crc(&head[..8], body) {
            return None;
        }
        let record = match head[4] {
            WRITE => {
                let number = |index: usize| {
                    let bytes = body.get(8 * index..8 * index + 8)?;
                    Some(u64::from_le_bytes(bytes.try_into().ok()?))
                };
                Self::Write(Write {
                    offset: number(0)?,
                    at: number(1)?,
                    length: number(2)?,
                    crc: number(3)?,
                })
            }
            NOTE => Self::Note(serde_json::from_slice(body).ok()?),
            _ => return None,
        };
        Some((record, FRAME_BYTES + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_back_and_any_flipped_bit_ends_the_log() {
        let write = Write {
            offset: 1,
            at: 2,
            length: 3,
            crc: 4,
        };
        let note = Note::Begin {
            id: "i".to_owned(),
            key: "a/ü".to_owned(),
            when: When::Match("\"e\"".to_owned()),
            size_bytes: 7,
        };
        for record in [
            Record::Write(write),
            Record::Note(note),
            Record::Note(Note::Whole),
        ] {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some((record, bytes.len())));
            for bit in 0..bytes.len() * 8 {
                let mut torn = bytes.clone();
                torn[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Record::decode(&torn), None, "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..length]), None);
            }
        }
    }
}

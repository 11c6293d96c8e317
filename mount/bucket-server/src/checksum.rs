// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checksums that clients may send and ask for, and how the checksum of the whole object is
//! made from those of its parts. Source: "Checking object integrity" in the Amazon S3 User Guide.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use sha2::Digest;

/// A checksum that S3 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

/// All of them, in the order of their names.
pub const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::Crc32,
    Algorithm::Crc32c,
    Algorithm::Crc64Nvme,
    Algorithm::Sha1,
    Algorithm::Sha256,
];

impl Algorithm {
    /// As in `x-amz-checksum-algorithm`.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "CRC32",
            Algorithm::Crc32c => "CRC32C",
            Algorithm::Crc64Nvme => "CRC64NVME",
            Algorithm::Sha1 => "SHA1",
            Algorithm::Sha256 => "SHA256",
        }
    }

    /// The algorithm of that name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        ALGORITHMS
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// The header that carries its value.
    pub fn header(self) -> String {
        format!("x-amz-checksum-{}", self.name().to_ascii_lowercase())
    }

    /// The element that carries its value in XML.
    pub fn element(self) -> String {
        format!("Checksum{}", self.name())
    }

    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Algorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Algorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Algorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Algorithm::Sha1 | Algorithm::Sha256 => None,
        }
    }
}

/// A finished checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// How it was made.
    pub algorithm: Algorithm,
    /// Big-endian, as it is sent in base64.
    pub value: Vec<u8>,
    /// Of how many parts' checksums this is the checksum; none where it covers the bytes.
    pub composite_of: Option<usize>,
}

impl Sum {
    /// As it stands in headers and XML.
    pub fn text(&self) -> String {
        let value = STANDARD.encode(&self.value);
        match self.composite_of {
            Some(parts) => format!("{value}-{parts}"),
            None => value,
        }
    }

    /// As in `x-amz-checksum-type`.
    pub fn kind(&self) -> &'static str {
        if self.composite_of.is_some() {
            "COMPOSITE"
        } else {
            "FULL_OBJECT"
        }
    }
}

/// Takes bytes and gives a [`Sum`].
pub struct Hasher {
    algorithm: Algorithm,
    state: State,
}

enum State {
    Crc(crc_fast::Digest),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Hasher {
    /// Begins.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm.crc() {
            Some(crc) => State::Crc(crc_fast::Digest::new(crc)),
            None if algorithm == Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            None => State::Sha256(sha2::Sha256::new()),
        };
        Self { algorithm, state }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(crc) => crc.update(bytes),
            State::Sha1(sha) => sha.update(bytes),
            State::Sha256(sha) => sha.update(bytes),
        }
    }

    /// The checksum of all bytes taken.
    pub fn finish(self) -> Sum {
        let value = match self.state {
            State::Crc(crc) => crc_bytes(self.algorithm, crc.finalize()),
            State::Sha1(sha) => sha.finalize().to_vec(),
            State::Sha256(sha) => sha.finalize().to_vec(),
        };
        Sum {
            algorithm: self.algorithm,
            value,
            composite_of: None,
        }
    }
}

fn crc_bytes(algorithm: Algorithm, value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let width = if algorithm == Algorithm::Crc64Nvme {
        8
    } else {
        4
    };
    bytes[8 - width..].to_vec()
}

fn crc_value(sum: &Sum) -> u64 {
    sum.value
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The checksum of a whole from those of its parts and their lengths; `None` when one part has
/// another algorithm, or none. `full` asks for one over the bytes, which only CRCs can give.
pub fn join(parts: &[(Option<Sum>, u64)], full: bool) -> Option<Sum> {
    let algorithm = parts.first()?.0.as_ref()?.algorithm;
    let sums: Option<Vec<(&Sum, u64)>> = parts
        .iter()
        .map(|(sum, length)| Some((sum.as_ref()?, *length)))
        .collect();
    let sums = sums?;
    if sums.iter().any(|(sum, _)| sum.algorithm != algorithm) {
        return None;
    }
    match algorithm.crc() {
        Some(crc) if full => {
            let joined = sums[1..]
                .iter()
                .fold(crc_value(sums[0].0), |so_far, (sum, length)| {
                    crc_fast::checksum_combine(crc, so_far, crc_value(sum), *length)
                });
            Some(Sum {
                algorithm,
                value: crc_bytes(algorithm, joined),
                composite_of: None,
            })
        }
        None if full => None,
        _ => {
            let mut hasher = Hasher::new(algorithm);
            for (sum, _) in &sums {
                hasher.update(&sum.value);
            }
            let mut joined = hasher.finish();
            joined.composite_of = Some(sums.len());
            Some(joined)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: Algorithm, bytes: &[u8]) -> Sum {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The check values of the CRC catalogue, and of FIPS 180-4 by sha256sum and sha1sum.
    #[test]
    fn checksums_of_the_digits_are_the_published_ones() {
        let known = [
            (Algorithm::Crc32, "cbf43926"),
            (Algorithm::Crc32c, "e3069283"),
            (Algorithm::Crc64Nvme, "ae8b14860a799888"),
            (Algorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        ];
        for (algorithm, expected) in known {
            let value = sum(algorithm, b"123456789").value;
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected, "{algorithm:?}");
        }
    }

    #[test]
    fn joined_checksums_of_parts_are_that_of_the_whole() {
        for algorithm in [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme] {
            let parts = [&b"12345"[..], b"67", b"89"]
                .map(|part| (Some(sum(algorithm, part)), part.len() as u64));
            assert_eq!(join(&parts, true), Some(sum(algorithm, b"123456789")));
            let composite = join(&parts, false).unwrap();
            assert!(composite.text().ends_with("-3"));
        }
        let parts = [(Some(sum(Algorithm::Sha1, b"1")), 1)];
        assert_eq!(join(&parts, true), None);
    }
}

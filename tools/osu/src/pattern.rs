// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message contents that depend on size, iteration, sender and receiver, and the check that
//! compares every byte.
//!
//! Called by the benchmarks when validating. Every 8 bytes come from a bijective mix of their
//! position and the message's own seed. So a stale, shifted, truncated or misdelivered message
//! differs in nearly every byte.

use weft_ranks::mix::{STEP, mix};

/// Which message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Length in bytes.
    pub size_bytes: usize,
    /// Iteration, counted from the first warm-up one.
    pub iteration: usize,
    /// Rank that sends it.
    pub sender: usize,
    /// Rank that receives it, or the slot in a window.
    pub receiver: usize,
}

impl Message {
    fn seed(&self) -> u64 {
        let place =
            (self.sender as u64) << 40 ^ (self.receiver as u64) << 20 ^ self.size_bytes as u64;
        mix(mix(place).wrapping_add(self.iteration as u64))
    }
}

/// Writes the message into `bytes`.
pub fn fill(bytes: &mut [u8], message: Message) {
    let seed = message.seed();
    let mut chunks = bytes.chunks_exact_mut(8);
    let mut position = 0;
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word(seed, position));
        position += 1;
    }
    let rest = chunks.into_remainder();
    rest.copy_from_slice(&word(seed, position)[..rest.len()]);
}

/// Makes every byte of `bytes` differ from the message, so that bytes MPI never writes are found.
pub fn spoil(bytes: &mut [u8], message: Message) {
    fill(bytes, message);
    for byte in bytes {
        *byte = !*byte;
    }
}

/// How many of `bytes` are not the message's; compares every one.
pub fn mismatches(bytes: &[u8], message: Message) -> u64 {
    let seed = message.seed();
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let mut wrong = 0;
    let mut position = 0;
    for chunk in chunks {
        let expected = word(seed, position);
        if chunk != expected {
            wrong += differing(chunk, &expected);
        }
        position += 1;
    }
    wrong + differing(rest, &word(seed, position))
}

fn differing(bytes: &[u8], expected: &[u8]) -> u64 {
    bytes
        .iter()
        .zip(expected)
        .filter(|(byte, expected)| byte != expected)
        .count() as u64
}

fn word(seed: u64, position: u64) -> [u8; 8] {
    let value = (seed ^ position).wrapping_mul(STEP);
    (value ^ value >> 32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Message = Message {
        size_bytes: 1003,
        iteration: 5,
        sender: 0,
        receiver: 1,
    };

    fn filled() -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE.size_bytes];
        fill(&mut bytes, MESSAGE);
        bytes
    }

    #[test]
    fn message_as_filled_has_no_mismatch() {
        assert_eq!(mismatches(&filled(), MESSAGE), 0);
    }

    #[test]
    fn one_wrong_byte_anywhere_is_found() {
        let mut bytes = filled();
        for index in 0..bytes.len() {
            bytes[index] ^= 0x10;
            assert_eq!(mismatches(&bytes, MESSAGE), 1, "byte {index}");
            bytes[index] ^= 0x10;
        }
    }

    #[test]
    fn spoiled_bytes_are_all_wrong() {
        let mut bytes = filled();
        spoil(&mut bytes, MESSAGE);
        assert_eq!(mismatches(&bytes, MESSAGE), MESSAGE.size_bytes as u64);
    }

    #[test]
    fn message_of_another_size_iteration_sender_or_receiver_is_wrong_nearly_everywhere() {
        let others = [
            Message {
                size_bytes: 1004,
                ..MESSAGE
            },
            Message {
                iteration: 6,
                ..MESSAGE
            },
            Message {
                sender: 1,
                ..MESSAGE
            },
            Message {
                receiver: 2,
                ..MESSAGE
            },
        ];
        for other in others {
            assert!(mismatches(&filled(), other) > 950, "{other:?}");
        }
    }

    #[test]
    fn shifted_message_is_wrong_nearly_everywhere() {
        let bytes = filled();
        assert!(mismatches(&bytes[8..], MESSAGE) > 900);
        assert!(mismatches(&bytes[1..], MESSAGE) > 900);
    }
}

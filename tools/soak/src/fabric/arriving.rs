// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether bytes arrive in buffers whose messages are not complete: a long message over a slow
//! network moves, and does not hang.
//!
//! Asked by the worker while nothing ends.

use super::node::Node;
use crate::random::mixed;

/// A word is looked at in each stretch of so many bytes. Chosen: a datagram of the least size
/// brings one.
const STRIDE_BYTES: usize = 1024;
const WORD_BYTES: usize = 8;

impl Node {
    /// A number that changes when something arrives in a buffer under way, as good as surely.
    pub fn arriving(&self) -> u64 {
        let all = self.held.iter();
        all.fold(0, |sum, (number, held)| {
            sum.wrapping_add(mixed(number ^ sampled(&held.buffer)))
        })
    }
}

fn sampled(buffer: &[u8]) -> u64 {
    let words = buffer.chunks(STRIDE_BYTES).enumerate();
    words.fold(0, |sum, (at, stretch)| {
        let mut word = [0; WORD_BYTES];
        let length = stretch.len().min(WORD_BYTES);
        word[..length].copy_from_slice(&stretch[..length]);
        sum ^ mixed(u64::from_le_bytes(word).wrapping_add(mixed(at as u64)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_of_the_least_size_is_seen_wherever_it_arrives() {
        let before = sampled(&[7; 10_000]);
        for at in 0..10_000 - 1_100 {
            let mut buffer = [7; 10_000];
            buffer[at..at + 1_100].fill(8);
            assert_ne!(sampled(&buffer), before, "{at}");
        }
        assert_ne!(sampled(&[1]), sampled(&[2]));
        assert_eq!(sampled(&[]), sampled(&[]));
    }
}

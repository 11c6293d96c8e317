// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is sent: every message follows from the seed and from its identity, so that its receiver,
//! the checker and a later run know it without being told.
//!
//! Called by the worker to send and to check, and by the checker. Pure.

use fastrand::Rng;

use crate::random::seed_of;

/// Messages of one stream, at most: the width of the index in an identity.
pub const STREAM_MESSAGES_MOST: u32 = (1 << 24) - HELLOS_MOST;
/// Indices at the end of a stream that are kept for greetings. Chosen.
const HELLOS_MOST: u32 = 1 << 12;
/// The longest message that is injected, in bytes. Chosen, below FI_WEFT_INJECT_SIZE as it is
/// unless set.
const INJECT_BYTES: usize = 200;
/// The longest untagged message in bytes: one always fits into what a multi-receive buffer has
/// left.
pub const PLAIN_LONGEST_BYTES: usize = 8192;
/// Bits of a tag that tell apart kinds of messages, and numbers inside a kind.
pub const TAG_NUMBER_BITS: u64 = 0xff;
/// What all tags of a soak begin with.
const TAG_BASE: u64 = 0x5745_4654_0000_0000;
const TAG_HELLO: u64 = TAG_BASE | 0xffff;
/// Kinds of tags, and numbers of each. Chosen: few, so that receives of one tag and of many
/// compete.
const TAG_KINDS: u64 = 3;
const TAG_NUMBERS: u64 = 5;

/// A process: a rank and how often it was started before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Life {
    /// From 0, below 64.
    pub rank: u8,
    /// 0 for the first process of the rank.
    pub generation: u8,
}

impl Life {
    /// The first process of a rank.
    pub fn first(rank: u8) -> Self {
        Self {
            rank,
            generation: 0,
        }
    }
}

impl std::fmt::Display for Life {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "rank {}", self.rank)?;
        if self.generation > 0 {
            write!(out, " (start {})", self.generation + 1)?;
        }
        Ok(())
    }
}

/// Everything one process sends to another in one round.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Stream {
    /// The round, below 4096.
    pub round: u16,
    /// Who sends.
    pub from: Life,
    /// Who is meant.
    pub to: Life,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// What it belongs to.
    pub stream: Stream,
    /// Its place in the stream, from 0.
    pub index: u32,
}

impl Identity {
    /// As it travels: in the first 8 bytes of a message and as completion data.
    pub fn packed(self) -> u64 {
        let life = |life: Life| u64::from(life.rank & 63) << 8 | u64::from(life.generation);
        u64::from(self.stream.round) << 52
            | life(self.stream.from) << 38
            | life(self.stream.to) << 24
            | u64::from(self.index)
    }

    /// The other way round. Any number is an identity, perhaps of nobody.
    pub fn unpacked(packed: u64) -> Self {
        let life = |bits: u64| Life {
            rank: (bits >> 8) as u8 & 63,
            generation: bits as u8,
        };
        Self {
            stream: Stream {
                round: (packed >> 52) as u16,
                from: life(packed >> 38),
                to: life(packed >> 24),
            },
            index: packed as u32 & 0x00ff_ffff,
        }
    }

    /// The `number`-th word of greeting in a stream: asks whether a restarted process is there.
    pub fn hello(stream: Stream, number: u32) -> Self {
        let index = STREAM_MESSAGES_MOST + number % HELLOS_MOST;
        Self { stream, index }
    }

    /// Whether it is a greeting.
    pub fn is_hello(self) -> bool {
        self.index >= STREAM_MESSAGES_MOST
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Stream { round, from, to } = self.stream;
        write!(
            out,
            "message {} of round {round} from {from} to {to}",
            self.index
        )
    }
}

/// How a message is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As most programs do.
    Usual,
    /// Its buffer is free at once, and no completion comes.
    Injected,
    /// Its completion says that it was delivered.
    Delivered,
}

/// What one message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which one.
    pub identity: Identity,
    /// Its tag; `None` when it has none.
    pub tag: Option<u64>,
    /// Its length.
    pub length_bytes: usize,
    /// How it is sent.
    pub form: Form,
    /// Whether its identity goes along as completion data.
    pub has_data: bool,
    key: u64,
}

/// What all messages of a job have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// The seed of the job.
    pub seed: u64,
    /// No message is longer.
    pub longest_bytes: usize,
}

impl Traffic {
    /// The message of this identity.
    pub fn message(&self, identity: Identity) -> Message {
        let key = seed_of(self.seed, &[identity.packed()]);
        let mut random = Rng::with_seed(key);
        if identity.is_hello() {
            return Message {
                identity,
                tag: Some(TAG_HELLO),
                length_bytes: 16,
                form: Form::Delivered,
                has_data: true,
                key,
            };
        }
        let tag =
            (random.u64(..10) < 7).then(|| tag(random.u64(..TAG_KINDS), random.u64(..TAG_NUMBERS)));
        let most = match tag {
            Some(_) => self.longest_bytes,
            None => self.longest_bytes.min(PLAIN_LONGEST_BYTES),
        };
        let length_bytes = length(&mut random).min(most);
        let form = match random.u64(..10) {
            0..=2 if length_bytes <= INJECT_BYTES => Form::Injected,
            3 | 4 => Form::Delivered,
            _ => Form::Usual,
        };
        Message {
            identity,
            tag,
            length_bytes,
            form,
            // Too short a message cannot say who it is.
            has_data: length_bytes < 8 || random.u64(..10) < 3,
            key,
        }
    }
}

/// The tag of a kind and a number; both are taken modulo how many there are.
pub fn tag(kind: u64, number: u64) -> u64 {
    TAG_BASE | (kind % TAG_KINDS) << 8 | (number % TAG_NUMBERS)
}

impl Message {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length_bytes];
        for (at, word) in bytes.chunks_mut(8).enumerate() {
            word.copy_from_slice(&self.word(at)[..word.len()]);
        }
        bytes
    }

    /// The first byte that is not as it was sent, if there is one.
    pub fn first_wrong_byte(&self, bytes: &[u8]) -> Option<usize> {
        let words = bytes.chunks(8).enumerate();
        let mut wrong = words.filter(|(at, word)| self.word(*at)[..word.len()] != **word);
        let (at, word) = wrong.next()?;
        let expected = self.word(at);
        let inside = word
            .iter()
            .zip(expected)
            .position(|(is, should)| *is != should);
        Some(8 * at + inside.unwrap_or(0))
    }

    fn word(&self, at: usize) -> [u8; 8] {
        if at == 0 && self.length_bytes >= 8 {
            return self.identity.packed().to_le_bytes();
        }
        (self.key ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .to_le_bytes()
    }
}

/// Lengths as MPI programs have them: most are short, and every protocol of both routes is met.
fn length(random: &mut Rng) -> usize {
    let (least, most) = match random.u64(..100) {
        0..30 => (0, 16),
        30..58 => (17, 300),
        58..78 => (301, 9_000),
        78..91 => (9_001, 70_000),
        91..98 => (70_001, 300_000),
        _ => (300_001, 4 << 20),
    };
    random.usize(least..=most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(index: u32) -> Identity {
        let life = |rank, generation| Life { rank, generation };
        let (from, to) = (life(63, 255), life(5, 1));
        Identity {
            stream: Stream {
                round: 4095,
                from,
                to,
            },
            index,
        }
    }

    const TRAFFIC: Traffic = Traffic {
        seed: 3,
        longest_bytes: 1 << 20,
    };

    #[test]
    fn identities_survive_packing() {
        for index in [0, 1, STREAM_MESSAGES_MOST, (1 << 24) - 1] {
            let identity = identity(index);
            assert_eq!(Identity::unpacked(identity.packed()), identity);
        }
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let mut seen = 0;
        for index in 0..300 {
            let message = TRAFFIC.message(identity(index));
            let mut bytes = message.bytes();
            assert_eq!(message.first_wrong_byte(&bytes), None);
            if let Some(at) = message.length_bytes.checked_sub(1) {
                bytes[at] ^= 4;
                assert_eq!(message.first_wrong_byte(&bytes), Some(at));
                seen += 1;
            }
        }
        assert!(seen > 250, "{seen}");
    }

    #[test]
    fn every_form_and_length_class_occurs_and_short_messages_carry_data() {
        let all: Vec<Message> = (0..2000)
            .map(|index| TRAFFIC.message(identity(index)))
            .collect();
        for form in [Form::Usual, Form::Injected, Form::Delivered] {
            assert!(all.iter().filter(|message| message.form == form).count() > 50);
        }
        for limit in [0, 16, 300, 9_000, 70_000] {
            assert!(all.iter().any(|message| message.length_bytes > limit));
        }
        assert!(all.iter().any(|message| message.length_bytes == 0));
        assert!(
            all.iter()
                .all(|message| message.has_data || message.length_bytes >= 8)
        );
        let plain = |message: &&Message| message.tag.is_none();
        let longest = all.iter().filter(plain).map(|message| message.length_bytes);
        assert!(
            longest
                .max()
                .is_some_and(|most| most <= PLAIN_LONGEST_BYTES)
        );
    }
}

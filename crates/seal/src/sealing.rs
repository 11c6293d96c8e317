// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encryption of datagrams (srd-protocol 14.2): AES-256-GCM under a key of each sender's own.
//! Called by protection.
//!
//! A nonce must never come twice under one key. All endpoints of a job share the job key, so each
//! sends under a key derived from its incarnation, which is random and of 64 bits, and counts its
//! datagrams, on whatever path they leave. The upper half of the count goes into the key too, so
//! that no key sees more than 2^32 datagrams.

use std::collections::HashMap;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::Prk;

use crate::job_key::derive;

/// What is authenticated and not encrypted (srd-protocol 14.2).
pub(crate) const CLEAR_BYTES: usize = 32;
/// Where the count lies (srd-protocol 2).
const COUNT: std::ops::Range<usize> = 24..32;
/// Bytes of authentication after the datagram.
pub const SEAL_BYTES: usize = 16;
/// Senders whose keys are kept (chosen: 10 MiB at most). Beyond it all are forgotten, and derived
/// again at 0.4 us each.
const KEPT_KEYS: usize = 16_384;

/// Which of the keys that are derived from the job's: of one sender, for so many packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeyName {
    incarnation: u64,
    /// The upper half of the sender's count.
    upper_count: u32,
}

impl KeyName {
    fn of(incarnation: u64, count: u64) -> Self {
        Self {
            incarnation,
            upper_count: (count >> 32) as u32,
        }
    }
}

/// The job's key for encryption, and the keys derived from it that are in use.
pub(crate) struct Sealing {
    root: Prk,
    own: u64,
    /// Of the next datagram we send.
    next_count: u64,
    sending: (KeyName, LessSafeKey),
    /// Keys under which something authentic has come.
    receiving: HashMap<KeyName, LessSafeKey>,
}

fn sender_key(root: &Prk, name: KeyName) -> LessSafeKey {
    let (incarnation, upper) = (
        name.incarnation.to_le_bytes(),
        name.upper_count.to_le_bytes(),
    );
    let key = derive::<32>(root, &[b"seal", &incarnation, &upper]);
    let unbound = UnboundKey::new(&AES_256_GCM, &key[..]);
    LessSafeKey::new(unbound.expect("a key of AES-256 has 32 bytes"))
}

fn nonce(count: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

impl Sealing {
    pub(crate) fn new(root: Prk, own: u64) -> Self {
        let name = KeyName::of(own, 0);
        let sending = (name, sender_key(&root, name));
        Self {
            root,
            own,
            next_count: 0,
            sending,
            receiving: HashMap::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn skip_to(&mut self, count: u64) {
        self.next_count = count;
    }

    /// Encrypts a whole datagram and appends the seal. Fast path: copies nothing.
    pub(crate) fn seal(&mut self, datagram: &mut Vec<u8>) {
        let count = self.next_count;
        // 2^64 datagrams take 58,000 years at 10 million per second.
        self.next_count += 1;
        let name = KeyName::of(self.own, count);
        if self.sending.0 != name {
            self.sending = (name, sender_key(&self.root, name));
        }
        datagram[COUNT].copy_from_slice(&count.to_le_bytes());
        let (clear, secret) = datagram.split_at_mut(CLEAR_BYTES);
        let key = &self.sending.1;
        let sealed = key.seal_in_place_separate_tag(nonce(count), Aad::from(&*clear), secret);
        // AES-GCM refuses texts above 64 GiB alone.
        let tag = sealed.expect("a datagram has at most 64 KiB");
        datagram.extend_from_slice(tag.as_ref());
    }

    /// Decrypts a datagram of `source` in place; false if it is not authentic. Fast path.
    pub(crate) fn open(&mut self, source: u64, datagram: &mut [u8]) -> bool {
        let (clear, secret) = datagram.split_at_mut(CLEAR_BYTES);
        let mut count = [0; 8];
        count.copy_from_slice(&clear[COUNT]);
        let count = u64::from_le_bytes(count);
        let name = KeyName::of(source, count);
        let aad = Aad::from(&*clear);
        if let Some(key) = self.receiving.get(&name) {
            return key.open_in_place(nonce(count), aad, secret).is_ok();
        }
        let key = sender_key(&self.root, name);
        let authentic = key.open_in_place(nonce(count), aad, secret).is_ok();
        // Only who has the job key can make us remember anything.
        if authentic {
            if self.receiving.len() >= KEPT_KEYS {
                self.receiving.clear();
            }
            self.receiving.insert(name, key);
        }
        authentic
    }

    /// Senders remembered.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.receiving.len()
    }
}

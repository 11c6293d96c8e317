// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The payloads of sends under way, under the tokens by which the machine names them. Filled by
//! driver.rs, read when datagrams are gathered, emptied when the machine says that a send is done.

use weft_contract::SendToken;
use weft_memory::{BytesViewMut, Gather, UserBuffer};

/// Most memory that is kept for later copies. Chosen: a window of eager messages to each of a few
/// hundred remotes.
const POOLED_LIMIT_BYTES: usize = 16 << 20;
/// Most bytes of copies under way; beyond that a send that must be copied waits. Chosen: far above
/// any window of small messages.
const COPIED_LIMIT_BYTES: usize = 256 << 20;

/// Payload that may change while it is read is copied out first, in steps of this length. Chosen: a
/// step stays in the nearest cache.
const STEP_BYTES: usize = 4096;

/// Where a payload lies.
#[derive(Debug)]
enum Held {
    Nothing,
    /// In the user's buffer; nobody writes to it until the send is done.
    User(UserBuffer),
    /// In memory that one-sided operations read; the program may write to it at any time.
    Shared(UserBuffer),
    /// Copied: this many bytes at the front of the entry's own memory.
    Copy(usize),
}

#[derive(Debug)]
struct Entry {
    /// Rises with every use, so that an old token never names a new send.
    generation: u32,
    owner_token: Option<SendToken>,
    held: Held,
    /// Memory for copies, kept from one send to the next.
    memory: Vec<u8>,
}

/// All sends under way.
#[derive(Debug, Default)]
pub struct Sends {
    entries: Vec<Entry>,
    free: Vec<u32>,
    pooled_bytes: usize,
    copied_bytes: usize,
}

fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

impl Sends {
    /// Whether a payload of this length may be copied now.
    pub(crate) fn may_copy(&self, length_bytes: usize) -> bool {
        self.copied_bytes + length_bytes <= COPIED_LIMIT_BYTES
    }

    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                generation: 0,
                owner_token: None,
                held: Held::Nothing,
                memory: Vec::new(),
            });
            self.entries.len() as u32 - 1
        })
    }

    /// Takes a send whose payload stays in the user's buffer until the send is done. `is_still`:
    /// nobody writes to the buffer meanwhile.
    pub(crate) fn lend(
        &mut self,
        owner_token: Option<SendToken>,
        payload: &UserBuffer,
        is_still: bool,
    ) -> u64 {
        let index = self.place();
        let entry = &mut self.entries[index as usize];
        entry.owner_token = owner_token;
        entry.held = match is_still {
            true => Held::User(payload.clone()),
            false => Held::Shared(payload.clone()),
        };
        token(index, entry.generation)
    }

    /// Takes a send and copies its payload. The owner hears of the send's end only if it gives a
    /// token.
    pub(crate) fn copy(&mut self, owner_token: Option<SendToken>, payload: &UserBuffer) -> u64 {
        let index = self.place();
        self.entries[index as usize].owner_token = owner_token;
        self.copy_into(index as usize, payload);
        token(index, self.entries[index as usize].generation)
    }

    /// Copies a payload that lay in the user's buffer, unless its send has ended: afterwards the
    /// buffer is the user's again.
    pub(crate) fn keep(&mut self, lent: u64) {
        let Some(entry) = self.get(lent) else { return };
        if let Held::User(payload) | Held::Shared(payload) = &entry.held {
            let payload = payload.clone();
            self.copy_into(lent as u32 as usize, &payload);
        }
    }

    /// The owner wants to hear of the end of a send after all.
    pub(crate) fn name(&mut self, named: u64, owner_token: SendToken) {
        if self.is_open(named) {
            self.entries[named as u32 as usize].owner_token = Some(owner_token);
        }
    }

    fn copy_into(&mut self, index: usize, payload: &UserBuffer) {
        let length_bytes = payload.length_bytes();
        let entry = &mut self.entries[index];
        if entry.memory.len() < length_bytes {
            self.pooled_bytes += length_bytes - entry.memory.len();
            entry.memory.resize(length_bytes, 0);
        }
        payload.drain(
            0,
            &mut BytesViewMut::from_slice(&mut entry.memory[..length_bytes]),
        );
        self.copied_bytes += length_bytes;
        entry.held = Held::Copy(length_bytes);
    }

    /// Ends a send; returns the owner's token, if the owner wants to hear of the end.
    pub(crate) fn end(&mut self, ended: u64) -> Option<SendToken> {
        let index = ended as u32;
        let entry = self.entries.get_mut(index as usize)?;
        if token(index, entry.generation) != ended {
            return None;
        }
        if let Held::Copy(length_bytes) = entry.held {
            self.copied_bytes -= length_bytes;
            if self.pooled_bytes > POOLED_LIMIT_BYTES {
                self.pooled_bytes -= entry.memory.len();
                entry.memory = Vec::new();
            }
        }
        entry.held = Held::Nothing;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
        entry.owner_token.take()
    }

    fn get(&self, wanted: u64) -> Option<&Entry> {
        let entry = self.entries.get(wanted as u32 as usize)?;
        (token(wanted as u32, entry.generation) == wanted).then_some(entry)
    }

    /// Whether a send is still under way: a datagram that waited for room may outlive its message.
    pub fn is_open(&self, token: u64) -> bool {
        self.get(token).is_some()
    }

    /// How long a payload is; 0 of a send that has ended.
    pub(crate) fn length_bytes(&self, token: u64) -> usize {
        match self.get(token).map(|entry| &entry.held) {
            None | Some(Held::Nothing) => 0,
            Some(Held::User(buffer) | Held::Shared(buffer)) => buffer.length_bytes(),
            Some(Held::Copy(length_bytes)) => *length_bytes,
        }
    }

    /// Adds a stretch of a payload to a datagram.
    pub fn gather<'a>(
        &'a self,
        token: u64,
        offset_bytes: usize,
        length_bytes: usize,
        datagram: &mut Gather<'_, 'a>,
    ) {
        let Some(entry) = self.get(token) else { return };
        match &entry.held {
            Held::Nothing => {}
            Held::User(buffer) | Held::Shared(buffer) => {
                datagram.add_buffer(buffer, offset_bytes, length_bytes)
            }
            Held::Copy(_) => datagram.add_bytes(&entry.memory[offset_bytes..][..length_bytes]),
        }
    }

    /// Shows a stretch of a payload: where it lies, if nobody writes to it, else a copy. Fast path.
    pub(crate) fn show(
        &self,
        token: u64,
        offset_bytes: usize,
        length_bytes: usize,
        see: &mut dyn FnMut(&[u8]),
    ) {
        let Some(entry) = self.get(token) else { return };
        match &entry.held {
            Held::Nothing => {}
            Held::User(buffer) => buffer.show(offset_bytes, length_bytes, see),
            Held::Shared(buffer) => {
                let mut step = [0; STEP_BYTES];
                for done in (0..length_bytes).step_by(STEP_BYTES) {
                    let part = &mut step[..STEP_BYTES.min(length_bytes - done)];
                    buffer.drain(offset_bytes + done, &mut BytesViewMut::from_slice(part));
                    see(part);
                }
            }
            Held::Copy(_) => see(&entry.memory[offset_bytes..][..length_bytes]),
        }
    }

    /// Copies a stretch of a payload, as long as `target`. For the simulated wire and for packet
    /// protection.
    pub fn copy_to(&self, token: u64, offset_bytes: usize, target: &mut [u8]) {
        let Some(entry) = self.get(token) else { return };
        match &entry.held {
            Held::Nothing => {}
            Held::User(buffer) | Held::Shared(buffer) => {
                buffer.drain(offset_bytes, &mut BytesViewMut::from_slice(target));
            }
            Held::Copy(_) => {
                target.copy_from_slice(&entry.memory[offset_bytes..][..target.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_memory::BytesView;

    fn buffer(bytes: &[u8]) -> UserBuffer {
        let buffer = UserBuffer::leaked(&[bytes.len()]);
        buffer.fill(0, BytesView::from_slice(bytes));
        buffer
    }

    #[test]
    fn a_copy_outlives_its_buffer_and_a_loan_follows_it() {
        let mut sends = Sends::default();
        let payload = buffer(b"before");
        let copied = sends.copy(None, &payload);
        let lent = sends.lend(Some(SendToken(7)), &payload, true);
        payload.fill(0, BytesView::from_slice(b"after!"));
        let mut out = [0; 9];
        sends.copy_to(copied, 0, &mut out[..6]);
        sends.copy_to(lent, 2, &mut out[6..]);
        assert_eq!(&out, b"beforeter");
        assert_eq!(sends.end(copied), None);
        assert_eq!(sends.end(lent), Some(SendToken(7)));
    }

    #[test]
    fn a_loan_that_is_kept_is_a_copy_from_then_on_and_counts_as_one() {
        let mut sends = Sends::default();
        let payload = buffer(b"before");
        let lent = sends.lend(None, &payload, true);
        sends.keep(lent);
        payload.fill(0, BytesView::from_slice(b"after!"));
        let mut out = [0; 6];
        sends.copy_to(lent, 0, &mut out);
        assert_eq!(&out, b"before");
        assert!(!sends.may_copy(COPIED_LIMIT_BYTES - 5));
        assert_eq!(sends.end(lent), None);
        assert!(sends.may_copy(COPIED_LIMIT_BYTES));
        sends.keep(lent);
        assert!(sends.may_copy(COPIED_LIMIT_BYTES), "it has ended");
    }

    #[test]
    fn what_is_shown_of_a_payload_is_what_leaves_wherever_it_lies() {
        let bytes: Vec<u8> = (0..3 * STEP_BYTES)
            .map(|index| (index % 251) as u8)
            .collect();
        let payload = buffer(&bytes);
        let mut sends = Sends::default();
        let still = sends.lend(Some(SendToken(1)), &payload, true);
        let shared = sends.lend(Some(SendToken(2)), &payload, false);
        let copied = sends.copy(Some(SendToken(3)), &payload);
        for (from, length) in [
            (0, bytes.len()),
            (5, STEP_BYTES),
            (STEP_BYTES - 1, STEP_BYTES + 2),
            (7, 1),
        ] {
            for token in [still, shared, copied] {
                let mut seen = Vec::new();
                sends.show(token, from, length, &mut |part| {
                    seen.extend_from_slice(part)
                });
                assert!(
                    seen == bytes[from..][..length],
                    "{length} bytes from {from}"
                );
            }
        }
        sends.end(still);
        sends.show(still, 0, 8, &mut |_| panic!("it has ended"));
    }

    #[test]
    fn a_token_that_has_ended_names_nothing_even_when_its_place_is_used_again() {
        let mut sends = Sends::default();
        let old = sends.copy(None, &buffer(b"old"));
        sends.end(old);
        let new = sends.copy(Some(SendToken(1)), &buffer(b"new"));
        assert!(!sends.is_open(old) && sends.is_open(new));
        assert_eq!(sends.end(old), None);
        let mut out = [0; 3];
        sends.copy_to(old, 0, &mut out);
        assert_eq!(out, [0; 3]);
        assert_eq!(sends.end(new), Some(SendToken(1)));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One side of an exchange: a transport and an owner that posts receives for everything and checks
//! every byte.
//!
//! Both processes of the crash tests are made of this; `scenario.rs` says what they exchange.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;

use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, OwnHeap, UserBuffer, own_heap};
use weft_shm::{Settings, Transport};

use crate::transports::{self, tagged};

/// The tag of the word that a receiver says when it has everything.
pub const DONE_TAG: u64 = 1_000_000;
/// The tag of the first word of a process that takes an address over.
pub const HELLO_TAG: u64 = 1_000_001;

/// What arrived and what became of what was sent.
#[derive(Default)]
pub struct Ledger {
    /// Messages that arrived whole, by tag; words are counted apart.
    pub arrived: u64,
    pub done: u64,
    pub hello: u64,
    /// Sends and receives under way.
    pub sending: u64,
    pub landing: HashMap<u64, (UserBuffer, u64)>,
    pub failed: u64,
    pub lost: Option<TransferError>,
    next_token: u64,
    addresses: Vec<SocketAddr>,
    free: Vec<UserBuffer>,
}

/// The byte at a place of the message with a tag.
fn byte(tag: u64, index: usize) -> u8 {
    (tag as usize * 31 + index / 251 + index) as u8
}

/// Panics unless the bytes are those of the message with that tag. Looks at the first and last
/// bytes and at some of each page.
fn check(tag: u64, bytes: &[u8]) {
    let len = bytes.len();
    let sampled = (0..len)
        .step_by(509)
        .chain(0..len.min(64))
        .chain(len.saturating_sub(64)..len);
    for index in sampled {
        assert_eq!(
            bytes[index],
            byte(tag, index),
            "byte {index} of {len} of message {tag}"
        );
    }
}

fn contents(buffer: &UserBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.length_bytes()];
    buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes
}

impl Ledger {
    /// Forgets what arrived and who was lost, for the next process at the same address.
    pub fn start_over(&mut self) {
        (self.arrived, self.done, self.hello, self.lost) = (0, 0, 0, None);
    }

    fn note(&mut self, tag: u64) {
        match tag {
            DONE_TAG => self.done += 1,
            HELLO_TAG => self.hello += 1,
            _ => self.arrived += 1,
        }
    }
}

impl Owner for Ledger {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _: Option<AckToken>,
    ) -> bool {
        check(envelope.tag, &payload.to_vec());
        self.note(envelope.tag);
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        self.next_token += 1;
        let length = envelope.length_bytes as usize;
        let fits = |buffer: &UserBuffer| buffer.length_bytes() == length;
        let buffer = match self.free.iter().position(fits) {
            Some(index) => self.free.swap_remove(index),
            None => UserBuffer::leaked(&[length]),
        };
        self.landing
            .insert(self.next_token, (buffer.clone(), envelope.tag));
        Some(Landing {
            token: LandingToken(self.next_token),
            buffer,
        })
    }
    fn on_landed(&mut self, token: LandingToken, outcome: Result<(), TransferError>) {
        let (buffer, tag) = self
            .landing
            .remove(&token.0)
            .expect("each landing ends once");
        match outcome {
            Ok(()) => {
                check(tag, &contents(&buffer));
                self.note(tag);
            }
            Err(_) => self.failed += 1,
        }
        self.free.push(buffer);
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        self.sending = self.sending.checked_sub(1).expect("each send ends once");
        self.failed += u64::from(outcome.is_err());
    }
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        if remote == RemoteId(0) {
            self.lost = Some(why);
        }
    }
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let known = self.addresses.iter().position(|&other| other == address);
        let index = known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        });
        RemoteId(index as u32)
    }
}

/// The length of messages that are offered.
pub const LONG: usize = 1_300_000;
const HEAP_BYTES: usize = 8 * LONG;

thread_local! {
    /// Messages to send, by tag and length: they must stay as they are until they are delivered.
    static SOURCES: RefCell<HashMap<(u64, usize), UserBuffer>> = RefCell::default();
    static HEAP: (OwnHeap, UserBuffer) = own_heap::leaked(HEAP_BYTES).expect("a heap");
}

/// Where the long messages of this process lie; made once.
pub fn heap() -> OwnHeap {
    HEAP.with(|(heap, _)| heap.clone())
}

/// The place of a long message in the heap. Only those of one length, so that none lie over each
/// other.
fn in_heap(tag: u64, length: usize) -> Option<UserBuffer> {
    let offset = usize::try_from(tag).ok()?.checked_mul(length)?;
    let fits = length == LONG && offset + length <= HEAP_BYTES;
    fits.then(|| HEAP.with(|(_, whole)| whole.part(offset, length)))
}

fn source(tag: u64, length: usize) -> UserBuffer {
    SOURCES.with_borrow_mut(|sources| {
        let made = sources.entry((tag, length)).or_insert_with(|| {
            let buffer = in_heap(tag, length).unwrap_or_else(|| UserBuffer::leaked(&[length]));
            let bytes: Vec<u8> = (0..length).map(|index| byte(tag, index)).collect();
            buffer.fill(0, BytesView::from_slice(&bytes));
            buffer
        });
        made.clone()
    })
}

/// A transport, what it tells, and the one remote that matters: number 0.
pub struct Side {
    pub transport: Transport,
    pub ledger: Ledger,
}

impl Side {
    pub fn open(settings: Settings, remote: SocketAddr) -> Self {
        let mut transport = transports::open(settings);
        transport.add_remote(RemoteId(0), remote);
        let ledger = Ledger {
            addresses: vec![remote],
            ..Ledger::default()
        };
        Self { transport, ledger }
    }

    pub fn progress(&mut self) -> usize {
        self.transport.progress(&mut self.ledger)
    }

    /// Starts to send the message with a tag; false if there is no room now.
    ///
    /// # Errors
    /// Why there never will be.
    pub fn post(&mut self, tag: u64, length: usize, delivery: bool) -> Result<bool, TransferError> {
        let level = if delivery {
            CompletionLevel::Delivery
        } else {
            CompletionLevel::Transmit
        };
        let op = tagged(tag, level);
        match self.transport.post_send(&op, &source(tag, length)) {
            Ok(Posted::Complete) => Ok(true),
            Ok(Posted::Pending) => {
                self.ledger.sending += 1;
                Ok(true)
            }
            Err(PostError::Busy) => Ok(false),
            Err(PostError::Failed(why)) => Err(why),
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.ledger.sending == 0 && self.ledger.landing.is_empty()
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Target `cells`: a sender gone mad in a lane of shared memory, and bytes that anybody of the same
//! user scribbles into the region. The receiver must neither panic nor touch what is not its own;
//! what it was told to fill or to send ends exactly once; who breaks the protocol is cut off.
//!
//! The mad one claims a slot as docs/shm-layout.md says and pushes cells of any kind, most of them
//! nearly right. It lives in the same process, so it never asks the receiver to write into its
//! memory (clause 7a), which would be ours.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, MESSAGE_LIMIT_BYTES,
    OfferId, Owner, Peer, RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_os::process;
use weft_ring::layout::{
    LANE_CELLS, LANE_CONTROL_BYTES, LANE_NARROW_BYTES, PIPES_OFFSET, SLOTS_OFFSET, lane_offset,
};
use weft_ring::{Head, Identity, Producer, Region};
use weft_shm::{Settings, SingleCopy, Transport};
use weft_srd::random::Random;

use crate::input::Input;

/// Kinds of docs/shm-layout.md, clause 5, and one beyond.
const KINDS: usize = 14;
/// The CTS that asks for writes into its sender's memory.
const CTS_COPY: u8 = 9;

/// Longest buffer: beyond every protocol's threshold.
const LONGEST: usize = 300_000;

thread_local! {
    /// Where messages lie and land; one for all, since nobody looks at the bytes.
    static MEMORY: UserBuffer = UserBuffer::leaked(&[LONGEST]);
}

/// The receiver's owner: its books are the law.
struct Books {
    random: Random,
    addresses: Vec<SocketAddr>,
    sends: BTreeSet<u64>,
    /// Landings under way, and of whom.
    landings: Vec<(u64, RemoteId)>,
    offers: Vec<(OfferId, RemoteId)>,
    receipts: Vec<AckToken>,
    numbers: u64,
    is_lost: bool,
}

impl Books {
    fn new(seed: u64, remote: SocketAddr) -> Self {
        Self {
            random: Random::new(seed),
            addresses: vec![remote],
            sends: BTreeSet::new(),
            landings: Vec::new(),
            offers: Vec::new(),
            receipts: Vec::new(),
            numbers: 0,
            is_lost: false,
        }
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    fn land(&mut self, remote: RemoteId) -> Landing {
        self.numbers += 1;
        self.landings.push((self.numbers, remote));
        let length_bytes = self.random.below(LONGEST as u64) as usize;
        Landing {
            token: LandingToken(self.numbers),
            buffer: MEMORY.with(|memory| memory.part(0, length_bytes)),
        }
    }
}

impl Owner for Books {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        assert_eq!(payload.length_bytes() as u64, envelope.length_bytes);
        let mut bytes = vec![0; payload.length_bytes()];
        payload.copy_to_slice(&mut bytes);
        let delivered = self.chance(2);
        self.receipts.extend(ack.filter(|_| !delivered));
        delivered
    }

    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        assert!(envelope.length_bytes <= MESSAGE_LIMIT_BYTES);
        if self.chance(2) {
            return Some(self.land(envelope.remote));
        }
        self.offers.push((offer, envelope.remote));
        None
    }

    fn on_landed(&mut self, landing: LandingToken, _: Result<(), TransferError>) {
        let index = self.landings.iter().position(|open| open.0 == landing.0);
        self.landings
            .swap_remove(index.expect("a landing ends once"));
    }

    fn on_sent(&mut self, token: SendToken, _: Result<(), TransferError>) {
        assert!(self.sends.remove(&token.0), "a send ends once");
    }

    fn on_remote_lost(&mut self, remote: RemoteId, _: TransferError) {
        self.offers.retain(|(_, from)| *from != remote);
        let open = self.landings.iter().any(|(_, from)| *from == remote);
        assert!(!open, "no landing waits for one that is lost");
        if remote == RemoteId(0) {
            assert!(self.sends.is_empty(), "no send waits for one that is lost");
            self.is_lost = true;
        }
    }

    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let known = self.addresses.iter().position(|other| *other == address);
        RemoteId(known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        }) as u32)
    }
}

/// The file of a transport's region; none if what was scribbled says that it is closed.
fn region_of(transport: &Transport) -> Option<(File, Region)> {
    let name = format!("weft {}", transport.local_address());
    let file = process::open_memfd_of(process::own_pid(), &name, 0).expect("the region's file");
    let region = Region::attach(file.as_fd()).ok()?;
    Some((File::from(file), region))
}

fn open(single_copy: SingleCopy) -> Transport {
    Transport::open(Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        single_copy,
        ..Settings::default()
    })
    .expect("a transport")
}

/// The mad one's end.
struct Mad {
    file: File,
    region: Region,
    identity: Identity,
    slot: usize,
    producer: Producer,
}

impl Mad {
    /// Claims a slot, if there is one left.
    fn claim(receiver: &Transport, identity: Identity) -> Option<Self> {
        let (file, region) = region_of(receiver)?;
        let slot = region.slots().claim(&identity)?;
        let producer = Producer::attach(region.mapping(), slot)?;
        Some(Self {
            file,
            region,
            identity,
            slot,
            producer,
        })
    }

    /// A word: small, near a limit, or anything.
    fn word(input: &mut Input<'_>) -> u64 {
        const LIMITS: [u64; 8] = [40, 296, 8192, 16_384, 65_536, 1 << 20, 1 << 40, u64::MAX];
        match input.below(4) {
            0 => input.number(),
            1 => LIMITS[input.below(LIMITS.len())].wrapping_add(input.below(3) as u64),
            _ => input.below(5) as u64,
        }
    }

    /// Pushes one cell of any kind.
    fn push(&mut self, input: &mut Input<'_>) {
        let mut kind = input.below(KINDS) as u8;
        if kind == CTS_COPY {
            kind -= 1;
        }
        let head = Head {
            kind,
            flags: input.byte() & 63,
            length_bytes: Self::word(input) as u32,
        };
        let words: [u64; 7] = std::array::from_fn(|_| Self::word(input));
        // A place that is one, most of the time.
        let length_bytes = match input.below(3) {
            0 => words[6] as usize % LONGEST,
            _ => head.length_bytes as usize,
        };
        let payload = MEMORY.with(Clone::clone);
        let piece = 0..length_bytes.min(LANE_NARROW_BYTES / 2);
        let pushed = match input.below(3) {
            0 => self.producer.push_words(head, words),
            _ => {
                let [tag, data, _, fourth, fifth, sixth, _] = words;
                let words = [tag, data, fourth, fifth, sixth];
                self.producer.push_data(head, words, &payload, piece)
            }
        };
        // A full lane takes nothing.
        let _ = pushed;
        self.region.doorbell().ring(self.slot);
    }

    /// Writes bytes where the receiver reads: its slots, the lane, a pipe, and seldom its header.
    fn scribble(&self, input: &mut Input<'_>) {
        let lane = lane_offset(self.slot);
        let cells = lane + LANE_CONTROL_BYTES;
        let offset = match input.below(16) {
            0..=5 => cells + input.below(64 * LANE_CELLS),
            6..=8 => lane + input.below(LANE_CONTROL_BYTES),
            9..=11 => PIPES_OFFSET + input.below(8192),
            12..=14 => SLOTS_OFFSET + input.below(1024),
            // Behind the words that say which layout it is, which every reader checks alone.
            _ => 64 + input.below(1024),
        };
        let _ = self.file.write_all_at(input.take(8), offset as u64);
    }
}

/// One thing that the receiver's own user does.
fn use_it(ours: &mut Transport, books: &mut Books, input: &mut Input<'_>) {
    match input.below(4) {
        0 => {
            books.numbers += 1;
            let length_bytes = Mad::word(input) as usize % LONGEST;
            let op = SendOp {
                remote: RemoteId(0),
                class: Class::Tagged,
                tag: 1,
                cq_data: None,
                level: [CompletionLevel::Delivery, CompletionLevel::Transmit][input.below(2)],
                token: SendToken(books.numbers),
                inject: false,
            };
            let payload = MEMORY.with(|memory| memory.part(0, length_bytes));
            books.sends.insert(books.numbers);
            if ours.post_send(&op, &payload) != Ok(weft_contract::Posted::Pending) {
                books.sends.remove(&books.numbers);
            }
        }
        1 => {
            if let Some((offer, remote)) = books.offers.pop() {
                let landing = books.land(remote);
                ours.accept(offer, landing);
            }
        }
        2 => {
            if let Some((offer, _)) = books.offers.pop() {
                ours.discard(offer);
            }
        }
        _ => {
            if let Some(receipt) = books.receipts.pop() {
                ours.acknowledge(receipt);
            }
        }
    }
}

/// One life of a receiver beside a mad sender.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let scribbles = input.below(2) == 0;
    let single_copy = if scribbles {
        SingleCopy::Never
    } else {
        [SingleCopy::Never, SingleCopy::Always][input.below(2)]
    };
    let mut ours = open(single_copy);
    let theirs = open(SingleCopy::Never);
    let (_, region) = region_of(&theirs).expect("nobody scribbles into it");
    let identity = region.owner();
    let mut books = Books::new(input.number(), theirs.local_address());
    ours.add_remote(RemoteId(0), theirs.local_address());
    let Some(mut mad) = Mad::claim(&ours, identity) else {
        return;
    };
    while !input.is_over() {
        match input.below(8) {
            0..=3 => mad.push(&mut input),
            4 if scribbles => mad.scribble(&mut input),
            4 | 5 => use_it(&mut ours, &mut books, &mut input),
            _ => {
                ours.progress(&mut books);
            }
        }
        if std::mem::take(&mut books.is_lost) {
            // It comes again, as another process would.
            ours.name_again(RemoteId(0));
            let incarnation = Identity::incarnation_of(input.number());
            let identity = Identity {
                incarnation,
                ..mad.identity
            };
            let Some(next) = Mad::claim(&ours, identity) else {
                break;
            };
            mad = next;
        }
    }
    for _ in 0..4 {
        ours.progress(&mut books);
    }
}

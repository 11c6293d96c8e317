// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two endpoints in two domains that know each other, driven by one thread, and short ways to say
//! what they do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_contract::Route;
use weft_endpoint::{
    Class, Completion, CounterId, Domain, DomainSettings, EndpointCalls, EndpointId,
    EndpointSettings, Error, ErrorCompletion, FiAddr, QueueBinding, QueueId, QueueSettings,
    Receive, Send, UserBuffer, VectorId, VectorKind, flags,
};
use weft_memory::{BytesView, BytesViewMut};

/// Long enough for any law on a busy machine; a test that waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// A way to open endpoints that reach each other.
pub trait Fabric {
    /// Their transport.
    type Local: Route<Settings: std::marker::Send> + std::marker::Send;
    /// Whether what was sent may need its sender again: to prove its address at first contact, to
    /// send it once more, or because there was no room.
    const NEEDS_SENDER: bool = false;
    /// Rounds in which everything arrives that can.
    const SETTLING_ROUNDS: usize = 60;
    /// Whether one-sided operations may be carried out without their target, which then cannot
    /// count them.
    const IS_DIRECT: bool = false;
    /// Whether it takes any number of messages at once.
    const HAS_ROOM_FOR_ALL: bool = false;
    /// A fabric of its own for one test.
    fn open() -> Self;
    /// How its transports are opened.
    fn settings() -> <Self::Local as Route>::Settings;
    /// The address that its endpoints ask for.
    fn address(&self) -> Option<SocketAddr>;
}

/// How both sides of a pair are opened.
#[derive(Clone, Copy, Default)]
pub struct Options {
    pub selective: bool,
    pub transmit_flags: u64,
    /// Leaves the address vectors empty.
    pub strangers: bool,
    /// Binds no counters of what others do to our memory.
    pub uncounted: bool,
    /// Takes the longest injects that there are.
    pub long_injects: bool,
}

/// The longest injects, where FI_WEFT_INJECT_SIZE asks for them.
pub const LONG_INJECT_BYTES: usize = 64 * 1024;

/// The first endpoint of a pair.
pub const A: usize = 0;
/// The second.
pub const B: usize = 1;

/// What the counters of one-sided operations count.
const ACCESSES: [u64; 4] = [
    flags::READ,
    flags::WRITE,
    flags::REMOTE_READ,
    flags::REMOTE_WRITE,
];

/// How an operation ended.
pub type Outcome = Result<Completion, ErrorCompletion>;

/// One endpoint with all it needs.
pub struct Side<P: Route> {
    pub domain: Domain<P>,
    pub endpoint: EndpointId,
    pub vector: VectorId,
    pub queue: QueueId,
    pub sent: CounterId,
    pub received: CounterId,
    /// Counts reads and writes of others' memory, and of ours by others.
    pub accesses: [CounterId; 4],
    /// What this side calls the other; and itself.
    pub other: FiAddr,
    pub myself: FiAddr,
    pub heard: VecDeque<Outcome>,
}

/// Two sides.
pub struct Pair<F: Fabric> {
    pub sides: [Side<F::Local>; 2],
    /// Lives as long as its endpoints.
    _fabric: F,
}

/// Fresh memory with these bytes in it.
pub fn buffer_of(bytes: &[u8]) -> UserBuffer {
    let buffer = UserBuffer::leaked(&[bytes.len()]);
    buffer.fill(0, BytesView::from_slice(bytes));
    buffer
}

/// Fresh memory for a receive.
pub fn room(length_bytes: usize) -> UserBuffer {
    UserBuffer::leaked(&[length_bytes])
}

/// What is in the buffer.
pub fn bytes_in(buffer: &UserBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.length_bytes()];
    buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes
}

/// Bytes that tell their seed and their place.
pub fn pattern(seed: usize, length_bytes: usize) -> Vec<u8> {
    (0..length_bytes).map(|at| byte_of(seed, at)).collect()
}

/// The byte at one place of that.
pub fn byte_of(seed: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(97)) as u8
}

/// A tagged send.
pub fn tagged(tag: u64, context: usize) -> Send {
    Send {
        class: Class::Tagged,
        tag,
        cq_data: None,
        flags: None,
        context,
    }
}

/// A send without a tag.
pub fn plain(context: usize) -> Send {
    Send {
        class: Class::Message,
        tag: 0,
        cq_data: None,
        flags: None,
        context,
    }
}

/// A receive of one tag from anyone.
pub fn want_tag(tag: u64, context: usize) -> Receive {
    Receive {
        class: Class::Tagged,
        source: FiAddr::UNSPEC,
        tag,
        ignore: 0,
        flags: None,
        context,
    }
}

/// A receive without a tag from anyone.
pub fn want_plain(context: usize) -> Receive {
    Receive {
        class: Class::Message,
        ..want_tag(0, context)
    }
}

impl<P: Route> Side<P> {
    pub fn open(address: Option<SocketAddr>, settings: P::Settings, options: Options) -> Self {
        let domain_settings = match options.long_injects {
            true => DomainSettings {
                inject_limit_bytes: LONG_INJECT_BYTES,
            },
            false => DomainSettings::default(),
        };
        let mut domain = Domain::with_local_settings(domain_settings, settings);
        let vector = domain.vectors().open(VectorKind::Table);
        let queue = domain.queues().open(QueueSettings::default());
        let (sent, received) = (domain.counters().open(), domain.counters().open());
        let endpoint = domain.endpoints().open(EndpointSettings {
            address,
            transmit_flags: options.transmit_flags,
            ..EndpointSettings::default()
        });
        domain.endpoints().bind_vector(endpoint, vector).unwrap();
        let binding = QueueBinding {
            transmit: true,
            receive: true,
            selective: options.selective,
        };
        domain
            .endpoints()
            .bind_queue(endpoint, queue, binding)
            .unwrap();
        domain
            .endpoints()
            .bind_counter(endpoint, sent, flags::SEND)
            .unwrap();
        domain
            .endpoints()
            .bind_counter(endpoint, received, flags::RECV)
            .unwrap();
        let accesses = ACCESSES.map(|event| {
            let counter = domain.counters().open();
            let is_others = event & (flags::REMOTE_READ | flags::REMOTE_WRITE) != 0;
            if !(is_others && options.uncounted) {
                domain
                    .endpoints()
                    .bind_counter(endpoint, counter, event)
                    .unwrap();
            }
            counter
        });
        if let Err(error) = domain.endpoints().enable(endpoint) {
            panic!(
                "cannot enable an endpoint: {error}: {:?}",
                domain.last_failure()
            );
        }
        let (other, myself, heard) = (FiAddr::UNSPEC, FiAddr::UNSPEC, VecDeque::new());
        Self {
            domain,
            endpoint,
            vector,
            queue,
            sent,
            received,
            accesses,
            other,
            myself,
            heard,
        }
    }

    pub fn address(&mut self) -> SocketAddr {
        self.domain
            .endpoints()
            .local_address(self.endpoint)
            .unwrap()
    }

    /// Its endpoint, for one call.
    pub fn calls(&mut self) -> EndpointCalls<'_, P> {
        self.domain.endpoint(self.endpoint).unwrap()
    }

    pub fn insert(&mut self, address: SocketAddr) -> FiAddr {
        self.domain.vectors().insert(self.vector, address).unwrap()
    }

    /// The next end of an operation that was heard already.
    pub fn heard(&mut self) -> Option<Outcome> {
        self.heard.pop_front()
    }

    /// Reads and fetches of others' memory that succeeded.
    pub fn reads(&mut self) -> u64 {
        self.domain.counters().read(self.accesses[0]).unwrap()
    }

    /// Reads all that there is to read.
    pub fn poll(&mut self) {
        loop {
            let heard = &mut self.heard;
            match self
                .domain
                .queues()
                .read(self.queue, 16, |entry| heard.push_back(Ok(*entry)))
            {
                Ok(_) => {}
                Err(Error::Again) => return,
                Err(Error::ErrorAvailable) => {
                    let error = self.domain.queues().read_error(self.queue).unwrap();
                    self.heard.push_back(Err(error));
                }
                Err(other) => panic!("reading the queue: {other}"),
            }
        }
    }
}

impl<F: Fabric> Pair<F> {
    pub fn open() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let fabric = F::open();
        let uncounted = options.uncounted || F::IS_DIRECT;
        let options = Options {
            uncounted,
            ..options
        };
        let sides = [A, B].map(|_| Side::open(fabric.address(), F::settings(), options));
        let mut pair = Self {
            sides,
            _fabric: fabric,
        };
        if !options.strangers {
            let addresses = [A, B].map(|side| pair.sides[side].address());
            for side in [A, B] {
                pair.sides[side].other = pair.sides[side].insert(addresses[1 - side]);
                pair.sides[side].myself = pair.sides[side].insert(addresses[side]);
            }
        }
        pair
    }

    /// Another endpoint, which knows side B as its other; drive it yourself.
    pub fn newcomer(&mut self) -> Side<F::Local> {
        let mut side = Side::open(
            self._fabric.address(),
            F::settings(),
            Options {
                uncounted: F::IS_DIRECT,
                ..Options::default()
            },
        );
        side.other = side.insert(self.sides[B].address());
        side
    }

    /// Makes progress on both sides.
    pub fn poll(&mut self) {
        self.sides.iter_mut().for_each(Side::poll);
    }

    /// Sends to the other side, as often as it takes until there is room.
    pub fn send(&mut self, side: usize, send: Send, bytes: &[u8]) -> UserBuffer {
        let buffer = buffer_of(bytes);
        let to = self.sides[side].other;
        self.send_buffer(side, to, send, &buffer);
        buffer
    }

    pub fn send_buffer(&mut self, side: usize, to: FiAddr, send: Send, buffer: &UserBuffer) {
        self.insist(|pair| {
            let sender = &mut pair.sides[side];
            sender.calls().send(to, &send, buffer)
        });
    }

    /// Repeats a call until there is room for it.
    pub fn insist(&mut self, mut call: impl FnMut(&mut Self) -> Result<(), Error>) {
        let start = Instant::now();
        loop {
            match call(self) {
                Ok(()) => return,
                Err(Error::Again) if start.elapsed() < PATIENCE => self.poll(),
                Err(error) => panic!("a send was refused: {error}"),
            }
        }
    }

    pub fn receive(&mut self, side: usize, receive: Receive, buffer: &UserBuffer) {
        self.try_receive(side, receive, buffer).unwrap();
    }

    pub fn try_receive(
        &mut self,
        side: usize,
        receive: Receive,
        buffer: &UserBuffer,
    ) -> Result<(), Error> {
        let receiver = &mut self.sides[side];
        receiver.calls().receive(&receive, || buffer.clone())
    }

    /// The next end of an operation on one side that was heard already.
    pub fn heard(&mut self, side: usize) -> Option<Outcome> {
        self.sides[side].heard()
    }

    /// The next end of an operation on one side.
    #[track_caller]
    pub fn next(&mut self, side: usize) -> Outcome {
        let start = Instant::now();
        loop {
            if let Some(outcome) = self.sides[side].heard.pop_front() {
                return outcome;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "side {side} heard nothing for {PATIENCE:?}"
            );
            self.poll();
        }
    }

    /// The next end, which is a success.
    #[track_caller]
    pub fn success(&mut self, side: usize) -> Completion {
        match self.next(side) {
            Ok(completion) => completion,
            Err(error) => panic!("side {side} expected a success: {error:?}"),
        }
    }

    /// The next end, which is an error.
    #[track_caller]
    pub fn failure(&mut self, side: usize) -> ErrorCompletion {
        match self.next(side) {
            Err(error) => error,
            Ok(completion) => panic!("side {side} expected an error: {completion:?}"),
        }
    }

    /// Nothing ends on this side, however long we poll.
    #[track_caller]
    pub fn quiet(&mut self, side: usize) {
        (0..60).for_each(|_| self.poll());
        let heard = self.sides[side].heard.front();
        assert!(heard.is_none(), "side {side} expected nothing: {heard:?}");
    }

    /// Lets everything arrive that can.
    pub fn settle(&mut self) {
        (0..F::SETTLING_ROUNDS).for_each(|_| self.poll());
    }

    /// Both counters of a side: sends and receives that succeeded.
    pub fn counts(&mut self, side: usize) -> (u64, u64) {
        let Side {
            domain,
            sent,
            received,
            ..
        } = &mut self.sides[side];
        (
            domain.counters().read(*sent).unwrap(),
            domain.counters().read(*received).unwrap(),
        )
    }

    /// Reads and writes of the other's memory that succeeded, and those that the other did to ours.
    pub fn accesses(&mut self, side: usize) -> [u64; 4] {
        let Side {
            domain, accesses, ..
        } = &mut self.sides[side];
        accesses.map(|counter| domain.counters().read(counter).unwrap())
    }
}

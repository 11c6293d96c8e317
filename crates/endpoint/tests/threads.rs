// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two endpoints that run at the same time, each on a thread of its own, over shared memory: what
//! the laws of messages, tested by one thread that serves both sides in turn, cannot show.

#[path = "shared/opened.rs"]
mod opened;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use opened::{BOTH, Opened};
use weft_endpoint::{
    Class, Completion, Domain, EndpointId, Error, FiAddr, QueueId, Receive, Send, UserBuffer, flags,
};
use weft_memory::{BytesView, BytesViewMut};
use weft_shm::{Settings, SingleCopy, Transport};

const MESSAGES: usize = 10_000;
/// Receives posted, and sends under way, at once.
const WINDOW: usize = 32;
const LONGEST: usize = 300_000;
const PATIENCE: Duration = Duration::from_secs(100);

struct Side {
    domain: Domain<Transport>,
    endpoint: EndpointId,
    queue: QueueId,
    other: FiAddr,
}

/// Most messages are short; now and then there is a long one.
fn length_of(number: usize) -> usize {
    match number % 100 {
        7 => LONGEST - number % 1000,
        23 | 61 => 5000 + number,
        other => other * 3,
    }
}

/// The first bytes of a message; the rest follows from its number.
fn fill(bytes: &mut [u8], number: usize) {
    fastrand::Rng::with_seed(number as u64).fill(bytes);
}

fn open(single_copy: SingleCopy, tell: &Sender<SocketAddr>, told: &Receiver<SocketAddr>) -> Side {
    let settings = Settings {
        single_copy,
        ..Settings::default()
    };
    let mut opened = Opened::new(settings, [BOTH]);
    tell.send(opened.address()).unwrap();
    let Opened {
        mut domain,
        endpoint,
        vector,
        queues: [queue],
    } = opened;
    let other = domain.vectors().insert(vector, told.recv().unwrap());
    Side {
        domain,
        endpoint,
        queue,
        other: other.unwrap(),
    }
}

/// One side of the conversation, and how far it is. A long message may end after shorter ones that
/// followed it, so each buffer is counted for itself.
struct Talk {
    side: Side,
    start: Instant,
    targets: Vec<(UserBuffer, bool)>,
    sources: Vec<(UserBuffer, bool)>,
    posted: usize,
    received: usize,
    sent: usize,
    sends_ended: usize,
    bytes: Vec<u8>,
    expected: Vec<u8>,
}

impl Talk {
    fn new(side: Side) -> Self {
        let buffers = || {
            (0..WINDOW)
                .map(|_| (UserBuffer::leaked(&[LONGEST]), true))
                .collect()
        };
        let (targets, sources) = (buffers(), buffers());
        let (bytes, expected) = (vec![0; LONGEST], vec![0; LONGEST]);
        let start = Instant::now();
        Self {
            side,
            start,
            targets,
            sources,
            posted: 0,
            received: 0,
            sent: 0,
            sends_ended: 0,
            bytes,
            expected,
        }
    }

    /// Sends and receives `MESSAGES` messages, all with one tag, so that every one of them must be
    /// in order.
    fn run(&mut self) {
        while self.received < MESSAGES || self.sends_ended < MESSAGES {
            self.post();
            self.send();
            self.hear();
        }
        self.part();
    }

    fn post(&mut self) {
        while self.posted < MESSAGES && self.targets[self.posted % WINDOW].1 {
            let (target, is_free) = &mut self.targets[self.posted % WINDOW];
            *is_free = false;
            let (class, source, context) = (Class::Tagged, self.side.other, self.posted);
            let receive = Receive {
                class,
                source,
                tag: 1,
                ignore: 0,
                flags: None,
                context,
            };
            self.side
                .domain
                .endpoint(self.side.endpoint)
                .unwrap()
                .receive(&receive, || target.clone())
                .unwrap();
            self.posted += 1;
        }
    }

    fn send(&mut self) {
        let (number, length) = (self.sent, length_of(self.sent));
        let (source, is_free) = &mut self.sources[number % WINDOW];
        if number == MESSAGES || !*is_free {
            return;
        }
        fill(&mut self.bytes[..length], number);
        let source = source.part(0, length);
        source.fill(0, BytesView::from_slice(&self.bytes[..length]));
        let cq_data = Some(number as u64);
        let send = Send {
            class: Class::Tagged,
            tag: 1,
            cq_data,
            flags: None,
            context: number,
        };
        match self.side.domain.endpoint(self.side.endpoint).unwrap().send(
            self.side.other,
            &send,
            &source,
        ) {
            Ok(()) => {
                *is_free = false;
                self.sent += 1;
            }
            Err(error) => assert_eq!(error, Error::Again),
        }
    }

    fn hear(&mut self) {
        let progress = (self.received, self.sent, self.sends_ended);
        assert!(
            self.start.elapsed() < PATIENCE,
            "received, sent, sends ended: {progress:?}"
        );
        let mut ended = [None; 16];
        let mut count = 0;
        let side = &mut self.side;
        let read = side.domain.queues().read(side.queue, ended.len(), |entry| {
            ended[count] = Some(*entry);
            count += 1;
        });
        if read == Err(Error::ErrorAvailable) {
            panic!("{:?}", side.domain.queues().read_error(side.queue));
        }
        ended
            .into_iter()
            .flatten()
            .for_each(|entry| self.note(&entry));
    }

    fn note(&mut self, entry: &Completion) {
        let number = entry.context;
        if entry.flags & flags::SEND != 0 {
            self.sources[number % WINDOW].1 = true;
            self.sends_ended += 1;
            return;
        }
        let length = length_of(number);
        assert_eq!(
            (entry.cq_data, entry.length_bytes),
            (number as u64, length),
            "in order"
        );
        let (bytes, expected) = (&mut self.bytes[..length], &mut self.expected[..length]);
        fill(expected, number);
        self.targets[number % WINDOW]
            .0
            .drain(0, &mut BytesViewMut::from_slice(bytes));
        assert!(bytes == expected, "message {number} was changed on the way");
        self.targets[number % WINDOW].1 = true;
        self.received += 1;
    }

    /// A last word each way, since the other may still need our progress to end its sends.
    fn part(&mut self) {
        let side = &mut self.side;
        while let Err(error) = side.domain.endpoint(side.endpoint).unwrap().send(
            side.other,
            &last_word(),
            &UserBuffer::empty(),
        ) {
            assert_eq!(error, Error::Again);
            side.domain.endpoint(side.endpoint).unwrap().progress();
        }
        let (class, source) = (Class::Message, side.other);
        let receive = Receive {
            class,
            source,
            tag: 0,
            ignore: 0,
            flags: None,
            context: 0,
        };
        side.domain
            .endpoint(side.endpoint)
            .unwrap()
            .receive(&receive, UserBuffer::empty)
            .unwrap();
        let mut heard = 0;
        while heard < 2 {
            assert!(self.start.elapsed() < PATIENCE, "the last word is missing");
            heard += side
                .domain
                .queues()
                .read(side.queue, 2, |_| ())
                .unwrap_or(0);
        }
    }
}

fn last_word() -> Send {
    let flags = Some(flags::DELIVERY_COMPLETE);
    Send {
        class: Class::Message,
        tag: 0,
        cq_data: None,
        flags,
        context: 0,
    }
}

fn bidirectional_traffic(single_copy: SingleCopy) {
    let ((tell_a, told_a), (tell_b, told_b)) = (channel(), channel());
    std::thread::scope(|scope| {
        scope.spawn(move || Talk::new(open(single_copy, &tell_b, &told_a)).run());
        scope.spawn(move || Talk::new(open(single_copy, &tell_a, &told_b)).run());
    });
}

#[test]
fn messages_cross_in_order_and_unchanged_with_single_copy() {
    bidirectional_traffic(SingleCopy::Always);
}

#[test]
fn messages_cross_in_order_and_unchanged_through_lent_chunks() {
    bidirectional_traffic(SingleCopy::Never);
}

/// A sender that closes its endpoint while most of what it sent waits for room, all of it complete.
#[test]
fn what_was_sent_before_a_close_arrives_though_it_waited_for_room() {
    const COUNT: usize = 1500;
    let (tell, told) = channel();
    let (answer, answered) = channel();
    let receiver = std::thread::spawn(move || {
        let mut side = open(SingleCopy::Auto, &answer, &told);
        // Posted before the first look, so that the sender closes while its lane is full.
        let rooms: Vec<UserBuffer> = (0..COUNT).map(|_| UserBuffer::leaked(&[1024])).collect();
        for (number, room) in rooms.iter().enumerate() {
            let receive = Receive {
                class: Class::Tagged,
                source: FiAddr::UNSPEC,
                tag: number as u64,
                ignore: 0,
                flags: None,
                context: number,
            };
            side.domain
                .endpoint(side.endpoint)
                .unwrap()
                .receive(&receive, || room.clone())
                .unwrap();
        }
        let (start, mut came) = (Instant::now(), 0);
        while came < COUNT {
            assert!(start.elapsed() < PATIENCE, "{came} of {COUNT} came");
            match side.domain.queues().read(side.queue, 16, |_| came += 1) {
                Ok(_) | Err(Error::Again) => {}
                Err(error) => panic!("after {came} messages: {error}"),
            }
        }
    });
    let mut side = open(SingleCopy::Auto, &tell, &answered);
    let payload = UserBuffer::leaked(&[1024]);
    for number in 0..COUNT {
        let inject = weft_endpoint::Inject {
            class: Class::Tagged,
            tag: number as u64,
            cq_data: None,
        };
        side.domain
            .endpoint(side.endpoint)
            .unwrap()
            .inject(side.other, &inject, &payload)
            .unwrap();
    }
    side.domain.endpoints().close(side.endpoint).unwrap();
    receiver.join().unwrap();
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Over real sockets: who has the job's key is heard, and nobody else, whatever he sends, repeats
//! or changes.
//!
//! One side is the transport. The other is a machine and a protection in the test's own hands, so
//! that everything that passes between the two can be forged, flipped, doubled and played back from
//! other ports.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_srd::random::Random;
use weft_srd::{Config, Machine, Send};
use weft_udp::seal::{JobKey, PacketProtection, Trust};
use weft_udp::{OpenError, Settings, Transport};

#[derive(Default)]
struct Inbox {
    got: Vec<(u64, Vec<u8>)>,
    sent: usize,
    failed: Vec<TransferError>,
    addresses: Vec<SocketAddr>,
}

impl Owner for Inbox {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _: Option<AckToken>,
    ) -> bool {
        let length = envelope.length_bytes as usize;
        let buffer = UserBuffer::leaked(&[length.max(1)]);
        buffer.fill(0, payload);
        let mut bytes = vec![0; length];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        self.got.push((envelope.tag, bytes));
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        match outcome {
            Ok(()) => self.sent += 1,
            Err(why) => self.failed.push(why),
        }
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let known = self.addresses.iter().position(|one| *one == address);
        RemoteId(known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        }) as u32)
    }
}

fn key() -> JobKey {
    JobKey::generate().unwrap()
}

fn trust(key: &JobKey, encrypt: bool) -> Trust {
    Trust {
        job_key: Some(key.clone()),
        encrypt,
        ..Trust::default()
    }
}

/// How long the other may be silent.
const DEAD_AFTER: Duration = Duration::from_secs(1);
/// For those who live: longer than a machine stands still.
const NEVER: Duration = Duration::from_secs(1000);

fn open(trust: Trust, dead_after: Duration) -> Transport {
    let settings = Settings {
        address: Some("127.0.0.1:0".parse().unwrap()),
        dead_after,
        trust: Some(trust),
        ..Settings::default()
    };
    Transport::open(&settings).unwrap()
}

fn post(transport: &mut Transport, tag: u64, length: usize) {
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag,
        cq_data: None,
        level: CompletionLevel::Delivery,
        token: SendToken(tag as usize as _),
        inject: false,
    };
    let buffer = UserBuffer::leaked(&[length]);
    buffer.fill(0, BytesView::from_slice(&pattern(tag, length)));
    assert!(transport.post_send(&op, &buffer).is_ok());
}

fn pattern(tag: u64, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u64 * 31 + tag * 7) as u8)
        .collect()
}

/// A member of a job by hand: one socket, a machine, a protection.
struct Hand {
    socket: UdpSocket,
    /// Datagrams are also sent from here: another port of the same host.
    stranger: UdpSocket,
    machine: Machine,
    protection: PacketProtection,
    start: Instant,
    tape: Vec<(SocketAddr, Vec<u8>)>,
}

impl Hand {
    fn new(key: &JobKey, encrypt: bool) -> Self {
        let protection = if encrypt {
            PacketProtection::sealed(key)
        } else {
            PacketProtection::tagged(key)
        }
        .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut config = Config {
            fresh_contact: true,
            port_count: 1,
            ..Config::default()
        };
        config.ports = [0; 8];
        config.ports[0] = socket.local_addr().unwrap().port();
        Self {
            machine: Machine::new(config, protection.incarnation()).unwrap(),
            stranger: UdpSocket::bind("127.0.0.1:0").unwrap(),
            socket,
            protection,
            start: Instant::now(),
            tape: Vec::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    fn post(&mut self, to: SocketAddr, tag: u64, length: usize) {
        let remote = self.machine.remote(to).unwrap();
        let send = Send {
            remote,
            tag: Some(tag),
            cq_data: None,
            length_bytes: length as u64,
            wants_receipt: false,
            is_awaited: false,
            is_service: false,
            token: tag,
        };
        self.machine
            .post_send(weft_srd::Instant(self.now_ns()), &send)
            .unwrap();
    }

    /// Everything that is to be sent and received now; `attack` sees each datagram before it
    /// leaves. Answers how many messages of ours are known to have arrived.
    fn turn(&mut self, mut attack: impl FnMut(&UdpSocket, &UdpSocket, SocketAddr, &[u8])) -> usize {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = self.socket.recv_from(&mut bytes) {
            if let Ok(length) = self.protection.open(&mut bytes[..length]) {
                let now_ns = self.now_ns();
                self.machine
                    .handle_datagram(weft_srd::Instant(now_ns), from, &bytes[..length]);
            }
        }
        let mut arrived = 0;
        while let Some(event) = self.machine.poll_event() {
            arrived += usize::from(matches!(event, weft_srd::Event::Sent { .. }));
        }
        let now_ns = self.now_ns();
        self.machine.handle_timeout(weft_srd::Instant(now_ns));
        while let Some(transmit) = self.machine.poll_transmit(weft_srd::Instant(now_ns)) {
            let mut datagram = transmit.head.as_bytes().to_vec();
            if let Some(part) = transmit.payload {
                let all = pattern(part.token, 100_000);
                let start = part.offset_bytes as usize;
                datagram.extend_from_slice(&all[start..start + part.length_bytes as usize]);
            }
            self.protection.seal(&mut datagram);
            attack(&self.socket, &self.stranger, transmit.to, &datagram);
            let _ = self.socket.send_to(&datagram, transmit.to);
            self.tape.push((transmit.to, datagram));
        }
        arrived
    }
}

fn run(transport: &mut Transport, inbox: &mut Inbox, until: impl Fn(&Inbox) -> bool) {
    let start = Instant::now();
    while !until(inbox) {
        transport.progress(inbox);
        assert!(start.elapsed() < Duration::from_secs(100), "nothing comes");
    }
}

#[test]
fn members_of_a_job_hear_each_other_tagged_and_sealed() {
    for encrypt in [false, true] {
        let key = key();
        let member = || open(trust(&key, encrypt), NEVER);
        let (mut first, mut second) = (member(), member());
        first.add_remote(RemoteId(0), second.local_address());
        let (mut at_first, mut at_second) = (Inbox::default(), Inbox::default());
        let lengths = [0, 8, 1000, 5_000, 40_000];
        for (tag, length) in lengths.into_iter().enumerate() {
            post(&mut first, tag as u64, length);
        }
        let start = Instant::now();
        while at_first.sent < lengths.len() {
            first.progress(&mut at_first);
            second.progress(&mut at_second);
            assert!(start.elapsed() < Duration::from_secs(100));
        }
        for (tag, length) in lengths.into_iter().enumerate() {
            assert!(at_second.got[tag] == (tag as u64, pattern(tag as u64, length)));
        }
        assert_eq!(second.statistics().turned_away, 0);
        assert_eq!(first.statistics().machine.greeted_count, 1);
    }
}

#[test]
fn a_member_of_another_job_is_not_heard_and_its_sends_fail() {
    let settings = [
        (trust(&key(), false), trust(&key(), false)),
        (trust(&key(), true), trust(&key(), true)),
    ];
    for (ours, theirs) in settings {
        let (mut first, mut second) = (open(ours, DEAD_AFTER), open(theirs, DEAD_AFTER));
        first.add_remote(RemoteId(0), second.local_address());
        let (mut at_first, mut at_second) = (Inbox::default(), Inbox::default());
        post(&mut first, 1, 100);
        let start = Instant::now();
        while at_first.failed.is_empty() {
            first.progress(&mut at_first);
            second.progress(&mut at_second);
            assert!(
                start.elapsed() < Duration::from_secs(100),
                "the send must fail"
            );
        }
        assert!(at_second.got.is_empty() && at_second.addresses.is_empty());
        let statistics = second.statistics();
        assert!(statistics.turned_away >= 4, "{statistics:?}");
        assert_eq!(
            statistics.machine.received_count, 0,
            "the machine saw nothing"
        );
        assert_eq!(statistics.machine.sent_count, 0, "and answered nothing");
    }
}

#[test]
fn what_is_forged_flipped_doubled_and_played_back_changes_nothing() {
    let mut random = Random::new(0x7e57);
    for encrypt in [false, true] {
        let key = key();
        let mut transport = open(trust(&key, encrypt), NEVER);
        let mut inbox = Inbox::default();
        let mut hand = Hand::new(&key, encrypt);
        let target = transport.local_address();
        let (mut forged, mut arrived) = (0u64, 0);
        let lengths = [0, 100, 900, 20_000, 60_000];
        for round in 0..40u64 {
            hand.post(target, round, lengths[(round % 5) as usize]);
            let start = Instant::now();
            while arrived <= round as usize {
                let tape = std::mem::take(&mut hand.tape);
                arrived += hand.turn(|own, stranger, to, datagram| {
                    for socket in [own, stranger] {
                        let mut flipped = datagram.to_vec();
                        let bit = random.below(8 * flipped.len() as u64) as usize;
                        flipped[bit / 8] ^= 1 << (bit % 8);
                        let cut = random.below(datagram.len() as u64) as usize;
                        let noise: Vec<u8> = (0..cut).map(|_| random.number() as u8).collect();
                        for bytes in [&flipped[..], &datagram[..cut], &noise] {
                            forged += u64::from(socket.send_to(bytes, to).is_ok());
                        }
                        if let Some(old) = tape.get(random.below(tape.len() as u64 + 1) as usize) {
                            let _ = socket.send_to(&old.1, old.0);
                        }
                        let _ = socket.send_to(datagram, to);
                    }
                });
                let kept = std::mem::replace(&mut hand.tape, tape);
                hand.tape.extend(kept);
                transport.progress(&mut inbox);
                assert!(
                    start.elapsed() < Duration::from_secs(100),
                    "nothing comes of round {round}"
                );
            }
        }
        // Everything once more, from the right socket and from the wrong one.
        for (to, datagram) in &hand.tape {
            for socket in [&hand.socket, &hand.stranger] {
                let _ = socket.send_to(datagram, to);
            }
            transport.progress(&mut inbox);
        }
        run(&mut transport, &mut inbox, |inbox| inbox.got.len() >= 40);
        let expected: Vec<(u64, Vec<u8>)> = (0..40)
            .map(|tag| (tag, pattern(tag, lengths[(tag % 5) as usize])))
            .collect();
        assert!(inbox.got == expected, "each once, in order, with its bytes");
        assert_eq!(inbox.addresses.len(), 1, "no other remote was made up");
        let away = transport.statistics().turned_away;
        assert!(away > 0 && away <= forged, "{away} of {forged} turned away");
    }
}

#[test]
fn without_a_key_the_route_names_the_two_things_to_do() {
    let settings = Settings {
        trust: Some(Trust::default()),
        ..Settings::default()
    };
    let Err(OpenError::Setting(sentence)) = Transport::<weft_udp::SocketPorts>::open(&settings)
    else {
        panic!("opened without a key");
    };
    for way in ["weft run", "FI_WEFT_JOB_KEY", "FI_WEFT_TRUST_NETWORK=1"] {
        assert!(sentence.contains(way), "{sentence}");
    }
}

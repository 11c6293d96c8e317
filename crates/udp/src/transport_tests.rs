// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of sleep, with ports that lead nowhere and note until when they were told to sleep.

use std::net::SocketAddr;

use super::{LINGER_SILENT_NS, Transport};
use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, Sleep, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_srd::{Instant, Nanos, Origin, PORT_COUNT, PortAddresses, Transmit};

use crate::ports::{Departed, Incoming, PortCounts, PortList, Ports};
use crate::sends::Sends;
use crate::settings::{OpenError, Settings};

const HERE: ([u8; 4], u16) = ([192, 0, 2, 1], 2000);
const THERE: ([u8; 4], u16) = ([192, 0, 2, 2], 2000);
const LATER: ([u8; 4], u16) = ([192, 0, 2, 3], 2000);
/// How far the clock moves at a look, if nothing else is said.
const TICK_NS: Nanos = Nanos(100_000);
/// Longer than any time-out, and shorter than what is due while nothing is under way.
const SOON_NS: Nanos = Nanos(200_000_000);

/// A datagram, with zeros for its payload.
fn bytes_of(transmit: &Transmit) -> Vec<u8> {
    let mut bytes = transmit.head.as_bytes().to_vec();
    bytes.resize(transmit.length_bytes(), 0);
    bytes
}

/// Sends into the void and hears nothing. Its clock moves with every look.
#[derive(Debug)]
struct Nowhere {
    now_ns: Instant,
    tick_ns: Nanos,
    sent_count: usize,
    /// What was sent, with zeros for payloads.
    sent: Vec<Vec<u8>>,
    /// When something left first.
    left_ns: Option<Instant>,
    /// What the other host has sent, and from which of its ports.
    inbox: Vec<(u8, Vec<u8>)>,
    until_ns: Option<Instant>,
    /// Pieces of a longer packet that a look finds and keeps.
    kept_count: usize,
    /// What is sent to the other host is refused at once.
    refuses: bool,
    refused_count: usize,
    /// The last look before timers finds something, and takes so long.
    rest_ns: Nanos,
    /// One of them cannot be read.
    is_cut: bool,
    /// They are a parent's.
    is_child: bool,
}

impl Ports for Nowhere {
    fn open(_: &Settings) -> Result<Self, OpenError> {
        Ok(Self {
            now_ns: Instant(1_000_000_000),
            tick_ns: TICK_NS,
            sent_count: 0,
            sent: Vec::new(),
            left_ns: None,
            inbox: Vec::new(),
            until_ns: None,
            kept_count: 0,
            refuses: false,
            refused_count: 0,
            rest_ns: Nanos::ZERO,
            is_cut: false,
            is_child: false,
        })
    }
    fn list(&self) -> PortList {
        PortList {
            incarnation: 5,
            address: HERE.into(),
            ports: std::array::from_fn(|index| HERE.1 + index as u16),
            count: PORT_COUNT as u8,
            addresses: PortAddresses::ONE,
            asks_hosts: false,
            datagram_bytes: 1400,
            heartbeat_port: 0,
            long_packets: false,
            ecn: false,
        }
    }
    fn datagram_bytes_to(&self, _: SocketAddr) -> (u16, bool) {
        (1400, false)
    }
    fn routes_to(&self, _: &[SocketAddr; PORT_COUNT]) -> (u64, u16) {
        (u64::MAX, u16::MAX)
    }
    fn now_ns(&mut self) -> Instant {
        self.now_ns += self.tick_ns;
        self.now_ns
    }
    fn receive(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> usize {
        let refused_count = std::mem::take(&mut self.refused_count);
        for _ in 0..refused_count {
            visit(self.now_ns, Incoming::Refused(THERE.into()));
        }
        for (index, datagram) in std::mem::take(&mut self.inbox) {
            let origin = Origin::from(SocketAddr::from((THERE.0, THERE.1 + u16::from(index))));
            visit(self.now_ns, Incoming::Datagram(origin, &datagram));
        }
        self.kept_count + refused_count
    }
    fn has_queued_errors(&self) -> bool {
        self.refused_count > 0
    }
    fn receive_rest(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> bool {
        if self.rest_ns > Nanos::ZERO {
            let origin = Origin::from(SocketAddr::from(THERE));
            visit(self.now_ns, Incoming::Datagram(origin, &[]));
            self.now_ns += self.rest_ns;
        }
        !self.is_cut
    }
    fn are_ours(&self) -> bool {
        !self.is_child
    }
    fn send(&mut self, batch: &[Transmit], _: &Sends) -> Departed {
        self.left_ns = self.left_ns.or(Some(self.now_ns));
        self.sent_count += batch.len();
        self.sent.extend(batch.iter().map(bytes_of));
        self.refused_count += usize::from(self.refuses);
        Departed {
            count: batch.len(),
            blocked: false,
        }
    }
    fn wait_fd(&self) -> Option<i32> {
        None
    }
    fn before_sleep(&mut self, until_ns: Option<Instant>, _: bool) {
        self.until_ns = until_ns;
    }
    fn counts(&self) -> PortCounts {
        PortCounts::default()
    }
}

/// An owner to whom nothing happens.
struct Unmoved;

impl Owner for Unmoved {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(1)
    }
}

/// An endpoint that knows itself by id 0 and somebody else by id 1.
fn open() -> Transport<Nowhere> {
    let mut transport = Transport::open(&Settings::default()).expect("ports that lead nowhere");
    transport.add_remote(RemoteId(0), HERE.into());
    transport.add_remote(RemoteId(1), THERE.into());
    transport
}

fn post(transport: &mut Transport<Nowhere>, remote: u32) {
    let op = SendOp {
        remote: RemoteId(remote),
        class: Class::Tagged,
        tag: 1,
        cq_data: None,
        level: CompletionLevel::Transmit,
        token: SendToken(7),
        inject: false,
    };
    let payload = UserBuffer::leaked(&[8]);
    transport.post_send(&op, &payload).expect("posted");
}

/// Whether somebody who sleeps is woken soon.
fn wakes_soon(transport: &Transport<Nowhere>) -> bool {
    let until_ns = transport.ports.until_ns;
    until_ns.is_some_and(|until_ns| until_ns <= transport.ports.now_ns + SOON_NS)
}

#[test]
fn who_sleeps_is_woken_for_what_another_thread_sends_and_nobody_answers() {
    let mut transport = open();
    assert!(transport.before_sleep(), "nothing is under way");
    assert!(!wakes_soon(&transport));
    post(&mut transport, 1);
    assert!(transport.ports.sent_count > 0, "it left at once");
    assert!(wakes_soon(&transport), "it will have to be sent again");
    transport.after_sleep();
    assert_eq!(transport.ports.until_ns, None);
    post(&mut transport, 1);
    assert_eq!(transport.ports.until_ns, None, "nobody sleeps");
}

#[test]
fn who_sleeps_is_woken_for_a_message_of_another_thread_to_this_endpoint_itself() {
    let mut transport = open();
    assert!(transport.before_sleep(), "nothing is under way");
    post(&mut transport, 0);
    assert!(wakes_soon(&transport), "it waits for progress");
}

/// The call that sends takes the word out of the socket: no descriptor shows it.
#[test]
fn nobody_sleeps_while_a_host_has_refused_what_was_just_sent() {
    let mut transport = open();
    transport.ports.refuses = true;
    post(&mut transport, 1);
    assert!(!transport.before_sleep(), "first there is something to do");
    transport.ports.refuses = false;
    transport.progress(&mut Unmoved);
    assert_eq!(transport.statistics().refused, 1);
    // The remote is asked whether it lives.
    let sleeps = (0..10).any(|_| {
        transport.progress(&mut Unmoved);
        transport.before_sleep()
    });
    assert!(sleeps, "it was heard");
}

#[test]
fn who_sleeps_is_woken_where_a_host_refuses_what_another_thread_sends() {
    let mut transport = open();
    assert!(transport.before_sleep(), "nothing is under way");
    transport.ports.refuses = true;
    post(&mut transport, 1);
    let until_ns = transport.ports.until_ns.expect("something is due");
    assert!(until_ns <= transport.ports.now_ns, "now");
}

/// One piece at a time comes in: what is due must not wait for a look that finds none.
#[test]
fn what_is_due_leaves_also_when_a_look_finds_a_piece_and_no_packet() {
    let mut transport = open();
    post(&mut transport, 1);
    let sent_count = transport.ports.sent_count;
    transport.ports.now_ns += SOON_NS;
    transport.ports.kept_count = 1;
    transport.progress(&mut Unmoved);
    assert!(transport.ports.sent_count > sent_count, "it is sent again");
}

/// What comes after the last look is no silence, however late it is by then.
#[test]
fn what_is_due_after_the_last_look_is_not_judged_yet() {
    let sent_counts = [Nanos::ZERO, SOON_NS].map(|rest_ns| {
        let mut transport = open();
        transport.add_remote(RemoteId(2), LATER.into());
        transport.ports.tick_ns = Nanos(1_000);
        post(&mut transport, 1);
        transport.ports.now_ns += SOON_NS;
        post(&mut transport, 2);
        transport.ports.rest_ns = rest_ns;
        let sent_count = transport.ports.sent_count;
        transport.progress(&mut Unmoved);
        transport.ports.sent_count - sent_count
    });
    assert!(sent_counts[0] > 0, "to the first one is sent again");
    assert_eq!(sent_counts[0], sent_counts[1]);
}

/// An answer may wait there.
#[test]
fn what_is_due_is_not_judged_while_a_port_cannot_be_read() {
    let mut transport = open();
    post(&mut transport, 1);
    transport.ports.now_ns += SOON_NS;
    transport.ports.is_cut = true;
    let sent_count = transport.ports.sent_count;
    transport.progress(&mut Unmoved);
    assert_eq!(transport.ports.sent_count, sent_count);
    transport.ports.is_cut = false;
    transport.progress(&mut Unmoved);
    assert!(transport.ports.sent_count > sent_count, "it is sent again");
}

/// What the host of a process says that is gone keeps nobody who waits for that process.
#[test]
fn who_closes_waits_for_what_remotes_say_and_not_for_what_hosts_say_of_them() {
    let mut transport = open();
    post(&mut transport, 1);
    transport.ports.refuses = true;
    let start_ns = transport.ports.now_ns;
    transport.close();
    let took_ns = transport.ports.now_ns - start_ns;
    assert!(took_ns > LINGER_SILENT_NS, "it is owed something");
    assert!(took_ns < LINGER_SILENT_NS + SOON_NS, "{took_ns:?}");
}

/// Both know each other, and nothing is under way.
fn acquainted() -> Transport<Nowhere> {
    let mut transport = open();
    let config = weft_srd::Config {
        address: SocketAddr::from(THERE).ip(),
        ports: std::array::from_fn(|index| THERE.1 + index as u16),
        fresh_contact: true,
        ..weft_srd::Config::default()
    };
    let mut other = weft_srd::Machine::new(config, 9).expect("usual settings");
    transport.ports.tick_ns = Nanos(1_000);
    post(&mut transport, 1);
    for _ in 0..20 {
        let now_ns = transport.ports.now_ns;
        for datagram in std::mem::take(&mut transport.ports.sent) {
            other.handle_datagram(now_ns, SocketAddr::from(HERE), &datagram);
        }
        other.handle_timeout(now_ns);
        while let Some(transmit) = other.poll_transmit(now_ns) {
            let index = transmit.path.source_port_index();
            transport.ports.inbox.push((index, bytes_of(&transmit)));
        }
        transport.progress(&mut Unmoved);
        transport.ports.now_ns += TICK_NS;
    }
    assert!(!transport.driver.machine.inspect().owes(), "acquainted");
    transport
}

/// Who holds back an acknowledgement would keep it for milliseconds.
#[test]
fn who_closes_asks_for_what_is_not_acknowledged() {
    let mut transport = acquainted();
    post(&mut transport, 1);
    transport.ports.left_ns = None;
    let start_ns = transport.ports.now_ns;
    transport.close();
    let left_ns = transport.ports.left_ns.expect("something leaves");
    let took_ns = left_ns - start_ns;
    // No timer is due so soon.
    assert!(took_ns < Nanos(10_000), "{took_ns:?}");
}

/// Its parent's ports have word for nobody else, and nobody there ever hands it over.
#[test]
fn a_child_is_never_kept_from_sleep() {
    let mut transport = open();
    transport.ports.refuses = true;
    post(&mut transport, 1);
    transport.ports.now_ns += SOON_NS;
    assert!(!transport.before_sleep(), "there is something to do");
    transport.ports.is_child = true;
    assert!(transport.before_sleep());
}

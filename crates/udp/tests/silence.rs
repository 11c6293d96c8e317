// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Remotes that say nothing: one that computes is waited for, one that nobody answers for is given
//! up.

#[path = "../../../tests/stalls.rs"]
mod stalls;

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use stalls::unless_stalled;
use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_simulated_wire::{Conditions, SimulatedPorts, Wire};
use weft_udp::seal::{JobKey, Trust};
use weft_udp::{Ports, Settings, SocketPorts, Transport};

/// Chosen: on a busy machine, too, the thread that answers for its process mostly gets a processor
/// sooner. With 100 ms, 6 of 19 runs failed under a load of 20 on two cores.
const DEAD_AFTER: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Counts {
    received: usize,
    sent: usize,
    failed: usize,
    lost: usize,
}

impl Owner for Counts {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.received += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        match outcome {
            Ok(()) => self.sent += 1,
            Err(_) => self.failed += 1,
        }
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost += 1;
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

fn open<P: Ports>(address: IpAddr) -> Transport<P> {
    let settings = Settings {
        address: Some(SocketAddr::new(address, 0)),
        dead_after: DEAD_AFTER,
        ..Settings::default()
    };
    Transport::open(&settings).unwrap()
}

fn post<P: Ports>(transport: &mut Transport<P>) {
    let op = SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag: 1,
        cq_data: None,
        level: CompletionLevel::Transmit,
        token: SendToken(7),
        inject: false,
    };
    transport.post_send(&op, &UserBuffer::leaked(&[8])).unwrap();
}

fn one_with_a_message_to_another() -> (Transport<SocketPorts>, Transport<SocketPorts>) {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let (mut a, b) = (open::<SocketPorts>(loopback), open::<SocketPorts>(loopback));
    a.add_remote(RemoteId(0), b.local_address());
    post(&mut a);
    (a, b)
}

#[test]
fn a_process_that_computes_for_longer_than_dead_after_is_waited_for() {
    unless_stalled(DEAD_AFTER / 4, || {
        let (mut a, mut b) = one_with_a_message_to_another();
        let (mut at_a, mut at_b) = (Counts::default(), Counts::default());
        let start = Instant::now();
        while start.elapsed() < 6 * DEAD_AFTER {
            a.progress(&mut at_a);
        }
        assert_eq!((at_a.sent, at_a.failed, at_a.lost), (0, 0, 0));
        let start = Instant::now();
        while at_a.sent == 0 && start.elapsed() < Duration::from_secs(100) {
            b.progress(&mut at_b);
            a.progress(&mut at_a);
        }
        assert_eq!((at_a.sent, at_a.failed, at_b.received), (1, 0, 1));
    });
}

/// First three times as long as a host's word stands for a process: this one answers itself.
#[test]
fn a_process_that_computes_for_long_is_waited_for_before_and_after_it_was_heard_key_or_not() {
    unless_stalled(DEAD_AFTER / 4, || {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let key = JobKey::generate().expect("random numbers");
        let trusts =
            [(None, false), (Some(&key), false), (Some(&key), true)].map(|(key, encrypt)| {
                key.map(|key| Trust {
                    job_key: Some(key.clone()),
                    encrypt,
                    ..Trust::default()
                })
            });
        // All at once, for they take seconds of silence.
        std::thread::scope(|scope| {
            for trust in trusts {
                scope.spawn(move || {
                    let open = || {
                        let settings = Settings {
                            address: Some(SocketAddr::new(loopback, 0)),
                            dead_after: DEAD_AFTER,
                            trust: trust.clone(),
                            ..Settings::default()
                        };
                        Transport::<SocketPorts>::open(&settings).expect("sockets")
                    };
                    let (mut a, mut b) = (open(), open());
                    b.expect_remotes();
                    a.add_remote(RemoteId(0), b.local_address());
                    let (mut at_a, mut at_b) = (Counts::default(), Counts::default());
                    for (sent, silence) in [(1, 30 * DEAD_AFTER), (2, 12 * DEAD_AFTER)] {
                        post(&mut a);
                        let start = Instant::now();
                        while start.elapsed() < silence {
                            a.progress(&mut at_a);
                            std::thread::yield_now();
                        }
                        assert_eq!((at_a.sent, at_a.failed, at_a.lost), (sent - 1, 0, 0));
                        let start = Instant::now();
                        while at_a.sent < sent && start.elapsed() < Duration::from_secs(100) {
                            b.progress(&mut at_b);
                            a.progress(&mut at_a);
                        }
                        assert_eq!((at_a.sent, at_a.failed, at_b.received), (sent, 0, sent));
                    }
                });
            }
        });
    });
}

#[test]
fn two_that_were_stopped_together_for_longer_than_dead_after_lose_nothing() {
    unless_stalled(DEAD_AFTER / 4, || {
        let (mut a, mut b) = one_with_a_message_to_another();
        let (mut at_a, mut at_b) = (Counts::default(), Counts::default());
        // The other one is stopped first, and asked in vain some times.
        let start = Instant::now();
        while start.elapsed() < DEAD_AFTER / 4 {
            a.progress(&mut at_a);
        }
        std::thread::sleep(3 * DEAD_AFTER);
        a.progress(&mut at_a);
        let start = Instant::now();
        while at_a.sent == 0 && at_a.failed == 0 && start.elapsed() < Duration::from_secs(100) {
            b.progress(&mut at_b);
            a.progress(&mut at_a);
        }
        assert_eq!((at_a.sent, at_a.failed, at_a.lost), (1, 0, 0));
        assert_eq!(at_b.received, 1);
    });
}

#[test]
fn a_remote_whose_host_is_silent_too_is_given_up_after_dead_after() {
    let wire = Wire::open(Conditions::calm(5));
    let (mut a, b) = (open::<SimulatedPorts>(wire), open::<SimulatedPorts>(wire));
    a.add_remote(RemoteId(0), b.local_address());
    let mut at_a = Counts::default();
    post(&mut a);
    let start = Instant::now();
    while at_a.lost == 0 && start.elapsed() < Duration::from_secs(100) {
        a.progress(&mut at_a);
    }
    assert_eq!((at_a.sent, at_a.failed, at_a.lost), (0, 1, 1));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The srd route over a wire within this process, which loses, repeats and reorders datagrams by a
//! seed, under a clock of its own that moves with every look at it: the same calls give the same
//! run. For tests.
//!
//! [`SimulatedPorts`] take the place of the kernel's sockets under the same driver, weft-udp.
//! Endpoints with the same IP address share a [`Wire`], made first by [`Wire::open`].
#![forbid(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use weft_srd::random::Random;
use weft_srd::{Instant, Nanos, Origin, PORT_COUNT, PortAddresses, Transmit};
use weft_udp::ports::{Departed, Incoming, PortCounts, PortList, Ports};
use weft_udp::{OpenError, Sends, Settings};

/// How far the clock moves at a look.
const TICK_NS: Nanos = Nanos(5_000);
/// What a datagram takes at least.
const LATENCY_NS: Nanos = Nanos(10_000);
/// The first port handed out.
const FIRST_PORT: u16 = 2000;

/// What a wire does to datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// Determines everything below.
    pub seed: u64,
    /// Of a thousand datagrams so many are lost.
    pub lost_per_mille: u64,
    /// So many arrive twice.
    pub repeated_per_mille: u64,
    /// Up to so much later than others.
    pub spread_ns: u64,
    /// Every so many datagrams the sender is told that there is no room; 0: never.
    pub full_every: u64,
    /// What is larger vanishes silently.
    pub swallows_above_bytes: usize,
}

impl Conditions {
    /// A wire that does no harm.
    #[must_use]
    pub const fn calm(seed: u64) -> Self {
        Self {
            seed,
            lost_per_mille: 0,
            repeated_per_mille: 0,
            spread_ns: 0,
            full_every: 0,
            swallows_above_bytes: usize::MAX,
        }
    }
}

/// A transport over the wire, at this address.
///
/// # Panics
/// When the address is taken.
#[must_use]
pub fn open(address: IpAddr, port: u16) -> Transport {
    let settings = Settings {
        address: Some(SocketAddr::new(address, port)),
        ..Settings::default()
    };
    Transport::open(&settings).expect("a free port")
}

#[derive(Debug)]
struct Flight {
    arrival_ns: Instant,
    from: SocketAddr,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inbox {
    flights: Vec<Flight>,
    refused: VecDeque<SocketAddr>,
}

/// One wire and all who hang on it.
#[derive(Debug)]
struct State {
    conditions: Conditions,
    random: Random,
    now_ns: Instant,
    next_port: u16,
    sent_count: u64,
    /// By first port; every port leads to its first one.
    inboxes: HashMap<u16, Inbox>,
    first_ports: HashMap<u16, u16>,
}

type Shared = Arc<Mutex<State>>;

fn wires() -> &'static Mutex<HashMap<IpAddr, Shared>> {
    static WIRES: OnceLock<Mutex<HashMap<IpAddr, Shared>>> = OnceLock::new();
    WIRES.get_or_init(Mutex::default)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The srd route over such a wire.
pub type Transport = weft_udp::Transport<SimulatedPorts>;

/// A name for making wires.
#[derive(Clone, Copy, Debug)]
pub struct Wire;

impl Wire {
    /// A wire of its own; the address that its endpoints ask for.
    pub fn open(conditions: Conditions) -> IpAddr {
        let mut wires = lock(wires());
        let number = wires.len() as u32 + 1;
        let address = IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number));
        let state = State {
            conditions,
            random: Random::new(conditions.seed),
            now_ns: Instant(1_000_000),
            next_port: FIRST_PORT,
            sent_count: 0,
            inboxes: HashMap::new(),
            first_ports: HashMap::new(),
        };
        wires.insert(address, Arc::new(Mutex::new(state)));
        address
    }
}

impl State {
    fn chance(&mut self, per_mille: u64) -> bool {
        self.random.below(1000) < per_mille
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Some(&first) = self.first_ports.get(&to.port()) else {
            let back = self.first_ports.get(&from.port()).copied();
            if let Some(inbox) = back.and_then(|first| self.inboxes.get_mut(&first)) {
                inbox.refused.push_back(to);
            }
            return;
        };
        let swallowed = bytes.len() > self.conditions.swallows_above_bytes;
        if swallowed || self.chance(self.conditions.lost_per_mille) {
            return;
        }
        let copies = 1 + usize::from(self.chance(self.conditions.repeated_per_mille));
        for _ in 0..copies {
            let spread_ns = Nanos(self.random.below(self.conditions.spread_ns.max(1)));
            let flight = Flight {
                arrival_ns: self.now_ns + LATENCY_NS + spread_ns,
                from,
                bytes: bytes.to_vec(),
            };
            if let Some(inbox) = self.inboxes.get_mut(&first) {
                inbox.flights.push(flight);
            }
        }
    }
}

/// The ports of one endpoint on a wire.
#[derive(Debug)]
pub struct SimulatedPorts {
    wire: Shared,
    list: PortList,
    datagram: Vec<u8>,
}

impl Ports for SimulatedPorts {
    fn open(settings: &Settings) -> Result<Self, OpenError> {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let wanted = settings.address.unwrap_or(nowhere);
        let wire = lock(wires()).get(&wanted.ip()).cloned().ok_or_else(|| {
            OpenError::Setting(format!("there is no simulated wire at {}", wanted.ip()))
        })?;
        let mut state = lock(&wire);
        let taken = std::io::Error::from(std::io::ErrorKind::AddrInUse);
        let mut ports = [0; PORT_COUNT];
        for (index, port) in ports.iter_mut().enumerate() {
            *port = if index == 0 && wanted.port() != 0 {
                wanted.port()
            } else {
                state.next_port += 1;
                state.next_port
            };
        }
        if state.first_ports.contains_key(&ports[0]) {
            return Err(OpenError::Address(wanted, taken));
        }
        for port in ports {
            state.first_ports.insert(port, ports[0]);
        }
        state.inboxes.insert(ports[0], Inbox::default());
        let incarnation = state.random.number();
        drop(state);
        let list = PortList {
            incarnation,
            address: SocketAddr::new(wanted.ip(), ports[0]),
            ports,
            count: PORT_COUNT as u8,
            addresses: PortAddresses::ONE,
            asks_hosts: false,
            datagram_bytes: settings.datagram_limit_bytes.unwrap_or(1400),
            heartbeat_port: 0,
            long_packets: true,
            ecn: false,
        };
        Ok(Self {
            wire,
            list,
            datagram: Vec::new(),
        })
    }

    fn list(&self) -> PortList {
        self.list
    }

    fn datagram_bytes_to(&self, _to: SocketAddr) -> (u16, bool) {
        (self.list.datagram_bytes, false)
    }

    fn routes_to(&self, _targets: &[SocketAddr; PORT_COUNT]) -> (u64, u16) {
        (u64::MAX, u16::MAX)
    }

    fn now_ns(&mut self) -> Instant {
        let mut state = lock(&self.wire);
        state.now_ns += TICK_NS;
        state.now_ns
    }

    fn receive(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> usize {
        let mut state = lock(&self.wire);
        state.now_ns += TICK_NS;
        let now_ns = state.now_ns;
        let Some(inbox) = state.inboxes.get_mut(&self.list.ports[0]) else {
            return 0;
        };
        let refused = std::mem::take(&mut inbox.refused);
        let mut due = Vec::new();
        inbox.flights.retain_mut(|flight| {
            let flies = flight.arrival_ns > now_ns;
            if !flies {
                let bytes = std::mem::take(&mut flight.bytes);
                due.push((flight.arrival_ns, flight.from, bytes));
            }
            flies
        });
        drop(state);
        due.sort_by_key(|arrived| arrived.0);
        for (arrival_ns, from, bytes) in &due {
            let waited_ns = now_ns - *arrival_ns;
            let origin = Origin {
                waited_ns,
                ..Origin::from(*from)
            };
            visit(now_ns, Incoming::Datagram(origin, bytes));
        }
        for to in &refused {
            visit(now_ns, Incoming::Refused(*to));
        }
        due.len() + refused.len()
    }

    fn receive_rest(&mut self, _visit: &mut impl FnMut(Instant, Incoming<'_>)) -> bool {
        true
    }

    fn send(&mut self, batch: &[Transmit], sends: &Sends) -> Departed {
        let mut state = lock(&self.wire);
        for (count, transmit) in batch.iter().enumerate() {
            state.sent_count += 1;
            let every = state.conditions.full_every;
            if every > 0 && state.sent_count.is_multiple_of(every) {
                let blocked = true;
                return Departed { count, blocked };
            }
            let head = transmit.head.as_bytes();
            self.datagram.clear();
            self.datagram.extend_from_slice(head);
            self.datagram.resize(transmit.length_bytes(), 0);
            if let Some(payload) = transmit.payload {
                if !sends.is_open(payload.token) {
                    continue;
                }
                let offset = payload.offset_bytes as usize;
                let end = head.len() + payload.length_bytes as usize;
                sends.copy_to(payload.token, offset, &mut self.datagram[head.len()..end]);
            }
            let index = usize::from(transmit.path.source_port_index());
            let from = SocketAddr::new(self.list.address.ip(), self.list.ports[index]);
            state.launch(from, transmit.to, &self.datagram);
        }
        Departed {
            count: batch.len(),
            blocked: false,
        }
    }

    fn wait_fd(&self) -> Option<i32> {
        None
    }

    fn before_sleep(&mut self, _until_ns: Option<Instant>, _with_room: bool) {}

    fn counts(&self) -> PortCounts {
        PortCounts::default()
    }
}

impl Drop for SimulatedPorts {
    fn drop(&mut self) {
        let mut state = lock(&self.wire);
        for port in self.list.ports {
            state.first_ports.remove(&port);
        }
        state.inboxes.remove(&self.list.ports[0]);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What joins the endpoints of one process: a mailbox for each, and the conditions that its
//! messages meet.
//!
//! Made by tests; used by the route in lib.rs.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use weft_contract::{SendOp, SendToken};
use weft_memory::UserBuffer;

/// How a network treats its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// Messages up to here arrive whole; longer ones are offered.
    pub eager_limit_bytes: usize,
    /// Packets that wait at one endpoint before senders are told to come again.
    pub room_count: usize,
    /// Seed of a delay: at each progress a random few packets are handled. `None` handles all.
    pub trickle_seed: Option<u64>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            eager_limit_bytes: 4096,
            room_count: 1024,
            trickle_seed: None,
        }
    }
}

/// What goes from one endpoint to another.
pub(super) enum Packet {
    Whole {
        op: SendOp,
        bytes: Vec<u8>,
        wants_receipt: bool,
    },
    Offer {
        op: SendOp,
        length_bytes: u64,
        number: u64,
    },
    /// The receiver is done with an offer, or has delivered a message whose sender wants to know.
    Done(SendToken),
    Gone,
}

/// Endpoints that reach each other.
pub struct Network {
    pub(super) conditions: Conditions,
    pub(super) mailboxes: HashMap<SocketAddr, VecDeque<(SocketAddr, Packet)>>,
    /// Payloads of offers, while they are with their senders.
    pub(super) offered: HashMap<u64, (SocketAddr, UserBuffer)>,
    pub(super) next_number: u64,
    next_port: u16,
}

pub(super) type Shared = Arc<Mutex<Network>>;

static NETWORKS: LazyLock<Mutex<HashMap<IpAddr, Shared>>> = LazyLock::new(Mutex::default);

/// Locks, whether or not another test panicked meanwhile.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Network {
    fn new(conditions: Conditions) -> Shared {
        let (mailboxes, offered) = (HashMap::new(), HashMap::new());
        Arc::new(Mutex::new(Self {
            conditions,
            mailboxes,
            offered,
            next_number: 0,
            next_port: 1,
        }))
    }

    /// Makes a network; endpoints whose wanted address has the IP answered here belong to it.
    pub fn open(conditions: Conditions) -> IpAddr {
        let mut networks = lock(&NETWORKS);
        let next = u32::from(Ipv4Addr::new(127, 1, 0, 0)) + networks.len() as u32;
        let address = IpAddr::from(Ipv4Addr::from(next));
        networks.insert(address, Self::new(conditions));
        address
    }

    /// The network of an IP address.
    pub(super) fn at(address: IpAddr) -> Shared {
        let mut networks = lock(&NETWORKS);
        Arc::clone(
            networks
                .entry(address)
                .or_insert_with(|| Self::new(Conditions::default())),
        )
    }

    /// Gives a newcomer its mailbox, under any free port if it wants port 0. `None` if the address
    /// is taken.
    pub(super) fn enter(&mut self, wanted: SocketAddr) -> Option<SocketAddr> {
        let mut address = wanted;
        while wanted.port() == 0 && (address.port() == 0 || self.mailboxes.contains_key(&address)) {
            address.set_port(self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(1);
        }
        if self.mailboxes.contains_key(&address) {
            return None;
        }
        self.mailboxes.insert(address, VecDeque::new());
        Some(address)
    }

    /// Takes a mailbox away and tells all others.
    pub(super) fn leave(&mut self, address: SocketAddr) {
        self.mailboxes.remove(&address);
        self.offered.retain(|_, (sender, _)| *sender != address);
        for mailbox in self.mailboxes.values_mut() {
            mailbox.push_back((address, Packet::Gone));
        }
    }

    /// Puts a packet into a mailbox, if it is still there.
    pub(super) fn send(&mut self, from: SocketAddr, to: SocketAddr, packet: Packet) {
        if let Some(mailbox) = self.mailboxes.get_mut(&to) {
            mailbox.push_back((from, packet));
        }
    }
}

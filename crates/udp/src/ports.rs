// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the driver asks of an endpoint's ports, so that the same driver runs over sockets and over
//! a simulated wire.

use std::net::SocketAddr;

use weft_srd::{Config, Instant, Nanos, Origin, PORT_COUNT, PortAddresses, Transmit};

use crate::sends::Sends;
use crate::settings::{OpenError, Settings};

/// The ports of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortList {
    /// Where the first one is: the endpoint's address.
    pub address: SocketAddr,
    /// All of them; the rest are 0.
    pub ports: [u16; PORT_COUNT],
    /// 1 to 8.
    pub count: u8,
    /// At which addresses of this host they are.
    pub addresses: PortAddresses,
    /// Whether the hosts of remotes can be asked whether they live (srd-protocol 13.5).
    pub asks_hosts: bool,
    /// The number of this life of the endpoint; random where others could do harm by guessing it.
    pub incarnation: u64,
    /// The largest datagram that can leave, without IP and UDP headers.
    pub datagram_bytes: u16,
    /// Where heartbeats to this endpoint are answered, at its address; 0 for nowhere.
    pub heartbeat_port: u16,
    /// Whether packets longer than a datagram are cut and joined (srd-protocol 19).
    pub long_packets: bool,
    /// Whether datagrams leave with ECT(0) and tell of marks (srd-protocol 10.12).
    pub ecn: bool,
}

impl PortList {
    /// How the machine of an endpoint with these ports works.
    pub(crate) fn config(&self, settings: &Settings) -> Config {
        let mut config = Config {
            address: self.address.ip(),
            heartbeat_port: self.heartbeat_port,
            ports: self.ports,
            port_count: self.count,
            datagram_bytes: self.datagram_bytes,
            addresses: self.addresses,
            path_count: settings.path_count,
            ecn: self.ecn,
            long_packets: self.long_packets,
            // Even without a key, an attacker who cannot read our packets cannot make us send to
            // somebody else.
            fresh_contact: true,
            ..Config::default()
        };
        let dead_after_ns = u64::try_from(settings.dead_after.as_nanos());
        config.timing.dead_after_ns = dead_after_ns.map_or(Nanos::MAX, Nanos);
        config
    }
}

/// What ports have counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounts {
    /// System calls made to send.
    pub send_calls: u64,
    /// System calls made to receive.
    pub receive_calls: u64,
    /// Datagrams turned away by the guard.
    pub turned_away: u64,
}

/// What arrives at a port.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// A datagram.
    Datagram(Origin, &'a [u8]),
    /// Nobody has the port that a datagram of ours went to.
    Refused(SocketAddr),
}

/// How far a batch got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departed {
    /// So many from the front need no further care: sent, or lost at once.
    pub count: usize,
    /// The others must wait: there is no room for them now.
    pub blocked: bool,
}

/// The ports of one endpoint.
// structure: allow trait-methods because both kinds of ports answer every question
pub trait Ports: Sized {
    /// Opens them. Setup.
    ///
    /// # Errors
    /// As the variants of [`OpenError`] say.
    fn open(settings: &Settings) -> Result<Self, OpenError>;

    /// Which ones they are.
    fn list(&self) -> PortList;

    /// The largest datagram that this host carries to an address, without IP and UDP headers, and
    /// whether that is known to hold as far as there. Slow path.
    fn datagram_bytes_to(&self, to: SocketAddr) -> (u16, bool);

    /// Which paths to ports at these addresses this host's routes allow, as a set, and the largest
    /// datagram that it carries on all of them (srd-protocol 17.3, 17.6). Slow path.
    fn routes_to(&self, targets: &[SocketAddr; PORT_COUNT]) -> (u64, u16);

    /// Nanoseconds of a clock that never goes back.
    fn now_ns(&mut self) -> Instant;

    /// Takes what has arrived, with the time it is handed over; answers how many there were. Does
    /// not wait; fast path.
    fn receive(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> usize;

    /// Says whether who calls `receive` waits for nothing that comes another way: then a call may
    /// look several times. Fast path.
    fn set_undisturbed(&mut self, _: bool) {}

    /// Takes what has arrived in all ports until a look into all finds nothing, within bounds. To
    /// be called before timers are asked: an answer that waits in a socket is no silence. False if
    /// a port could not be read: then timers must wait for another call.
    fn receive_rest(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> bool;

    /// Whether the next `receive` hands over something that was collected before, as while
    /// something was sent: the descriptor does not show it.
    fn has_queued_errors(&self) -> bool {
        false
    }

    /// Sends datagrams, in order as far as they share a path; `sends` lends the payloads. Fast
    /// path.
    fn send(&mut self, batch: &[Transmit], sends: &Sends) -> Departed;

    /// A descriptor that becomes readable when something arrives, or when the time given to
    /// `before_sleep` has come.
    fn wait_fd(&self) -> Option<i32>;

    /// Somebody will sleep on the descriptor, or sleeps there already: until this time at most.
    /// `with_room`: also until datagrams can leave.
    fn before_sleep(&mut self, until_ns: Option<Instant>, with_room: bool);

    /// Nobody sleeps on the descriptor any more.
    fn after_sleep(&mut self) {
        self.before_sleep(None, false);
    }

    /// From now on heartbeats are answered while the program computes (srd-protocol 13.6). Setup;
    /// nothing the second time.
    fn answer_heartbeats(&mut self) {}

    /// False in a child after fork(2): the sockets, and what they send, are its parent's. Fast
    /// path.
    #[inline]
    fn are_ours(&self) -> bool {
        true
    }

    /// What was counted so far.
    fn counts(&self) -> PortCounts;
}

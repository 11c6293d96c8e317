// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's ports: eight UDP sockets and the favourite beside them, what waits in them, and what leaves through them
//! in as few calls as can be.
//!
//! Sources: udp(7) for UDP_SEGMENT and UDP_GRO, ip(7) for IP_RECVERR and IP_MTU_DISCOVER, socket(7) for SO_TIMESTAMPNS.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use weft_memory::GatherSpace;
use weft_os::datagrams::ReceiveBatch;
use weft_os::fork_mark::ForkMark;
use weft_os::sleep::{Timer, WaitSet};
use weft_os::udp_socket::{SEGMENTS_BYTES, SendFailure, UdpSocket};
use weft_os::{clock, interface, process};
use weft_srd::{PORT_COUNT, Transmit};

use crate::attention::Attention;
use crate::departures::{Run, Source, alone, socket_index};
use crate::favourite::Favourite;
use crate::gate::Gate;
use crate::heartbeats::Heartbeats;
use crate::homes;
use crate::lone::Lone;
use crate::ports::{Departed, Incoming, PortCounts, PortList, Ports};
use crate::sends::Sends;
use crate::settings::{OpenError, Settings};

mod looking;

use looking::{Waits, collect_complaints};

/// Socket buffers asked for. Chosen: the kernel's usual limit (net.core.rmem_max), four windows.
const BUFFER_BYTES: usize = 4 << 20;
/// Datagrams, or joined ones, received by one call. Chosen: 128 KiB of buffers, which stay in the nearest caches; eight were no faster.
const RECEIVE_COUNT: usize = 2;
/// What one of them may hold: joined ones reach 64 KiB.
const RECEIVE_BYTES: usize = 1 << 16;
/// What IP and UDP add to a datagram: IPv4 and IPv6.
const OVERHEAD_BYTES: [u32; 2] = [28, 48];
/// Without word from the interface: what every network carries that QUIC can use (RFC 9000, 14).
const DATAGRAM_BYTES_LEAST: u16 = 1200;
/// Attempts to send a datagram while errors of earlier ones come up.
const SEND_ATTEMPTS: usize = 4;
/// A full socket is tried again after this, while its owner sleeps. Chosen: a batch at 1 Gbit/s takes as long.
const ROOM_NS: u64 = 100_000;
/// Payloads up to here are copied to leave with their head in one piece. Chosen: as much as is copied under a key.
const LONE_BYTES: usize = 4096;
/// How long to look into the card's own queue, where that is allowed.
const BUSY_POLL_US: u32 = 20;

/// Datagrams that the network did not take, and whether the user knows.
#[derive(Debug)]
struct Trouble {
    /// Why one was given up last.
    failure: Option<io::Error>,
    report: fn(&str),
    reported: bool,
}

/// Eight sockets, and sometimes a ninth.
// structure: allow struct-fields because each is one tool of the same calls, and none belongs to another
#[derive(Debug)]
pub struct SocketPorts {
    /// One for each port, and the favourite.
    sockets: Vec<UdpSocket>,
    favourite: Favourite,
    lone: Lone,
    /// The favourite is to be made anew for lone datagrams: its way.
    renews: Option<(usize, SocketAddr)>,
    list: PortList,
    batch: ReceiveBatch,
    space: GatherSpace,
    attention: Attention,
    wait_set: WaitSet,
    timer: Timer,
    /// Whether the timer is set.
    armed: bool,
    joins: bool,
    stamps: bool,
    waits: Waits,
    complaints: VecDeque<Incoming<'static>>,
    calls: (u64, u64),
    /// The last `receive` may have left something.
    leaves: bool,
    trouble: Trouble,
    gate: Gate,
    /// A lone datagram in one piece.
    gathered: Vec<u8>,
    /// What the user allows.
    datagram_limit_bytes: u16,
    heartbeats: Option<Heartbeats>,
    mark: ForkMark,
}

/// The largest datagram for an IP packet of this size, within the user's limit; `None` stands for an unknown size.
fn datagram_bytes(mtu: Option<u32>, limit_bytes: u16, address: SocketAddr, seal: u16) -> u16 {
    let overhead = OVERHEAD_BYTES[usize::from(address.is_ipv6())];
    let carried = mtu
        .and_then(|mtu| mtu.checked_sub(overhead))
        .map_or(DATAGRAM_BYTES_LEAST, |bytes| {
            bytes.min(SEGMENTS_BYTES as u32) as u16
        });
    carried
        .min(limit_bytes)
        .saturating_sub(seal)
        .max(DATAGRAM_BYTES_LEAST)
}

fn open_socket(address: SocketAddr) -> Result<UdpSocket, OpenError> {
    let taken = |error| OpenError::Address(address, error);
    let socket = UdpSocket::bind(address).map_err(taken)?;
    prepare_socket(&socket).map_err(OpenError::Sockets)?;
    Ok(socket)
}

fn prepare_socket(socket: &UdpSocket) -> io::Result<()> {
    socket.set_buffers(BUFFER_BYTES);
    // What is in use may be taken apart where a route has changed (srd-protocol 16.5).
    socket.allow_fragments()?;
    socket.keep_complaints()?;
    socket.busy_poll(BUSY_POLL_US);
    Ok(())
}

impl SocketPorts {
    fn open_all(settings: &Settings, gate: &Gate) -> Result<(Vec<UdpSocket>, PortList), OpenError> {
        let wanted = settings
            .address
            .unwrap_or_else(|| SocketAddr::new(interface::default_address(), 0));
        let first = open_socket(wanted)?;
        let address = first.local_address().map_err(OpenError::Sockets)?;
        let mut sockets = vec![first];
        let mut ports = [0; PORT_COUNT];
        ports[0] = address.port();
        let addresses = homes::addresses(settings, address.ip());
        for (index, port) in ports.iter_mut().enumerate().skip(1) {
            let ip = addresses.further_of(index as u8).unwrap_or(address.ip());
            let socket = open_socket(SocketAddr::new(ip, 0))?;
            *port = socket.local_address().map_err(OpenError::Sockets)?.port();
            sockets.push(socket);
        }
        let list = PortList {
            address,
            ports,
            count: PORT_COUNT as u8,
            addresses,
            asks_hosts: true,
            incarnation: match gate.incarnation() {
                Some(incarnation) => incarnation,
                None => process::random_u64().map_err(OpenError::Sockets)?,
            },
            datagram_bytes: datagram_bytes(
                interface::mtu_of(address.ip()),
                settings.datagram_limit_bytes.unwrap_or(u16::MAX),
                address,
                gate.overhead_bytes() as u16,
            ),
            heartbeat_port: 0,
        };
        Ok((sockets, list))
    }

    /// Counts a datagram that leaves on its own; gives its way a socket of its own when it is time.
    #[inline]
    fn favour(&mut self, index: usize, to: SocketAddr) {
        if !self.favourite.is_settled_by(index, to) {
            return;
        }
        if self.favourite.is(index, to) {
            // What waits in it is read first.
            self.renews = Some((index, to));
        } else {
            self.settle(index, to);
        }
    }

    /// The old favourite has not been used for a while, so that hardly anything waits in it; what does is sent again.
    #[cold]
    fn settle(&mut self, index: usize, to: SocketAddr) {
        self.renews = None;
        self.sockets.truncate(PORT_COUNT);
        self.favourite.leave();
        self.lone.end();
        let Ok(socket) = self.sockets[index].beside(to) else {
            return;
        };
        if prepare_socket(&socket).is_err() {
            return;
        }
        // From now on the time of the last arrival is kept.
        let _ = socket.last_arrival_realtime_ns();
        self.sockets.push(socket);
        self.favourite.settle(index, to);
        self.lone.begin();
    }

    /// A stream comes through the favourite: it becomes like the other sockets, until its way is settled on anew.
    #[cold]
    fn widen(&mut self) {
        let socket = &self.sockets[PORT_COUNT];
        if self.stamps {
            socket.stamp_arrivals();
        }
        socket.receive_joined();
        // It may be a member already.
        let _ = self.wait_set.add(socket.as_fd());
        self.favourite.widen();
        self.lone.end();
    }

    /// Sends a datagram that leaves alone through the favourite, by the cheapest call. False: it must be sent as any other.
    #[inline]
    fn send_lone(&mut self, transmit: &Transmit, place: usize, sends: &Sends) -> bool {
        let head = transmit.head.as_bytes();
        let bytes = match (self.gate.ready().get(place), &transmit.payload) {
            _ if transmit.padding_bytes > 0 => return false,
            (Some(whole), None) => whole,
            (Some(whole), Some(_)) if whole.len() > head.len() => whole,
            (None, None) => head,
            (None, Some(part))
                if part.length_bytes as usize <= LONE_BYTES && sends.is_open(part.token) =>
            {
                self.gathered
                    .resize(head.len() + part.length_bytes as usize, 0);
                self.gathered[..head.len()].copy_from_slice(head);
                let payload = &mut self.gathered[head.len()..];
                sends.copy_to(part.token, part.offset_bytes as usize, payload);
                &self.gathered
            }
            _ => return false,
        };
        self.calls.0 += 1;
        let left = self.sockets[PORT_COUNT].send_lone(bytes).is_ok();
        if left {
            self.lone.on_sent();
        }
        left
    }

    /// Sends what goes through the socket of the first datagram, up to the first that goes through another. Answers how many
    /// are done, and whether the others must wait.
    fn send_run(&mut self, from: usize, batch: &[Transmit], sends: &Sends) -> (usize, bool) {
        let batch = alone(&batch[from..]);
        let (index, to) = (socket_index(&batch[0], PORT_COUNT), batch[0].to);
        if batch.len() == 1 {
            self.favour(index, to);
        }
        let beside = self.favourite.is(index, to);
        if beside && batch.len() == 1 && self.send_lone(&batch[0], from, sends) {
            return (1, false);
        }
        let socket = &self.sockets[if beside { PORT_COUNT } else { index }];
        let ready = self.gate.ready().get(from..).unwrap_or(&[]);
        let source = Source {
            batch,
            ready,
            sends,
            seal_bytes: self.gate.overhead_bytes(),
        };
        let run = Run::gather(&mut self.space, &source, self.joins);
        let whole = batch[0].padding_bytes > 0;
        let mut done = 0;
        let mut attempts = 0;
        while done < run.count() {
            self.calls.0 += 1;
            let error = match run.send_as(socket, done, whole) {
                Ok(count) => {
                    done += count;
                    attempts = 0;
                    continue;
                }
                Err(error) => error,
            };
            match SendFailure::of(&error) {
                SendFailure::Full => {
                    return (run.end(done), true);
                }
                SendFailure::CannotJoin if self.joins => {
                    // This interface cannot: one by one from now on.
                    self.joins = false;
                    return (run.end(done), false);
                }
                SendFailure::TooLong => {
                    self.complaints
                        .push_back(Incoming::TooLong(run.target(done)));
                    done += 1;
                }
                _ => {
                    // Often the answer to an earlier datagram; then this one can still go.
                    collect_complaints(socket, &mut self.complaints);
                    attempts += 1;
                    if attempts == SEND_ATTEMPTS {
                        attempts = 0;
                        done += 1;
                        self.trouble.failure = Some(error);
                    }
                }
            }
        }
        (run.taken_count(), false)
    }

    /// Tells the user once that the network does not take our datagrams.
    #[cold]
    fn report_failure(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.trouble.reported, true) {
            (self.trouble.report)(&format!(
                "the network does not take datagrams from {}: {error}; they are sent again until the remote counts as \
                 lost. Check the interface (ip link, ip route) and the firewall",
                self.list.address
            ));
        }
    }
}

impl Ports for SocketPorts {
    fn open(settings: &Settings) -> Result<Self, OpenError> {
        let gate = Gate::open(settings)?;
        let (sockets, mut list) = Self::open_all(settings, &gate)?;
        let heartbeats = Heartbeats::reserve(settings, &list);
        list.heartbeat_port = heartbeats.as_ref().map_or(0, Heartbeats::port);
        let wait_set = WaitSet::new().map_err(OpenError::Sockets)?;
        let timer = Timer::new().map_err(OpenError::Sockets)?;
        for socket in &sockets {
            wait_set.add(socket.as_fd()).map_err(OpenError::Sockets)?;
        }
        wait_set.add(timer.as_fd()).map_err(OpenError::Sockets)?;
        let all = |able: fn(&UdpSocket) -> bool| sockets.iter().all(able);
        let stamps = all(UdpSocket::stamp_arrivals);
        all(UdpSocket::receive_joined);
        let joins = all(UdpSocket::can_send_joined);
        Ok(Self {
            list,
            batch: ReceiveBatch::new(RECEIVE_COUNT, RECEIVE_BYTES),
            space: GatherSpace::default(),
            attention: Attention::default(),
            favourite: Favourite::default(),
            lone: Lone::default(),
            renews: None,
            wait_set,
            timer,
            armed: false,
            joins,
            stamps,
            waits: Waits::new(),
            complaints: VecDeque::new(),
            calls: (0, 0),
            leaves: false,
            trouble: Trouble {
                failure: None,
                report: settings.report,
                reported: false,
            },
            gate,
            heartbeats,
            mark: ForkMark::new().map_err(OpenError::Sockets)?,
            gathered: Vec::new(),
            datagram_limit_bytes: settings.datagram_limit_bytes.unwrap_or(u16::MAX),
            sockets,
        })
    }

    fn list(&self) -> PortList {
        self.list
    }

    fn datagram_bytes_to(&self, to: SocketAddr) -> (u16, bool) {
        let seal_bytes = self.gate.overhead_bytes() as u16;
        let mtu = self.sockets[0].mtu_to(to);
        let bytes = datagram_bytes(mtu, self.datagram_limit_bytes, to, seal_bytes);
        (bytes, interface::is_own(to.ip()))
    }

    fn routes_to(&self, targets: &[SocketAddr; PORT_COUNT]) -> (u64, u16) {
        let seal_bytes = self.gate.overhead_bytes() as u16;
        let limit = self.datagram_limit_bytes;
        let first = self.list.address.ip();
        let (paths, pairs) = homes::routes(first, &self.list.addresses, targets);
        let carried = |(index, to): &(usize, SocketAddr)| {
            let mtu = self.sockets[*index].mtu_to(*to);
            datagram_bytes(mtu, limit, *to, seal_bytes)
        };
        (paths, pairs.iter().map(carried).min().unwrap_or(u16::MAX))
    }

    #[inline]
    fn now_ns(&mut self) -> u64 {
        let now_ns = clock::monotonic_ns();
        self.lone.on_clock(now_ns);
        now_ns
    }

    #[inline]
    fn set_undisturbed(&mut self, undisturbed: bool) {
        self.lone.set_undisturbed(undisturbed);
    }

    fn receive(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        self.leaves = false;
        if self.lone.on_call() {
            self.wait_set.remove(self.sockets[PORT_COUNT].as_fd());
        }
        let mut total = self.look(visit);
        if self.renews.is_some() {
            total += self.renew(visit);
        }
        if let Some(error) = self.trouble.failure.take() {
            self.report_failure(&error);
        }
        while let Some(complaint) = self.complaints.pop_front() {
            visit(clock::monotonic_ns(), complaint);
            total += 1;
        }
        total
    }

    fn receive_rest(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        self.look_for_rest(visit)
    }

    fn answer_heartbeats(&mut self) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.start();
        }
    }

    #[inline]
    fn are_ours(&self) -> bool {
        self.mark.is_maker()
    }

    fn send(&mut self, batch: &[Transmit], sends: &Sends) -> Departed {
        // A child has the counts of its parent, and would encrypt under the same nonces (srd-protocol 14.5).
        if !self.mark.is_maker() {
            let (count, blocked) = (batch.len(), false);
            return Departed { count, blocked };
        }
        self.gate.prepare(batch, sends);
        let mut count = 0;
        let mut blocked = false;
        while count < batch.len() && !blocked {
            let run_count;
            (run_count, blocked) = self.send_run(count, batch, sends);
            count += run_count;
        }
        Departed { count, blocked }
    }

    fn wait_fd(&self) -> Option<i32> {
        Some(self.wait_set.descriptor())
    }

    fn before_sleep(&mut self, until_ns: Option<u64>, with_room: bool) {
        if !self.mark.is_maker() {
            return;
        }
        // There is no word when a socket has room again: look soon.
        let soon_ns = with_room.then(|| clock::monotonic_ns() + ROOM_NS);
        let at_ns = match (until_ns, soon_ns) {
            (Some(until_ns), Some(soon_ns)) => Some(until_ns.min(soon_ns)),
            (until_ns, soon_ns) => until_ns.or(soon_ns),
        };
        if self.lone.on_sleep() {
            // It could only fail for want of memory; then the sleep ends when its time has come.
            let _ = self.wait_set.add(self.sockets[PORT_COUNT].as_fd());
        }
        if at_ns.is_some() || self.armed {
            self.timer.set(at_ns);
            self.armed = at_ns.is_some();
        }
    }

    fn counts(&self) -> PortCounts {
        PortCounts {
            send_calls: self.calls.0,
            receive_calls: self.calls.1,
            turned_away: self.gate.turned_away(),
        }
    }
}

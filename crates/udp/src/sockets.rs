// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's ports: eight UDP sockets and a connected one beside them, what waits in them, and
//! what leaves through them in as few calls as can be.
//!
//! Sources: udp(7) for UDP_SEGMENT and UDP_GRO, ip(7) for IP_RECVERR and IP_MTU_DISCOVER, socket(7)
//! for SO_TIMESTAMPNS.

use std::io;
use std::net::SocketAddr;

use weft_memory::GatherSpace;
use weft_os::fork_mark::ForkMark;
use weft_os::outbound::SEGMENTS_BYTES;
use weft_os::sleep::Timer;
use weft_os::udp_socket::UdpSocket;
use weft_os::{clock, interface, process};
use weft_srd::{Instant, Nanos, PORT_COUNT, Transmit};

use crate::authentication::PacketAuthentication;
use crate::cutting::Cutting;
use crate::gso_batch::{GsoBatch, Source, alone};
use crate::heartbeats::Heartbeats;
use crate::local_addresses;
use crate::ports::{Departed, Incoming, PortCounts, PortList, Ports};
use crate::sends::Sends;
use crate::settings::{OpenError, Settings};

mod attempts;
mod found;
mod one_by_one;
mod port_sockets;
mod queued_errors;
mod reader;
#[cfg(test)]
mod refusing;
mod waits;

#[cfg(test)]
#[path = "sockets_tests.rs"]
mod tests;

use attempts::{End, attempt};
use port_sockets::{PortSockets, open_socket};
use reader::Reader;

/// What IP and UDP add to a datagram: IPv4 and IPv6.
const OVERHEAD_BYTES: [u32; 2] = [28, 48];
/// Without word from the interface: what every network carries that QUIC can use (RFC 9000, 14).
const DATAGRAM_BYTES_LEAST: u16 = 1200;
/// A full socket is tried again after this, while its owner sleeps. Chosen: a batch at 1 Gbit/s
/// takes as long.
const ROOM_NS: Nanos = Nanos(100_000);
/// Payloads up to here are copied to leave with their head in one piece. Chosen: as much as is
/// copied under a key.
const GATHERED_BYTES: usize = 4096;

/// Datagrams that the network did not take, and whether the user knows.
#[derive(Debug)]
struct Trouble {
    /// Why one was given up last.
    failure: Option<io::Error>,
    report: fn(&str),
    reported: bool,
}

/// Eight sockets, and sometimes a ninth.
#[derive(Debug)]
pub struct SocketPorts {
    reader: Reader,
    list: PortList,
    space: GatherSpace,
    cutting: Cutting,
    /// A single datagram in one piece.
    gathered: Vec<u8>,
    /// Whether equal datagrams leave joined.
    joins: bool,
    /// System calls made to send.
    send_call_count: u64,
    trouble: Trouble,
    timer: Timer,
    /// Whether the timer is set.
    armed: bool,
    /// What the user allows.
    datagram_limit_bytes: u16,
    heartbeats: Option<Heartbeats>,
    mark: ForkMark,
}

/// The largest datagram for an IP packet of this size, within the user's limit; `None` stands for
/// an unknown size.
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

impl SocketPorts {
    fn open_all(
        settings: &Settings,
        authentication: &PacketAuthentication,
    ) -> Result<(Vec<UdpSocket>, PortList), OpenError> {
        let wanted = settings
            .address
            .unwrap_or_else(|| SocketAddr::new(interface::default_address(), 0));
        let first = open_socket(wanted)?;
        let address = first.local_address().map_err(OpenError::Sockets)?;
        let mut sockets = vec![first];
        let mut ports = [0; PORT_COUNT];
        ports[0] = address.port();
        let addresses = local_addresses::addresses(settings, address.ip());
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
            incarnation: match authentication.incarnation() {
                Some(incarnation) => incarnation,
                None => process::random_u64().map_err(OpenError::Sockets)?,
            },
            datagram_bytes: datagram_bytes(
                interface::mtu_of(address.ip()),
                settings.datagram_limit_bytes.unwrap_or(u16::MAX),
                address,
                authentication.overhead_bytes() as u16,
            ),
            heartbeat_port: 0,
            ecn: sockets.iter().all(UdpSocket::take_congestion_marks),
            long_packets: true,
        };
        Ok((sockets, list))
    }

    /// Sends a datagram that leaves on its own through the connected socket, by the cheapest call.
    /// `None` where that cannot be; then, and after an error, it must be sent as any other.
    #[inline]
    fn send_connected(
        &mut self,
        transmit: &Transmit,
        place: usize,
        sends: &Sends,
    ) -> Option<io::Result<()>> {
        let head = transmit.head.as_bytes();
        let bytes = match (
            self.reader.authentication.ready().get(place),
            &transmit.payload,
        ) {
            _ if transmit.padding_bytes > 0 || transmit.cut_bytes > 0 => return None,
            _ if self.list.ecn && !transmit.head.is_ect() => return None,
            (Some(whole), None) => whole,
            (Some(whole), Some(_)) if whole.len() > head.len() => whole,
            (None, None) => head,
            (None, Some(part))
                if part.length_bytes as usize <= GATHERED_BYTES && sends.is_open(part.token) =>
            {
                self.gathered
                    .resize(head.len() + part.length_bytes as usize, 0);
                self.gathered[..head.len()].copy_from_slice(head);
                let payload = &mut self.gathered[head.len()..];
                sends.copy_to(part.token, part.offset_bytes as usize, payload);
                &self.gathered
            }
            _ => return None,
        };
        self.send_call_count += 1;
        let socket = self.reader.sockets.at(PORT_COUNT);
        let sent = socket.send_connected(bytes);
        if sent.is_ok() {
            self.reader.sockets.connected_polling.on_sent();
        }
        Some(sent)
    }

    /// Sends what goes through the socket of the first datagram, up to the first that goes through
    /// another. Answers how many are done, and whether the others must wait.
    fn send_run(&mut self, from: usize, batch: &[Transmit], sends: &Sends) -> (usize, bool) {
        let batch = alone(&batch[from..]);
        let is_single = batch.len() == 1 && batch[0].cut_bytes == 0;
        let index = self.reader.sockets.index_for(&batch[0], is_single);
        let mut has_error = false;
        if index == PORT_COUNT && is_single {
            match self.send_connected(&batch[0], from, sends) {
                Some(Ok(())) => return (1, false),
                tried => has_error = tried.is_some(),
            }
        }
        let Reader {
            sockets,
            authentication,
            queued_errors,
            ..
        } = &mut self.reader;
        let socket = sockets.at(index);
        let ready = authentication.ready().get(from..).unwrap_or(&[]);
        let source = Source {
            batch,
            ready,
            sends,
            seal_bytes: authentication.overhead_bytes(),
            ecn: self.list.ecn,
            cutting: &self.cutting,
            from,
        };
        if batch[0].cut_bytes > 0 && !self.joins {
            self.send_call_count += 1;
            return one_by_one::send(&mut self.space, socket, &source, queued_errors);
        }
        let run = GsoBatch::gather(&mut self.space, &source, self.joins);
        let whole = batch[0].padding_bytes > 0;
        let send = |skip| run.send_as(socket, skip, whole);
        let attempts = attempt(run.count(), self.joins && !whole, send);
        self.send_call_count += attempts.call_count;
        if has_error || attempts.has_error {
            queued_errors.collect(socket);
        }
        if attempts.failure.is_some() {
            self.trouble.failure = attempts.failure;
        }
        match attempts.end {
            End::All => (run.taken_count(), false),
            End::Full => (run.end(attempts.done_count), true),
            End::CannotJoin => {
                // This interface, or a route: one by one from now on.
                self.joins = false;
                (run.end(attempts.done_count), false)
            }
        }
    }

    /// Tells the user once that the network does not take our datagrams.
    #[cold]
    fn report_failure(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.trouble.reported, true) {
            (self.trouble.report)(&format!(
                "the network does not take datagrams from {}: {error}; they are sent again until \
                 the remote counts as lost. Check the interface (ip link, ip route) and the \
                 firewall",
                self.list.address
            ));
        }
    }
}

impl Ports for SocketPorts {
    fn open(settings: &Settings) -> Result<Self, OpenError> {
        let authentication = PacketAuthentication::open(settings)?;
        let (sockets, mut list) = Self::open_all(settings, &authentication)?;
        let heartbeats = Heartbeats::reserve(settings, &list);
        list.heartbeat_port = heartbeats.as_ref().map_or(0, Heartbeats::port);
        let timer = Timer::new().map_err(OpenError::Sockets)?;
        let joins = sockets.iter().all(UdpSocket::can_send_joined);
        let sockets = PortSockets::new(sockets, &timer).map_err(OpenError::Sockets)?;
        Ok(Self {
            reader: Reader::new(sockets, authentication, list.incarnation),
            list,
            space: GatherSpace::default(),
            cutting: Cutting::default(),
            gathered: Vec::new(),
            joins,
            send_call_count: 0,
            trouble: Trouble {
                failure: None,
                report: settings.report,
                reported: false,
            },
            timer,
            armed: false,
            datagram_limit_bytes: settings.datagram_limit_bytes.unwrap_or(u16::MAX),
            heartbeats,
            mark: ForkMark::new().map_err(OpenError::Sockets)?,
        })
    }

    fn list(&self) -> PortList {
        self.list
    }

    fn datagram_bytes_to(&self, to: SocketAddr) -> (u16, bool) {
        let seal_bytes = self.reader.authentication.overhead_bytes() as u16;
        let mtu = self.reader.sockets.at(0).mtu_to(to);
        let bytes = datagram_bytes(mtu, self.datagram_limit_bytes, to, seal_bytes);
        (bytes, interface::is_own(to.ip()))
    }

    fn routes_to(&self, targets: &[SocketAddr; PORT_COUNT]) -> (u64, u16) {
        let seal_bytes = self.reader.authentication.overhead_bytes() as u16;
        let limit = self.datagram_limit_bytes;
        let first = self.list.address.ip();
        let (paths, pairs) = local_addresses::routes(first, &self.list.addresses, targets);
        let carried = |(index, to): &(usize, SocketAddr)| {
            let mtu = self.reader.sockets.at(*index).mtu_to(*to);
            datagram_bytes(mtu, limit, *to, seal_bytes)
        };
        (paths, pairs.iter().map(carried).min().unwrap_or(u16::MAX))
    }

    #[inline]
    fn now_ns(&mut self) -> Instant {
        let now_ns = Instant(clock::monotonic_ns());
        self.reader.on_clock(now_ns);
        now_ns
    }

    #[inline]
    fn set_undisturbed(&mut self, undisturbed: bool) {
        self.reader
            .sockets
            .connected_polling
            .set_undisturbed(undisturbed);
    }

    fn receive(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> usize {
        if let Some(error) = self.trouble.failure.take() {
            self.report_failure(&error);
        }
        self.reader.receive(visit)
    }

    fn receive_rest(&mut self, visit: &mut impl FnMut(Instant, Incoming<'_>)) -> bool {
        !self.reader.look_for_rest(visit).is_cut
    }

    fn has_queued_errors(&self) -> bool {
        !self.reader.queued_errors.is_empty()
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
        // A child has the counts of its parent, and would encrypt under the same nonces
        // (srd-protocol 14.5).
        if !self.mark.is_maker() {
            let (count, blocked) = (batch.len(), false);
            return Departed { count, blocked };
        }
        self.reader.authentication.prepare(batch, sends);
        let seal_bytes = self.reader.authentication.overhead_bytes();
        self.cutting.prepare(batch, seal_bytes);
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
        Some(self.reader.sockets.wait_set.descriptor())
    }

    fn before_sleep(&mut self, until_ns: Option<Instant>, with_room: bool) {
        if !self.mark.is_maker() {
            return;
        }
        // There is no word when a socket has room again: look soon.
        let soon_ns = with_room.then(|| Instant(clock::monotonic_ns()) + ROOM_NS);
        let at_ns = match (until_ns, soon_ns) {
            (Some(until_ns), Some(soon_ns)) => Some(until_ns.min(soon_ns)),
            (until_ns, soon_ns) => until_ns.or(soon_ns),
        };
        self.reader.sockets.on_sleep();
        if at_ns.is_some() || self.armed {
            self.timer.set(at_ns.map(|at_ns| at_ns.0));
            self.armed = at_ns.is_some();
        }
    }

    fn after_sleep(&mut self) {
        self.before_sleep(None, false);
        self.reader.sockets.on_wake();
    }

    fn counts(&self) -> PortCounts {
        PortCounts {
            send_calls: self.send_call_count,
            receive_calls: self.reader.call_count,
            turned_away: self.reader.turned_away(),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the sockets: which one, with which call, and what of it is let in. Called by sockets.rs in
//! each call of progress; asks polling.rs and connected_polling.rs where to look.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use weft_os::clock;
use weft_os::datagrams::ReceiveBatch;
use weft_os::sleep::ReadableMembers;
use weft_os::udp_socket::UdpSocket;
use weft_srd::{Ecn, Instant, Nanos, Origin, PORT_COUNT, Piece};

use crate::authentication::PacketAuthentication;
use crate::joining::{Joined, Joining};
use crate::polling::{Look, SocketPolling};
use crate::ports::Incoming;
use crate::sockets::found::{Found, Single};
use crate::sockets::port_sockets::PortSockets;
use crate::sockets::queued_errors::QueuedErrors;
use crate::sockets::waits::Waits;

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;

/// Datagrams, or joined ones, received by the first call. Chosen: 128 KiB of buffers, which stay in
/// the nearest caches; eight were no faster.
const RECEIVE_COUNT: usize = 2;
/// The same where the first call found so many, and short ones: then there are often many.
const SHORT_COUNT: usize = 16;
/// A socket is read until it is empty, or so much of it was read, as [`Found::cost_bytes`] counts
/// it. Chosen: what one call may find anyway.
const SOCKET_BYTES: usize = 1 << 16;
/// What one look takes of the sockets of all ports, counted in the same way, and also what is not
/// let in: what strangers send must not stay in the way of what is. Chosen: what they give together
/// if each keeps to [`SOCKET_BYTES`]. One call may find up to 1 MiB more, if all it finds are
/// joined; then the sockets after it give less.
const LOOK_BYTES: usize = PORT_COUNT * SOCKET_BYTES;
/// What one of them may hold: joined ones reach 64 KiB.
const RECEIVE_BYTES: usize = 1 << 16;
/// Rounds over all sockets before timers are asked (srd-protocol 15; chosen: four windows). What
/// waits behind them is read in the next call, so that nobody who sends without end keeps the
/// timers.
const REST_ROUNDS: usize = 8;

/// Whoever takes what was read: the time, and what it is.
pub(super) trait Visit: FnMut(Instant, Incoming<'_>) {}
impl<F: FnMut(Instant, Incoming<'_>)> Visit for F {}

/// The sockets, and what is known of what lies in them.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) sockets: PortSockets,
    pub(super) authentication: PacketAuthentication,
    joining: Joining,
    batch: ReceiveBatch,
    polling: SocketPolling,
    waits: Waits,
    pub(super) queued_errors: QueuedErrors,
    /// System calls made.
    pub(super) call_count: u64,
    /// When something was found last.
    found_ns: Instant,
}

impl Reader {
    pub(super) fn new(
        sockets: PortSockets,
        authentication: PacketAuthentication,
        incarnation: u64,
    ) -> Self {
        Self {
            sockets,
            authentication,
            joining: Joining::new(incarnation),
            batch: ReceiveBatch::new(SHORT_COUNT, RECEIVE_BYTES),
            polling: SocketPolling::default(),
            waits: Waits::new(),
            queued_errors: QueuedErrors::default(),
            call_count: 0,
            found_ns: Instant::START,
        }
    }

    /// The clock was read.
    #[inline]
    pub(super) fn on_clock(&mut self, now_ns: Instant) {
        self.polling.on_clock(now_ns);
        self.sockets.connected_polling.on_clock(now_ns);
    }

    /// Datagrams turned away so far.
    pub(super) fn turned_away(&self) -> u64 {
        self.authentication.turned_away() + self.joining.bad_count()
    }

    /// Reads what has arrived; answers how much that was. Fast path.
    pub(super) fn receive(&mut self, visit: &mut impl Visit) -> usize {
        self.sockets.on_progress();
        let mut total = self.look(visit);
        while let Some(queued_error) = self.queued_errors.next() {
            let now_ns = Instant(clock::monotonic_ns());
            self.on_clock(now_ns);
            visit(now_ns, queued_error);
            total += 1;
        }
        total
    }

    /// Looks where something is expected. Fast path.
    #[inline]
    fn look(&mut self, visit: &mut impl Visit) -> usize {
        for _ in 0..self.sockets.connected_polling.looks() {
            let look = match self.polling.next() {
                look @ Look::At(index) if index < self.sockets.count() => look,
                _ => Look::Everywhere,
            };
            let found = match look {
                Look::At(index) => {
                    let found = self.receive_expected(index, visit);
                    if found.is_nothing() {
                        self.polling.on_one_empty();
                    }
                    found
                }
                Look::Everywhere => {
                    let found = self.receive_from_all(visit);
                    if found.is_nothing() {
                        self.polling.on_all_empty();
                    }
                    found
                }
            };
            if found.joined_count == 0 {
                continue;
            }
            let count = found.datagram_count;
            // A stranger's datagram does not end an absence unheard.
            if self.polling.comes_back(self.found_ns) {
                return count + self.receive_after_absence(look, visit);
            }
            if count > 0 {
                return count;
            }
        }
        0
    }

    /// Receives one datagram, or joined ones, where the last ones came in. Fast path.
    #[inline]
    fn receive_expected(&mut self, index: usize, visit: &mut impl Visit) -> Found {
        if index == PORT_COUNT && self.sockets.connected_polling.expects_one() {
            return self.receive_one_connected(visit).into();
        }
        let found = if index == PORT_COUNT {
            self.receive_connected(visit)
        } else {
            self.receive_from(index, ReceiveBatch::receive_one, visit)
        };
        self.polling.after_one(found.arrival_count());
        found
    }

    /// Receives what this look, the first one after an absence, has not read: more may have come
    /// meanwhile than where it was expected.
    #[cold]
    fn receive_after_absence(&mut self, look: Look, visit: &mut impl Visit) -> usize {
        let mut total = 0;
        let is_connected = look == Look::At(PORT_COUNT);
        if !is_connected && self.sockets.connected_polling.exists() {
            total = self.receive_connected(visit).datagram_count;
        }
        if is_connected || total > 0 {
            total += self.receive_rest_connected(visit).datagram_count;
        }
        if look != Look::Everywhere {
            total += self.receive_from_ports(visit).datagram_count;
        }
        total
    }

    /// What waits in all sockets, until a round finds nothing: also what has come since the last
    /// look, after which this thread may have lost its processor. It is cut if the last round was.
    #[cold]
    pub(super) fn look_for_rest(&mut self, visit: &mut impl Visit) -> Found {
        let mut total = Found::default();
        for _ in 0..REST_ROUNDS {
            let found = self.receive_round(visit);
            total.add(&found);
            total.is_cut = found.is_cut;
            if found.is_nothing() {
                break;
            }
        }
        total
    }

    /// What waits in each socket, or so much of it (see [`SOCKET_BYTES`]).
    fn receive_round(&mut self, visit: &mut impl Visit) -> Found {
        let mut total = Found::default();
        if self.sockets.connected_polling.exists() {
            total = self.receive_waiting_connected(visit);
            self.polling.found(PORT_COUNT, total.arrival_count());
        }
        total.add(&self.receive_from_ports(visit));
        total
    }

    /// Receives from every socket in which something waits.
    fn receive_from_all(&mut self, visit: &mut impl Visit) -> Found {
        let mut total = Found::default();
        if self.sockets.connected_polling.exists() {
            total = self.receive_connected(visit);
            self.polling.found(PORT_COUNT, total.arrival_count());
        }
        total.add(&self.receive_from_ports(visit));
        total
    }

    /// The same but for the connected one.
    fn receive_from_ports(&mut self, visit: &mut impl Visit) -> Found {
        let mut total = Found::default();
        let mut left_bytes = LOOK_BYTES;
        let mut found = ReadableMembers::none();
        self.call_count += 1;
        self.sockets.wait_set.readable(&mut found);
        for readable in found.iter() {
            let named = |socket: &UdpSocket| socket.as_fd().as_raw_fd() == readable.descriptor;
            let Some(index) = self.sockets.position(named) else {
                continue;
            };
            // The connected one has been looked into.
            if index < PORT_COUNT {
                let most_bytes = left_bytes.min(SOCKET_BYTES);
                let found = self.receive_waiting(index, most_bytes, visit);
                self.polling.found(index, found.arrival_count());
                left_bytes = left_bytes.saturating_sub(found.cost_bytes());
                total.add(&found);
            }
            if readable.has_error {
                // An error that another call was told may have left more there.
                self.queued_errors.collect(self.sockets.at(index));
            }
        }
        total
    }

    /// Receives from the connected socket.
    fn receive_connected(&mut self, visit: &mut impl Visit) -> Found {
        if self.sockets.connected_polling.ends_row() {
            return self.receive_waiting_connected(visit);
        }
        if !self.sockets.connected_polling.is_joined() {
            return self.receive_one_connected(visit).into();
        }
        let found = match self.sockets.connected_polling.is_single() {
            true => self.receive_waiting(PORT_COUNT, SOCKET_BYTES, visit),
            false => self.receive_from(PORT_COUNT, ReceiveBatch::receive_one, visit),
        };
        let (count, joined_count) = (found.datagram_count, found.arrival_count());
        if self
            .sockets
            .connected_polling
            .ends_joined(count, joined_count)
        {
            self.sockets.separate_connected();
        }
        found
    }

    /// Receives what waits in the connected socket, or so much of it.
    fn receive_waiting_connected(&mut self, visit: &mut impl Visit) -> Found {
        if self.sockets.connected_polling.is_joined() {
            return self.receive_waiting(PORT_COUNT, SOCKET_BYTES, visit);
        }
        let mut found = Found::from(self.receive_one_connected(visit));
        if found.joined_count > 0 {
            found.add(&self.receive_rest_connected(visit));
        }
        found
    }

    /// Receives what waits in the connected socket behind a datagram that was just found there. If
    /// another one is let in, several come at a time, each with a time of its own: so they are read
    /// joined from now on.
    fn receive_rest_connected(&mut self, visit: &mut impl Visit) -> Found {
        let mut found = Found::default();
        if !self.sockets.connected_polling.is_joined() {
            found = Found::from(self.receive_one_connected(visit));
            if found.joined_count == 0 {
                return found;
            }
            if found.datagram_count > 0 {
                self.sockets.join_connected();
            }
        }
        found.add(&self.receive_waiting(PORT_COUNT, SOCKET_BYTES, visit));
        found
    }

    /// Receives one datagram from it with the cheapest call. Who sent what it finds is known. Most
    /// looks are in vain, so what is found is taken elsewhere: here no register is saved for it.
    #[inline]
    fn receive_one_connected(&mut self, visit: &mut impl Visit) -> Single {
        self.call_count += 1;
        let socket = self.sockets.at(PORT_COUNT);
        match self.batch.receive_connected(socket) {
            Ok(Some(datagram)) => {
                let length_bytes = datagram.len();
                Single::Datagram(self.take_connected(length_bytes, visit))
            }
            Ok(None) => {
                self.sockets.connected_polling.on_empty();
                Single::Nothing
            }
            Err(_) => self.receive_connected_with_error(visit),
        }
    }

    /// The same where the socket has a queued error instead.
    #[cold]
    #[inline(never)]
    fn receive_connected_with_error(&mut self, visit: &mut impl Visit) -> Single {
        let receive = |batch: &mut ReceiveBatch, socket: &UdpSocket| {
            let datagram = batch.receive_connected(socket)?;
            Ok(datagram.map(<[u8]>::len))
        };
        match self.receive_behind_errors(PORT_COUNT, receive) {
            Some(Some(length_bytes)) => Single::Datagram(self.take_connected(length_bytes, visit)),
            Some(None) => {
                self.sockets.connected_polling.on_empty();
                Single::Nothing
            }
            None => Single::Cut,
        }
    }

    /// A socket first reports what hosts answered to earlier datagrams, and does not read what
    /// waits behind that: it is asked again. `None` if call after call fails.
    #[cold]
    #[inline(never)]
    fn receive_behind_errors<T>(
        &mut self,
        index: usize,
        receive: impl Fn(&mut ReceiveBatch, &UdpSocket) -> io::Result<T>,
    ) -> Option<T> {
        let (socket, batch) = (self.sockets.at(index), &mut self.batch);
        let call_count = &mut self.call_count;
        self.queued_errors.receive_behind(socket, || {
            *call_count += 1;
            receive(batch, socket)
        })
    }

    /// Takes a datagram of so many bytes that the connected socket has just given.
    #[inline(never)]
    fn take_connected(&mut self, length_bytes: usize, visit: &mut impl Visit) -> usize {
        let socket = self.sockets.at(PORT_COUNT);
        let datagram = self.batch.first_bytes(length_bytes);
        let now_ns = Instant(clock::monotonic_ns());
        self.found_ns = now_ns;
        let Some(from) = socket.peer().filter(|_| !datagram.is_empty()) else {
            return 0;
        };
        let mut origin = Origin::from(from);
        if self.sockets.connected_polling.on_found(now_ns) && self.sockets.stamps {
            let connected = self.sockets.at(PORT_COUNT);
            let arrived_ns = connected.last_arrival_realtime_ns().unwrap_or(0);
            let realtime_ns = clock::realtime_ns();
            origin.waited_ns = Nanos(self.waits.of(now_ns.0, realtime_ns, arrived_ns));
        }
        let packet = match whole(&mut self.joining, &origin, PORT_COUNT, datagram) {
            Joined::Whole(packet, ecn) => {
                origin.ecn = ecn;
                packet
            }
            Joined::Kept => return 1,
            Joined::Bad => return 0,
        };
        let admitted = self.authentication.admit(from, packet);
        let Some(packet) = admitted else { return 0 };
        visit(now_ns, Incoming::Datagram(origin, packet));
        1
    }

    /// Receives what waits in a socket, as long as it is short, and at most so much (see
    /// [`SOCKET_BYTES`]): whoever was off its processor finds much in several sockets. To answer
    /// what was read, and not what lay beside it, would look like a loss.
    fn receive_waiting(
        &mut self,
        index: usize,
        most_bytes: usize,
        visit: &mut impl Visit,
    ) -> Found {
        let first = |batch: &mut ReceiveBatch, socket: &UdpSocket| {
            batch.receive_up_to(socket, RECEIVE_COUNT)
        };
        let mut found = self.receive_from(index, first, visit);
        let mut is_more = found.joined_count == RECEIVE_COUNT;
        while is_more && found.cost_bytes() < most_bytes {
            let more = self.receive_from(index, ReceiveBatch::receive, visit);
            found.add(&more);
            is_more = more.joined_count == SHORT_COUNT;
        }
        found
    }

    /// Receives what one call finds in a socket, whether it is let in or not.
    fn receive_from(
        &mut self,
        index: usize,
        receive: impl Fn(&mut ReceiveBatch, &UdpSocket) -> io::Result<usize>,
        visit: &mut impl Visit,
    ) -> Found {
        let is_connected = index == PORT_COUNT;
        self.call_count += 1;
        let received = match receive(&mut self.batch, self.sockets.at(index)) {
            Ok(count) => Some(count),
            Err(_) => self.receive_behind_errors(index, receive),
        };
        let Some(count) = received else {
            return Found::cut();
        };
        if count == 0 {
            if is_connected {
                self.sockets.connected_polling.on_empty();
            }
            return Found::default();
        }
        let now_ns = Instant(clock::monotonic_ns());
        self.found_ns = now_ns;
        let may_have_waited = !is_connected || self.sockets.connected_polling.on_found(now_ns);
        let realtime_ns = if self.sockets.stamps && may_have_waited {
            clock::realtime_ns()
        } else {
            0
        };
        let mut total = 0;
        let mut bytes = 0;
        for received in (0..count).filter_map(|place| self.batch.get(place)) {
            let arrived_ns = received.arrived_realtime_ns;
            let origin = Origin {
                from: received.from,
                waited_ns: Nanos(self.waits.of(now_ns.0, realtime_ns, arrived_ns)),
                ecn: received
                    .traffic_class
                    .map_or(Ecn::Unknown, Ecn::from_traffic_class),
            };
            bytes += received.bytes.len();
            for datagram in received.bytes.chunks(received.segment_bytes) {
                let mut origin = origin;
                let packet = match whole(&mut self.joining, &origin, index, datagram) {
                    Joined::Whole(packet, ecn) => {
                        origin.ecn = ecn;
                        packet
                    }
                    Joined::Kept => {
                        total += 1;
                        continue;
                    }
                    Joined::Bad => continue,
                };
                if let Some(packet) = self.authentication.admit(origin.from, packet) {
                    total += 1;
                    visit(now_ns, Incoming::Datagram(origin, packet));
                }
            }
        }
        Found {
            datagram_count: total,
            joined_count: count,
            bytes,
            is_cut: false,
        }
    }
}

/// The packet that came in a datagram, or that is whole by it. Fast path.
#[inline]
fn whole<'d>(
    joining: &'d mut Joining,
    origin: &Origin,
    socket_index: usize,
    datagram: &'d [u8],
) -> Joined<'d> {
    if !Piece::is_one(datagram) {
        return Joined::Whole(datagram, origin.ecn);
    }
    joining.take(origin.from, socket_index, datagram, origin.ecn)
}

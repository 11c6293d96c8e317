// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sockets themselves: one for each port, the connected one beside them, and the set in which
//! somebody may wait for them. Owned by reader.rs, written to by sockets.rs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use weft_os::error_queue;
use weft_os::sleep::{self, Timer, WaitSet};
use weft_os::udp_socket::UdpSocket;
use weft_srd::{PORT_COUNT, Transmit};

use crate::connected::ConnectedPath;
use crate::connected_polling::ConnectedPolling;
use crate::gso_batch::socket_index;
use crate::settings::OpenError;

/// Socket buffers asked for. Chosen: the kernel's usual limit (net.core.rmem_max), four windows.
const BUFFER_BYTES: usize = 4 << 20;
/// How long to look into the card's own queue, where that is allowed.
const BUSY_POLL_US: u32 = 20;

/// See the module.
#[derive(Debug)]
pub(super) struct PortSockets {
    /// One for each port, and the connected one.
    all: Vec<UdpSocket>,
    path: ConnectedPath,
    /// How the connected one is looked into.
    pub(super) connected_polling: ConnectedPolling,
    pub(super) wait_set: WaitSet,
    /// Whether the kernel says when a datagram has arrived.
    pub(super) stamps: bool,
}

pub(super) fn open_socket(address: SocketAddr) -> Result<UdpSocket, OpenError> {
    let taken = |error| OpenError::Address(address, error);
    let socket = UdpSocket::bind(address).map_err(taken)?;
    prepare_socket(&socket).map_err(OpenError::Sockets)?;
    Ok(socket)
}

fn prepare_socket(socket: &UdpSocket) -> io::Result<()> {
    socket.set_buffers(BUFFER_BYTES);
    // What is in use may be taken apart where a route has changed (srd-protocol 16.5).
    socket.allow_fragments()?;
    error_queue::keep(socket)?;
    socket.busy_poll(BUSY_POLL_US);
    Ok(())
}

impl PortSockets {
    /// Of the sockets of all ports; the timer ends waits. Setup.
    pub(super) fn new(all: Vec<UdpSocket>, timer: &Timer) -> io::Result<Self> {
        let wait_set = WaitSet::new()?;
        for socket in &all {
            wait_set.add(socket.as_fd())?;
        }
        wait_set.add(timer.as_fd())?;
        let every = |able: fn(&UdpSocket) -> bool| all.iter().all(able);
        let stamps = every(UdpSocket::stamp_arrivals);
        every(UdpSocket::receive_joined);
        Ok(Self {
            all,
            path: ConnectedPath::default(),
            connected_polling: ConnectedPolling::default(),
            wait_set,
            stamps,
        })
    }

    /// Those of the ports, and the connected one if there is one.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// That of a port, or the connected one, which comes after them.
    #[inline]
    pub(super) fn at(&self, index: usize) -> &UdpSocket {
        &self.all[index]
    }

    /// The first one that fits.
    pub(super) fn position(&self, fits: impl Fn(&UdpSocket) -> bool) -> Option<usize> {
        self.all.iter().position(fits)
    }

    /// Through which socket a packet leaves; whether it is a single datagram tells whether its path
    /// may have the connected one soon. Fast path.
    #[inline]
    pub(super) fn index_for(&mut self, transmit: &Transmit, is_single: bool) -> usize {
        let (index, to) = (socket_index(transmit, PORT_COUNT), transmit.to);
        if is_single {
            self.on_single(index, to);
        }
        match self.path.is(index, to) {
            true => PORT_COUNT,
            false => index,
        }
    }

    /// A call of progress begins. Fast path.
    #[inline]
    pub(super) fn on_progress(&mut self) {
        if self.connected_polling.on_call() {
            self.wait_set.remove(self.all[PORT_COUNT].as_fd());
        }
    }

    /// Somebody will sleep on the wait set.
    pub(super) fn on_sleep(&mut self) {
        if self.connected_polling.on_sleep()
            && self.wait_set.add(self.all[PORT_COUNT].as_fd()).is_err()
        {
            // For want of memory. It would wake nobody; what comes now wakes by the port's socket.
            self.disconnect();
        }
    }

    /// Nobody sleeps on it any more.
    pub(super) fn on_wake(&mut self) {
        self.connected_polling.on_wake();
    }

    /// Counts a datagram that leaves on its own; gives its path the connected socket when it is
    /// time.
    #[inline]
    fn on_single(&mut self, index: usize, to: SocketAddr) {
        if self.path.is_settled_by(index, to) {
            self.settle(index, to);
        }
    }

    /// The old connected socket has not been used for a while, so that hardly anything waits in it;
    /// what does is sent again.
    #[cold]
    pub(super) fn settle(&mut self, index: usize, to: SocketAddr) {
        self.disconnect();
        let Ok(socket) = self.all[index].beside(to) else {
            return;
        };
        if prepare_socket(&socket).is_err() {
            return;
        }
        socket.take_congestion_marks();
        // From now on the time of the last arrival is kept.
        let _ = socket.last_arrival_realtime_ns();
        self.all.push(socket);
        self.path.settle(index, to);
        self.connected_polling.begin();
        if self.connected_polling.is_asleep() {
            self.on_sleep();
        }
    }

    /// From now on there is no connected socket; all comes to that of its port. A child after
    /// fork(2) may hold it open: so to close it is not enough, for the port and for the wait set.
    #[cold]
    fn disconnect(&mut self) {
        if let Some(connected) = self.all.get(PORT_COUNT) {
            self.wait_set.remove(connected.as_fd());
            connected.leave();
        }
        self.all.truncate(PORT_COUNT);
        self.path.leave();
        self.connected_polling.end();
    }

    /// Several datagrams at a time come through the connected socket: from now on the kernel joins
    /// them, if it can, and says of each when it arrived. The time of the last one is not that of
    /// all: what another one has waited longer would count as the network's.
    #[cold]
    pub(super) fn join_connected(&mut self) {
        let socket = &self.all[PORT_COUNT];
        socket.receive_joined();
        socket.stamp_arrivals();
        self.connected_polling.join();
    }

    /// Only single ones come again. What the kernel has joined before stays joined, and without
    /// the option nobody hears of what size: so that waits until the socket is empty.
    #[cold]
    pub(super) fn separate_connected(&mut self) {
        let socket = &self.all[PORT_COUNT];
        socket.receive_single();
        if sleep::wait_readable(socket.as_fd().as_raw_fd(), 0) {
            socket.receive_joined();
            return self.connected_polling.join();
        }
        socket.stamp_last_arrival();
        self.connected_polling.separate();
    }
}

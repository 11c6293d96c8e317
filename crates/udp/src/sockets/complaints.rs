// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What hosts answer to datagrams that were sent earlier, until somebody is told. Collected where a
//! call on a socket fails, by sockets.rs and reader.rs; handed over by reader.rs.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_os::error_queue::{self, Complaint};
use weft_os::udp_socket::UdpSocket;

use crate::ports::Incoming;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// Where nobody has the port.
    refused: VecDeque<SocketAddr>,
}

impl Complaints {
    /// Whether nobody waits to be told.
    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    /// The oldest one. Fast path while there is none.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Incoming<'static>> {
        self.refused.pop_front().map(Incoming::Refused)
    }

    /// Takes what a socket has in its error queue.
    #[cold]
    pub(super) fn collect(&mut self, socket: &UdpSocket) {
        while let Some(complaint) = error_queue::oldest(socket) {
            // Others say nothing of a remote.
            if let Complaint::Refused(to) = complaint {
                self.refused.push_back(to);
            }
        }
    }
}

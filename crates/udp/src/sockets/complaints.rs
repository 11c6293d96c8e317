// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What hosts answer to datagrams that were sent earlier, until somebody is told. Collected where a
//! call on a socket fails, by sockets.rs and reader.rs; handed over by reader.rs.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use weft_os::error_queue::{self, Complaint};
use weft_os::udp_socket::UdpSocket;

use crate::ports::Incoming;

/// Calls in a row that one socket may fail. Chosen: anybody may forge complaints, but hardly one
/// between any two calls.
const CALLS_MOST: usize = 4;
/// Complaints that are taken from a socket at a time, for the same reason. Chosen.
const COLLECTED_MOST: usize = 256;

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
        let queued = std::iter::from_fn(|| error_queue::oldest(socket));
        for complaint in queued.take(COLLECTED_MOST) {
            // Others say nothing of a remote.
            if let Complaint::Refused(to) = complaint {
                self.refused.push_back(to);
            }
        }
    }

    /// What a call finds in a socket that has failed one: complaints come first, whatever waits
    /// there. `None` where it fails again and again.
    #[cold]
    pub(super) fn receive_behind<T>(
        &mut self,
        socket: &UdpSocket,
        mut receive: impl FnMut() -> io::Result<T>,
    ) -> Option<T> {
        (0..CALLS_MOST).find_map(|_| {
            self.collect(socket);
            receive().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_os::outbound;

    use super::*;
    use crate::sockets::port_sockets::open_socket;

    /// A socket that keeps what is refused, and an address that refuses all.
    fn socket_and_refusing() -> (UdpSocket, std::net::UdpSocket, SocketAddr) {
        let socket = open_socket(([127, 0, 0, 1], 0).into()).expect("bound");
        // It talks to nobody but itself.
        let far = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let to = far.local_addr().expect("bound");
        far.connect(to).expect("connected");
        (socket, far, to)
    }

    #[test]
    fn a_flood_of_complaints_ends_a_look_and_the_rest_is_taken_by_the_next() {
        let (socket, _far, to) = socket_and_refusing();
        for _ in 0..=COLLECTED_MOST {
            // Each other call fails with the answer to the one before.
            if outbound::send_bytes(&socket, to, &[7], 0).is_err() {
                outbound::send_bytes(&socket, to, &[7], 0).expect("sent");
            }
        }
        let mut complaints = Complaints::default();
        complaints.collect(&socket);
        assert_eq!(complaints.refused.len(), COLLECTED_MOST);
        complaints.collect(&socket);
        assert_eq!(complaints.refused.len(), COLLECTED_MOST + 1);
        assert!(complaints.refused.iter().all(|refused| *refused == to));
    }

    #[test]
    fn a_socket_is_asked_again_until_it_answers_and_so_often_at_most() {
        let (socket, _far, _) = socket_and_refusing();
        for failing_count in 0..=CALLS_MOST {
            let mut call_count = 0;
            let found = Complaints::default().receive_behind(&socket, || {
                call_count += 1;
                let failure = io::ErrorKind::ConnectionRefused;
                (call_count > failing_count)
                    .then_some(())
                    .ok_or(failure.into())
            });
            assert_eq!(found.is_some(), failing_count < CALLS_MOST);
            assert_eq!(call_count, (failing_count + 1).min(CALLS_MOST));
        }
    }
}

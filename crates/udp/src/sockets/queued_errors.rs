// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What hosts answer to datagrams that were sent earlier, until somebody is told. Collected after
//! calls on a socket that have failed, by sockets.rs, one_by_one.rs and reader.rs; handed over by
//! reader.rs.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use weft_os::error_queue::{self, QueuedError};
use weft_os::udp_socket::UdpSocket;

use crate::ports::Incoming;

/// Calls in a row that one socket may fail. Chosen: a call that fails takes the error with it, so
/// that the next one fails only if another queued error came between them, as anybody may forge.
const CALLS_MOST: usize = 4;
/// Queued errors that are taken from a socket at a time, so that whoever forges them keeps nobody.
/// Chosen. Where more are left, the next call on the socket fails, and the one after it does not
/// (sock_dequeue_err_skb, net/core/skbuff.c).
const COLLECTED_MOST: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct QueuedErrors {
    /// Where nobody has the port.
    refused: VecDeque<SocketAddr>,
    /// See [`CALLS_MOST`].
    pub(super) calls_most: usize,
}

impl Default for QueuedErrors {
    fn default() -> Self {
        Self {
            refused: VecDeque::new(),
            calls_most: CALLS_MOST,
        }
    }
}

impl QueuedErrors {
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
        for queued_error in queued.take(COLLECTED_MOST) {
            // Others say nothing of a remote.
            if let QueuedError::Refused(to) = queued_error {
                self.refused.push_back(to);
            }
        }
    }

    /// What a call finds in a socket that has failed one: queued errors come first, whatever waits
    /// there. The socket is asked again before they are taken, because each that is taken lets the
    /// next one fail a call. `None` where it fails again and again.
    #[cold]
    pub(super) fn receive_behind<T>(
        &mut self,
        socket: &UdpSocket,
        mut receive: impl FnMut() -> io::Result<T>,
    ) -> Option<T> {
        let found = (0..self.calls_most).find_map(|_| receive().ok());
        self.collect(socket);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::port_sockets::open_socket;
    use crate::sockets::refusing::{be_flooded, refusing};

    /// One that keeps what is refused.
    fn socket() -> UdpSocket {
        open_socket(([127, 0, 0, 1], 0).into()).expect("bound")
    }

    #[test]
    fn a_flood_of_complaints_ends_a_look_and_the_rest_is_taken_by_the_next() {
        let (socket, (_far, to)) = (socket(), refusing());
        be_flooded(&socket, to, COLLECTED_MOST + 1);
        let mut queued_errors = QueuedErrors::default();
        queued_errors.collect(&socket);
        assert_eq!(queued_errors.refused.len(), COLLECTED_MOST);
        queued_errors.collect(&socket);
        assert!(queued_errors.refused.len() > COLLECTED_MOST);
        assert!(queued_errors.refused.iter().all(|refused| *refused == to));
    }

    #[test]
    fn a_socket_is_asked_again_until_it_answers_and_so_often_at_most() {
        let socket = socket();
        for failing_count in 0..=CALLS_MOST {
            let mut call_count = 0;
            let found = QueuedErrors::default().receive_behind(&socket, || {
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

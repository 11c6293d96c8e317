// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a host lives, asked of its kernel: a TCP connection that is refused is an answer
//! (connect(2), RFC 9293 3.10.7). Needs no privilege and nobody who listens. Used by udp when a
//! remote process is silent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;
use crate::socket_address::RawAddress;

/// What is known so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostAnswer {
    /// Its kernel has answered.
    Alive,
    /// Nothing has come yet.
    Waiting,
    /// Somebody on the way says that it cannot be reached, or the question cannot be asked.
    Unreachable,
}

/// A question under way; dropping it ends it.
#[derive(Debug)]
pub struct HostCheck {
    socket: OwnedFd,
    at_once: Option<HostAnswer>,
}

fn meaning(error: i32) -> HostAnswer {
    match error {
        // A connection that was taken is closed again, unused.
        0 | libc::ECONNREFUSED | libc::ECONNRESET => HostAnswer::Alive,
        libc::EINPROGRESS => HostAnswer::Waiting,
        _ => HostAnswer::Unreachable,
    }
}

impl HostCheck {
    /// Asks the host of `address`, at its port. Does not wait; slow path.
    ///
    /// # Errors
    /// The errno of socket(2).
    pub fn ask(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv6() {
            libc::AF_INET6
        } else {
            libc::AF_INET
        };
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no preconditions.
        let raw = check(unsafe { libc::socket(family, kind, 0) })?;
        // SAFETY: the call just returned this descriptor and nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        let (name, length) = RawAddress::from(address);
        // SAFETY: the address is a local variable, `length` bytes of which are its structure.
        let result =
            check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const name).cast(), length) });
        let error = result
            .err()
            .map_or(0, |error| error.raw_os_error().unwrap_or(0));
        let answer = meaning(error);
        Ok(Self {
            socket,
            at_once: (answer != HostAnswer::Waiting).then_some(answer),
        })
    }

    /// What is known by now. Does not wait.
    pub fn answer(&self) -> HostAnswer {
        if let Some(answer) = self.at_once {
            return answer;
        }
        let mut entry = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one entry, ours to write.
        if unsafe { libc::poll(&mut entry, 1, 0) } <= 0 {
            return HostAnswer::Waiting;
        }
        let mut error = 0;
        let mut length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: value and length are local and fit the option's type.
        let result = check(unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut error).cast(),
                &mut length,
            )
        });
        result.map_or(HostAnswer::Unreachable, |_| meaning(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_where_nobody_listens_answers_all_the_same() {
        let taken = crate::udp_socket::UdpSocket::bind("127.0.0.1:0".parse().expect("address"));
        let address = taken.expect("a socket").local_address().expect("address");
        let check = HostCheck::ask(address).expect("a socket");
        for _ in 0..1000 {
            match check.answer() {
                HostAnswer::Waiting => std::thread::sleep(std::time::Duration::from_millis(1)),
                answer => return assert_eq!(answer, HostAnswer::Alive),
            }
        }
        panic!("no answer came");
    }
}

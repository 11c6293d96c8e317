// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Abstract unix sockets (unix(7)): names without files, gone with the process that holds them, and
//! visible only inside one network namespace. Used by shm at first contact, to wake a sleeper, and
//! to ask who still lives.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::at_fork::OwnOnly;
use crate::{check, check_length};

/// The process at the other end of a connection, as the kernel vouches for it (SO_PEERCRED).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its id in our pid namespace; 0 if it is not visible there.
    pub pid: u32,
    /// Its effective user when it began to listen or to connect.
    pub uid: u32,
}

/// How many connections may wait unaccepted. Chosen: the usual net.core.somaxconn; a node has fewer
/// ranks.
const BACKLOG: libc::c_int = 4096;

fn abstract_name(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: sockaddr_un is plain data, for which zero is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let room = &mut address.sun_path[1..];
    if name.len() > room.len() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "socket name is too long",
        ));
    }
    for (target, byte) in room.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    Ok((address, length as libc::socklen_t))
}

fn new_socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no preconditions.
    let raw = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the call just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn bind(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, length) = abstract_name(name)?;
    // SAFETY: the address is a valid sockaddr_un of the given length.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

fn connect(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let (address, length) = abstract_name(name)?;
    // SAFETY: the address is a valid sockaddr_un of the given length.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Where others make first contact.
#[derive(Debug)]
pub struct Listener {
    socket: OwnOnly,
}

impl Listener {
    /// Binds `name` and listens. Setup.
    ///
    /// # Errors
    /// `AddrInUse` if the name is taken.
    pub fn bind(name: &str) -> io::Result<Self> {
        let socket = new_socket(libc::SOCK_STREAM)?;
        bind(&socket, name)?;
        // SAFETY: plain call on a descriptor we own.
        check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
        Ok(Self {
            socket: OwnOnly::new(socket),
        })
    }

    /// Takes one waiting connection, if there is one. One system call.
    pub fn accept(&self) -> Option<Connection> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: null address and length mean that the peer's name is not wanted.
        let raw = unsafe {
            libc::accept4(
                self.socket.as_raw_fd(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                flags,
            )
        };
        (raw >= 0).then(|| Connection {
            // SAFETY: a non-negative result is a fresh descriptor that nobody else owns.
            socket: unsafe { OwnedFd::from_raw_fd(raw) },
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One connection between two processes; both ends are non-blocking.
#[derive(Debug)]
pub struct Connection {
    pub(crate) socket: OwnedFd,
}

impl Connection {
    /// Connects to a listener, whether or not it ever accepts.
    ///
    /// # Errors
    /// `ConnectionRefused` if nobody listens under that name, `WouldBlock` if its backlog is full
    /// just now.
    pub fn open(name: &str) -> io::Result<Self> {
        let socket = new_socket(libc::SOCK_STREAM)?;
        connect(&socket, name)?;
        Ok(Self { socket })
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// The errno of getsockopt(2).
    pub fn credentials(&self) -> io::Result<Credentials> {
        let mut found = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the option writes at most `length` bytes of a ucred.
        check(unsafe {
            let target = (&raw mut found).cast();
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                target,
                &mut length,
            )
        })?;
        Ok(Credentials {
            pid: found.pid.max(0) as u32,
            uid: found.uid,
        })
    }

    /// Sends bytes that fit into the connection's buffer, whether or not the other end has accepted
    /// it: they lie there also when this end is closed. One system call.
    ///
    /// # Errors
    /// `WriteZero` if they did not fit, `BrokenPipe` if the other end is gone, else the errno of
    /// send(2).
    pub fn send_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer is valid for its length.
        let sent = check_length(unsafe {
            let start = bytes.as_ptr().cast();
            libc::send(
                self.socket.as_raw_fd(),
                start,
                bytes.len(),
                libc::MSG_NOSIGNAL,
            )
        })?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }
}

impl From<Connection> for OwnedFd {
    fn from(connection: Connection) -> Self {
        connection.socket
    }
}

/// A datagram socket under a name: while it exists its process lives, and a datagram to it wakes a
/// sleeper.
#[derive(Debug)]
pub struct Bell {
    socket: OwnOnly,
}

impl Bell {
    /// Binds `name`. Setup.
    ///
    /// # Errors
    /// `AddrInUse` if the name is taken.
    pub fn bind(name: &str) -> io::Result<Self> {
        let socket = new_socket(libc::SOCK_DGRAM)?;
        bind(&socket, name)?;
        Ok(Self {
            socket: OwnOnly::new(socket),
        })
    }

    /// Forgets all rings so far. One system call and one per ring.
    pub fn silence(&self) {
        let mut byte = [0u8; 8];
        // SAFETY: the buffer is ours; the socket is non-blocking, so this ends when it is empty.
        while unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                byte.as_mut_ptr().cast(),
                byte.len(),
                0,
            )
        } >= 0
        {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An unnamed datagram socket that rings other processes' bells and asks whether they exist.
#[derive(Debug)]
pub struct Ringer {
    socket: OwnedFd,
}

impl Ringer {
    /// Makes one. Setup.
    ///
    /// # Errors
    /// The errno of socket(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            socket: new_socket(libc::SOCK_DGRAM)?,
        })
    }

    /// Rings the bell called `name`. A bell that has many rings waiting already is left alone. One
    /// system call.
    pub fn ring(&self, name: &str) {
        let _ = self.send(name, &[1]);
    }

    /// Sends one datagram to the socket called `name`.
    ///
    /// # Errors
    /// `ConnectionRefused` if there is none, `WouldBlock` if its queue is full.
    pub fn send(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (address, length) = abstract_name(name)?;
        // SAFETY: buffer and address are valid for their lengths.
        check_length(unsafe {
            let target = (&raw const address).cast();
            libc::sendto(
                self.socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
                target,
                length,
            )
        })?;
        Ok(())
    }

    /// Whether there is no bell of that name: its process has ended, or has closed it. False if the
    /// kernel does not let us look. One system call; nothing is queued at the other end.
    pub fn is_gone(&self, name: &str) -> bool {
        connect(&self.socket, name)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    fn unique(what: &str) -> String {
        format!(
            "weft-test-{what}-{}-{}",
            std::process::id(),
            crate::clock::monotonic_ns()
        )
    }

    #[test]
    fn a_name_vouches_for_its_process_and_vanishes_with_it() {
        let name = unique("bell");
        let ringer = Ringer::new().expect("socket");
        assert!(ringer.is_gone(&name));
        let bell = Bell::bind(&name).expect("bind");
        assert!(!ringer.is_gone(&name));
        assert_eq!(
            Bell::bind(&name).expect_err("taken").kind(),
            io::ErrorKind::AddrInUse
        );
        drop(bell);
        assert!(ringer.is_gone(&name));
    }

    #[test]
    fn a_ring_makes_the_bell_readable_until_silenced() {
        let name = unique("ring");
        let bell = Bell::bind(&name).expect("bind");
        let ringer = Ringer::new().expect("socket");
        assert!(!crate::sleep::wait_readable(bell.as_fd().as_raw_fd(), 0));
        for _ in 0..1000 {
            ringer.ring(&name);
        }
        assert!(crate::sleep::wait_readable(bell.as_fd().as_raw_fd(), 0));
        bell.silence();
        assert!(!crate::sleep::wait_readable(bell.as_fd().as_raw_fd(), 0));
    }

    #[test]
    fn a_file_passes_over_a_connection_and_credentials_are_known_before_it_is_accepted() {
        let name = unique("listen");
        let listener = Listener::bind(&name).expect("bind");
        let client = Connection::open(&name).expect("connect");
        let who = client.credentials().expect("credentials");
        assert_eq!(who.pid, std::process::id());
        assert!(client.receive_file().expect("nothing yet").is_none());
        let server = listener.accept().expect("waiting connection");
        let mut file = tempfile();
        file.write_all(b"weft").expect("write");
        server.send_file(file.as_fd()).expect("send");
        let mut received =
            std::fs::File::from(client.receive_file().expect("received").expect("file"));
        received.rewind().expect("seek");
        let mut text = String::new();
        received.read_to_string(&mut text).expect("read");
        assert_eq!(text, "weft");
    }

    #[test]
    fn bytes_wait_for_a_listener_that_has_not_accepted_while_their_sender_is_gone() {
        let name = unique("bytes");
        let listener = Listener::bind(&name).expect("bind");
        for text in ["one", "two"] {
            let client = Connection::open(&name).expect("connect");
            client.send_bytes(text.as_bytes()).expect("send");
        }
        for text in ["one", "two"] {
            let connection = listener.accept().expect("waiting connection");
            let mut stream = std::os::unix::net::UnixStream::from(connection.socket);
            let mut found = String::new();
            stream.read_to_string(&mut found).expect("read to the end");
            assert_eq!(found, text);
        }
    }

    #[test]
    fn a_listener_that_closes_without_answering_is_noticed() {
        let name = unique("reset");
        let listener = Listener::bind(&name).expect("bind");
        let client = Connection::open(&name).expect("connect");
        drop(listener.accept());
        assert_eq!(
            client.receive_file().expect_err("closed").kind(),
            io::ErrorKind::ConnectionReset
        );
    }

    fn tempfile() -> std::fs::File {
        crate::region_file::create_memfd("weft-test-file", 4)
            .expect("memfd")
            .into()
    }
}

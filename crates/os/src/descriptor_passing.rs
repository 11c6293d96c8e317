// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handing a file to another process over a connection (SCM_RIGHTS, unix(7)), and taking one:
//! exactly one. Whatever else comes along is closed. Used by shm at first contact.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check_length;
use crate::local_socket::Connection;

/// Room for descriptors in one answer. Chosen: more than one, so that a sender of several is found
/// out.
const ROOM_COUNT: usize = 4;

impl Connection {
    /// Sends one byte and a descriptor beside it.
    ///
    /// # Errors
    /// The errno of sendmsg(2).
    pub fn send_file(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.send_files(&[file])
    }

    fn send_files(&self, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut control = ControlBuffer::default();
        let mut byte = [1u8];
        let mut vector = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        let message = control.message(&mut vector, files.len());
        // SAFETY: the control buffer has room for so many descriptors, so that the first header and
        // what is written after it lie inside.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of_val(files) as u32) as usize;
            let first = libc::CMSG_DATA(header).cast::<libc::c_int>();
            for (index, file) in files.iter().enumerate() {
                first.add(index).write_unaligned(file.as_raw_fd());
            }
        }
        // SAFETY: message, vector and control buffer live through the call.
        check_length(unsafe {
            libc::sendmsg(self.socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
        })?;
        Ok(())
    }

    /// Takes the descriptor that the other end sent; None if it has not answered yet.
    ///
    /// # Errors
    /// `ConnectionReset` if it closed without sending one, `InvalidData` if it sent none or several
    /// (none of which is kept); the errno of recvmsg(2).
    pub fn receive_file(&self) -> io::Result<Option<OwnedFd>> {
        let mut control = ControlBuffer::default();
        let mut byte = [0u8];
        let mut vector = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        let mut message = control.message(&mut vector, ROOM_COUNT);
        let flags = libc::MSG_CMSG_CLOEXEC;
        // SAFETY: message, vector and control buffer live through the call.
        let result = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut message, flags) };
        match check_length(result) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(_) => {}
        }
        let mut files = files_in(&message);
        let is_cut = message.msg_flags & libc::MSG_CTRUNC != 0;
        match files.pop() {
            Some(file) if files.is_empty() && !is_cut => Ok(Some(file)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// All descriptors that came with a message.
fn files_in(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut files = Vec::new();
    // SAFETY: the kernel filled the control buffer; the macros stay inside it.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the header lies in the control buffer.
        let (level, kind, length) = unsafe {
            (
                (*header).cmsg_level,
                (*header).cmsg_type,
                (*header).cmsg_len,
            )
        };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: CMSG_LEN only computes.
            let payload_bytes = length.saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize);
            for index in 0..payload_bytes / size_of::<libc::c_int>() {
                // SAFETY: the descriptor lies in what the kernel has filled, and is ours alone.
                files.push(unsafe {
                    let place = libc::CMSG_DATA(header).cast::<libc::c_int>();
                    OwnedFd::from_raw_fd(place.add(index).read_unaligned())
                });
            }
        }
        // SAFETY: the header is one that CMSG_FIRSTHDR or CMSG_NXTHDR gave for this message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    files
}

/// Room for descriptors in a message's control part, aligned as cmsg(3) wants it.
#[derive(Default)]
#[repr(C, align(8))]
struct ControlBuffer {
    bytes: [u8; 32],
}

impl ControlBuffer {
    fn message(&mut self, vector: &mut libc::iovec, count: usize) -> libc::msghdr {
        // SAFETY: msghdr is plain data, for which zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = vector;
        message.msg_iovlen = 1;
        message.msg_control = self.bytes.as_mut_ptr().cast();
        let payload_bytes = (count * size_of::<libc::c_int>()) as u32;
        // SAFETY: CMSG_SPACE only computes.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(payload_bytes) } as usize;
        assert!(message.msg_controllen <= self.bytes.len(), "at most four");
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_socket::Listener;
    use crate::region_file::create_memfd;
    use std::os::fd::AsFd;

    fn pair(what: &str) -> (Connection, Connection) {
        // A child that another test forks can hold a closed listener's name a moment longer, so no
        // name is used twice.
        let (process, now_ns) = (std::process::id(), crate::clock::monotonic_ns());
        let name = format!("weft-test-{what}-{process}-{now_ns}");
        let listener = Listener::bind(&name).expect("bind");
        let client = Connection::open(&name).expect("connect");
        (client, listener.accept().expect("waiting connection"))
    }

    /// How many descriptors of this process are this file.
    fn open_count(name: &str) -> usize {
        let entries = std::fs::read_dir("/proc/self/fd").expect("proc").flatten();
        let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links
            .filter(|link| link.to_string_lossy().contains(name))
            .count()
    }

    #[test]
    fn whoever_sends_several_files_is_refused_and_none_of_them_stays_open() {
        let file = create_memfd("weft-several", 4096).expect("memfd");
        for count in [2, 3, 4] {
            let (client, server) = pair("several");
            server.send_files(&vec![file.as_fd(); count]).expect("sent");
            let error = client.receive_file().expect_err("too many");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(open_count("weft-several"), 1, "of {count}");
        }
        let (client, server) = pair("one");
        server.send_file(file.as_fd()).expect("sent");
        assert!(client.receive_file().expect("one").is_some());
    }

    #[test]
    fn a_byte_without_a_file_is_refused() {
        let (client, server) = pair("none");
        // SAFETY: one byte that lives through the call.
        let sent = unsafe { libc::send(server.socket.as_raw_fd(), c"x".as_ptr().cast(), 1, 0) };
        assert_eq!(sent, 1);
        let error = client.receive_file().expect_err("no file");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint may ask of this route when it is opened, and how opening can fail.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use weft_memory::OwnHeap;

/// Whether large messages may be fetched from the sender's memory (Cross Memory Attach).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SingleCopy {
    /// Where the kernel permits it and it has lately been faster.
    #[default]
    Auto,
    /// Where the kernel permits it.
    Always,
    /// Never.
    Never,
}

/// How to open a [`crate::Transport`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address under which others reach the endpoint; port 0 means any free one. None: the
    /// machine's default address.
    pub address: Option<SocketAddr>,
    /// Whether the endpoint holds the UDP port of `address` already; else the transport does, so
    /// that no other endpoint chooses the same address.
    pub port_is_held: bool,
    /// Whether the owner has another route to remotes whose region cannot be mapped, for lack of
    /// addresses. Without one, sends to them fail.
    pub has_other_route: bool,
    /// Single copy or not.
    pub single_copy: SingleCopy,
    /// A directory for the region's file, where memfd_create is not wanted; the file has no name in
    /// it.
    pub directory: Option<PathBuf>,
    /// Our memory that others may map, if there is any.
    pub heap: Option<OwnHeap>,
    /// Tells the user, in one sentence, what is wrong, if no completion can explain it.
    pub report: fn(&str),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: None,
            port_is_held: false,
            has_other_route: false,
            single_copy: SingleCopy::Auto,
            directory: None,
            heap: None,
            report: |_| {},
        }
    }
}

/// Why a transport could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The address is taken or not ours.
    Address(SocketAddr, io::Error),
    /// The region's memory could not be had.
    Region(io::Error),
    /// The directory given for regions cannot be used.
    Directory(PathBuf, io::Error),
    /// The sockets for first contact could not be made.
    Sockets(io::Error),
}

impl OpenError {
    /// The system's error behind it.
    pub fn source_error(&self) -> &io::Error {
        match self {
            Self::Address(_, error)
            | Self::Region(error)
            | Self::Directory(_, error)
            | Self::Sockets(error) => error,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address, error) => {
                write!(
                    f,
                    "cannot use the address {address}: {error}; choose another with the node and \
                     service arguments"
                )
            }
            Self::Region(error) => write!(
                f,
                "no memory for the shared region ({} MiB of address space, pages as they are \
                 used): {error}; see the limits of this job on memory and files (ulimit -v, \
                 ulimit -f, cgroup){}",
                weft_ring::layout::REGION_BYTES >> 20,
                weft_os::limits::in_words()
            ),
            Self::Directory(path, error) => write!(
                f,
                "cannot keep shared regions in {}: {error}; name a writable directory on a local \
                 file system in FI_WEFT_REGION_DIR, or unset it to use anonymous memory",
                path.display()
            ),
            Self::Sockets(error) => write!(
                f,
                "cannot make local sockets: {error}; see the limit of open files (ulimit -n)"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint may ask of this route when it is opened, and how opening can fail.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weft_seal::Trust;

/// How to open a [`crate::Transport`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to be known by; port 0 means any free one. None: the machine's default address.
    /// Seven more ports of the same address are taken, any that are free.
    pub address: Option<SocketAddr>,
    /// Addresses of this host, one of each interface, that may be used together: where the
    /// endpoint's own is one of them, up to three others of its family are used besides
    /// (srd-protocol 17). Empty: the endpoint's own alone.
    pub together: Vec<IpAddr>,
    /// How long a remote may be silent while something is expected of it. 1 ms to an hour.
    pub dead_after: Duration,
    /// The largest datagram to send and to take, 1200 to 65,507 bytes; None: what the interface
    /// takes.
    pub datagram_limit_bytes: Option<u16>,
    /// How many of the 64 paths to use, 1 to 64.
    pub path_count: u8,
    /// Who is let in. None: everybody, without a guard.
    pub trust: Option<Trust>,
    /// Tells the user something that is wrong and that no completion can explain, in one sentence.
    pub report: fn(&str),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: None,
            together: Vec::new(),
            dead_after: Duration::from_secs(5),
            datagram_limit_bytes: None,
            path_count: 64,
            trust: None,
            report: |_| {},
        }
    }
}

/// Why a transport could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The address is taken or not ours.
    Address(SocketAddr, io::Error),
    /// Sockets, or a descriptor to wait on, could not be made.
    Sockets(io::Error),
    /// A setting that cannot be: which, its value, and what is allowed.
    Setting(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address, error) => write!(
                f,
                "cannot use the address {address}: {error}; choose another with the node and \
                 service arguments"
            ),
            Self::Sockets(error) => write!(
                f,
                "cannot make UDP sockets: {error}; see the limit of open files (ulimit -n)"
            ),
            Self::Setting(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for OpenError {}

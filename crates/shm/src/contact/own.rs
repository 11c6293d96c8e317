// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this endpoint shows the others: its region, its names, and who it is. Opened by transport;
//! asked by reach and lives who is reached, and who is gone.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use weft_os::at_fork::OwnOnly;
use weft_os::local_socket::{Bell, Listener, Ringer};
use weft_os::process_id::ProcessId;
use weft_os::sleep::WaitSet;
use weft_os::{crash_point, interface, own_listener, process};
use weft_ring::doorbell::Doorbell;
use weft_ring::{AttachError, Identity, Region, Slots};

use crate::contact::backing;
use crate::settings::{OpenError, Settings, SingleCopy};
use crate::wait::node::Node;

/// Askers that are answered at one address at a time. Chosen: a thousand wait some tens of
/// milliseconds.
const ANSWERED_COUNT: usize = 64;

/// A further address of this endpoint.
#[derive(Debug)]
struct Alias {
    address: SocketAddr,
    listener: Listener,
}

/// What this endpoint shows the others.
#[derive(Debug)]
pub(crate) struct Own {
    region: Region,
    file: OwnOnly,
    identity: Identity,
    listener: Listener,
    bell: Bell,
    /// Further addresses under which we are found.
    aliases: Vec<Alias>,
    ringer: Ringer,
    node: Node,
    report: fn(&str),
    /// Keeps the port ours, unless the endpoint does.
    _port: Option<OwnOnly>,
    /// The word others try single copy on; boxed, so that its address stays.
    _probe: Box<u64>,
}

/// The name under which an endpoint makes first contact. The same in all versions, so that another
/// version is met and recognised.
pub(crate) fn listener_name(address: SocketAddr) -> String {
    format!("weft/{address}")
}

/// The name of the bell of an incarnation. Nobody can take it beforehand, since nobody knows it;
/// and who comes after it at the same address has another one.
fn bell_name(incarnation: u64) -> String {
    format!("weft/bell/{incarnation:016x}")
}

/// The name of its region file.
pub(crate) fn region_name(address: SocketAddr) -> String {
    format!("weft {address}")
}

impl Own {
    pub(crate) fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (address, port) = take_port(settings)?;
        let file = OwnOnly::new(backing::make_file(settings, &region_name(address))?);
        let random = process::random_u64().map_err(OpenError::Sockets)?;
        let incarnation = Identity::incarnation_of(random);
        let identity = Identity {
            address,
            incarnation,
            process: ProcessId::own(),
        };
        let probe = Box::new(incarnation);
        let probe_address = (&raw const *probe) as u64;
        let region = Region::create(file.as_fd(), &identity, (probe_address, incarnation))
            .map_err(not_mapped)?;
        if let Some(heap) = &settings.heap {
            region.show_heap(heap.shown().words());
        }
        if settings.single_copy != SingleCopy::Never {
            process::allow_readers();
        }
        crash_point!(2, "open: the region is published, no socket has a name");
        // The bell first: who finds the listener takes an endpoint without a bell for dead.
        let bell = Bell::bind(&bell_name(incarnation)).map_err(OpenError::Sockets)?;
        crash_point!(3, "open: the bell has its name, the listener has none");
        let listener = own_listener::bind(&listener_name(address)).map_err(OpenError::Sockets)?;
        Ok(Self {
            region,
            file,
            identity,
            listener,
            bell,
            aliases: Vec::new(),
            ringer: Ringer::new().map_err(OpenError::Sockets)?,
            node: Node::look(),
            report: settings.report,
            _port: port,
            _probe: probe,
        })
    }
}

/// The address to be known by, and what keeps its port ours.
fn take_port(settings: &Settings) -> Result<(SocketAddr, Option<OwnOnly>), OpenError> {
    let wanted = settings
        .address
        .unwrap_or_else(|| SocketAddr::new(interface::default_address(), 0));
    if settings.port_is_held {
        return Ok((wanted, None));
    }
    let taken = |error| OpenError::Address(wanted, error);
    let port = UdpSocket::bind(wanted).map_err(taken)?;
    let address = port.local_addr().map_err(taken)?;
    Ok((address, Some(OwnOnly::new(port.into()))))
}

impl Own {
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The ranks of the node that we run on.
    #[inline(always)]
    pub(crate) fn node(&self) -> Node {
        self.node
    }

    /// Tells the user something that no completion can explain, in one sentence.
    pub(crate) fn report(&self, text: &str) {
        (self.report)(text);
    }

    /// All of our region but the lanes of others.
    #[inline(always)]
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// What others ring.
    #[inline(always)]
    pub(crate) fn doorbell(&self) -> &Doorbell {
        self.region.doorbell()
    }

    /// Who sends to us.
    pub(crate) fn slots(&self) -> Slots<'_> {
        self.region.slots()
    }

    /// The file of our region.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Wakes an endpoint that sleeps. One system call.
    pub(crate) fn ring(&self, incarnation: u64) {
        self.ringer.ring(&bell_name(incarnation));
    }

    /// Whoever rang before this does not wake us.
    pub(crate) fn silence_bell(&self) {
        self.bell.silence();
    }

    /// Who we are to a remote: under its own address if we have that too, as sockets choose their
    /// source.
    pub(crate) fn facing(&self, remote: SocketAddr) -> Identity {
        let alias = self
            .aliases
            .iter()
            .find(|alias| alias.address.ip() == remote.ip());
        Identity {
            address: alias.map_or(self.identity.address, |alias| alias.address),
            ..self.identity
        }
    }

    /// Whether an address is one of ours.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        address == self.identity.address
            || self.aliases.iter().any(|alias| alias.address == address)
    }

    /// Has others reach us under every address of this host, loopback included, wherever nobody
    /// else has the port, as long as `wait_set` can wake for it. Set-up.
    pub(crate) fn listen_everywhere(&mut self, wait_set: &WaitSet) {
        let port = self.identity.address.port();
        let everywhere = interface::addresses().unwrap_or_default().into_iter();
        for address in everywhere.map(|entry| SocketAddr::new(entry.address, port)) {
            if self.is_at(address) {
                continue;
            }
            if let Ok(listener) = Listener::bind(&listener_name(address))
                && wait_set.add(listener.as_fd()).is_ok()
            {
                self.aliases.push(Alias { address, listener });
            }
        }
    }

    /// Has `wait_set` wake for whoever rings or makes contact.
    pub(crate) fn wake(&self, wait_set: &WaitSet) -> io::Result<()> {
        wait_set.add(self.bell.as_fd())?;
        wait_set.add(self.listener.as_fd())
    }

    /// All that others make contact with.
    fn listeners(&self) -> impl Iterator<Item = &Listener> {
        let aliases = self.aliases.iter().map(|alias| &alias.listener);
        std::iter::once(&self.listener).chain(aliases)
    }

    /// Hands our region to those who asked for it; forgets those who only looked who we are. Some
    /// at a time: whoever connects again and again must not keep us here.
    pub(crate) fn answer_askers(&self) {
        self.listeners()
            .for_each(|listener| self.answer_at(listener));
    }

    fn answer_at(&self, listener: &Listener) {
        for connection in std::iter::from_fn(|| listener.accept()).take(ANSWERED_COUNT) {
            if connection
                .credentials()
                .is_ok_and(|who| who.uid == process::own_uid())
            {
                crash_point!(17, "answer: an asker is accepted, the region not sent");
                // An asker that found the region by itself has hung up already; that is no error.
                let _ = connection.send_file(self.file.as_fd());
                crash_point!(18, "answer: the region is sent");
            }
        }
    }

    /// Whether this is a child process of the one that opened it.
    pub(crate) fn is_inherited(&self) -> bool {
        self.identity.process.pid != process::own_pid()
    }

    /// Whether an endpoint is known to be gone: closed, or its process has ended. That a name is
    /// there proves little (a child that was made by a raw clone(2) may hold it, or anybody have
    /// taken it since); so the process is looked at, too. One system call if it is gone, else some
    /// ten microseconds.
    pub(crate) fn is_gone(&self, who: &Identity) -> bool {
        self.has_closed(who.incarnation) || who.process.has_ended(&self.identity.process)
    }

    /// Whether the bell of an endpoint is gone. One system call.
    pub(crate) fn has_closed(&self, incarnation: u64) -> bool {
        incarnation != self.identity.incarnation && self.ringer.is_gone(&bell_name(incarnation))
    }
}

fn not_mapped(error: AttachError) -> OpenError {
    OpenError::Region(match error {
        AttachError::NotMapped(errno) => io::Error::from_raw_os_error(errno),
        other => io::Error::other(format!("{other:?}")),
    })
}

#[cfg(test)]
impl Own {
    /// As if the node were another one.
    pub(crate) fn set_node(&mut self, node: Node) {
        self.node = node;
    }
}

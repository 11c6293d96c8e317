// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the endpoints of this user on this machine and reads what they publish
//! (docs/shm-layout.md, clauses 8 and 9).
//!
//! Endpoints listen on abstract sockets `weft/ADDRESS`, which /proc/net/unix lists; the kernel
//! names the process behind each. Its region file is opened as a remote would open it, and read
//! without being mapped: the job never notices.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use weft_os::local_socket::Connection;
use weft_os::{clock, own_listener, process};
use weft_ring::snapshot::{SNAPSHOT_BYTES, Snapshot, SnapshotError};

use super::place::Place;
use super::rates::{self, Report};
use super::reading::Reading;
use super::{collectives, mounts, network};

/// How long an endpoint whose region cannot be opened directly is waited for: it hands the file
/// over when it next makes progress. Chosen: an endpoint that makes any does so within
/// milliseconds.
const ASKING: Duration = Duration::from_millis(20);

/// One endpoint that was found.
#[derive(Debug)]
struct Found {
    pid: u32,
    place: Place,
    region: File,
    /// Of its network route, once that has something to say.
    network: Option<File>,
    /// Of its process's calls of collectives, once there were any.
    collectives: Option<File>,
}

/// All endpoints known, with the last reading of each.
#[derive(Debug, Default)]
pub struct Watch {
    known: HashMap<SocketAddr, Found>,
    last: HashMap<SocketAddr, Reading>,
    last_ns: u64,
    refused: Vec<String>,
}

impl Watch {
    /// Reads all endpoints; rates are those since the call before.
    ///
    /// # Errors
    /// When /proc/net/unix cannot be read.
    pub fn read(&mut self) -> io::Result<Report> {
        let addresses = listeners(&weft_os::proc_text::read("/proc/net/unix").map_err(|error| {
            let text = format!(
                "/proc/net/unix, where endpoints are found, cannot be read: {error}; mount /proc"
            );
            io::Error::new(error.kind(), text)
        })?);
        self.known.retain(|address, _| addresses.contains(address));
        self.refused.clear();
        for address in addresses {
            if self.known.contains_key(&address) {
                continue;
            }
            match find(address) {
                Ok(Some(found)) => {
                    self.known.insert(address, found);
                }
                Ok(None) => {}
                Err(why) => self.refused.push(format!("{address}: {why}")),
            }
        }
        let now_ns = clock::monotonic_ns();
        let mut readings = HashMap::new();
        for (address, found) in &mut self.known {
            let before = self.last.get(address);
            match found.read(*address, before) {
                Ok(reading) if reading.snapshot.is_open => {
                    readings.insert(*address, reading);
                }
                Ok(_) => {}
                Err(why) => self.refused.push(format!("{address}: {why}")),
            }
        }
        // An endpoint that closed makes room for the next one at its address.
        self.known
            .retain(|address, _| readings.contains_key(address));
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        let mut report = rates::report(&self.last, &readings, now_ns, elapsed_ns, &self.refused);
        report.mounts = mounts::of(&report.endpoints);
        (self.last, self.last_ns) = (readings, now_ns);
        Ok(report)
    }
}

impl Found {
    fn read(&mut self, address: SocketAddr, before: Option<&Reading>) -> Result<Reading, String> {
        let mut bytes = vec![0; SNAPSHOT_BYTES];
        self.region
            .read_exact_at(&mut bytes, 0)
            .map_err(|error| format!("its region cannot be read: {error}"))?;
        let snapshot = Snapshot::read(&bytes).map_err(|error| match error {
            SnapshotError::NotARegion => "its file is no region".to_owned(),
            SnapshotError::OtherVersion(version) => format!(
                "it publishes layout {version} and this weft reads {}; use the weft of its \
                 libweft-fi.so",
                weft_ring::layout::LAYOUT_VERSION
            ),
        })?;
        if self.network.is_none() {
            self.network = network::open(self.pid, address);
        }
        let before = before.and_then(|reading| reading.network.as_ref());
        let network = self.network.as_ref().and_then(network::read);
        if self.collectives.is_none() {
            self.collectives = collectives::open(self.pid);
        }
        Ok(Reading {
            pid: self.pid,
            place: self.place.clone(),
            snapshot,
            network: network.map(|network| network.since(before)),
            collectives: self.collectives.as_ref().and_then(collectives::read),
        })
    }
}

/// The addresses of listening sockets named after one, in the text of /proc/net/unix (unix(7),
/// Documentation/filesystems/proc.rst).
fn listeners(text: &str) -> Vec<SocketAddr> {
    /// The flag of a socket that listens (__SO_ACCEPTCON).
    const LISTENS: &str = "00010000";
    let address = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (flags, name) = (fields.get(3)?, fields.get(7)?);
        (*flags == LISTENS).then_some(())?;
        let name = name.strip_prefix("@weft/")?;
        // An endpoint whose name was taken listens beside it (docs/shm-layout.md, clause 8).
        name.split_once('/')
            .map_or(name, |(name, _)| name)
            .parse()
            .ok()
    };
    let mut found: Vec<SocketAddr> = text.lines().filter_map(address).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The endpoint at an address; none if it is gone or another user's.
fn find(address: SocketAddr) -> Result<Option<Found>, String> {
    let Ok((connection, who)) = own_listener::connect(&format!("weft/{address}")) else {
        return Ok(None);
    };
    let name = format!("weft {address}");
    let opened = process::open_memfd_of(who.pid, &name, -1).ok();
    let region = match opened {
        Some(file) => file,
        None => ask(&connection)?,
    };
    Ok(Some(Found {
        pid: who.pid,
        place: Place::of(who.pid),
        region: region.into(),
        network: None,
        collectives: None,
    }))
}

fn ask(connection: &Connection) -> Result<std::os::fd::OwnedFd, String> {
    let end = Instant::now() + ASKING;
    loop {
        match connection.receive_file() {
            Ok(Some(file)) => return Ok(file),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                return Err(
                    "its region cannot be opened, and it makes no progress in which it could hand \
                     it over"
                        .to_owned(),
                );
            }
            Err(error) => return Err(format!("its region cannot be had: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_named_after_an_address_are_found_and_bells_are_not() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 1 @weft/127.0.0.1:4000\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 1 @weft/127.0.0.1:4000\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 2 @weft/127.0.0.1:4000/bell\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 3 @weft/[::1]:5/12ab\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 4 /run/weft/127.0.0.1:9\n";
        let expected: Vec<SocketAddr> = ["127.0.0.1:4000", "[::1]:5"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(listeners(text), expected);
    }
}

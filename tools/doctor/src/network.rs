// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams as the route between hosts sends them, tried on this host's own addresses: the largest
//! that each interface's MTU lets through, many joined in one call, bursts that nobody takes at
//! once, and all pairs of ports that stand for paths.
//!
//! Called by `lib.rs`. Source: udp(7), docs/srd-protocol.md (clauses 16 and 17).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use weft_launch::number_text::size;
use weft_os::datagrams::ReceiveBatch;
use weft_os::interface::{self, InterfaceAddress};
use weft_os::outbound::{SEGMENTS_BYTES, SendFailure};
use weft_os::similar_interfaces::{self, Kind};
use weft_os::udp_socket::UdpSocket;
use weft_os::{outbound, sleep};

use crate::check::{Check, Status};
use crate::contact::FURTHER_ADDRESSES;
use crate::tree::Tree;

const DATAGRAMS: &str = "datagrams";
const JOINED: &str = "joined datagrams";
const BUFFERS: &str = "socket buffers";
const PATHS: &str = "paths";
const FLOWS: &str = "limits of flows";
const HOSTS: &str = "other hosts";

/// What a datagram takes besides its bytes: headers of IP and UDP.
const V4_HEADER_BYTES: u32 = 28;
const V6_HEADER_BYTES: u32 = 48;
/// The least that every network carries. Specified by srd-protocol 16.
const LEAST_BYTES: usize = SEGMENT_BYTES as usize;
const SEGMENT_BYTES: u16 = 1200;
/// Datagrams that are sent joined. Chosen: a burst of the route.
const SEGMENTS: usize = 8;
/// The socket buffers that the route asks for, and the burst that is sent into one.
const BUFFER_BYTES: usize = 4 << 20;
/// The burst comes in datagrams of this length.
const BURST_BYTES: usize = 8192;
/// Less of a burst than this is too little for a window. Chosen: eight datagrams of 8 KiB.
const LEAST_BURST_BYTES: usize = 64 << 10;
/// Ports of an endpoint; each pair of them is a path. Specified by srd-protocol 17.
const PORTS: usize = 8;
/// Addresses that are tried. Chosen: hosts with more have them for containers.
const ADDRESSES: usize = 8;
/// How long a datagram may take to come back. Chosen: guards against waiting for a lost one.
const PATIENCE_MS: i32 = 1000;

/// All checks of this file.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let all = interface::addresses().unwrap_or_default();
    let first = interface::default_address();
    let used: Vec<IpAddr> = std::iter::once(first)
        .chain(
            similar_interfaces::others(first, &all, FURTHER_ADDRESSES, Kind::of)
                .into_iter()
                .filter(|other| other.passed_over.is_none())
                .map(|other| other.interface.address),
        )
        .collect();
    vec![
        datagrams(&all, first, exchange_largest),
        joined(send_joined(first)),
        buffers(burst(first), tree.number("/proc/sys/net/core/rmem_max")),
        paths(&used, carried_pairs(&used)),
        flows(tree.text("/sys/class/dmi/id/sys_vendor").as_deref()),
        hosts(),
    ]
}

/// A datagram of the largest size for its interface to and from every local address.
fn datagrams(
    all: &[InterfaceAddress],
    first: IpAddr,
    exchange: fn(IpAddr) -> io::Result<usize>,
) -> Check {
    let why = "messages between hosts are datagrams as large as the interface takes";
    let mut tried: Vec<&InterfaceAddress> = all.iter().collect();
    tried.sort_by_key(|entry| entry.address != first);
    tried.truncate(ADDRESSES);
    let (mut well, mut bad) = (Vec::new(), Vec::new());
    for entry in &tried {
        let InterfaceAddress { name, address, .. } = entry;
        match exchange(*address) {
            Ok(bytes) => well.push(format!("{bytes} bytes on {address} ({name})")),
            Err(error) => bad.push((*address, format!("{address} ({name}): {error}"))),
        }
    }
    if tried.is_empty() {
        return Check::ok(DATAGRAMS, "no interface with an address is up", why)
            .but(Status::Fail, "ip link set lo up");
    }
    if bad.is_empty() {
        return Check::ok(DATAGRAMS, well.join(", "), why);
    }
    let status = if bad.iter().any(|(address, _)| *address == first) {
        Status::Fail
    } else {
        Status::Warn
    };
    let words: Vec<&str> = bad.iter().map(|(_, words)| words.as_str()).collect();
    Check::ok(DATAGRAMS, words.join(", "), why)
        .but(
            status,
            "see which firewall rule drops UDP there (nft list ruleset); FI_WEFT_IFACE names \
             another interface",
        )
        .limited_by(format!(
            "a datagram must come within {} s",
            PATIENCE_MS / 1000
        ))
}

/// Two sockets on this address exchange the largest datagram; answers its bytes.
fn exchange_largest(address: IpAddr) -> io::Result<usize> {
    let headers = match address {
        IpAddr::V4(_) => V4_HEADER_BYTES,
        IpAddr::V6(_) => V6_HEADER_BYTES,
    };
    let mtu = interface::mtu_of(address).and_then(|mtu| mtu.checked_sub(headers));
    let bytes = mtu.map_or(LEAST_BYTES, |bytes| (bytes as usize).min(SEGMENTS_BYTES));
    let (from, to) = (bind(address)?, bind(address)?);
    let sent = content(bytes);
    outbound::send_bytes(&from, to.local_address()?, &sent, 0)?;
    let got = receive(&to, 1, sent.len())?;
    if got.bytes == sent {
        Ok(bytes)
    } else {
        Err(io::Error::other("other bytes came than were sent"))
    }
}

/// How many datagrams came for those that were sent joined.
fn send_joined(address: IpAddr) -> io::Result<Joined> {
    let (from, to) = (bind(address)?, bind(address)?);
    let receives_joined = to.receive_joined();
    let sent = content(SEGMENTS * LEAST_BYTES);
    outbound::send_bytes(&from, to.local_address()?, &sent, SEGMENT_BYTES)?;
    let got = receive(&to, SEGMENTS, sent.len())?;
    if got.bytes != sent {
        return Err(io::Error::other("other bytes came than were sent"));
    }
    Ok(Joined {
        receives_joined,
        receipts: got.receipts,
    })
}

/// What came of datagrams sent joined.
#[derive(Debug, Clone, Copy)]
struct Joined {
    receives_joined: bool,
    receipts: usize,
}

fn joined(tried: io::Result<Joined>) -> Check {
    let why = "one call that sends and takes many datagrams costs a fraction of one call for each";
    let fix = "Linux 4.18 or later sends joined datagrams, 5.0 or later takes them; a sandbox \
               (gVisor) may lack them: Weft then sends them one by one";
    match tried {
        Ok(Joined {
            receives_joined: true,
            receipts: 1,
        }) => Check::ok(
            JOINED,
            format!("{SEGMENTS} were sent in one call and taken in one"),
            why,
        ),
        Ok(Joined { receipts, .. }) => Check::ok(
            JOINED,
            format!("{SEGMENTS} were sent in one call, but came as {receipts}"),
            why,
        )
        .but(Status::Warn, fix),
        Err(error) => {
            let what = match SendFailure::of(&error) {
                SendFailure::CannotJoin => format!("the kernel does not join them: {error}"),
                _ => error.to_string(),
            };
            Check::ok(JOINED, what, why).but(Status::Warn, fix)
        }
    }
}

/// Bytes of a burst that a socket kept while nobody took any.
fn burst(address: IpAddr) -> io::Result<usize> {
    let (from, to) = (bind(address)?, bind(address)?);
    to.set_buffers(BUFFER_BYTES);
    from.set_buffers(BUFFER_BYTES);
    let (one, there) = (content(BURST_BYTES), to.local_address()?);
    for _ in 0..BUFFER_BYTES / BURST_BYTES {
        match outbound::send_bytes(&from, there, &one, 0) {
            Ok(()) => {}
            // What is sent to oneself is taken or thrown away at once: it is the receiver's room
            // that is asked for.
            Err(error) if SendFailure::of(&error) == SendFailure::Full => break,
            Err(error) => return Err(error),
        }
    }
    let mut kept = 0;
    let mut batch = ReceiveBatch::new(16, BURST_BYTES);
    while sleep::wait_readable(
        to.as_fd().as_raw_fd(),
        if kept == 0 { PATIENCE_MS } else { 0 },
    ) {
        let count = batch.receive(&to)?;
        let lengths = (0..count).filter_map(|index| Some(batch.get(index)?.bytes.len()));
        kept += lengths.sum::<usize>();
    }
    Ok(kept)
}

fn buffers(tried: io::Result<usize>, most: Option<u64>) -> Check {
    let why = "while a rank computes, what comes for it waits in the socket; what finds no room is \
               sent again";
    let fix = format!("sysctl net.core.rmem_max={BUFFER_BYTES} net.core.wmem_max={BUFFER_BYTES}");
    let most = most.map_or_else(
        || "net.core.rmem_max cannot be read".to_owned(),
        |most| format!("net.core.rmem_max is {}", size(most)),
    );
    match tried {
        Ok(kept) => Check::ok(
            BUFFERS,
            format!(
                "a socket keeps {} of a burst of {} ({most})",
                size(kept as u64),
                size(BUFFER_BYTES as u64)
            ),
            why,
        )
        .but_if(kept < LEAST_BURST_BYTES, Status::Warn, &fix)
        .limited_by(format!("{} are wanted", size(LEAST_BURST_BYTES as u64))),
        Err(error) => Check::ok(BUFFERS, format!("{error} ({most})"), why).but(Status::Warn, fix),
    }
}

/// How many pairs of ports carried a datagram, of how many, over all pairs of these addresses.
fn carried_pairs(used: &[IpAddr]) -> io::Result<(usize, usize)> {
    let open = |address: &IpAddr| {
        let sockets = (0..PORTS).map(|_| bind(*address));
        sockets.collect::<io::Result<Vec<_>>>()
    };
    let open_all = || {
        let lists = used.iter().map(open).collect::<io::Result<Vec<_>>>();
        lists.map(|lists| lists.into_iter().flatten().collect::<Vec<_>>())
    };
    let (from, to) = (open_all()?, open_all()?);
    for there in &to {
        let address = there.local_address()?;
        for here in &from {
            // Where it is refused it does not come, either.
            let _ = outbound::send_bytes(here, address, b"path", 0);
        }
    }
    let end = Instant::now() + Duration::from_millis(PATIENCE_MS as u64);
    let mut batch = ReceiveBatch::new(PORTS, LEAST_BYTES);
    let mut carried = 0;
    for there in &to {
        let mut came = 0;
        while came < from.len() && wait_until(there, end) {
            came += batch.receive(there)?;
        }
        carried += came;
    }
    Ok((carried, from.len() * to.len()))
}

/// Whether something comes by then.
fn wait_until(socket: &UdpSocket, end: Instant) -> bool {
    let left = end.saturating_duration_since(Instant::now()).as_millis();
    let left = i32::try_from(left).unwrap_or(PATIENCE_MS);
    sleep::wait_readable(socket.as_fd().as_raw_fd(), left)
}

fn paths(used: &[IpAddr], tried: io::Result<(usize, usize)>) -> Check {
    let why = "a message is spread over pairs of ports, which switches send along different ways, \
               and over further interfaces of the same kind";
    let places: Vec<String> = used.iter().map(IpAddr::to_string).collect();
    let places = places.join(" and ");
    let fix = "see which firewall rule knows some ports only, or which route leads nowhere; \
               FI_WEFT_IFACE names the interfaces that are used";
    match tried {
        Ok((carried, pairs)) => Check::ok(
            PATHS,
            format!("{carried} of {pairs} pairs of ports on {places} carry"),
            why,
        )
        .but_if(carried < pairs, Status::Warn, fix)
        .limited_by(format!("all {pairs} should carry")),
        Err(error) => Check::ok(PATHS, format!("{places}: {error}"), why).but(Status::Warn, fix),
    }
}

/// Whether the cloud of this machine is known to limit each flow. Source: "Amazon EC2 instance
/// network bandwidth" of the EC2 User Guide.
fn flows(vendor: Option<&str>) -> Check {
    let why = "some clouds limit what a flow (addresses and ports) may send; a message over many \
               paths is as many flows, where one connection of TCP stays at the limit of one";
    let how = "weft doctor --hosts HOST,HOST --flows measures one flow and eight between two hosts";
    match vendor {
        Some("Amazon EC2") => Check::ok(
            FLOWS,
            "Amazon EC2 limits a flow to 5 Gbit/s, 10 within a cluster placement group; Weft's 64 \
             paths are as many flows (read, not measured)",
            why,
        ),
        _ => Check::ok(FLOWS, "the doctor on one host cannot measure it", why).not_tried(how),
    }
}

/// Nobody else is asked from here.
fn hosts() -> Check {
    Check::ok(
        HOSTS,
        "you named no other host",
        "only a job over several hosts shows what switches, firewalls and MTUs between them do",
    )
    .not_tried("weft doctor --hosts HOST,HOST")
}

fn bind(address: IpAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(SocketAddr::new(address, 0))
}

/// Bytes that are not all the same.
fn content(bytes: usize) -> Vec<u8> {
    (0..251).cycle().take(bytes).collect()
}

/// What a socket took.
struct Got {
    bytes: Vec<u8>,
    /// As how many datagrams.
    receipts: usize,
}

/// Takes datagrams until so many bytes have come.
fn receive(socket: &UdpSocket, most: usize, bytes: usize) -> io::Result<Got> {
    let mut batch = ReceiveBatch::new(most, bytes.max(1));
    let mut got = Got {
        bytes: Vec::with_capacity(bytes),
        receipts: 0,
    };
    while got.bytes.len() < bytes {
        if !sleep::wait_readable(socket.as_fd().as_raw_fd(), PATIENCE_MS) {
            let seconds = PATIENCE_MS / 1000;
            return Err(io::Error::other(format!(
                "a datagram that was sent did not come within {seconds} s"
            )));
        }
        for index in 0..batch.receive(socket)? {
            if let Some(one) = batch.get(index) {
                got.receipts += 1;
                got.bytes.extend_from_slice(one.bytes);
            }
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::entry;

    #[test]
    fn each_address_that_swallows_datagrams_is_named() {
        let all = [entry("lo", "127.0.0.1"), entry("eth0", "10.0.0.7")];
        let first = all[1].address;
        let check = datagrams(&all, first, |_| Ok(1472));
        assert_eq!(check.status, Status::Ok);
        assert_eq!(
            check.value,
            "1472 bytes on 10.0.0.7 (eth0), 1472 bytes on 127.0.0.1 (lo)"
        );
        let lost = || io::Error::other("did not come within 1 s");
        let on_loopback = |address: IpAddr| {
            let lost = io::Error::other("did not come within 1 s");
            if address.is_loopback() {
                Err(lost)
            } else {
                Ok(1472)
            }
        };
        let check = datagrams(&all, first, on_loopback);
        check.assert_wrong(Status::Warn, "nft list ruleset");
        assert_eq!(check.value, "127.0.0.1 (lo): did not come within 1 s");
        assert!(check.limit.contains("1 s"));
        let check = datagrams(&all, all[0].address, on_loopback);
        assert_eq!(check.status, Status::Fail, "endpoints take this one");
        let nobody = datagrams(&[], first, |_| Err(io::Error::other("unused")));
        nobody.assert_wrong(Status::Fail, "ip link set lo up");
        joined(Err(lost())).assert_wrong(Status::Warn, "Linux 4.18 or later");
    }

    #[test]
    fn a_cloud_that_limits_flows_is_known_by_its_vendor() {
        assert_eq!(flows(Some("QEMU")).status, Status::NotTried);
        assert!(flows(None).how.contains("--flows"));
        let cloud = flows(Some("Amazon EC2"));
        assert!(cloud.status == Status::Ok && cloud.value.contains("5 Gbit/s"));
    }

    #[test]
    fn joined_datagrams_are_judged_by_how_they_came() {
        let judge = |receives_joined, receipts| {
            joined(Ok(Joined {
                receives_joined,
                receipts,
            }))
        };
        assert_eq!(judge(true, 1).status, Status::Ok);
        let apart = judge(false, 8);
        apart.assert_wrong(Status::Warn, "5.0 or later takes them");
        assert!(apart.value.contains("came as 8"), "{apart:?}");
    }

    #[test]
    fn a_small_buffer_is_judged_by_what_it_keeps_and_names_the_limit() {
        assert_eq!(buffers(Ok(200_000), Some(212_992)).status, Status::Ok);
        let small = buffers(Ok(4096), Some(4096));
        assert!(small.value.contains("4.0 KiB of a burst") && small.limit.contains("64.0 KiB"));
        let refused = buffers(Err(io::Error::other("refused")), None);
        for check in [small, refused] {
            check.assert_wrong(Status::Warn, "sysctl net.core.rmem_max=");
        }
    }

    #[test]
    fn paths_that_do_not_carry_are_counted() {
        let used = ["127.0.0.1".parse().unwrap()];
        assert_eq!(paths(&used, Ok((64, 64))).status, Status::Ok);
        let some = paths(&used, Ok((55, 64)));
        assert!(some.value.contains("55 of 64") && some.limit.contains("all 64"));
        for check in [some, paths(&used, Err(io::Error::other("x")))] {
            check.assert_wrong(Status::Warn, "firewall rule");
        }
    }

    #[test]
    fn everything_is_tried_over_loopback() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(exchange_largest(loopback).unwrap() >= LEAST_BYTES);
        assert!(send_joined(loopback).unwrap().receives_joined);
        assert!(burst(loopback).unwrap() >= BURST_BYTES);
        assert_eq!(carried_pairs(&[loopback]).unwrap(), (64, 64));
        let elsewhere = "192.0.2.1".parse().unwrap();
        assert!(exchange_largest(elsewhere).is_err(), "not an own address");
    }

    #[test]
    fn other_hosts_are_not_tried_and_how_to_is_said() {
        let check = hosts();
        assert_eq!(check.status, Status::NotTried);
        assert!(check.how.contains("--hosts"));
    }
}

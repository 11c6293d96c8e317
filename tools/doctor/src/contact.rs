// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How ranks find each other: the address that an endpoint takes, and which others are used too.
//!
//! Called by `lib.rs` and `info.rs`; asks the same functions of `weft-os` that the provider asks,
//! and binds what they name. `network.rs` tries datagrams there. Source: getifaddrs(3).

use std::io;
use std::net::{IpAddr, SocketAddr};

use weft_os::interface::{self, InterfaceAddress};
use weft_os::similar_interfaces::{self, Kind, Other};
use weft_os::udp_socket::UdpSocket;

use crate::check::{Check, Status};

/// How many are used besides the first (docs/srd-protocol.md, 17.1).
pub(crate) const FURTHER_ADDRESSES: usize = weft_facts::limit::INTERFACES - 1;

/// The check of this file.
#[must_use]
pub fn check() -> Check {
    let chosen = interface::default_address();
    let bound = UdpSocket::bind(SocketAddr::new(chosen, 0));
    let all = interface::addresses().unwrap_or_default();
    judge(address(chosen, &all, Kind::of), bound.err())
}

fn judge(check: Check, refused: Option<io::Error>) -> Check {
    let Some(error) = refused else { return check };
    let value = format!("{}: no socket can be bound there: {error}", check.value);
    Check { value, ..check }.but(
        Status::Fail,
        "allow UDP sockets in the container's seccomp profile, or name another interface in \
         FI_WEFT_IFACE",
    )
}

/// The address of an endpoint for which none is asked, the interface that has it, and which others
/// are used with it.
fn address(chosen: IpAddr, all: &[InterfaceAddress], kind_of: fn(&str) -> Option<Kind>) -> Check {
    let interface = all
        .iter()
        .find(|entry| entry.address == chosen)
        .map_or("no interface", |entry| entry.name.as_str());
    let alone = if chosen.is_loopback() {
        ", reachable from this machine alone"
    } else {
        ""
    };
    let others = similar_interfaces::others(chosen, all, FURTHER_ADDRESSES, kind_of);
    let (used, passed): (Vec<&Other>, Vec<&Other>) =
        others.iter().partition(|other| other.passed_over.is_none());
    let mut value = format!("{chosen} ({interface}{alone})");
    for other in used {
        let InterfaceAddress { name, address, .. } = &other.interface;
        value.push_str(&format!(" and {address} ({name})"));
    }
    let passed: Vec<String> = passed
        .iter()
        .filter_map(|other| Some(format!("{}: {}", other.interface.name, other.passed_over?)))
        .collect();
    if !passed.is_empty() {
        value.push_str(&format!("; not used: {}", passed.join(", ")));
    }
    let why = "endpoints are known by the first address, which others must reach; further \
               interfaces of the same kind, speed and MTU carry too, where this machine's routes \
               lead from one to the other (FI_WEFT_IFACE=eth0,eth1 names others, or one alone)";
    Check::ok("address", value, why)
}

/// An interface of this name and address, for tests; `lo` is the loopback.
#[cfg(test)]
pub(crate) fn entry(name: &str, address: &str) -> InterfaceAddress {
    InterfaceAddress {
        name: name.into(),
        address: address.parse().unwrap(),
        is_loopback: name == "lo",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_bound_and_a_refusal_is_a_failure() {
        assert_eq!(check().status, Status::Ok, "{:?}", check());
        let refused = judge(check(), Some(io::Error::other("refused")));
        refused.assert_wrong(Status::Fail, "FI_WEFT_IFACE");
        assert!(refused.value.ends_with("bound there: refused"));
    }

    #[test]
    fn the_interfaces_of_the_addresses_are_named_and_those_that_are_not_used_with_a_reason() {
        let all = [
            entry("lo", "127.0.0.1"),
            entry("eth0", "10.0.0.7"),
            entry("eth1", "10.0.1.7"),
            entry("odd0", "10.0.2.7"),
        ];
        // To this test all interfaces are like the loopback of this machine, but for the odd one.
        let kind_of = |name: &str| Kind::of(if name == "odd0" { "no-such-if" } else { "lo" });
        let value = |chosen: &str, all: &[InterfaceAddress]| {
            address(chosen.parse().unwrap(), all, kind_of).value
        };
        assert_eq!(
            value("10.0.0.7", &all),
            "10.0.0.7 (eth0) and 10.0.1.7 (eth1); not used: odd0: sysfs does not say what it is"
        );
        assert_eq!(
            value("127.0.0.1", &all),
            "127.0.0.1 (lo, reachable from this machine alone)"
        );
        assert!(value("127.0.0.1", &[]).contains("no interface"));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How ranks find each other: abstract unix sockets on this machine, and the address that an
//! endpoint takes.
//!
//! Called by `lib.rs` and `info.rs`; asks the same functions of `weft-os` that the provider asks.
//! Source: unix(7), getifaddrs(3).

use std::net::IpAddr;

use weft_os::alike::{self, Kind, Other};
use weft_os::interface::{self, InterfaceAddress};
use weft_os::local_socket::{Connection, Listener};

use crate::check::{Check, Status};

/// How many are used besides the first (docs/srd-protocol.md, 17.1).
const FURTHER_ADDRESSES: usize = weft_facts::limit::INTERFACES - 1;

/// All checks of this file.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![
        abstract_sockets(),
        address(
            interface::default_address(),
            &interface::addresses().unwrap_or_default(),
            Kind::of,
        ),
    ]
}

fn abstract_sockets() -> Check {
    let why = "a rank makes first contact with another through an abstract unix socket named after its address";
    let name = format!("weft-doctor-{}", std::process::id());
    let tried = Listener::bind(&name).and_then(|listener| {
        let connection = Connection::open(&name)?;
        let accepted = listener.accept().is_some();
        connection.credentials().map(|_| accepted)
    });
    let fix = "allow unix sockets in the container's seccomp or AppArmor profile; all ranks must share one network namespace";
    match tried {
        Ok(true) => Check::ok(
            "local contact",
            "abstract unix sockets connect, with credentials",
            why,
        ),
        Ok(false) => Check::ok(
            "local contact",
            "a connection to an abstract unix socket did not arrive",
            why,
        )
        .but(Status::Fail, fix),
        Err(error) => Check::ok(
            "local contact",
            format!("abstract unix sockets: {error}"),
            why,
        )
        .but(Status::Fail, fix),
    }
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
    let others = alike::others(chosen, all, FURTHER_ADDRESSES, kind_of);
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
    let why = "endpoints are known by the first address, which others must reach; further interfaces of the same kind, speed and MTU carry \
               too, where this machine's routes lead from one to the other (FI_WEFT_IFACE=eth0,eth1 names others, or one alone)";
    Check::ok("address", value, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_work_where_these_tests_run() {
        assert_eq!(
            abstract_sockets().status,
            Status::Ok,
            "{:?}",
            abstract_sockets()
        );
    }

    fn entry(name: &str, address: &str) -> InterfaceAddress {
        InterfaceAddress {
            name: name.into(),
            address: address.parse().unwrap(),
            is_loopback: name == "lo",
        }
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

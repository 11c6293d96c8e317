// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How ranks find each other: abstract unix sockets on this machine, and the address that an endpoint takes.
//!
//! Called by `lib.rs` and `info.rs`; asks the same functions of `weft-os` that the provider asks. Source: unix(7), getifaddrs(3).

use std::net::IpAddr;

use weft_os::interface::{self, InterfaceAddress};
use weft_os::local_socket::{Connection, Listener};

use crate::check::{Check, Status};

/// All checks of this file.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![
        abstract_sockets(),
        address(
            interface::default_address(),
            &interface::addresses().unwrap_or_default(),
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

/// The address of an endpoint for which none is asked, and the interface that has it.
fn address(chosen: IpAddr, all: &[InterfaceAddress]) -> Check {
    let interface = all
        .iter()
        .find(|entry| entry.address == chosen)
        .map_or("no interface", |entry| entry.name.as_str());
    let alone = if chosen.is_loopback() {
        ", reachable from this machine alone"
    } else {
        ""
    };
    let why = "endpoints are known by this address; between machines it must be one that the others reach (FI_WEFT_IFACE names another)";
    Check::ok("address", format!("{chosen} ({interface}{alone})"), why)
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

    #[test]
    fn the_interface_of_the_address_is_named_and_loopback_is_said() {
        let all = [
            InterfaceAddress {
                name: "lo".into(),
                address: "127.0.0.1".parse().unwrap(),
                is_loopback: true,
            },
            InterfaceAddress {
                name: "eth0".into(),
                address: "10.0.0.7".parse().unwrap(),
                is_loopback: false,
            },
        ];
        assert_eq!(
            address("10.0.0.7".parse().unwrap(), &all).value,
            "10.0.0.7 (eth0)"
        );
        assert_eq!(
            address("127.0.0.1".parse().unwrap(), &all).value,
            "127.0.0.1 (lo, reachable from this machine alone)"
        );
        assert!(
            address("127.0.0.1".parse().unwrap(), &[])
                .value
                .contains("no interface")
        );
    }
}

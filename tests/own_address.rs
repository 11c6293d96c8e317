// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses for endpoints that a test names before they open, or that open again where another one
//! was. Included by the tests of crates/shm and mount/fabric.
//!
//! A port that the kernel gave and that was let go is soon somebody else's: many tests run beside
//! each other, and an endpoint takes nine ports, one of them above its first one if that is free
//! (srd-protocol 13.6). So each process has a loopback address of its own, and on it ports below
//! those that the kernel gives to whoever names none, with room between them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Mutex;

/// The first one. Chosen: below 32,768, where Linux begins to give ports away.
const FIRST_PORT: u16 = 20_000;
/// From one to the next. Chosen: the one above belongs to the same endpoint.
const STEP: u16 = 2;
/// Loopback is 127.0.0.0/8; from here on each number of a process has an address there.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 128, 0, 0]);

/// An address of this process's own, each time another one.
///
/// # Panics
/// Once the ports are used up.
pub fn own_address() -> SocketAddr {
    static NEXT: Mutex<u16> = Mutex::new(FIRST_PORT);
    // The kernel counts processes up to 2^22.
    let host = Ipv4Addr::from(FIRST_ADDRESS + std::process::id());
    let mut next = NEXT.lock().expect("no test panics here");
    loop {
        let address = SocketAddr::from((host, *next));
        *next += STEP;
        // A server of all addresses may have the port.
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}

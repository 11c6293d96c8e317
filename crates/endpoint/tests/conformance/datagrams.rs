// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The srd route as a fabric: over loopback, and over a simulated wire under several conditions.

use std::net::SocketAddr;

use weft_simulated_wire::{Conditions, SimulatedPorts, Wire};
use weft_udp::{Settings, SocketPorts, Transport};

use crate::pair::Fabric;

/// Both endpoints' sockets on this host.
pub struct Loopback;

impl Fabric for Loopback {
    type Local = Transport<SocketPorts>;
    // First contact asks the sender for its address again (srd-protocol 14.6).
    const NEEDS_SENDER: bool = true;
    const SETTLING_ROUNDS: usize = 1000;

    fn open() -> Self {
        Self
    }

    fn settings() -> Settings {
        Settings {
            report: |what| println!("{what}"),
            ..Settings::default()
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

/// Defines a fabric on a simulated wire.
macro_rules! simulated {
    ($(#[$about:meta])* $name:ident, $conditions:expr) => {
        $(#[$about])*
        pub struct $name(SocketAddr);

        impl Fabric for $name {
            type Local = Transport<SimulatedPorts>;
            const NEEDS_SENDER: bool = true;
            // Some 50 ms of the wire's own time: the longest repetitions of what was lost.
            const SETTLING_ROUNDS: usize = 2500;

            fn open() -> Self {
                println!("conditions of the wire: {:?}", $conditions);
                Self(SocketAddr::new(Wire::open($conditions), 0))
            }

            fn settings() -> Settings {
                Settings { report: |what| println!("{what}"), ..Settings::default() }
            }

            fn address(&self) -> Option<SocketAddr> {
                Some(self.0)
            }
        }
    };
}

/// A wire that does no harm.
const CALM: Conditions = Conditions::calm(0x5eed);

/// A wire that loses one datagram in twenty, repeats some, and lets later ones overtake.
pub const LOSSY: Conditions = Conditions {
    lost_per_mille: 50,
    repeated_per_mille: 20,
    spread_ns: 50_000,
    ..CALM
};

simulated!(
    /// Nothing is lost, and all comes in order.
    Calm,
    CALM
);
simulated!(
    /// One datagram in twenty is lost, some come twice, and later ones overtake.
    Lossy,
    LOSSY
);
simulated!(
    /// The socket is often full.
    Full,
    Conditions { full_every: 7, spread_ns: 20_000, ..CALM }
);

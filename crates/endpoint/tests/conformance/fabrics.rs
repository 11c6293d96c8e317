// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fabrics that the laws are tested on.

use std::net::SocketAddr;

use weft_endpoint::in_process::{InProcess, Manner, Network};

use crate::pair::Fabric;

/// Defines a fabric within this process.
macro_rules! in_process {
    ($(#[$about:meta])* $name:ident, $manner:expr) => {
        $(#[$about])*
        pub struct $name(SocketAddr);

        impl Fabric for $name {
            type Local = InProcess;

            fn open() -> Self {
                Self(SocketAddr::new(Network::open($manner), 0))
            }

            fn address(&self) -> Option<SocketAddr> {
                Some(self.0)
            }
        }
    };
}

in_process!(
    /// Short messages arrive whole, long ones are offered, all at once.
    Eager,
    Manner::default()
);
in_process!(
    /// All but the shortest messages are offered.
    Offered,
    Manner { eager_limit_bytes: 8, ..Manner::default() }
);
in_process!(
    /// Messages trickle in.
    Trickling,
    Manner { eager_limit_bytes: 64, trickle_seed: Some(0x5eed), ..Manner::default() }
);
in_process!(
    /// There is room for little, so senders are often told to come again.
    Crowded,
    Manner { eager_limit_bytes: 64, room_count: 2, trickle_seed: None }
);

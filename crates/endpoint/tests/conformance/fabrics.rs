// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fabrics that the laws are tested on.

use std::net::SocketAddr;

use weft_endpoint::routes::{self, RouteSettings, Routes, Scope};
use weft_in_process::{Conditions, InProcess, Network};
use weft_shm::{Settings, SingleCopy, Transport};

use crate::pair::Fabric;

/// Defines a fabric within this process.
macro_rules! in_process {
    ($(#[$about:meta])* $name:ident, $conditions:expr) => {
        in_process!($(#[$about])* $name, $conditions, needs_sender: false);
    };
    ($(#[$about:meta])* $name:ident, $conditions:expr, needs_sender: $needs_sender:expr) => {
        $(#[$about])*
        pub struct $name(SocketAddr);

        impl Fabric for $name {
            type Local = InProcess;
            const NEEDS_SENDER: bool = $needs_sender;

            fn open() -> Self {
                Self(SocketAddr::new(Network::open($conditions), 0))
            }

            fn settings() {}

            fn address(&self) -> Option<SocketAddr> {
                Some(self.0)
            }
        }
    };
}

in_process!(
    /// Short messages arrive whole, long ones are offered, all at once.
    Eager,
    Conditions::default()
);
in_process!(
    /// All but the shortest messages are offered.
    Offered,
    Conditions { eager_limit_bytes: 8, ..Conditions::default() }
);
in_process!(
    /// Messages trickle in.
    Trickling,
    Conditions { eager_limit_bytes: 64, trickle_seed: Some(0x5eed), ..Conditions::default() }
);
in_process!(
    /// There is room for little, so senders are often told to come again.
    LittleRoom,
    Conditions { eager_limit_bytes: 64, room_count: 2, trickle_seed: None },
    needs_sender: true
);

/// Defines a fabric of shared memory, both endpoints in this process.
macro_rules! shared_memory {
    ($(#[$about:meta])* $name:ident, $single_copy:expr) => {
        $(#[$about])*
        pub struct $name;

        impl Fabric for $name {
            type Local = Transport;

            fn open() -> Self {
                Self
            }

            fn settings() -> Settings {
                Settings {
                    single_copy: $single_copy,
                    heap: weft_memory::OwnHeap::find(),
                    report: |what| println!("{what}"),
                    ..Settings::default()
                }
            }

            fn address(&self) -> Option<SocketAddr> {
                Some(SocketAddr::from(([127, 0, 0, 1], 0)))
            }
        }
    };
}

shared_memory!(
    /// Shared memory as it comes.
    SharedMemory,
    SingleCopy::Auto
);
shared_memory!(
    /// Shared memory where large messages are fetched.
    SharedMemoryFetching,
    SingleCopy::Always
);
shared_memory!(
    /// Shared memory where nothing may be fetched, as in many containers.
    SharedMemoryConfined,
    SingleCopy::Never
);

/// Shared memory where one-sided operations are carried out without their target.
pub struct SharedMemoryDirect;

impl Fabric for SharedMemoryDirect {
    type Local = Transport;
    const IS_DIRECT: bool = true;

    fn open() -> Self {
        Self
    }

    fn settings() -> Settings {
        SharedMemoryFetching::settings()
    }

    fn address(&self) -> Option<SocketAddr> {
        SharedMemoryFetching.address()
    }
}

/// Whether two endpoints are on one host, as far as the joined fabrics are concerned: a third one
/// is not.
fn same_parity(own: SocketAddr, other: SocketAddr) -> bool {
    (own.port() ^ other.port()) & 1 == 0
}

/// Defines a fabric of two routes in each endpoint: shared memory, and the one within this process.
macro_rules! joined {
    ($(#[$about:meta])* $name:ident, $conditions:expr, $rule:expr) => {
        $(#[$about])*
        pub struct $name(SocketAddr);

        impl Fabric for $name {
            type Local = Routes<Transport, InProcess>;

            fn open() -> Self {
                Self(SocketAddr::new(Network::open($conditions), 0))
            }

            fn settings() -> routes::Settings<Settings, ()> {
                routes::Settings {
                    first: RouteSettings {
                        settings: Settings {
                            report: |what| println!("{what}"),
                            ..Settings::default()
                        },
                        scope: Scope::By($rule),
                    },
                    others: vec![RouteSettings { settings: (), scope: Scope::Everybody }],
                    ..routes::Settings::default()
                }
            }

            fn address(&self) -> Option<SocketAddr> {
                Some(self.0)
            }
        }
    };
}

joined!(
    /// The two endpoints of a pair are on different hosts; each is local to itself.
    JoinedApart,
    Conditions { eager_limit_bytes: 64, trickle_seed: Some(0x701f), ..Conditions::default() },
    same_parity
);
joined!(
    /// One way leads through shared memory and the other through the network.
    JoinedCrossed,
    Conditions::default(),
    |own, other| own.port() < other.port()
);

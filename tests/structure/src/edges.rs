// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which crate may import which: the tables that `edge` checks against.

/// What one crate of the user's job may import.
#[derive(Debug)]
pub struct Edges {
    /// Package name.
    pub from: &'static str,
    /// Package names, all further down.
    pub to: &'static [&'static str],
    /// Why these and no others.
    pub reason: &'static str,
}

/// The edges between crates/, from the top down. Imports go downwards only.
pub const EDGES: [Edges; 20] = [
    Edges {
        from: "weft-provider",
        to: &[
            "weft-endpoint",
            "weft-shm",
            "weft-udp",
            "weft-contract",
            "weft-memory",
            "weft-os",
            "weft-fabric-sys",
            "weft-facts",
        ],
        reason: "turns C calls into operations of the endpoint, in the contract's words, on user \
            memory; names the routes",
    },
    Edges {
        from: "weft-endpoint",
        to: &[
            "weft-matching",
            "weft-contract",
            "weft-memory",
            "weft-os",
            "weft-facts",
        ],
        reason: "owns the routes, known by traits alone, and the matching; registers user \
                 memory; reads the clock",
    },
    Edges {
        from: "weft-matching",
        to: &["weft-contract"],
        reason: "pure: no memory, no system",
    },
    Edges {
        from: "weft-shm",
        to: &["weft-contract", "weft-ring", "weft-memory", "weft-os"],
        reason: "moves messages through rings in mappings, and copies by CMA",
    },
    Edges {
        from: "weft-udp",
        to: &[
            "weft-contract",
            "weft-srd",
            "weft-seal",
            "weft-memory",
            "weft-os",
        ],
        reason: "drives the SRD machine over sockets, behind the guard of the job's key",
    },
    Edges {
        from: "weft-seal",
        to: &["weft-wire"],
        reason: "tags and encrypts datagrams: knows where the header's fields lie",
    },
    Edges {
        from: "weft-srd",
        to: &["weft-wire"],
        reason: "sans-IO: sees packets and a handed-in clock, nothing else",
    },
    Edges {
        from: "weft-wire",
        to: &[],
        reason: "packet formats stand alone",
    },
    Edges {
        from: "weft-ring",
        to: &["weft-memory", "weft-os"],
        reason: "queues lie in mappings; waiting asks the system",
    },
    Edges {
        from: "weft-intercept",
        to: &[
            "weft-collectives",
            "weft-memory",
            "weft-os",
            "weft-mpi-abi",
            "weft-facts",
        ],
        reason: "stands before MPI's collectives: maps a communicator's segment, knows MPIs' \
            handles and the variable of reports",
    },
    Edges {
        from: "weft-collectives",
        to: &["weft-memory"],
        reason: "pure above memory: who has a communicator maps the segment and waits",
    },
    Edges {
        from: "weft-contract",
        to: &["weft-memory"],
        reason: "the vocabulary names user buffers",
    },
    Edges {
        from: "weft-memory",
        to: &["weft-os"],
        reason: "mappings are system calls",
    },
    Edges {
        from: "weft-os",
        to: &[],
        reason: "the bottom",
    },
    Edges {
        from: "weft-heap",
        to: &[],
        reason: "preloaded by itself: nothing it uses may allocate",
    },
    Edges {
        from: "weft-yield",
        to: &[],
        reason: "preloaded by itself into any program",
    },
    Edges {
        from: "weft-ends",
        to: &[],
        reason: "preloaded by itself into launchers",
    },
    Edges {
        from: "weft-mpi-abi",
        to: &[],
        reason: "tables of MPIs' constants stand alone",
    },
    Edges {
        from: "weft-fabric-sys",
        to: &[],
        reason: "C structures stand alone",
    },
    Edges {
        from: "weft-facts",
        to: &[],
        reason: "what users can look up or set: constants alone",
    },
];

/// The edges of the bucket mount (mount/), from the top down. Imports go downwards only; none goes
/// into tools/, and into crates/ only where mounts of a job talk to each other.
pub const MOUNT_EDGES: [Edges; 6] = [
    Edges {
        from: "weft-daemon",
        to: &[
            "weft-cache",
            "weft-fabric",
            "weft-files",
            "weft-s3",
            "weft-store",
            "weft-udp",
        ],
        reason: "puts a store and the file layer behind FUSE, and joins the job with its key",
    },
    Edges {
        from: "weft-fabric",
        to: &["weft-endpoint", "weft-memory", "weft-os", "weft-udp"],
        reason: "a mount is an endpoint between hosts: sends, receives, sleeps on its descriptor",
    },
    Edges {
        from: "weft-files",
        to: &["weft-cache", "weft-store"],
        reason: "files over any store, known by its traits alone; keeps what it fetched",
    },
    Edges {
        from: "weft-cache",
        to: &[],
        reason: "files on a disk, whatever they are of",
    },
    Edges {
        from: "weft-s3",
        to: &["weft-store"],
        reason: "one store; the only crate that names the SDK",
    },
    Edges {
        from: "weft-store",
        to: &[],
        reason: "the words of a store, and one in memory for tests",
    },
];

/// What tests, benches and examples of a crate may import besides: crates further down that the
/// crate itself knows by traits alone. Crates that exist for tests (`tests/`) are open to all.
pub const TEST_EDGES: [Edges; 2] = [
    Edges {
        from: "weft-endpoint",
        to: &["weft-shm", "weft-udp"],
        reason: "the conformance suite runs over the routes that users have",
    },
    Edges {
        from: "weft-shm",
        to: &["weft-facts"],
        reason: "the counters' numbers of copy methods are those that tools print names for",
    },
];

/// The few edges from tools down into crates/: tools talk to a job from outside it.
pub const TOOL_EDGES: [Edges; 5] = [
    Edges {
        from: "weft-mpi",
        to: &["weft-mpi-abi"],
        reason: "MPIs' constants stand once, for benchmarks and for the library in the job",
    },
    Edges {
        from: "weft-launch",
        to: &["weft-seal", "weft-os", "weft-facts"],
        reason: "makes the job's key, sets endpoints' parameters; asks whether a file is in use",
    },
    Edges {
        from: "weft-doctor",
        to: &[
            "weft-ring",
            "weft-memory",
            "weft-os",
            "weft-seal",
            "weft-facts",
        ],
        reason: "reads published counters; judges parameters; tells whether a key is one",
    },
    Edges {
        from: "weft-netsim",
        to: &["weft-srd", "weft-wire"],
        reason: "runs the SRD machine on simulated hosts",
    },
    Edges {
        from: "weft-soak",
        to: &["weft-fabric-sys"],
        reason: "talks to the provider through libfabric's tables, as a program does",
    },
];

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which figures there are: what each measures, and where the effect was published.
//!
//! Read by figures, measured and simulated.

/// A figure.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line and of its file.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where the effect was published.
    pub source: &'static str,
    /// What it is about there.
    pub shown: &'static str,
    /// What is done here.
    pub subject: Subject,
}

/// Where its numbers come from.
#[derive(Debug)]
pub enum Subject {
    /// A benchmark with two settings of the provider.
    Measured(Measured),
    /// A scenario of `weft sim`.
    Simulated(&'static str),
}

/// A benchmark with two settings of the provider.
#[derive(Debug)]
pub struct Measured {
    /// As `weft bench` knows it.
    pub benchmark: &'static str,
    /// What it measures.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Sizes in bytes, as -m takes them.
    pub sizes: &'static str,
    /// Sizes for a quick look.
    pub quick_sizes: &'static str,
    /// First the one that the effect speaks for.
    pub variants: [Variant; 2],
}

/// A setting of the provider.
#[derive(Debug)]
pub struct Variant {
    /// In words.
    pub name: &'static str,
    /// Variables of the ranks.
    pub environment: &'static [&'static str],
}

const SHARED: Variant = Variant {
    name: "shared memory",
    environment: &["FI_WEFT_ROUTE=shm"],
};
/// Loopback of one user's own job: there is nobody on the path to keep out.
const NETWORK: Variant = Variant {
    name: "network path",
    environment: &["FI_WEFT_ROUTE=srd", "FI_WEFT_TRUST_NETWORK=1"],
};
const SINGLE: Variant = Variant {
    name: "single copy (CMA)",
    environment: &["FI_WEFT_SINGLE_COPY=always", "FI_WEFT_ROUTE=shm"],
};
const DOUBLE: Variant = Variant {
    name: "double copy",
    environment: &["FI_WEFT_SINGLE_COPY=never", "FI_WEFT_ROUTE=shm"],
};

/// All figures, in the order of the page.
pub static STUDIES: [Study; 6] = [
    Study {
        id: "shared-memory",
        title: "Shared memory against the network path inside one node",
        source: "AWS, on shared memory for MPI jobs in AWS Batch",
        shown: "The subject there: ranks of one node that share memory instead of using the network. Here: the same two ranks, their messages through \
                shared memory or through the network path on loopback.",
        subject: Subject::Measured(Measured {
            benchmark: "latency",
            label: "one-way latency",
            unit: "us",
            sizes: "1:1048576",
            quick_sizes: "8:4096",
            variants: [SHARED, NETWORK],
        }),
    },
    Study {
        id: "cma-latency",
        title: "Single copy against double copy: latency",
        source: "Vienne, on Cross Memory Attach for MPI, 2014",
        shown: "The subject there: the kernel copies a message once from process to process, against twice through a shared buffer, by size.",
        subject: Subject::Measured(Measured {
            benchmark: "latency",
            label: "one-way latency",
            unit: "us",
            sizes: "4096:4194304",
            quick_sizes: "16384:262144",
            variants: [SINGLE, DOUBLE],
        }),
    },
    Study {
        id: "cma-bandwidth",
        title: "Single copy against double copy: bandwidth",
        source: "Vienne, on Cross Memory Attach for MPI, 2014",
        shown: "The subject there: as above, for a stream of messages.",
        subject: Subject::Measured(Measured {
            benchmark: "bw",
            label: "bandwidth",
            unit: "MB/s",
            sizes: "4096:4194304",
            quick_sizes: "16384:262144",
            variants: [SINGLE, DOUBLE],
        }),
    },
    Study {
        id: "joined-alltoallw",
        title: "Joined against unjoined path: alltoallw",
        source: "the description of libfabric's Peer API for EFA and shared memory",
        shown: "The subject there: one provider that sends inside the node through shared memory and elsewhere through the network, against the network for \
                everything. Here: everything through shared memory against everything through the network path on loopback.",
        subject: Subject::Measured(Measured {
            benchmark: "alltoallw",
            label: "time of an alltoallw",
            unit: "us",
            sizes: "1:262144",
            quick_sizes: "8:4096",
            variants: [SHARED, NETWORK],
        }),
    },
    Study {
        id: "incast",
        title: "Many senders, one receiver",
        source: "AWS re:Invent, session CMP408, on EFA and SRD",
        shown: "The subject there: a transport that keeps queues short and spreads packets over paths. Simulated, not measured.",
        subject: Subject::Simulated("incast"),
    },
    Study {
        id: "path-failure",
        title: "A path fails silently",
        source: "AWS re:Invent, session CMP408, on EFA and SRD",
        shown: "The subject there: packets go on over other paths when one fails. Simulated, not measured.",
        subject: Subject::Simulated("spine-failure"),
    },
];

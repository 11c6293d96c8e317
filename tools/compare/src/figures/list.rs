// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All figures, in the order of the page: where each effect was published, with which numbers, and
//! what is measured here.
//!
//! Read by figures. The sources are public: two pages and a talk of AWS's, a page of the AWS HPC
//! Blog on libfabric's Peer API, one on Mountpoint, and a paper on Cross Memory Attach. Where a
//! source shows a chart without numbers, the claim says so.

use super::claim::{Claim, Here};
use super::definition::{Definition, Fault, Measured, Simulated, Subject, Variant, Whole};

const BATCH: &str = "D. La Porta, \"Using shared memory for low-latency, intra-node communication \
    in AWS Batch\", 2021";
const CMA: &str = "J. Vienne, \"Benefits of Cross Memory Attach for MPI libraries on HPC \
    Clusters\", XSEDE 2014, doi 10.1145/2616498.2616532";
const TALK: &str = "C. Rao, \"Using Elastic Fabric Adapter (EFA) to scale HPC workloads on AWS\", \
    AWS re:Invent 2019, session CMP408";
const PEER: &str = "S. Jin, B. Bouffler, \"EFA: how fixing one thing, led to an improvement for \
    everyone\", AWS HPC Blog, 2023";
const MOUNTPOINT: &str = "S. Ma, \"Improve the speed and cost of HPC deployment with Mountpoint \
    for Amazon S3\", AWS HPC Blog";

const SHARED: Variant = weft("shared memory", &["FI_WEFT_ROUTE=shm"]);
/// Loopback of one user's own job: there is nobody on the path to keep out.
const NETWORK: Variant = weft(
    "network path",
    &["FI_WEFT_ROUTE=srd", "FI_WEFT_TRUST_NETWORK=1"],
);
/// Both routes are open behind one endpoint, and each message takes its own.
const JOINED: Variant = weft("joined", &["FI_WEFT_ROUTE=auto", "FI_WEFT_TRUST_NETWORK=1"]);
const UNJOINED: Variant = weft(
    "unjoined",
    &["FI_WEFT_ROUTE=srd", "FI_WEFT_TRUST_NETWORK=1"],
);
const ALONE: Variant = weft("shared memory alone", &["FI_WEFT_ROUTE=shm"]);
const SINGLE: Variant = weft(
    "single copy (CMA)",
    &["FI_WEFT_SINGLE_COPY=always", "FI_WEFT_ROUTE=shm"],
);
const DOUBLE: Variant = weft(
    "double copy",
    &["FI_WEFT_SINGLE_COPY=never", "FI_WEFT_ROUTE=shm"],
);
const SRD: Variant = weft("SRD", &["FI_WEFT_ROUTE=srd", "FI_WEFT_TRUST_NETWORK=1"]);
const NATIVE: Variant = Variant {
    name: "the MPI's own",
    transport: "native",
    environment: &[],
};
const TCP: Variant = Variant {
    name: "TCP",
    transport: "tcp",
    environment: &[],
};

const fn weft(name: &'static str, environment: &'static [&'static str]) -> Variant {
    Variant {
        name,
        transport: "weft",
        environment,
    }
}

const fn claim(what: &'static str, published: &'static str, here: Here) -> Claim {
    Claim {
        what,
        published,
        here,
    }
}

const fn latency(
    sizes: &'static str,
    quick_sizes: &'static str,
    variants: &'static [Variant],
) -> Subject {
    Subject::Measured(Measured {
        benchmark: "latency",
        label: "one-way latency",
        unit: "us",
        sizes,
        quick_sizes,
        variants,
    })
}

const COPIES: &[Variant] = &[SINGLE, DOUBLE, NATIVE];
const KERNEL_GAIN: &[Claim] = &[claim(
    "rate, single copy over double copy",
    "up to 1.24, FT and IS",
    Here::Bars,
)];

const fn kernel(id: &'static str, title: &'static str, program: &'static str) -> Definition {
    Definition {
        id,
        title,
        source: CMA,
        shown: "There: the NAS Parallel Benchmarks on whole nodes, of which FT and IS gained most. \
            Here: a kernel of the same data and results, class A, on two ranks.",
        claims: KERNEL_GAIN,
        subject: Subject::Kernel(Whole {
            program,
            case: "A",
            unit: "Mop/s",
            variants: COPIES,
        }),
    }
}

const COPY_GAIN: &[Claim] = &[
    claim(
        "greatest advantage of the single copy",
        "up to 4 times, large messages",
        Here::Most,
    ),
    claim(
        "single over double copy, mean from 256 KiB on",
        "not stated",
        Here::Mean(0, 256 << 10, u64::MAX),
    ),
];

/// All figures.
pub static DEFINITIONS: [Definition; 15] = [
    Definition {
        id: "shared-memory",
        title: "Shared memory on and off: latency",
        source: BATCH,
        shown: "There: two ranks of one c5n.18xlarge, Intel MPI 2019 update 7 over EFA, with \
            libfabric's shared memory and without. Here: two ranks of this machine, their messages \
            through shared memory or through the network path on loopback.",
        claims: &[
            claim(
                "latency with shared memory over latency without, 8 bytes",
                "lower at every size; a chart without numbers",
                Here::At(8),
            ),
            claim(
                "the same, mean over all sizes",
                "a chart without numbers",
                Here::Mean(0, 0, u64::MAX),
            ),
        ],
        subject: latency("1:1048576", "8:4096", &[SHARED, NETWORK]),
    },
    Definition {
        id: "shared-memory-gromacs",
        title: "Shared memory on and off: GROMACS",
        source: BATCH,
        shown: "There: lignocellulose-rf of the UEABS on growing numbers of c5n.18xlarge, ns/day. \
            Here: a box of water with PME on the ranks of this machine.",
        claims: &[claim(
            "ns/day with shared memory over ns/day without",
            "higher, more so with more cores; a chart without numbers",
            Here::Bars,
        )],
        subject: Subject::Whole(Whole {
            program: "gromacs",
            case: "",
            unit: "ns/day",
            variants: &[SHARED, NETWORK],
        }),
    },
    Definition {
        id: "cma-latency",
        title: "Single copy against double copy: latency",
        source: CMA,
        shown: "There and here: the kernel copies a message once from process to process, against \
            twice through a shared buffer, by size.",
        claims: COPY_GAIN,
        subject: latency("4096:4194304", "16384:262144", &[SINGLE, DOUBLE]),
    },
    Definition {
        id: "cma-bandwidth",
        title: "Single copy against double copy: bandwidth",
        source: CMA,
        shown: "As above, for a stream of messages.",
        claims: COPY_GAIN,
        subject: Subject::Measured(Measured {
            benchmark: "bw",
            label: "bandwidth",
            unit: "MB/s",
            sizes: "4096:4194304",
            quick_sizes: "16384:262144",
            variants: &[SINGLE, DOUBLE],
        }),
    },
    kernel("cma-ft", "Single copy against double copy: FT", "ft"),
    kernel("cma-is", "Single copy against double copy: IS", "is"),
    Definition {
        id: "ior",
        title: "IOR by processes",
        source: MOUNTPOINT,
        shown: "There: a bucket mounted by Mountpoint, one c6i.16xlarge, 64 processes, a file of \
            2000 MB each in transfers of 50 MB past the page cache. Here: the same options with \
            smaller files, in the folder of --files.",
        claims: &[
            claim("write", "4038 MiB/s with 64 processes", Here::Greatest(0)),
            claim("read", "4622 MiB/s with 64 processes", Here::Greatest(1)),
        ],
        subject: Subject::Files,
    },
    Definition {
        id: "tcp-srd-latency",
        title: "TCP against SRD: latency by size",
        source: TALK,
        shown: "There: two c5n.18xlarge, osu_latency 5.6.2, Intel MPI over TCP and over EFA. Here: \
            two ranks of this machine over loopback, the MPI's TCP and Weft's datagrams (SRD over \
            UDP, by the same kernel): there is no network card that does the work, and no \
            network.",
        claims: &[
            claim("8 bytes, TCP and SRD", "23.23 and 18.34 us", Here::Both(8)),
            claim("1 KiB", "25.32 and 19.24 us", Here::Both(1024)),
            claim("8 KiB", "31.80 and 24.10 us", Here::Both(8192)),
            claim("64 KiB", "79.26 and 80.55 us", Here::Both(65536)),
            claim("1 MiB", "841.02 and 513.27 us", Here::Both(1 << 20)),
            claim("4 MiB", "5833.30 and 1951.57 us", Here::Both(4 << 20)),
            claim(
                "SRD over TCP, mean over all sizes",
                "0.75, of its table",
                Here::Mean(0, 0, u64::MAX),
            ),
        ],
        subject: latency("1:4194304", "8:8192", &[SRD, TCP]),
    },
    Definition {
        id: "loss",
        title: "Packets are lost",
        source: TALK,
        shown: "There: SRD finds losses by time-outs estimated in microseconds, TCP waits more \
            than 50 ms; no measurement. Here: bandwidth of 1 MiB messages between two hosts with \
            four paths of 500 Mb/s, all of which lose the same share of their packets.",
        claims: &[],
        subject: Subject::Hosts(Fault::Loss, Simulated(&["permutation", "--loss", "1000"])),
    },
    Definition {
        id: "path-failure",
        title: "A path fails silently",
        source: TALK,
        shown: "There: fast recovery by going on over other paths, against time-outs above 50 ms \
            of TCP; no measurement. Here: small messages go back and forth between two hosts with \
            four paths, and the path that carries most of them drops everything for a second.",
        claims: &[
            claim(
                "longest pause over SRD",
                "time-outs in microseconds",
                Here::Bar(0),
            ),
            claim(
                "longest pause over TCP",
                "time-outs above 50 ms",
                Here::Bar(1),
            ),
        ],
        subject: Subject::Hosts(Fault::Hole, Simulated(&["spine-failure"])),
    },
    Definition {
        id: "incast",
        title: "Many senders, one receiver",
        source: TALK,
        shown: "There: rates found dynamically, paths shared evenly, no hot spots; no measurement. \
            Here: simulated, since it takes many hosts.",
        claims: &[],
        subject: Subject::Simulated(Simulated(&["incast"])),
    },
    Definition {
        id: "joined-latency",
        title: "Joined against unjoined path: latency",
        source: PEER,
        shown: "There: Open MPI over EFA, which handed messages within a host to a shared-memory \
            provider by copies of its own, and since libfabric 1.19 hands them on at once. Here: \
            Weft, whose one endpoint has both routes (joined), against the network path for \
            everything (unjoined), and against shared memory with no network path beside it, to \
            see what the joint itself costs.",
        claims: &[
            claim(
                "joined over unjoined, two ranks",
                "about 0.5",
                Here::Mean(0, 0, u64::MAX),
            ),
            claim(
                "joined over shared memory alone, below 64 bytes",
                "0.4 to 0.5 us more in all before, on c5n.18xlarge",
                Here::Mean(1, 0, 64),
            ),
        ],
        subject: latency("1:65536", "8:4096", &[JOINED, UNJOINED, ALONE]),
    },
    Definition {
        id: "joined-alltoallw",
        title: "Joined against unjoined path: alltoallw",
        source: PEER,
        shown: "There: 64 ranks of one host. Here: two ranks; joined and unjoined as above.",
        claims: &[claim(
            "joined over unjoined, mean over all sizes",
            "about 0.67 (hpc6a), 0.5 (hpc7g)",
            Here::Mean(0, 0, u64::MAX),
        )],
        subject: Subject::Measured(Measured {
            benchmark: "alltoallw",
            label: "time of an alltoallw",
            unit: "us",
            sizes: "1:262144",
            quick_sizes: "8:4096",
            variants: &[JOINED, UNJOINED],
        }),
    },
    Definition {
        id: "joined-openfoam",
        title: "Joined against unjoined path: OpenFOAM",
        source: PEER,
        shown: "There: motorBike with 4 million cells, 384 ranks on 4 hpc6a.48xlarge and on 6 \
            hpc7g.16xlarge, runs per day. Here: motorBike with a coarse mesh on the ranks of this \
            machine.",
        claims: &[claim(
            "runs per day, joined over unjoined",
            "about 1.1",
            Here::Bars,
        )],
        subject: Subject::Whole(Whole {
            program: "openfoam",
            case: "motorbike",
            unit: "runs/day",
            variants: &[JOINED, UNJOINED],
        }),
    },
    Definition {
        id: "joined-pitzdaily",
        title: "Joined against unjoined path: a small flow",
        source: PEER,
        shown: "As above with pitzDaily, whose messages are smaller and more frequent for the work \
            between them. Not published; to see where the effect ends.",
        claims: &[],
        subject: Subject::Whole(Whole {
            program: "openfoam",
            case: "pitzdaily",
            unit: "runs/day",
            variants: &[JOINED, UNJOINED],
        }),
    },
];

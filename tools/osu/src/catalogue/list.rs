// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The benchmarks, one line each; titles and defaults are those of OSU 7.
//!
//! Part of catalogue. A new collective needs a line here and an entry in weft-mpi's
//! collective_call; any other benchmark needs a file and a line.

use crate::description::{
    Description, Directions, Family, Helpers, Loops, Measure, OneSided, PointToPoint, Ranks,
    Startup,
};
use crate::one_sided::access::Access;
use weft_mpi::{Collective, Form};

const LATENCY_LOOPS: Loops = Loops {
    small: (10_000, 100),
    large: (1000, 10),
};
const BANDWIDTH_LOOPS: Loops = Loops {
    small: (100, 10),
    large: (20, 2),
};
const COLLECTIVE_LOOPS: Loops = Loops {
    small: (1000, 100),
    large: (100, 10),
};
const PAIR_MAX_BYTES: usize = 4 << 20;
const COLLECTIVE_MAX_BYTES: usize = 1 << 20;

/// A latency of two ranks.
const fn pair(name: &'static str, title: &'static str, family: Family) -> Description {
    Description {
        name,
        title,
        measure: Measure::Latency,
        ranks: Ranks::Two,
        sized: true,
        max_bytes: PAIR_MAX_BYTES,
        loops: LATENCY_LOOPS,
        family,
    }
}

/// A bandwidth of two ranks.
const fn bandwidth(name: &'static str, title: &'static str, family: Family) -> Description {
    Description {
        measure: Measure::Bandwidth,
        loops: BANDWIDTH_LOOPS,
        ..pair(name, title, family)
    }
}

/// A latency of messages between two ranks.
const fn messages(name: &'static str, title: &'static str, which: PointToPoint) -> Description {
    pair(name, title, Family::PointToPoint(which))
}

/// A bandwidth of messages between two ranks.
const fn windows(name: &'static str, title: &'static str, which: PointToPoint) -> Description {
    bandwidth(name, title, Family::PointToPoint(which))
}

const fn collective(
    name: &'static str,
    title: &'static str,
    which: Collective,
    form: Form,
) -> Description {
    Description {
        name,
        title,
        measure: Measure::Latency,
        ranks: Ranks::All,
        sized: !matches!(which, Collective::Barrier),
        max_bytes: COLLECTIVE_MAX_BYTES,
        loops: COLLECTIVE_LOOPS,
        family: Family::Collective(which, form),
    }
}

const fn blocking(name: &'static str, title: &'static str, which: Collective) -> Description {
    collective(name, title, which, Form::Blocking)
}

const fn nonblocking(name: &'static str, title: &'static str, which: Collective) -> Description {
    collective(name, title, which, Form::Nonblocking)
}

const fn persistent(name: &'static str, title: &'static str, which: Collective) -> Description {
    collective(name, title, which, Form::Persistent)
}

const fn start(name: &'static str, title: &'static str, which: Startup) -> Description {
    Description {
        ranks: Ranks::Any,
        sized: false,
        ..pair(name, title, Family::Startup(which))
    }
}

const fn latency_of(access: Access) -> Family {
    Family::OneSided(OneSided::Latency(access))
}

const fn bandwidth_of(access: Access) -> Family {
    Family::OneSided(OneSided::Bandwidth(access))
}

/// All benchmarks.
pub static CATALOGUE: &[Description] = &[
    messages("latency", "Latency Test", PointToPoint::Latency),
    messages(
        "latency_mt",
        "Multi-threaded Latency Test",
        PointToPoint::LatencyWith(Helpers::Threads),
    ),
    messages(
        "latency_mp",
        "Multi-process Latency Test",
        PointToPoint::LatencyWith(Helpers::Processes),
    ),
    windows(
        "bw",
        "Bandwidth Test",
        PointToPoint::Bandwidth(Directions::One),
    ),
    windows(
        "bibw",
        "Bi-Directional Bandwidth Test",
        PointToPoint::Bandwidth(Directions::Both),
    ),
    Description {
        measure: Measure::MessageRate,
        ranks: Ranks::Pairs,
        ..windows(
            "mbw_mr",
            "Multiple Bandwidth / Message Rate Test",
            PointToPoint::MessageRate,
        )
    },
    Description {
        ranks: Ranks::Pairs,
        ..messages(
            "multi_lat",
            "Multi Latency Test",
            PointToPoint::MultiLatency,
        )
    },
    messages(
        "latency_persistent",
        "Latency Persistent Test",
        PointToPoint::PersistentLatency,
    ),
    windows(
        "bw_persistent",
        "Bandwidth Persistent Test",
        PointToPoint::PersistentBandwidth(Directions::One),
    ),
    windows(
        "bibw_persistent",
        "Bi-Directional Bandwidth Persistent Test",
        PointToPoint::PersistentBandwidth(Directions::Both),
    ),
    blocking("barrier", "Barrier Latency Test", Collective::Barrier),
    blocking("bcast", "Broadcast Latency Test", Collective::Bcast),
    blocking("gather", "Gather Latency Test", Collective::Gather),
    blocking("gatherv", "Gatherv Latency Test", Collective::Gatherv),
    blocking("scatter", "Scatter Latency Test", Collective::Scatter),
    blocking("scatterv", "Scatterv Latency Test", Collective::Scatterv),
    blocking("allgather", "Allgather Latency Test", Collective::Allgather),
    blocking(
        "allgatherv",
        "Allgatherv Latency Test",
        Collective::Allgatherv,
    ),
    blocking(
        "alltoall",
        "All-to-All Personalized Exchange Latency Test",
        Collective::Alltoall,
    ),
    blocking(
        "alltoallv",
        "All-to-Allv Personalized Exchange Latency Test",
        Collective::Alltoallv,
    ),
    blocking(
        "alltoallw",
        "All-to-Allw Personalized Exchange Latency Test",
        Collective::Alltoallw,
    ),
    blocking("reduce", "Reduce Latency Test", Collective::Reduce),
    blocking("allreduce", "Allreduce Latency Test", Collective::Allreduce),
    blocking(
        "reduce_scatter",
        "Reduce_scatter Latency Test",
        Collective::ReduceScatter,
    ),
    blocking(
        "reduce_scatter_block",
        "Reduce_scatter_block Latency Test",
        Collective::ReduceScatterBlock,
    ),
    nonblocking(
        "ibarrier",
        "Non-blocking Barrier Latency Test",
        Collective::Barrier,
    ),
    nonblocking(
        "ibcast",
        "Non-Blocking Broadcast Latency Test",
        Collective::Bcast,
    ),
    nonblocking(
        "igather",
        "Non-blocking Gather Latency Test",
        Collective::Gather,
    ),
    nonblocking(
        "igatherv",
        "Non-blocking Gatherv Latency Test",
        Collective::Gatherv,
    ),
    nonblocking(
        "iscatter",
        "Non-blocking Scatter Latency Test",
        Collective::Scatter,
    ),
    nonblocking(
        "iscatterv",
        "Non-blocking Scatterv Latency Test",
        Collective::Scatterv,
    ),
    nonblocking(
        "iallgather",
        "Non-blocking Allgather Latency Test",
        Collective::Allgather,
    ),
    nonblocking(
        "iallgatherv",
        "Non-blocking Allgatherv Latency Test",
        Collective::Allgatherv,
    ),
    nonblocking(
        "ialltoall",
        "Non-blocking All-to-All Latency Test",
        Collective::Alltoall,
    ),
    nonblocking(
        "ialltoallv",
        "Non-blocking All-to-Allv Personalized Exchange Latency Test",
        Collective::Alltoallv,
    ),
    nonblocking(
        "ialltoallw",
        "Non-blocking All-to-Allw Personalized Exchange Latency Test",
        Collective::Alltoallw,
    ),
    nonblocking(
        "ireduce",
        "Non-blocking Reduce Latency Test",
        Collective::Reduce,
    ),
    nonblocking(
        "iallreduce",
        "Non-blocking Allreduce Latency Test",
        Collective::Allreduce,
    ),
    nonblocking(
        "ireduce_scatter",
        "Non-blocking Reduce_scatter Latency Test",
        Collective::ReduceScatter,
    ),
    nonblocking(
        "ireduce_scatter_block",
        "Non-blocking Reduce_scatter_block Latency Test",
        Collective::ReduceScatterBlock,
    ),
    persistent(
        "barrier_persistent",
        "Barrier Persistent Latency Test",
        Collective::Barrier,
    ),
    persistent(
        "bcast_persistent",
        "Broadcast Persistent Latency Test",
        Collective::Bcast,
    ),
    persistent(
        "gather_persistent",
        "Gather Persistent Latency Test",
        Collective::Gather,
    ),
    persistent(
        "gatherv_persistent",
        "Gatherv Persistent Latency Test",
        Collective::Gatherv,
    ),
    persistent(
        "scatter_persistent",
        "Scatter Persistent Latency Test",
        Collective::Scatter,
    ),
    persistent(
        "scatterv_persistent",
        "Scatterv Persistent Latency Test",
        Collective::Scatterv,
    ),
    persistent(
        "allgather_persistent",
        "Allgather Persistent Latency Test",
        Collective::Allgather,
    ),
    persistent(
        "allgatherv_persistent",
        "Allgatherv Persistent Latency Test",
        Collective::Allgatherv,
    ),
    persistent(
        "alltoall_persistent",
        "All-to-All Personalized Exchange Persistent Latency Test",
        Collective::Alltoall,
    ),
    persistent(
        "alltoallv_persistent",
        "All-to-Allv Personalized Exchange Persistent Latency Test",
        Collective::Alltoallv,
    ),
    persistent(
        "alltoallw_persistent",
        "All-to-Allw Personalized Exchange Persistent Latency Test",
        Collective::Alltoallw,
    ),
    persistent(
        "reduce_persistent",
        "Reduce Persistent Latency Test",
        Collective::Reduce,
    ),
    persistent(
        "allreduce_persistent",
        "Allreduce Persistent Latency Test",
        Collective::Allreduce,
    ),
    persistent(
        "reduce_scatter_persistent",
        "Reduce_scatter Persistent Latency Test",
        Collective::ReduceScatter,
    ),
    blocking(
        "neighbor_allgather",
        "Neighborhood Allgather Latency Test",
        Collective::NeighborAllgather,
    ),
    blocking(
        "neighbor_allgatherv",
        "Neighborhood Allgatherv Latency Test",
        Collective::NeighborAllgatherv,
    ),
    blocking(
        "neighbor_alltoall",
        "Neighborhood Alltoall Latency Test",
        Collective::NeighborAlltoall,
    ),
    blocking(
        "neighbor_alltoallv",
        "Neighborhood All-to-Allv Latency Test",
        Collective::NeighborAlltoallv,
    ),
    blocking(
        "neighbor_alltoallw",
        "Neighborhood Alltoallw Latency Test",
        Collective::NeighborAlltoallw,
    ),
    nonblocking(
        "ineighbor_allgather",
        "Non-blocking Neighborhood Allgather Latency Test",
        Collective::NeighborAllgather,
    ),
    nonblocking(
        "ineighbor_allgatherv",
        "Non-blocking Neighborhood Allgatherv Latency Test",
        Collective::NeighborAllgatherv,
    ),
    nonblocking(
        "ineighbor_alltoall",
        "Non-blocking Neighborhood Alltoall Latency Test",
        Collective::NeighborAlltoall,
    ),
    nonblocking(
        "ineighbor_alltoallv",
        "Non-blocking Neighborhood Alltoallv Latency Test",
        Collective::NeighborAlltoallv,
    ),
    nonblocking(
        "ineighbor_alltoallw",
        "Non-blocking Neighborhood Alltoallw Latency Test",
        Collective::NeighborAlltoallw,
    ),
    pair("put_latency", "_Put Latency Test", latency_of(Access::Put)),
    pair("get_latency", "_Get latency Test", latency_of(Access::Get)),
    bandwidth("put_bw", "_Put Bandwidth Test", bandwidth_of(Access::Put)),
    bandwidth("get_bw", "_Get Bandwidth Test", bandwidth_of(Access::Get)),
    bandwidth(
        "put_bibw",
        "_Put Bi-directional Bandwidth Test",
        Family::OneSided(OneSided::Bidirectional(Access::Put)),
    ),
    pair(
        "acc_latency",
        "_Accumulate latency Test",
        latency_of(Access::Accumulate),
    ),
    pair(
        "get_acc_latency",
        "_Get_accumulate latency Test",
        latency_of(Access::GetAccumulate),
    ),
    pair(
        "fop_latency",
        "_Fetch_and_op latency Test",
        latency_of(Access::FetchAndOp),
    ),
    pair(
        "cas_latency",
        "_Compare_and_swap latency Test",
        latency_of(Access::CompareAndSwap),
    ),
    start("init", "Init Test", Startup::Init),
    start("hello", "Hello World Test", Startup::Hello),
];

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of benchmarks: what each is called, what it measures, its defaults and how to make it.
//!
//! Called by lib to find one and by options and runner for its defaults. A new benchmark is one file and one entry here.
//! Defaults are those of OSU 7.5.

use crate::collective::{allgather, allreduce, alltoall, alltoallv, alltoallw, barrier, bcast};
use crate::options::Settings;
use crate::pt2pt::{bandwidth, bidirectional, latency, message_rate, multi_latency};
use crate::runner::Benchmark;
use weft_mpi::{Communicator, Datatype, Result};

/// What the second column of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// One-way time in microseconds.
    Latency,
    /// MB/s, with MB = 10^6 bytes.
    Bandwidth,
    /// MB/s and messages per second.
    MessageRate,
}

/// How ranks take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// Exactly two.
    Two,
    /// Pairs: rank r with rank r + half; a last odd rank only watches.
    Pairs,
    /// A collective of two or more.
    All,
}

/// How often to repeat: `(iterations, warm-up)` for messages up to 8192 bytes and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loops {
    /// Up to [`LARGE_MESSAGE_BYTES`].
    pub small: (usize, usize),
    /// Above it.
    pub large: (usize, usize),
}

/// Messages above this many bytes count as large (specified by OSU).
pub const LARGE_MESSAGE_BYTES: usize = 8192;

/// One benchmark.
pub struct Description {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in the output, between `# OSU MPI ` and the version.
    pub title: &'static str,
    /// The figure it reports.
    pub measure: Measure,
    /// Who takes part.
    pub ranks: Ranks,
    /// Whether it has message sizes at all.
    pub sized: bool,
    /// Whether each rank holds one message for every rank, so that -M counts it as often.
    pub message_per_rank: bool,
    /// Whether it adds elements up, so that MPI_CHAR has no meaning for it.
    pub reduces: bool,
    /// Largest message by default, in bytes.
    pub max_bytes: usize,
    /// Repetitions by default.
    pub loops: Loops,
    /// Makes it, with all the memory it needs.
    pub make: for<'a> fn(&'a Communicator<'a>, &'a Settings) -> Result<Box<dyn Benchmark + 'a>>,
}

impl Description {
    /// Type of the elements unless -T names another.
    pub fn default_kind(&self) -> Datatype {
        if self.reduces {
            Datatype::Int
        } else {
            Datatype::Char
        }
    }

    /// Whether it is one of the point-to-point benchmarks.
    pub fn is_point_to_point(&self) -> bool {
        self.ranks != Ranks::All
    }
}

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
const POINT_TO_POINT_MAX_BYTES: usize = 4 << 20;
const COLLECTIVE_MAX_BYTES: usize = 1 << 20;

/// A collective of [`COLLECTIVE_LOOPS`] with message sizes; entries change what differs.
const COLLECTIVE: Description = Description {
    name: "",
    title: "",
    measure: Measure::Latency,
    ranks: Ranks::All,
    sized: true,
    message_per_rank: false,
    reduces: false,
    max_bytes: COLLECTIVE_MAX_BYTES,
    loops: COLLECTIVE_LOOPS,
    make: barrier::make,
};

/// A point-to-point latency; entries change what differs.
const POINT_TO_POINT: Description = Description {
    ranks: Ranks::Two,
    max_bytes: POINT_TO_POINT_MAX_BYTES,
    loops: LATENCY_LOOPS,
    make: latency::make,
    ..COLLECTIVE
};

/// A point-to-point bandwidth; entries change what differs.
const BANDWIDTH: Description = Description {
    measure: Measure::Bandwidth,
    loops: BANDWIDTH_LOOPS,
    ..POINT_TO_POINT
};

/// All benchmarks.
pub static CATALOGUE: &[Description] = &[
    Description {
        name: "latency",
        title: "Latency Test",
        ..POINT_TO_POINT
    },
    Description {
        name: "bw",
        title: "Bandwidth Test",
        make: bandwidth::make,
        ..BANDWIDTH
    },
    Description {
        name: "bibw",
        title: "Bi-Directional Bandwidth Test",
        make: bidirectional::make,
        ..BANDWIDTH
    },
    Description {
        name: "mbw_mr",
        title: "Multiple Bandwidth / Message Rate Test",
        measure: Measure::MessageRate,
        ranks: Ranks::Pairs,
        make: message_rate::make,
        ..BANDWIDTH
    },
    Description {
        name: "multi_lat",
        title: "Multi Latency Test",
        ranks: Ranks::Pairs,
        make: multi_latency::make,
        ..POINT_TO_POINT
    },
    Description {
        name: "barrier",
        title: "Barrier Latency Test",
        sized: false,
        make: barrier::make,
        ..COLLECTIVE
    },
    Description {
        name: "bcast",
        title: "Broadcast Latency Test",
        make: bcast::make,
        ..COLLECTIVE
    },
    Description {
        name: "allreduce",
        title: "Allreduce Latency Test",
        reduces: true,
        make: allreduce::make,
        ..COLLECTIVE
    },
    Description {
        name: "alltoall",
        title: "All-to-All Personalized Exchange Latency Test",
        message_per_rank: true,
        make: alltoall::make,
        ..COLLECTIVE
    },
    Description {
        name: "alltoallv",
        title: "All-to-Allv Personalized Exchange Latency Test",
        message_per_rank: true,
        make: alltoallv::make,
        ..COLLECTIVE
    },
    Description {
        name: "alltoallw",
        title: "All-to-Allw Personalized Exchange Latency Test",
        message_per_rank: true,
        make: alltoallw::make,
        ..COLLECTIVE
    },
    Description {
        name: "allgather",
        title: "Allgather Latency Test",
        message_per_rank: true,
        make: allgather::make,
        ..COLLECTIVE
    },
];

/// Finds a benchmark by its name, with or without OSU's `osu_` in front.
pub fn find(name: &str) -> Option<&'static Description> {
    let name = name.strip_prefix("osu_").unwrap_or(name);
    CATALOGUE
        .iter()
        .find(|description| description.name == name)
}

/// What `weft bench --help` prints.
pub fn overview() -> String {
    let mut text = String::from(
        "Usage: weft bench BENCHMARK [OPTIONS]      inside an MPI job, e.g. weft run -n 2 -- weft bench latency\n       \
         weft bench compare [OPTIONS]        several MPIs and transports, interleaved\n\nBenchmarks:\n",
    );
    for description in CATALOGUE {
        text.push_str(&format!(
            "  {:<12}OSU MPI {}\n",
            description.name, description.title
        ));
    }
    text.push_str("\n`weft bench BENCHMARK --help` lists the options.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_with_and_without_its_prefix() {
        for description in CATALOGUE {
            assert!(std::ptr::eq(
                find(description.name).expect("listed"),
                description
            ));
            assert!(std::ptr::eq(
                find(&format!("osu_{}", description.name)).expect("listed"),
                description
            ));
            assert!(overview().contains(description.title));
        }
        assert!(find("latencies").is_none());
    }

    #[test]
    fn defaults_are_those_of_osu() {
        let of = |name| find(name).expect("listed");
        assert_eq!(of("latency").loops.small, (10_000, 100));
        assert_eq!(
            of("bw").loops,
            Loops {
                small: (100, 10),
                large: (20, 2)
            }
        );
        assert_eq!(of("alltoall").max_bytes, 1 << 20);
        assert_eq!(of("mbw_mr").max_bytes, 4 << 20);
        assert_eq!(of("allreduce").default_kind(), Datatype::Int);
    }
}

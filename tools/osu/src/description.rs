// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The description of a benchmark: its name, what it measures, which ranks take part, and its
//! defaults.
//!
//! Data only. The catalogue lists descriptions, options checks a command line against one, format
//! prints its title, and runner makes the benchmark through its family.

use crate::one_sided::access::Access;
use crate::one_sided::synchronise::Synchronisation;
use weft_mpi::{Collective, Datatype, Form};

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
    /// Any number, also one.
    Any,
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

/// What a benchmark exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Messages between pairs of ranks.
    PointToPoint(PointToPoint),
    /// A collective in one of its forms.
    Collective(Collective, Form),
    /// One-sided accesses.
    OneSided(OneSided),
    /// Only a start.
    Startup(Startup),
}

/// Which messages two ranks exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointToPoint {
    /// One there and one back.
    Latency,
    /// The same between threads or beside child processes, whose number is -t.
    LatencyWith(Helpers),
    /// One there and one back, by several pairs at once.
    MultiLatency,
    /// Windows of messages.
    Bandwidth(Directions),
    /// Windows of messages, by several pairs at once.
    MessageRate,
    /// As latency, by messages that are prepared once.
    PersistentLatency,
    /// As bandwidth, by messages that are prepared once.
    PersistentBandwidth(Directions),
}

/// What -t counts in latency_mt and latency_mp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helpers {
    /// Threads that all call MPI, which needs MPI's leave.
    Threads,
    /// Processes that only sleep.
    Processes,
}

/// Where the messages of a window go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// From the leading rank, which then waits for an answer.
    One,
    /// From both ranks at once, without an answer.
    Both,
}

impl Directions {
    /// In how many directions messages go at once.
    pub fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Both => 2,
        }
    }
}

/// A one-sided benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSided {
    /// The time of one access.
    Latency(Access),
    /// The bandwidth of windows of accesses from rank 0.
    Bandwidth(Access),
    /// The same from both ranks at once.
    Bidirectional(Access),
}

impl OneSided {
    /// The access that is repeated.
    pub fn access(self) -> Access {
        match self {
            Self::Latency(access) | Self::Bandwidth(access) | Self::Bidirectional(access) => access,
        }
    }

    /// Whether -s may name this synchronisation.
    pub fn allows(self, synchronisation: Synchronisation) -> bool {
        let active = [Synchronisation::Fence, Synchronisation::Pscw];
        !matches!(self, Self::Bidirectional(_)) || active.contains(&synchronisation)
    }

    /// What it uses unless -s names another.
    pub fn default_synchronisation(self) -> Synchronisation {
        match self {
            Self::Bidirectional(_) => Synchronisation::Pscw,
            _ => Synchronisation::Flush,
        }
    }
}

/// What a start is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// The time of MPI_Init.
    Init,
    /// Only that it starts.
    Hello,
}

/// One benchmark.
pub struct Description {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in the output, between `# OSU MPI` and the version.
    pub title: &'static str,
    /// The figure it reports.
    pub measure: Measure,
    /// Who takes part.
    pub ranks: Ranks,
    /// Whether it has message sizes at all.
    pub sized: bool,
    /// Largest message by default, in bytes.
    pub max_bytes: usize,
    /// Repetitions by default.
    pub loops: Loops,
    /// What it exercises.
    pub family: Family,
}

impl Description {
    /// Type of the elements unless -T names another: the first with a meaning for the benchmark,
    /// and 8 bytes for single ones.
    pub fn default_kind(&self) -> Datatype {
        if self.is_single() {
            Datatype::Long
        } else if self.computes() {
            Datatype::Int
        } else {
            Datatype::Char
        }
    }

    /// Whether it adds elements up, so that MPI_CHAR has no meaning for it.
    pub fn computes(&self) -> bool {
        match self.family {
            Family::Collective(which, _) => which.reduces(),
            Family::OneSided(which) => which.access().computes(),
            _ => false,
        }
    }

    /// Whether it is one of the point-to-point benchmarks.
    pub fn is_point_to_point(&self) -> bool {
        matches!(self.family, Family::PointToPoint(_))
    }

    /// What -t counts, when it counts threads or processes.
    pub fn helpers(&self) -> Option<Helpers> {
        match self.family {
            Family::PointToPoint(PointToPoint::LatencyWith(helpers)) => Some(helpers),
            _ => None,
        }
    }

    /// Messages that all ranks send in an iteration, answers to windows aside; 1 for what has no
    /// messages of its own, as a collective.
    pub fn messages(&self, window: usize, pairs: usize) -> usize {
        match self.family {
            Family::PointToPoint(which) => match which {
                PointToPoint::Latency | PointToPoint::PersistentLatency => 2,
                PointToPoint::MultiLatency => 2 * pairs,
                PointToPoint::MessageRate => window * pairs,
                PointToPoint::Bandwidth(directions)
                | PointToPoint::PersistentBandwidth(directions) => window * directions.count(),
                PointToPoint::LatencyWith(_) => 1,
            },
            _ => 1,
        }
    }

    /// The collective and its form, when it is one.
    pub fn collective(&self) -> Option<(Collective, Form)> {
        match self.family {
            Family::Collective(which, form) => Some((which, form)),
            _ => None,
        }
    }

    /// Whether it is a collective between neighbours, which -N lays out.
    pub fn is_between_neighbours(&self) -> bool {
        self.collective()
            .is_some_and(|(which, _)| which.is_between_neighbours())
    }

    /// The one-sided accesses, when it has such.
    pub fn one_sided(&self) -> Option<OneSided> {
        match self.family {
            Family::OneSided(which) => Some(which),
            _ => None,
        }
    }

    /// Whether it is a non-blocking collective, which is measured together with work.
    pub fn is_overlapped(&self) -> bool {
        matches!(self.family, Family::Collective(_, Form::Nonblocking))
    }

    /// Whether it accesses single elements, whose size is that of the type.
    pub fn is_single(&self) -> bool {
        self.one_sided()
            .is_some_and(|which| which.access().is_single())
    }

    /// The start of its header line, up to the version. One-sided titles go on directly after
    /// `MPI`.
    pub fn headline(&self) -> String {
        let space = if self.title.starts_with('_') { "" } else { " " };
        format!("OSU MPI{space}{}", self.title)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OSU's options as clap reads them, before anything is checked; also the source of the help text.
//!
//! Called by options, which turns them into settings.

use crate::one_sided::synchronise::Synchronisation;
use clap::{Args, Parser, ValueEnum};
use weft_mpi::Origin;
use weft_ranks::refusal::BadOption;

/// -M by default, in bytes, as in OSU.
const DEFAULT_MEMORY_LIMIT_BYTES: usize = 512 << 20;

/// Whether messages in flight share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    /// All use the same bytes, which then stay in the cache.
    Single,
    /// Each has its own.
    Multiple,
}

/// The command line as written.
#[derive(Parser, Debug)]
#[command(
    name = "weft bench",
    disable_version_flag = true,
    about = "One MPI benchmark, with the options of OSU 7.5"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) messages: Messages,
    #[command(flatten)]
    pub(super) repeats: Repeats,
    #[command(flatten)]
    pub(super) output: Output,
    /// Accelerator to take buffers from; only `host` is known, and it is the default
    #[arg(
        short = 'd',
        long = "accelerator",
        default_value = "host",
        value_name = "TYPE"
    )]
    pub(super) accelerator: String,
    #[command(flatten)]
    pub(super) special: Special,
    #[command(flatten)]
    pub(super) absent: Absent,
    /// Print the version and end
    #[arg(short = 'v', long = "version")]
    pub(super) version: bool,
    /// Memory of the two sides, as OSU takes it: H for host
    #[arg(value_name = "H H", num_args = 0..=2, value_parser = ["H", "D", "M", "MH", "MD"])]
    pub(super) memory: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct Messages {
    /// Message sizes in bytes: MAX, MIN: or MIN:MAX
    #[arg(short = 'm', long = "message-size", value_name = "[MIN:]MAX")]
    #[arg(allow_negative_numbers = true)]
    pub(super) sizes: Option<String>,
    /// Messages in flight at once (bandwidth)
    #[arg(
        short = 'W',
        long = "window-size",
        default_value_t = 64,
        value_name = "N"
    )]
    pub(super) window: usize,
    /// One buffer for all messages in flight, or one each (bandwidth)
    #[arg(short = 'b', long = "buffer-num", value_enum, default_value = "single")]
    pub(super) buffers: Buffers,
    /// Type of the elements: mpi_char, mpi_int, mpi_float, mpi_double, mpi_long, several with
    /// commas in between, or all
    #[arg(short = 'T', long = "type", value_name = "TYPE,...")]
    pub(super) kinds: Option<String>,
    /// Bytes of memory that the buffers of a collective may take on one rank
    #[arg(
        short = 'M',
        long = "mem-limit",
        default_value_t = DEFAULT_MEMORY_LIMIT_BYTES,
        value_name = "BYTES"
    )]
    pub(super) memory_limit_bytes: usize,
    /// Root of a rooted collective: a rank, fixed:RANK or rotate
    #[arg(
        short = 'k',
        long = "root-rank",
        default_value = "0",
        value_name = "ROOT"
    )]
    pub(super) root: String,
    /// Pairs of ranks that exchange (multi_lat, mbw_mr); half the ranks by default
    #[arg(short = 'p', long = "num-pairs", alias = "pairs", value_name = "N")]
    pub(super) pairs: Option<usize>,
}

/// Options that only some benchmarks have.
#[derive(Args, Debug)]
pub(super) struct Special {
    /// latency_mt, latency_mp: RECEIVING or SENDING:RECEIVING threads or child processes (default
    /// 1:2); non-blocking collectives: calls of MPI_Test during the work (default 0)
    #[arg(
        short = 't',
        long = "num-test-calls",
        alias = "num-threads",
        value_name = "[N:]N"
    )]
    pub(super) count: Option<String>,
    /// How a window is made (one-sided)
    #[arg(
        short = 'w',
        long = "win-options",
        value_enum,
        ignore_case = true,
        value_name = "HOW"
    )]
    pub(super) origin: Option<Making>,
    /// How accesses are ended, by which synchronization (one-sided); flush by default, pscw for
    /// put_bibw
    #[arg(
        short = 's',
        long = "sync-option",
        value_enum,
        ignore_case = true,
        value_name = "HOW"
    )]
    pub(super) synchronisation: Option<Synchronisation>,
    /// Neighbours in neighbourhood collectives: cart:DIMENSIONS:RADIUS (default cart:1:1)
    #[arg(short = 'N', long = "nhbr", value_name = "GRID")]
    pub(super) neighbours: Option<String>,
}

impl From<Making> for Origin {
    fn from(making: Making) -> Self {
        match making {
            Making::Create => Self::Create,
            Making::Allocate => Self::Allocate,
            Making::Dynamic => Self::Dynamic,
        }
    }
}

/// How a window comes to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Making {
    /// MPI_Win_create
    Create,
    /// MPI_Win_allocate, the default
    Allocate,
    /// MPI_Win_create_dynamic
    Dynamic,
}

/// Options that OSU has and this program has not; known, so that the answer can say why.
#[derive(Args, Debug)]
pub(super) struct Absent {
    #[arg(short = 'G', long = "graph", hide = true)]
    pub(super) graph: Option<String>,
    #[arg(short = 'D', long = "ddt", hide = true)]
    pub(super) derived: Option<String>,
    #[arg(short = 'P', long = "papi", hide = true)]
    pub(super) counters: Option<String>,
    #[arg(short = 'I', long = "session", hide = true)]
    pub(super) session: bool,
    #[arg(short = 'l', long = "in-place", hide = true)]
    pub(super) in_place: bool,
    #[arg(short = 'V', long = "vary-window", hide = true)]
    pub(super) vary_window: bool,
    #[arg(short = 'r', long = "cuda-target", hide = true)]
    pub(super) target: Option<String>,
    #[arg(short = 'a', long = "array-size", hide = true)]
    pub(super) array: Option<String>,
}

impl Absent {
    /// The first that was written, and why it is not offered.
    pub(super) fn refusal(&self) -> Option<BadOption> {
        let asked = [
            (
                self.graph.is_some(),
                "-G",
                "graphs are not drawn here; `weft bench compare` draws them, and -z prints \
                 percentiles",
            ),
            (
                self.derived.is_some(),
                "-D",
                "derived types are not offered; -T names a predefined one",
            ),
            (
                self.counters.is_some(),
                "-P",
                "hardware counters are not read; `perf stat` reads them from outside",
            ),
            (
                self.session,
                "-I",
                "MPI sessions are not offered; MPI is initialised by MPI_Init",
            ),
            (
                self.in_place,
                "-l",
                "MPI_IN_PLACE is not offered; what is given and what is taken lie apart",
            ),
            (
                self.vary_window,
                "-V",
                "the window is not varied; run it again with another -W",
            ),
            (
                self.target.is_some(),
                "-r",
                "there is no work on accelerators; leave -r out",
            ),
            (
                self.array.is_some(),
                "-a",
                "there are no arrays on accelerators; leave -a out",
            ),
        ];
        let first = asked.into_iter().find(|(is_asked, ..)| *is_asked);
        first.map(|(_, option, why)| BadOption::new(option, why))
    }
}

fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("it must be a whole number of at most {}", usize::MAX))
}

#[derive(Args, Debug)]
pub(super) struct Repeats {
    /// Iterations for every message size
    #[arg(
        short = 'i',
        long = "iterations",
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = count
    )]
    pub(super) iterations: Option<usize>,
    /// Warm-up iterations before the timed ones
    #[arg(
        short = 'x',
        long = "warmup",
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = count
    )]
    pub(super) warmup: Option<usize>,
    /// Untimed exchanges between filling the buffers and a timed iteration, with -c
    #[arg(
        short = 'u',
        long = "validation-warmup",
        default_value_t = 5,
        value_name = "N"
    )]
    pub(super) validation_warmup: usize,
    /// Factor on the default iterations, for short runs; -i goes before it
    #[arg(long = "repeat-scale", default_value_t = 1.0, value_name = "FACTOR")]
    pub(super) scale: f64,
    /// Seconds that a message size may take: beyond that it has fewer iterations, at least 2, and a
    /// shorter warm-up
    #[arg(
        long = "size-time",
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    pub(super) longest_seconds: Option<f64>,
}

#[derive(Args, Debug)]
pub(super) struct Output {
    /// Check every byte received and add a column Validation; exit 1 when one is wrong
    #[arg(short = 'c', long = "validation")]
    pub(super) validate: bool,
    /// Add columns for the least and the greatest latency and the iterations
    #[arg(short = 'f', long = "full")]
    pub(super) full: bool,
    /// Add percentile columns; -z alone means -z50,90,99
    #[arg(short = 'z', long = "tail-lat", value_name = "P,...")]
    pub(super) tails: Option<String>,
    /// Print messages per second (mbw_mr): 0 or 1
    #[arg(
        short = 'R',
        long = "print-rate",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(0..=1)
    )]
    pub(super) rate: u8,
    /// Lines as OSU 5 or as OSU 7 prints them
    #[arg(
        long = "osu-format",
        default_value_t = 7,
        value_parser = clap::value_parser!(u8).range(5..=7),
        value_name = "5|7"
    )]
    pub(super) style: u8,
    /// One JSON object a line instead of text
    #[arg(long, conflicts_with = "style")]
    pub(super) json: bool,
}

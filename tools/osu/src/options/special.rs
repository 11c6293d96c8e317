// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The options that only some benchmarks have. They are checked against the benchmark, so that no
//! option is ignored silently.
//!
//! Called by options.

use super::command_line;
use crate::collective::neighbours::Grid;
use crate::description::{Description, Helpers};
use crate::one_sided::synchronise::Synchronisation;
use weft_mpi::Origin;
use weft_ranks::refusal::BadOption;

/// Threads or processes at most on one side (specified by OSU).
const HELPER_LIMIT: usize = 128;

/// Threads or processes of latency_mt and latency_mp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperCounts {
    /// Of rank 0.
    pub senders: usize,
    /// Of rank 1.
    pub receivers: usize,
}

impl HelperCounts {
    /// Without -t (specified by OSU).
    const DEFAULT: Self = Self {
        senders: 1,
        receivers: 2,
    };

    /// Of a rank.
    pub fn of(self, rank: usize) -> usize {
        if rank == 0 {
            self.senders
        } else {
            self.receivers
        }
    }
}

/// Options that only some benchmarks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// -t of latency_mt and latency_mp.
    pub helpers: HelperCounts,
    /// -t of non-blocking collectives: calls of MPI_Test during the work.
    pub test_calls: usize,
    /// -w.
    pub origin: Origin,
    /// -s, when written.
    pub synchronisation: Option<Synchronisation>,
    /// -N.
    pub neighbours: Grid,
    /// -p.
    pub pairs: Option<usize>,
}

/// Checks them for a benchmark.
pub(super) fn check(
    description: &Description,
    written: &command_line::Special,
    pairs: Option<usize>,
) -> Result<Special, BadOption> {
    let (helpers, test_calls) = counts(description, written.count.as_deref())?;
    one_sided_only(description, "-w", written.origin.is_some())?;
    one_sided_only(description, "-s", written.synchronisation.is_some())?;
    if let (Some(which), Some(chosen)) = (description.one_sided(), written.synchronisation)
        && !which.allows(chosen)
    {
        let name = chosen.title();
        let reason =
            format!("{name} cannot synchronise accesses from both sides; use pscw or fence");
        return Err(BadOption::new("-s", reason));
    }
    Ok(Special {
        helpers,
        test_calls,
        origin: written.origin.map_or(Origin::Allocate, Origin::from),
        synchronisation: written.synchronisation,
        neighbours: neighbours(description, written.neighbours.as_deref())?,
        pairs,
    })
}

fn one_sided_only(
    description: &Description,
    option: &str,
    is_written: bool,
) -> Result<(), BadOption> {
    match is_written && description.one_sided().is_none() {
        true => Err(BadOption::new(
            option,
            "only one-sided benchmarks have windows; leave it out",
        )),
        false => Ok(()),
    }
}

/// What -t counts depends on the benchmark.
fn counts(
    description: &Description,
    text: Option<&str>,
) -> Result<(HelperCounts, usize), BadOption> {
    let default = HelperCounts::DEFAULT;
    match (description.helpers(), text) {
        (Some(helpers), Some(text)) => Ok((helper_counts(text, helpers)?, 0)),
        (_, Some(text)) if description.is_overlapped() => {
            let reason = "must be a number of calls of MPI_Test";
            let calls = text.parse();
            let calls = calls.map_err(|_| BadOption::with_value("-t", text, reason))?;
            Ok((default, calls))
        }
        (_, None | Some("1")) => Ok((default, 0)),
        (_, Some(text)) => Err(BadOption::with_value(
            "-t",
            text,
            "this benchmark runs one thread a rank; leave -t out, or use latency_mt",
        )),
    }
}

fn helper_counts(text: &str, helpers: Helpers) -> Result<HelperCounts, BadOption> {
    let what = match helpers {
        Helpers::Threads => "threads",
        Helpers::Processes => "child processes",
    };
    let number = |word: &str| {
        let count = word.parse().ok();
        let count = count.filter(|count| (1..=HELPER_LIMIT).contains(count));
        count.ok_or_else(|| {
            let allowed = format!(
                "must be [SENDING:]RECEIVING {what}, each 1 to {HELPER_LIMIT}, such as 4 or 2:4"
            );
            BadOption::with_value("-t", text, allowed)
        })
    };
    let (senders, receivers) = text.split_once(':').unwrap_or(("1", text));
    Ok(HelperCounts {
        senders: number(senders)?,
        receivers: number(receivers)?,
    })
}

fn neighbours(description: &Description, text: Option<&str>) -> Result<Grid, BadOption> {
    match text {
        None => Ok(Grid::default()),
        Some(text) if description.is_between_neighbours() => Grid::parse(text),
        Some(text) => Err(BadOption::with_value(
            "-N",
            text,
            "only neighbourhood collectives have neighbours; leave it out",
        )),
    }
}

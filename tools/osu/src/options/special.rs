// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The options that only some benchmarks have: checked against the benchmark, so that none is silently without effect.
//!
//! Called by options.

use super::written::{self, Making};
use crate::catalogue::{Description, Helpers, Make};
use crate::collective::neighbours::Grid;
use crate::one_sided::synchronise::Synchronisation;
use weft_mpi::Origin;

/// Threads or processes at most on one side (specified by OSU).
const HELPER_LIMIT: usize = 128;
/// Receiving threads or processes by default (specified by OSU).
const DEFAULT_RECEIVERS: usize = 2;

/// Options that only some benchmarks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// -t of latency_mt and latency_mp: sending and receiving threads or processes.
    pub threads: (usize, usize),
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
    written: &written::Special,
    pairs: Option<usize>,
) -> Result<Special, String> {
    let (threads, test_calls) = counts(description, written.count.as_deref())?;
    one_sided_only(description, "-w", written.origin.is_some())?;
    one_sided_only(description, "-s", written.synchronisation.is_some())?;
    if let (Some(which), Some(chosen)) = (description.one_sided(), written.synchronisation) {
        if !which.allows(chosen) {
            let name = chosen.title();
            return Err(format!(
                "-s: {name} cannot synchronise accesses from both sides; use pscw or fence"
            ));
        }
    }
    Ok(Special {
        threads,
        test_calls,
        origin: match written.origin {
            Some(Making::Create) => Origin::Create,
            Some(Making::Allocate) | None => Origin::Allocate,
            Some(Making::Dynamic) => Origin::Dynamic,
        },
        synchronisation: written.synchronisation,
        neighbours: neighbours(description, written.neighbours.as_deref())?,
        pairs,
    })
}

fn one_sided_only(description: &Description, option: &str, is_written: bool) -> Result<(), String> {
    match is_written && description.one_sided().is_none() {
        true => Err(format!(
            "{option}: only one-sided benchmarks have windows; leave it out"
        )),
        false => Ok(()),
    }
}

/// What -t counts depends on the benchmark.
fn counts(
    description: &Description,
    text: Option<&str>,
) -> Result<((usize, usize), usize), String> {
    let default = (1, DEFAULT_RECEIVERS);
    match (description.make, text) {
        (Make::Helped(_, helpers), Some(text)) => Ok((helpers_of(text, helpers)?, 0)),
        (_, Some(text)) if description.is_overlapped() => {
            let calls = text
                .parse()
                .map_err(|_| format!("-t {text}: must be a number of calls of MPI_Test"))?;
            Ok((default, calls))
        }
        (_, None | Some("1")) => Ok((default, 0)),
        (_, Some(text)) => Err(format!(
            "-t {text}: this benchmark runs one thread a rank; leave -t out, or use latency_mt"
        )),
    }
}

fn helpers_of(text: &str, helpers: Helpers) -> Result<(usize, usize), String> {
    let what = match helpers {
        Helpers::Threads => "threads",
        Helpers::Processes => "child processes",
    };
    let number = |word: &str| {
        word.parse()
            .ok()
            .filter(|count| (1..=HELPER_LIMIT).contains(count))
            .ok_or_else(|| {
                format!(
                    "-t {text}: must be [SENDING:]RECEIVING {what}, each 1 to {HELPER_LIMIT}, such as 4 or 2:4"
                )
            })
    };
    match text.split_once(':') {
        None => Ok((1, number(text)?)),
        Some((senders, receivers)) => Ok((number(senders)?, number(receivers)?)),
    }
}

fn neighbours(description: &Description, text: Option<&str>) -> Result<Grid, String> {
    let Some(text) = text else {
        return Ok(Grid::default());
    };
    let has_neighbours = description
        .collective()
        .is_some_and(|(which, _)| which.is_between_neighbours());
    match has_neighbours {
        true => Grid::parse(text),
        false => Err(format!(
            "-N {text}: only neighbourhood collectives have neighbours; leave it out"
        )),
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the jobs that run now fetch long messages: what each of this user's endpoints has chosen, by
//! length, for messages in one direction and for bidirectional ones. `weft top` shows the same as
//! it changes.
//!
//! Called by `info.rs`; reads the endpoints once through `top/watch.rs`.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_launch::collective_calls::{self, Collective};

use crate::top::collectives::Calls;
use crate::top::rates::{Choice, Report};
use crate::top::screen;
use crate::top::watch::Watch;

/// One endpoint that has chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Running {
    /// Its process; 0 if it is in another namespace.
    pub pid: u32,
    /// The process's name.
    pub command: String,
    /// Its choices by length, those for both directions last.
    pub choices: Vec<Choice>,
    /// Its calls of collectives, by who carried them out.
    pub collectives: BTreeMap<String, Collective>,
}

/// The endpoints that have chosen something, by process; none where none can be read.
#[must_use]
pub fn endpoints() -> Vec<Running> {
    Watch::default().read().map(of).unwrap_or_default()
}

fn of(report: Report) -> Vec<Running> {
    let rows = report.endpoints.into_iter();
    let mut running: Vec<Running> = rows
        .filter(|row| !row.choices.is_empty() || !row.collectives.is_empty())
        .map(|row| Running {
            pid: row.pid,
            command: row.place.command,
            choices: row.choices,
            collectives: totals(&row.collectives),
        })
        .collect();
    running.sort_by_key(|one| one.pid);
    running
}

fn totals(calls: &BTreeMap<&'static str, Calls>) -> BTreeMap<String, Collective> {
    let total = |calls: &Calls| Collective {
        weft: calls.weft,
        mpi: calls.mpi,
    };
    let all = calls.iter();
    all.map(|(name, calls)| ((*name).to_owned(), total(calls)))
        .collect()
}

/// The rows of the table for people.
#[must_use]
pub fn rows(running: &[Running]) -> Vec<Vec<String>> {
    if running.is_empty() {
        let none =
            "no job that runs has received long messages; weft top shows choices as they change";
        return vec![vec![none.to_owned()]];
    }
    let row = |one: &Running| {
        let mut choices: Vec<String> = one.choices.iter().map(screen::choice).collect();
        choices.extend(collective_calls::line(&one.collectives));
        vec![format!("{} {}", one.pid, one.command), choices.join(", ")]
    };
    running.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_for_both_directions_are_told_from_those_for_one() {
        let choice = |bidirectional| Choice {
            from_bytes: 1 << 20,
            to_bytes: (4 << 20) - 1,
            method: "mapped",
            bidirectional,
        };
        let one = Running {
            pid: 12,
            command: "code".to_owned(),
            choices: vec![choice(false), choice(true)],
            collectives: [("bcast".to_owned(), Collective { weft: 3, mpi: 1 })].into(),
        };
        assert_eq!(
            rows(&[one]),
            [[
                "12 code",
                "1M to 4M by mapped, 1M to 4M bidirectional by mapped, \
                 3 calls of collectives in shared memory (bcast 3), 1 by the MPI (bcast 1)"
            ]]
        );
        assert!(rows(&[])[0][0].contains("weft top"));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which collectives Weft carried out in shared memory and which the MPI did, as the ranks tell it
//! at MPI_Finalize (crates/intercept).
//!
//! Part of `report.rs`; `lib.rs` says it at the end of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number_text::{grouped, in_parentheses};

/// Calls of a collective, by who carried them out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// Weft, in shared memory.
    #[serde(default)]
    pub weft: u64,
    /// The MPI.
    #[serde(default)]
    pub mpi: u64,
}

/// Adds one process's calls to a sum.
pub(crate) fn add(sums: &mut BTreeMap<String, Collective>, more: &BTreeMap<String, Collective>) {
    for (name, more) in more {
        let sum = sums.entry(name.clone()).or_default();
        sum.weft = sum.weft.saturating_add(more.weft);
        sum.mpi = sum.mpi.saturating_add(more.mpi);
    }
}

/// How many calls Weft carried out.
#[must_use]
pub fn served(calls: &BTreeMap<String, Collective>) -> u64 {
    let counts = calls.values().map(|one| one.weft);
    counts.fold(0, u64::saturating_add)
}

/// That none reached Weft, and which tool may be the reason: in one line.
#[must_use]
pub fn taken_by(tool: &str) -> String {
    format!(
        "no call of a collective reached Weft; {} stands before the MPI's functions, and keeps \
         from Weft what it does not call by its second name, as PMPI_Barrier",
        printable(tool)
    )
}

/// A text that any process of this host may have sent, without what controls a terminal.
fn printable(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(printable).collect()
}

/// All of them in one line; `None` if there are none.
#[must_use]
pub fn line(calls: &BTreeMap<String, Collective>) -> Option<String> {
    let weft = self::served(calls);
    let mpi = calls.values().map(|one| one.mpi);
    let mpi = mpi.fold(0, u64::saturating_add);
    let served = calls.iter().map(|(name, one)| (name, one.weft));
    let left = calls.iter().map(|(name, one)| (name, one.mpi));
    let by_mpi = match mpi {
        0 => String::new(),
        mpi => format!(
            ", {} by the MPI{}",
            grouped(mpi),
            printable(&in_parentheses(left))
        ),
    };
    (weft.saturating_add(mpi) > 0).then(|| {
        format!(
            "{} calls of collectives in shared memory{}{by_mpi}",
            grouped(weft),
            printable(&in_parentheses(served))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_over_processes() {
        let calls = r#"{"bcast":{"weft":1500,"mpi":1},"scan":{"weft":2,"mpi":0}}"#;
        let calls = serde_json::from_str(calls).unwrap();
        let mut sums = BTreeMap::new();
        add(&mut sums, &calls);
        add(&mut sums, &calls);
        assert_eq!(
            line(&sums).unwrap(),
            "3,004 calls of collectives in shared memory (bcast 3,000, scan 4), \
             2 by the MPI (bcast 2)"
        );
        assert_eq!(line(&BTreeMap::new()), None);
        assert!(taken_by("a\u{1b}]b").contains("; a?]b stands"));
    }
}

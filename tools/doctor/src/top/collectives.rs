// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many calls of collectives of a process went which way (docs/collectives.md, clause 9), read
//! and turned into rates. Called by `watch.rs` and `rates.rs`; shown by `screen.rs` or as JSON.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;
use weft_facts::collective::{FILE_BYTES, FILE_NAME, NAMES, SLOT_BYTES};
use weft_os::process;

/// Calls of each collective at one moment: those that Weft served, then those that the MPI did.
pub type Counts = [[u64; NAMES.len()]; 2];

/// Calls of one collective: how many a second now, and how many in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Calls {
    /// Served by Weft, a second.
    pub weft_per_s: f64,
    /// Left to the MPI, a second.
    pub mpi_per_s: f64,
    /// Served by Weft, in all.
    pub weft: u64,
    /// Left to the MPI, in all.
    pub mpi: u64,
}

/// The file of a process, if it has one that may be read.
pub(super) fn open(pid: u32) -> Option<File> {
    process::open_memfd_of(pid, FILE_NAME, -1)
        .ok()
        .map(File::from)
}

/// What the file says now; none if it cannot be read.
pub(super) fn read(file: &File) -> Option<Counts> {
    let mut bytes = vec![0; FILE_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(sum(&bytes))
}

/// All communicators' calls together.
fn sum(bytes: &[u8]) -> Counts {
    let mut sums = Counts::default();
    for slot in bytes.chunks_exact(SLOT_BYTES) {
        let words = slot.chunks_exact(size_of::<u64>());
        let sums = sums.as_flattened_mut().iter_mut();
        for (sum, word) in sums.zip(words) {
            let word = word.try_into().map_or(0, u64::from_ne_bytes);
            *sum = sum.saturating_add(word);
        }
    }
    sums
}

/// Those that were called at all, with their rates.
pub(super) fn between(
    before: Option<&Counts>,
    now: &Counts,
    elapsed_s: f64,
) -> BTreeMap<&'static str, Calls> {
    let before = before.unwrap_or(now);
    let rate =
        |way: usize, at: usize| now[way][at].saturating_sub(before[way][at]) as f64 / elapsed_s;
    let calls = |at: usize| Calls {
        weft_per_s: rate(0, at),
        mpi_per_s: rate(1, at),
        weft: now[0][at],
        mpi: now[1][at],
    };
    let all = NAMES.iter().enumerate();
    all.map(|(at, &name)| (name, calls(at)))
        .filter(|(_, calls)| calls.weft + calls.mpi > 0)
        .collect()
}

/// Rates in words, a part for each way that has any: `collectives allreduce 12k/s, by the MPI bcast
/// 3/s`.
pub(super) fn words(
    calls: &BTreeMap<&'static str, Calls>,
    short: impl Fn(f64) -> String,
) -> Vec<String> {
    let way = |title: &str, per_s: fn(&Calls) -> f64| {
        let busy = calls.iter().filter(|(_, calls)| per_s(calls) > 0.0);
        let parts: Vec<String> = busy
            .map(|(name, calls)| format!("{} {}/s", name.replace('_', " "), short(per_s(calls))))
            .collect();
        (!parts.is_empty()).then(|| format!("{title} {}", parts.join(", ")))
    };
    let weft = way("collectives", |calls| calls.weft_per_s);
    let mpi = way("collectives by the MPI", |calls| calls.mpi_per_s);
    weft.into_iter().chain(mpi).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in which two communicators made 5 and 7 calls of one kind.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        let bcast = 8;
        bytes[bcast..bcast + 8].copy_from_slice(&5_u64.to_ne_bytes());
        let at = 3 * SLOT_BYTES + bcast;
        bytes[at..at + 8].copy_from_slice(&7_u64.to_ne_bytes());
        let by_mpi = SLOT_BYTES - 8;
        bytes[by_mpi..by_mpi + 8].copy_from_slice(&2_u64.to_ne_bytes());
        bytes
    }

    #[test]
    fn calls_of_all_communicators_are_added_up_and_become_rates() {
        let now = sum(&file());
        let calls = between(Some(&Counts::default()), &now, 2.0);
        let names: Vec<_> = calls.keys().copied().collect();
        assert_eq!(names, ["bcast", "exscan"]);
        assert_eq!((calls["bcast"].weft, calls["bcast"].weft_per_s), (12, 6.0));
        assert_eq!((calls["exscan"].mpi, calls["exscan"].mpi_per_s), (2, 1.0));
        let told = words(&calls, |number| format!("{number:.0}"));
        assert_eq!(
            told,
            ["collectives bcast 6/s", "collectives by the MPI exscan 1/s"]
        );
        let first = between(None, &now, 2.0);
        assert_eq!(first["bcast"].weft_per_s, 0.0);
        assert!(words(&first, |_| String::new()).is_empty());
    }
}

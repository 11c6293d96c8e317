// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of measuring this build of Weft beside another (`--before`).
//!
//! Called by table, caveats, pages and files; reads ratio.

use super::analysis::{Analysis, for_each};
use super::configuration::{Configuration, WEFT, Workload};
use super::ratio::{Calibration, Ratio};
use super::record::{Record, Turn};

/// Weft of this build over that of the other under the same MPI; `None` where one of them was not
/// measured.
pub fn to_before(
    analysis: &Analysis<'_>,
    workload: &Workload,
    ours: &Configuration,
    size: usize,
) -> Option<Ratio> {
    ours.is_ours()
        .then(|| analysis.ratio(workload, ours, &ours.before(), size))
        .flatten()
}

/// Libraries of the MPIs that are others to the two builds, although they have one name: that of
/// this build, then that of the other. Each build looks for MPIs beside itself first.
pub fn differing(record: &Record) -> impl Iterator<Item = (&str, &str, &str)> {
    let library = |wanted: Configuration| {
        let mut turns = record.turns.iter();
        let is_of = |turn: &&Turn| turn.configuration == wanted && !turn.library.is_empty();
        turns.find(is_of).map(|turn| turn.library.as_str())
    };
    record.mpis().into_iter().filter_map(move |mpi| {
        let ours = Configuration::new(mpi, WEFT);
        let (here, there) = (library(ours.clone())?, library(ours.before())?);
        (here != there).then_some((mpi, here, there))
    })
}

/// How often the intervals of this build over the other hold 1; `None` where no other build was
/// measured.
pub fn in_all(analysis: &Analysis<'_>) -> Option<Calibration> {
    let mut found = Calibration::default();
    for_each(analysis, |workload, configuration, size| {
        if let Some(ratio) = to_before(analysis, workload, configuration, size) {
            found.add(&ratio.of_medians);
        }
    });
    (found.intervals > 0).then_some(found)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of measuring this build of Weft beside another (`--before`).
//!
//! Called by table, caveats, pages and files; reads ratio.

use super::analysis::{Analysis, for_each};
use super::configuration::{Configuration, Workload};
use super::ratio::{Calibration, Ratio};

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

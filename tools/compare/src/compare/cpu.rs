// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor time that messages cost, beside that of the same MPI's own transport.
//!
//! Called by goals, table, files and pages; reads analysis and ratio. A rank that waits by polling
//! uses processor time while it waits. So in a latency test the processor time is about the latency
//! itself, and the processor time of a stream says more.

use super::analysis::{Analysis, for_each};
use super::configuration::{Configuration, Workload};
use super::goals;
use serde::Serialize;
use weft_statistics::interval::{self, Interval};

/// Of all ranks, kernel and threads included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    /// Seconds for a million messages, or operations of a collective: as many as microseconds for
    /// one.
    pub seconds_per_million: f64,
    /// Seconds for 10^9 bytes; `None` for empty messages and for collectives.
    pub seconds_per_gb: Option<f64>,
    /// Over that of the baseline, round by round; `None` where there is none.
    pub to_native: Option<Interval>,
}

/// What a configuration spends at a size; `None` where it was not measured.
pub fn cost(
    analysis: &Analysis<'_>,
    workload: &Workload,
    configuration: &Configuration,
    size: usize,
) -> Option<Cost> {
    let own = analysis.figures(workload, configuration, size)?;
    let for_one_us = interval::of_median(&own.cpu_us)?.value;
    let baseline = analysis.baseline(workload, configuration);
    let base = baseline.and_then(|base| analysis.figures(workload, &base, size));
    let to_native = base.and_then(|base| {
        let (ours, theirs) = interval::shared(&own.cpu_us, &base.cpu_us);
        interval::of_ratio(&ours, &theirs)
    });
    let has_bytes = size > 0 && goals::pairs(workload);
    Some(Cost {
        seconds_per_million: for_one_us,
        // Microseconds for one, over 10^6; bytes of one, over 10^9.
        seconds_per_gb: has_bytes.then(|| for_one_us * 1000.0 / size as f64),
        to_native,
    })
}

/// Whether any run says what it cost.
pub fn is_known(analysis: &Analysis<'_>) -> bool {
    let mut known = false;
    for_each(analysis, |workload, configuration, size| {
        let figures = analysis.figures(workload, configuration, size);
        known |= figures.is_some_and(|figures| figures.cpu_us.iter().any(Option::is_some));
    });
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{configuration, filled, workload};

    #[test]
    fn cost_is_given_by_messages_by_bytes_and_beside_the_baseline() {
        let record = filled();
        let analysis = Analysis::of(&record);
        assert!(is_known(&analysis));
        // A message of 4096 bytes takes 1.2 us, and its cost was made twice that.
        let own = configuration("mpich", "weft");
        let found = cost(&analysis, &workload("latency"), &own, 4096).expect("measured");
        assert!((found.seconds_per_million - 2.4).abs() < 1e-9, "{found:?}");
        let gb = found.seconds_per_gb.expect("it has bytes");
        assert!((gb - 2400.0 / 4096.0).abs() < 1e-9, "{found:?}");
        assert!((found.to_native.expect("both").value - 0.5).abs() < 1e-9);
    }

    #[test]
    fn comparison_from_before_costs_were_measured_has_none() {
        let mut record = filled();
        let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
        rows.for_each(|row| row.cpu_us = None);
        let analysis = Analysis::of(&record);
        assert!(!is_known(&analysis));
        let own = configuration("mpich", "weft");
        assert!(cost(&analysis, &workload("latency"), &own, 8).is_none());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From runs to figures: medians and means with their confidence.
//!
//! Called by compare when measuring is over; read by ratio, table, goals, thresholds, files and
//! pages. selection decides which runs count.

use super::configuration::{Configuration, Side, Workload};
use super::record::Record;
use super::selection::{Counted, Selection, Series};
use std::collections::BTreeMap;
use weft_statistics::interval::{self, Column, Interval};
use weft_statistics::{Summary, spread};

/// Half width of the interval that the recommended rounds give (chosen: differences below are
/// rarely worth a decision).
const WANTED: f64 = 0.05;

/// Figures at one size, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Of each run's median block of iterations, which an interruption does not move.
    pub medians: Column,
    /// Of each run's mean over all its iterations, which holds what a median hides.
    pub means: Column,
    /// Processor time of all ranks for a message, or for an operation of a collective, in
    /// microseconds.
    pub cpu_us: Column,
    /// 99th percentile of each run's iterations.
    pub p99: Column,
    /// That of one in a thousand.
    pub p999: Column,
}

/// What is compared.
pub struct Analysis<'a> {
    /// The runs it rests on.
    pub record: &'a Record,
    /// Those of them that count.
    pub selection: Selection<'a>,
    figures: BTreeMap<Series, BTreeMap<usize, Figures>>,
}

/// A figure with all that is known about it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Cell {
    /// Median and spread over the rounds.
    #[serde(flatten)]
    pub summary: Summary,
    /// Where the median lies.
    pub interval: Interval,
    /// Median over the rounds of the runs' means, and where it lies.
    pub mean: Interval,
    /// Values far from the rest; they count.
    pub far_count: usize,
    /// Rounds that this spread asks for.
    pub rounds_wanted: usize,
}

impl<'a> Analysis<'a> {
    /// Of all runs.
    pub fn of(record: &'a Record) -> Self {
        let selection = Selection::of(record);
        let last = record.turns.iter().map(|turn| turn.round + 1).max();
        let rounds = last.unwrap_or(0);
        let counted = selection.counted.iter();
        let figures = counted.map(|(series, runs)| (series.clone(), by_size(runs, rounds)));
        Self {
            record,
            figures: figures.collect(),
            selection,
        }
    }

    /// Sizes at which a configuration has figures.
    pub fn sizes(&self, workload: &Workload, configuration: &Configuration) -> Vec<usize> {
        self.of_series(workload, configuration)
            .map_or(Vec::new(), |columns| columns.keys().copied().collect())
    }

    /// Sizes at which anybody has figures.
    pub fn all_sizes(&self, workload: &Workload) -> Vec<usize> {
        let mut sizes: Vec<usize> = self
            .record
            .configurations(workload)
            .into_iter()
            .flat_map(|configuration| self.sizes(workload, configuration))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn of_series(
        &self,
        workload: &Workload,
        configuration: &Configuration,
    ) -> Option<&BTreeMap<usize, Figures>> {
        self.figures.get(&(workload.clone(), configuration.clone()))
    }

    /// Figures of a configuration, round by round.
    pub fn figures(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
    ) -> Option<&Figures> {
        self.of_series(workload, configuration)?.get(&size)
    }

    /// All that is known of a figure.
    pub fn cell(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
    ) -> Option<Cell> {
        let figures = self.figures(workload, configuration, size)?;
        let values: Vec<f64> = figures.medians.iter().flatten().copied().collect();
        Some(Cell {
            summary: Summary::of(&values)?,
            interval: interval::of_median(&figures.medians)?,
            mean: interval::of_median(&figures.means)?,
            far_count: spread::far_count(&values),
            rounds_wanted: spread::rounds_wanted(&values, WANTED),
        })
    }

    /// The configurations of one side that ran a workload.
    pub fn on(&self, side: Side, workload: &Workload) -> impl Iterator<Item = &'a Configuration> {
        let all = self.record.configurations(workload).into_iter();
        all.filter(move |one| side.has(one))
    }

    /// Figures of one side at a size.
    pub fn figures_of(&self, side: Side, workload: &Workload, size: usize) -> Vec<&Figures> {
        self.on(side, workload)
            .filter_map(|configuration| self.figures(workload, configuration, size))
            .collect()
    }

    /// The most rounds that any series asks for, and which.
    pub fn rounds_wanted(&self) -> Option<(usize, String)> {
        let mut wanted: Vec<usize> = Vec::new();
        let mut most = (0, String::new());
        for ((workload, configuration), figures) in &self.figures {
            for (size, figures) in figures {
                let values: Vec<f64> = figures.medians.iter().flatten().copied().collect();
                let rounds = spread::rounds_wanted(&values, WANTED);
                wanted.push(rounds);
                if rounds > most.0 {
                    most = (rounds, format!("{configuration}: {workload}, {size} bytes"));
                }
            }
        }
        wanted.sort_unstable();
        // A tenth of the series may stay wider than aimed at.
        let usual = *wanted.get(wanted.len().saturating_sub(1) * 9 / 10)?;
        Some((usual, most.1))
    }
}

/// The figures of a series at each size.
fn by_size(runs: &Counted<'_>, rounds: usize) -> BTreeMap<usize, Figures> {
    let mut sizes: BTreeMap<usize, Figures> = BTreeMap::new();
    for (round, turn) in runs {
        for row in turn.rows.iter().filter(|row| row.median > 0.0) {
            let figures = sizes.entry(row.size_bytes).or_insert_with(|| Figures {
                medians: vec![None; rounds],
                means: vec![None; rounds],
                cpu_us: vec![None; rounds],
                p99: vec![None; rounds],
                p999: vec![None; rounds],
            });
            figures.cpu_us[*round] = row.cpu_us.filter(|time| *time > 0.0);
            figures.medians[*round] = Some(row.median);
            (figures.p99[*round], figures.p999[*round]) = (row.p99, row.p999);
            figures.means[*round] = (row.value > 0.0).then_some(row.value);
        }
    }
    sizes
}

/// Every measured figure in the order of the matrix.
pub fn for_each(analysis: &Analysis<'_>, mut visit: impl FnMut(&Workload, &Configuration, usize)) {
    for workload in &analysis.record.matrix.workloads {
        for configuration in analysis.record.configurations(workload) {
            for size in analysis.sizes(workload, configuration) {
                visit(workload, configuration, size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::Turn;
    use crate::compare::record::tests::{configuration, filled, run, turn, workload};
    use weft_statistics::speed::Speed;

    #[test]
    fn figures_are_medians_and_ratios_are_paired() {
        let record = filled();
        let analysis = Analysis::of(&record);
        let latency = workload("latency");
        let ours = configuration("mpich", "weft");
        let cell = analysis.cell(&latency, &ours, 8).expect("measured");
        assert_eq!((cell.summary.median, cell.summary.count), (0.3, 7));
        let ratio = analysis.to_native(&latency, &ours, 8).expect("both");
        let ratio = ratio.of_medians;
        assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
        assert!(
            analysis
                .cell(&latency, &configuration("intel", "weft"), 8)
                .is_none()
        );
    }

    #[test]
    fn run_on_a_slowed_machine_does_not_count_and_its_repetition_does() {
        let mut record = filled();
        let slow = Speed {
            copy_ns: 400_000.0,
            handover_ns: Some(80.0),
        };
        let own = run("mpich", "weft", "latency");
        let index = record
            .turns
            .iter()
            .position(|turn| turn.configuration == own.configuration && turn.round == 1)
            .expect("there");
        (record.turns[index].before, record.turns[index].after) = (slow, slow);
        let analysis = Analysis::of(&record);
        assert_eq!(analysis.selection.excluded.len(), 1);
        assert_eq!(
            analysis
                .figures(&own.workload, &own.configuration, 8)
                .expect("there")
                .medians[1],
            None
        );
        let mut again = record.clone();
        again.turns.push(Turn {
            attempt: 1,
            ..turn(&own, 1, &[(8, 0.77)])
        });
        let analysis = Analysis::of(&again);
        assert_eq!(
            analysis
                .figures(&own.workload, &own.configuration, 8)
                .expect("there")
                .medians[1],
            Some(0.77)
        );
    }

    #[test]
    fn series_measured_mostly_at_another_speed_is_kept_and_called_doubtful() {
        let mut record = filled();
        let own = configuration("mpich", "weft");
        for turn in record
            .turns
            .iter_mut()
            .filter(|turn| turn.configuration == own && turn.round > 1)
        {
            turn.before.handover_ns = Some(300.0);
            turn.after.handover_ns = Some(300.0);
        }
        let analysis = Analysis::of(&record);
        assert_eq!(
            (
                analysis.selection.doubtful.len(),
                analysis.selection.excluded.len()
            ),
            (2, 0)
        );
        assert_eq!(
            analysis
                .cell(&workload("latency"), &own, 8)
                .expect("kept")
                .summary
                .count,
            7
        );
    }
}

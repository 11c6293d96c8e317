// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From runs to figures: which runs count, medians with their confidence, ratios to the own transport and to the best peer.
//!
//! Called by compare once measuring is over; read by table, reach, thresholds, files and pages. A run counts unless the machine's speed
//! around it was another than usual; the figure it measured is never looked at for that. Where so many runs would fall out that
//! fewer than half of the rounds remain, all are kept and the series is called doubtful.

use super::plan::{Contender, Discipline};
use super::record::{Record, Turn, better};
use crate::statistics::bootstrap::{self, Column, Interval};
use crate::statistics::speed::{Speed, Usual};
use crate::statistics::{Summary, spread};
use std::collections::BTreeMap;

/// Half width of the interval that recommended rounds aim at (chosen: differences below are rarely worth a decision).
pub const AIM: f64 = 0.05;

/// A contender in a discipline.
pub type Series = (Discipline, Contender);

/// What is compared.
pub struct Analysis<'a> {
    /// The runs it rests on.
    pub record: &'a Record,
    /// Usual speed of the machine; `None` without runs.
    pub usual: Option<Usual>,
    columns: BTreeMap<Series, BTreeMap<usize, Column>>,
    excluded: Vec<&'a Turn>,
    doubtful: Vec<Series>,
}

/// A figure with all that is known about it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Cell {
    /// Median and spread over the rounds.
    #[serde(flatten)]
    pub summary: Summary,
    /// Where the median lies.
    pub interval: Interval,
    /// Values far from the rest; they count.
    pub far_count: usize,
    /// Rounds that this spread asks for.
    pub rounds_wanted: usize,
}

impl<'a> Analysis<'a> {
    /// Of all runs.
    pub fn of(record: &'a Record) -> Self {
        let speeds: Vec<Speed> = record
            .turns
            .iter()
            .flat_map(|turn| [turn.before, turn.after])
            .collect();
        let usual = Usual::of(&speeds);
        let mut by_series: BTreeMap<Series, Vec<&Turn>> = BTreeMap::new();
        for turn in record.turns.iter().filter(|turn| turn.failure.is_none()) {
            by_series
                .entry((turn.discipline.clone(), turn.contender.clone()))
                .or_default()
                .push(turn);
        }
        let rounds = record
            .turns
            .iter()
            .map(|turn| turn.round + 1)
            .max()
            .unwrap_or(0);
        let mut analysis = Self {
            record,
            usual,
            columns: BTreeMap::new(),
            excluded: Vec::new(),
            doubtful: Vec::new(),
        };
        for (series, turns) in by_series {
            analysis.add(series, &turns, rounds);
        }
        analysis
    }

    fn add(&mut self, series: Series, turns: &[&'a Turn], rounds: usize) {
        let sound = |turn: &&&Turn| self.usual.is_none_or(|usual| !usual.differs(&turn.speed()));
        let chosen = |turns: &mut dyn Iterator<Item = &&'a Turn>| -> BTreeMap<usize, &'a Turn> {
            turns.map(|turn| (turn.round, *turn)).collect()
        };
        let all = chosen(&mut turns.iter());
        let mut counted = chosen(&mut turns.iter().filter(sound));
        if counted.len() * 2 < all.len() {
            counted = all;
            self.doubtful.push(series.clone());
        } else {
            let left_out = turns.iter().filter(|turn| !sound(turn)).copied();
            self.excluded.extend(left_out);
        }
        let mut columns: BTreeMap<usize, Column> = BTreeMap::new();
        for (round, turn) in counted {
            for row in turn.rows.iter().filter(|row| row.median > 0.0) {
                let column = columns
                    .entry(row.size_bytes)
                    .or_insert_with(|| vec![None; rounds]);
                column[round] = Some(row.median);
            }
        }
        self.columns.insert(series, columns);
    }

    /// Runs that do not count, since the machine had another speed.
    pub fn excluded(&self) -> &[&'a Turn] {
        &self.excluded
    }

    /// Series whose runs all count although the machine changed its speed.
    pub fn doubtful(&self) -> &[Series] {
        &self.doubtful
    }

    /// Sizes at which a contender has figures.
    pub fn sizes(&self, discipline: &Discipline, contender: &Contender) -> Vec<usize> {
        self.of_series(discipline, contender)
            .map_or(Vec::new(), |columns| columns.keys().copied().collect())
    }

    /// Sizes at which anybody has figures.
    pub fn all_sizes(&self, discipline: &Discipline) -> Vec<usize> {
        let mut sizes: Vec<usize> = self
            .record
            .contenders(discipline)
            .into_iter()
            .flat_map(|contender| self.sizes(discipline, contender))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn of_series(
        &self,
        discipline: &Discipline,
        contender: &Contender,
    ) -> Option<&BTreeMap<usize, Column>> {
        self.columns.get(&(discipline.clone(), contender.clone()))
    }

    /// Figures of a contender, round by round.
    pub fn column(
        &self,
        discipline: &Discipline,
        contender: &Contender,
        size: usize,
    ) -> Option<&Column> {
        self.of_series(discipline, contender)?.get(&size)
    }

    /// All that is known of a figure.
    pub fn cell(
        &self,
        discipline: &Discipline,
        contender: &Contender,
        size: usize,
    ) -> Option<Cell> {
        let column = self.column(discipline, contender, size)?;
        let values: Vec<f64> = column.iter().flatten().copied().collect();
        Some(Cell {
            summary: Summary::of(&values)?,
            interval: bootstrap::of_median(column)?,
            far_count: spread::far_count(&values),
            rounds_wanted: spread::rounds_wanted(&values, AIM),
        })
    }

    /// A contender over another, paired by round.
    pub fn ratio(
        &self,
        discipline: &Discipline,
        (ours, base): (&Contender, &Contender),
        size: usize,
    ) -> Option<Interval> {
        bootstrap::of_ratio(
            self.column(discipline, ours, size)?,
            self.column(discipline, base, size)?,
        )
    }

    /// Columns of all that are Weft, or of all that are not.
    pub fn columns(&self, discipline: &Discipline, ours: bool, size: usize) -> Vec<&Column> {
        self.record
            .contenders(discipline)
            .into_iter()
            .filter(|contender| contender.is_ours() == ours)
            .filter_map(|contender| self.column(discipline, contender, size))
            .collect()
    }

    /// The best of Weft over the best of all others, over all MPIs.
    pub fn ratio_to_best(&self, discipline: &Discipline, size: usize) -> Option<Interval> {
        let (ours, theirs) = (
            self.columns(discipline, true, size),
            self.columns(discipline, false, size),
        );
        bootstrap::of_best_ratio(&ours, &theirs, better(&discipline.benchmark))
    }

    /// One contender over the best of all that are not Weft.
    pub fn against_best(
        &self,
        discipline: &Discipline,
        contender: &Contender,
        size: usize,
    ) -> Option<Interval> {
        let theirs = self.columns(discipline, false, size);
        bootstrap::of_best_ratio(
            &[self.column(discipline, contender, size)?],
            &theirs,
            better(&discipline.benchmark),
        )
    }

    /// Geometric mean of [`Self::ratio_to_best`] over the sizes where both have figures.
    pub fn mean_to_best(&self, discipline: &Discipline) -> Option<Interval> {
        let sides: Vec<_> = self
            .all_sizes(discipline)
            .into_iter()
            .map(|size| {
                (
                    self.columns(discipline, true, size),
                    self.columns(discipline, false, size),
                )
            })
            .filter(|(ours, theirs)| !ours.is_empty() && !theirs.is_empty())
            .collect();
        bootstrap::of_geometric_mean(&sides, better(&discipline.benchmark))
    }

    /// Who is best at a size among Weft's or among the others, with its median.
    pub fn leader(
        &self,
        discipline: &Discipline,
        ours: bool,
        size: usize,
    ) -> Option<(&'a Contender, f64)> {
        let better = better(&discipline.benchmark);
        self.record
            .contenders(discipline)
            .into_iter()
            .filter(|contender| contender.is_ours() == ours)
            .filter_map(|contender| {
                let values: Vec<f64> = self
                    .column(discipline, contender, size)?
                    .iter()
                    .flatten()
                    .copied()
                    .collect();
                Some((contender, Summary::of(&values)?.median))
            })
            .reduce(|first, second| {
                if better.of(first.1, second.1) == first.1 {
                    first
                } else {
                    second
                }
            })
    }

    /// The most rounds that any series asks for, and which.
    pub fn rounds_wanted(&self) -> Option<(usize, String)> {
        let mut wanted: Vec<usize> = Vec::new();
        let mut most = (0, String::new());
        for ((discipline, contender), columns) in &self.columns {
            for (size, column) in columns {
                let values: Vec<f64> = column.iter().flatten().copied().collect();
                let rounds = spread::rounds_wanted(&values, AIM);
                wanted.push(rounds);
                if rounds > most.0 {
                    most = (rounds, format!("{contender}: {discipline}, {size} bytes"));
                }
            }
        }
        wanted.sort_unstable();
        // A tenth of the series may stay wider than aimed at.
        let usual = *wanted.get(wanted.len().saturating_sub(1) * 9 / 10)?;
        Some((usual, most.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{contender, discipline, filled, leg, turn};

    #[test]
    fn figures_are_medians_and_ratios_are_paired() {
        let record = filled();
        let analysis = Analysis::of(&record);
        let latency = discipline("latency");
        let (ours, own) = (contender("mpich", "weft"), contender("mpich", "native"));
        let cell = analysis.cell(&latency, &ours, 8).expect("measured");
        assert_eq!((cell.summary.median, cell.summary.count), (0.3, 7));
        let ratio = analysis.ratio(&latency, (&ours, &own), 8).expect("both");
        assert_eq!((ratio.low, ratio.value, ratio.high), (0.5, 0.5, 0.5));
        assert!(
            analysis
                .cell(&latency, &contender("intel", "weft"), 8)
                .is_none()
        );
    }

    #[test]
    fn best_peer_is_the_least_latency_and_the_greatest_bandwidth() {
        let record = filled();
        let analysis = Analysis::of(&record);
        for (benchmark, expected) in [("latency", 1.0 / 1.5), ("bw", 1.5)] {
            let discipline = discipline(benchmark);
            let ratio = analysis.ratio_to_best(&discipline, 8).expect("both sides");
            assert!(
                (ratio.value - expected).abs() < 1e-9,
                "{benchmark}: {ratio:?}"
            );
            let mean = analysis.mean_to_best(&discipline).expect("both sides");
            assert!((mean.value - expected).abs() < 1e-9);
            let (best, _) = analysis.leader(&discipline, false, 8).expect("peers");
            assert_eq!(best, &contender("openmpi", "native"));
        }
    }

    #[test]
    fn run_on_a_slowed_machine_does_not_count_and_its_repetition_does() {
        let mut record = filled();
        let slow = Speed {
            copy_ns: 400_000.0,
            handover_ns: Some(80.0),
        };
        let own = leg("mpich", "weft", "latency");
        let index = record
            .turns
            .iter()
            .position(|turn| turn.contender == own.contender && turn.round == 1)
            .expect("there");
        (record.turns[index].before, record.turns[index].after) = (slow, slow);
        let analysis = Analysis::of(&record);
        assert_eq!(analysis.excluded().len(), 1);
        assert_eq!(
            analysis
                .column(&own.discipline, &own.contender, 8)
                .expect("there")[1],
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
                .column(&own.discipline, &own.contender, 8)
                .expect("there")[1],
            Some(0.77)
        );
    }

    #[test]
    fn series_measured_mostly_at_another_speed_is_kept_and_called_doubtful() {
        let mut record = filled();
        let own = contender("mpich", "weft");
        for turn in record
            .turns
            .iter_mut()
            .filter(|turn| turn.contender == own && turn.round > 1)
        {
            turn.before.handover_ns = Some(300.0);
            turn.after.handover_ns = Some(300.0);
        }
        let analysis = Analysis::of(&record);
        assert_eq!(
            (analysis.doubtful().len(), analysis.excluded().len()),
            (2, 0)
        );
        assert_eq!(
            analysis
                .cell(&discipline("latency"), &own, 8)
                .expect("kept")
                .summary
                .count,
            7
        );
    }
}

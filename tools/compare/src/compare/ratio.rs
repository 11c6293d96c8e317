// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ratios of a configuration: to its baseline, to the best of all others, and the figures of both
//! from the rounds that they share.
//!
//! Called by goals, thresholds, table, files and pages; reads analysis. Each ratio is computed
//! round by round, and its median is reported. There are two kinds: of the runs' median blocks, and
//! of the runs' means. A median block hides what happens once in a run, for example when two
//! methods are tried out; the mean contains it. The figures printed beside a ratio are from the
//! same rounds, so that dividing them gives about the ratio.

use super::analysis::{Analysis, Figures, for_each};
use super::configuration::{AGAIN, Configuration, Side, Workload};
use super::record::better;
use serde::Serialize;
use weft_statistics::interval::{self, Column, Interval};
use weft_statistics::median;

/// What was measured in some rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Middle {
    /// Median over the rounds of each run's median block.
    pub median: f64,
    /// Median over the rounds of each run's mean over all its iterations.
    pub mean: f64,
}

/// A figure over its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Of the runs' median blocks.
    pub of_medians: Interval,
    /// Of the runs' means.
    pub of_means: Interval,
    /// The figure, in the rounds in which the baseline has one too.
    pub figure: Middle,
    /// The baseline in the same rounds.
    pub baseline: Middle,
}

/// What a figure comes to over its baseline, or over all sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Of the runs' median blocks.
    pub of_medians: Interval,
    /// Of the runs' means.
    pub of_means: Interval,
}

impl Ratio {
    /// Both ratios, without the figures.
    pub fn both(&self) -> Ratios {
        Ratios {
            of_medians: self.of_medians,
            of_means: self.of_means,
        }
    }

    /// From what two measured; `None` if they share no round.
    pub fn of(ours: &Figures, base: &Figures) -> Option<Self> {
        let (medians, base_medians) = interval::shared(&ours.medians, &base.medians);
        let (means, base_means) = interval::shared(&ours.means, &base.means);
        Some(Self {
            of_medians: interval::of_ratio(&medians, &base_medians)?,
            of_means: interval::of_ratio(&means, &base_means)?,
            figure: Middle::of(&medians, &means),
            baseline: Middle::of(&base_medians, &base_means),
        })
    }
}

impl Middle {
    fn of(medians: &Column, means: &Column) -> Self {
        let middle = |column: &Column| {
            let values: Vec<f64> = column.iter().flatten().copied().collect();
            median(&values)
        };
        Self {
            median: middle(medians),
            mean: middle(means),
        }
    }
}

/// How often intervals hold 1 where the same is compared with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Calibration {
    /// Intervals, of medians and of means.
    pub intervals: usize,
    /// Those that hold 1.
    pub hold: usize,
    /// How many should, by what each says.
    pub expected: f64,
}

impl Calibration {
    /// Counts one more.
    pub fn add(&mut self, ratio: &Interval) {
        self.intervals += 1;
        self.hold += usize::from(ratio.holds(1.0));
        self.expected += ratio.confidence;
    }
}

impl Analysis<'_> {
    /// A configuration over another, paired by round.
    pub fn ratio(
        &self,
        workload: &Workload,
        ours: &Configuration,
        base: &Configuration,
        size: usize,
    ) -> Option<Ratio> {
        Ratio::of(
            self.figures(workload, ours, size)?,
            self.figures(workload, base, size)?,
        )
    }

    /// What a configuration is divided by: the first of its baselines that was measured in this
    /// workload.
    pub fn baseline(&self, workload: &Workload, ours: &Configuration) -> Option<Configuration> {
        let mut list = ours.baselines().into_iter();
        list.find(|baseline| !self.sizes(workload, baseline).is_empty())
    }

    /// A configuration over its baseline.
    pub fn to_native(
        &self,
        workload: &Workload,
        ours: &Configuration,
        size: usize,
    ) -> Option<Ratio> {
        let baseline = self.baseline(workload, ours)?;
        self.ratio(workload, ours, &baseline, size)
    }

    /// What is printed of a configuration: in the rounds that its ratio is from; of the native
    /// transport in those of Weft's.
    pub fn middle(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
    ) -> Option<Middle> {
        let weft = configuration.weft();
        let as_base = (self.baseline(workload, &weft).as_ref() == Some(configuration))
            .then(|| self.to_native(workload, &weft, size))
            .flatten();
        let as_base = as_base.map(|ratio| ratio.baseline);
        as_base
            .or_else(|| Some(self.to_native(workload, configuration, size)?.figure))
            .or_else(|| {
                let own = self.figures(workload, configuration, size)?;
                Some(Middle::of(&own.medians, &own.means))
            })
    }

    /// The best of one side in each round.
    fn best(&self, side: Side, workload: &Workload, size: usize) -> Figures {
        let all = self.figures_of(side, workload, size);
        let better = better(&workload.benchmark);
        let of = |column: fn(&Figures) -> &Column| {
            let columns: Vec<&Column> = all.iter().map(|figures| column(figures)).collect();
            interval::best_of(&columns, better)
        };
        Figures {
            medians: of(|figures| &figures.medians),
            means: of(|figures| &figures.means),
            ..Figures::default()
        }
    }

    /// The best of Weft over the best of all rivals, over all MPIs.
    pub fn best_to_best(&self, workload: &Workload, size: usize) -> Option<Ratio> {
        let best = |side| self.best(side, workload, size);
        Ratio::of(&best(Side::Ours), &best(Side::Rivals))
    }

    /// A configuration over the best of all rivals.
    pub fn to_best(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
    ) -> Option<Ratio> {
        let ours = self.figures(workload, configuration, size)?;
        Ratio::of(ours, &self.best(Side::Rivals, workload, size))
    }

    /// Geometric mean of [`Self::best_to_best`] over the sizes where both have figures.
    pub fn mean_to_best(&self, workload: &Workload) -> Option<Ratios> {
        let of = |column: fn(&Figures) -> &Column| {
            let all_sizes = self.all_sizes(workload);
            let sides: Vec<_> = all_sizes
                .into_iter()
                .map(|size| {
                    let columns = |side| {
                        let list = self.figures_of(side, workload, size);
                        list.into_iter().map(column).collect::<Vec<_>>()
                    };
                    (columns(Side::Ours), columns(Side::Rivals))
                })
                .filter(|(ours, theirs)| !ours.is_empty() && !theirs.is_empty())
                .collect();
            interval::of_geometric_mean(&sides, better(&workload.benchmark))
        };
        Some(Ratios {
            of_medians: of(|figures| &figures.medians)?,
            of_means: of(|figures| &figures.means)?,
        })
    }

    /// Who is best at a size on one side.
    pub fn leader(&self, side: Side, workload: &Workload, size: usize) -> Option<&Configuration> {
        let better = better(&workload.benchmark);
        let with_median = self.on(side, workload).filter_map(|configuration| {
            let own = self.figures(workload, configuration, size)?;
            Some((configuration, Middle::of(&own.medians, &own.means).median))
        });
        let best = with_median.reduce(|first, second| {
            if better.of(first.1, second.1) == first.1 {
                first
            } else {
                second
            }
        })?;
        Some(best.0)
    }
}

/// How often intervals hold 1 where a configuration is compared with itself under another name;
/// `None` where none is.
pub fn calibration(analysis: &Analysis<'_>) -> Option<Calibration> {
    let mut found = Calibration::default();
    for_each(analysis, |workload, configuration, size| {
        if configuration.variant() != Some(AGAIN) {
            return;
        }
        if let Some(ratio) = analysis.to_native(workload, configuration, size) {
            found.add(&ratio.of_medians);
            found.add(&ratio.of_means);
        }
    });
    (found.intervals > 0).then_some(found)
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of phases as rates, and their spread over the iterations, by mdtest's formulas.
//!
//! Called by phase (rows) and report (summaries). Pure.

use crate::mdtest::test::Test;
use crate::mdtest::tree::{Kind, Step};

/// What a row of the output is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Items.
    Items(Kind, Step),
    /// The folders that hold them, made or removed.
    Tree(Step),
}

impl Subject {
    /// All rows, in mdtest's order.
    pub const ALL: [Self; 10] = [
        Self::Items(Kind::Folder, Step::Create),
        Self::Items(Kind::Folder, Step::Stat),
        Self::Items(Kind::Folder, Step::Rename),
        Self::Items(Kind::Folder, Step::Remove),
        Self::Items(Kind::File, Step::Create),
        Self::Items(Kind::File, Step::Stat),
        Self::Items(Kind::File, Step::Read),
        Self::Items(Kind::File, Step::Remove),
        Self::Tree(Step::Create),
        Self::Tree(Step::Remove),
    ];

    /// As mdtest calls it.
    pub fn name(self) -> String {
        let (what, step) = match self {
            Self::Items(Kind::Folder, step) => ("Directory", step),
            Self::Items(Kind::File, step) => ("File", step),
            Self::Tree(step) => ("Tree", step),
        };
        let done = match step {
            Step::Create => "creation",
            Step::Stat => "stat",
            Step::Read => "read",
            Step::Rename => "rename",
            Step::Remove => "removal",
        };
        format!("{what} {done}")
    }

    /// Whether a test has a row for it, measured or not.
    pub fn is_shown(self, test: &Test) -> bool {
        match self {
            Self::Items(Kind::Folder, _) => test.shape.folders,
            Self::Items(Kind::File, _) => test.shape.files,
            Self::Tree(_) => true,
        }
    }

    /// Whether a test does it.
    pub fn is_done(self, test: &Test) -> bool {
        let (Self::Items(_, step) | Self::Tree(step)) = self;
        let does = test.does;
        let wanted = match step {
            Step::Create => does.create,
            Step::Stat => does.stat,
            Step::Read => does.read,
            Step::Rename => does.rename,
            Step::Remove => does.remove,
        };
        wanted && self.is_shown(test)
    }
}

/// One phase of one iteration, all tasks together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// What was done.
    pub subject: Subject,
    /// With how many, by all tasks together.
    pub count: u64,
    /// How long the slowest task took.
    pub seconds: f64,
}

impl Row {
    /// Operations per second; 0 without any.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// A figure over the iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The greatest.
    pub max: f64,
    /// The least.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of a sample; 0 with one iteration alone.
    pub deviation: f64,
}

impl Spread {
    /// Of such values; zeros without any, as mdtest shows what was not measured.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            max: values.iter().copied().fold(f64::MIN, f64::max),
            min: values.iter().copied().fold(f64::MAX, f64::min),
            mean,
            deviation: if values.len() > 1 {
                (squares / (count - 1.0)).sqrt()
            } else {
                0.0
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_that_of_a_sample_as_in_a_published_run() {
        // Directory creation of a run of mdtest with two iterations.
        let spread = Spread::of(&[16_677_153.082, 3_571_140.060]);
        assert!((spread.mean - 10_124_146.571).abs() < 0.001);
        assert!(
            (spread.deviation - 9_267_350.682).abs() < 0.01,
            "{}",
            spread.deviation
        );
        assert_eq!(Spread::of(&[5.0]).deviation, 0.0);
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn rates_count_all_tasks_by_the_slowest() {
        let subject = Subject::Tree(Step::Create);
        let row = Row {
            subject,
            count: 30,
            seconds: 0.5,
        };
        assert_eq!(
            (row.rate(), subject.name().as_str()),
            (60.0, "Tree creation")
        );
        assert_eq!(
            Row {
                seconds: 0.0,
                ..row
            }
            .rate(),
            0.0
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Puts the times of all tasks together, by IOR's formulas.
//!
//! Called by phase (rows) and report (summaries). Pure. Times are seconds since a barrier that all
//! tasks left together.

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// -w
    Write,
    /// -W
    WriteCheck,
    /// -r
    Read,
    /// -R
    ReadCheck,
}

impl Access {
    /// As rows and summaries call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::WriteCheck => "writecheck",
            Self::Read => "read",
            Self::ReadCheck => "readcheck",
        }
    }
}

/// One task's part, in the order of [`Times::FIELDS`] numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// From and to, of open, of the transfers, of close.
    pub open_s: (f64, f64),
    /// See `open_s`.
    pub move_s: (f64, f64),
    /// See `open_s`.
    pub close_s: (f64, f64),
    /// Mean time of one call.
    pub call_s: f64,
    /// Bytes moved.
    pub moved_bytes: f64,
    /// Words that were not what was written.
    pub wrong_words: f64,
}

impl Times {
    /// How many numbers it has.
    pub const FIELDS: usize = 9;

    /// As numbers for a message.
    pub fn numbers(&self) -> [f64; Self::FIELDS] {
        [
            self.open_s.0,
            self.open_s.1,
            self.move_s.0,
            self.move_s.1,
            self.close_s.0,
            self.close_s.1,
            self.call_s,
            self.moved_bytes,
            self.wrong_words,
        ]
    }

    /// From such numbers.
    pub fn of(numbers: &[f64]) -> Self {
        Self {
            open_s: (numbers[0], numbers[1]),
            move_s: (numbers[2], numbers[3]),
            close_s: (numbers[4], numbers[5]),
            call_s: numbers[6],
            moved_bytes: numbers[7],
            wrong_words: numbers[8],
        }
    }
}

/// One access of all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// All bytes in the time from the first open to the last close.
    pub bytes_per_s: f64,
    /// Transfers in the time from the first to the last of them.
    pub transfers_per_s: f64,
    /// The least over the tasks of the mean time of a call.
    pub latency_s: f64,
    /// From the first task's begin to the last one's end.
    pub open_s: f64,
    /// See `open_s`.
    pub move_s: f64,
    /// See `open_s`.
    pub close_s: f64,
    /// From the first open to the last close.
    pub total_s: f64,
    /// By all tasks.
    pub moved_bytes: f64,
    /// By all tasks.
    pub wrong_words: u64,
}

impl Row {
    /// Of the tasks' times, with transfers of this length.
    pub fn of(times: &[Times], transfer_bytes: u64) -> Self {
        let span = |from: fn(&Times) -> f64, to: fn(&Times) -> f64| {
            let first = times.iter().map(from).fold(f64::INFINITY, f64::min);
            times.iter().map(to).fold(0.0, f64::max) - first
        };
        let moved_bytes: f64 = times.iter().map(|task| task.moved_bytes).sum();
        let move_s = span(|task| task.move_s.0, |task| task.move_s.1);
        let total_s = span(|task| task.open_s.0, |task| task.close_s.1);
        Self {
            bytes_per_s: moved_bytes / total_s,
            transfers_per_s: moved_bytes / transfer_bytes as f64 / move_s,
            latency_s: times
                .iter()
                .map(|task| task.call_s)
                .fold(f64::INFINITY, f64::min),
            open_s: span(|task| task.open_s.0, |task| task.open_s.1),
            move_s,
            close_s: span(|task| task.close_s.0, |task| task.close_s.1),
            total_s,
            moved_bytes,
            wrong_words: times.iter().map(|task| task.wrong_words as u64).sum(),
        }
    }
}

/// Greatest, least, mean and standard deviation (of all repetitions, not of a sample).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Greatest.
    pub max: f64,
    /// Least.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().sum::<f64>() / count;
        let squares: f64 = values.clone().map(|value| (value - mean).powi(2)).sum();
        Self {
            max: values.clone().fold(f64::NEG_INFINITY, f64::max),
            min: values.fold(f64::INFINITY, f64::min),
            mean,
            deviation: (squares / count).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(open_s: f64, end_s: f64, call_s: f64) -> Times {
        Times {
            open_s: (open_s, open_s + 0.5),
            move_s: (open_s + 0.5, end_s - 0.25),
            close_s: (end_s - 0.25, end_s),
            call_s,
            moved_bytes: 1000.0,
            wrong_words: 1.0,
        }
    }

    #[test]
    fn a_row_spans_from_the_first_task_to_the_last() {
        let row = Row::of(&[task(1.0, 5.0, 0.2), task(2.0, 9.0, 0.1)], 100);
        assert_eq!(row.total_s, 8.0);
        assert_eq!(row.bytes_per_s, 250.0);
        assert_eq!(row.move_s, 7.25);
        assert_eq!(row.transfers_per_s, 20.0 / 7.25);
        assert_eq!(row.latency_s, 0.1);
        assert_eq!((row.open_s, row.close_s), (1.5, 4.25));
        assert_eq!(row.wrong_words, 2);
    }

    #[test]
    fn figures_survive_their_way_between_tasks() {
        let times = task(1.0, 5.0, 0.2);
        assert_eq!(Times::of(&times.numbers()), times);
    }

    #[test]
    fn spread_is_that_of_all_values() {
        let spread = Spread::of([2.0, 4.0].into_iter());
        assert_eq!(
            (spread.max, spread.min, spread.mean, spread.deviation),
            (4.0, 2.0, 3.0, 1.0)
        );
    }
}

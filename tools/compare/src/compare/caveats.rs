// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a reader must know before believing a comparison: too few rounds, excluded runs, doubtful
//! series, and how often the intervals contain a value that is known to be true.
//!
//! Called by table, files and pages.

use super::analysis::Analysis;
use super::before;
use super::ratio::calibration;
use weft_statistics::interval::{attainable, percent};
use weft_statistics::spread;

/// All that there is to say.
pub fn lines(analysis: &Analysis<'_>) -> Vec<String> {
    let record = analysis.record;
    let mut lines = Vec::new();
    let rounds = record
        .turns
        .iter()
        .map(|turn| turn.round + 1)
        .max()
        .unwrap_or(0);
    if rounds < spread::FEWEST_ROUNDS {
        lines.push(format!(
            "{rounds} rounds can carry a confidence of {}; 95 % need {} rounds.",
            percent(attainable(rounds)),
            spread::FEWEST_ROUNDS
        ));
    }
    let slow = record.slow_series();
    if !slow.is_empty() {
        lines.push(format!(
            "{} took many times as long as the others, and took part in the first two rounds \
             only: {}.",
            match slow.len() {
                1 => "One series".to_owned(),
                count => format!("{count} series"),
            },
            slow.join("; ")
        ));
    }
    if let Some((wanted, most)) = analysis
        .rounds_wanted()
        .filter(|(wanted, _)| *wanted > rounds)
    {
        let or_more = if wanted >= spread::MOST_ROUNDS {
            " or more: rather have nothing else run on it"
        } else {
            ""
        };
        lines.push(format!(
            "For medians within 5 % in nine tenths of the series this machine needs {wanted} \
             rounds{or_more} (these are {rounds}); the widest is {most}."
        ));
    }
    lines.push(excluded_line(analysis));
    if !analysis.selection.doubtful.is_empty() {
        lines.push(format!(
            "In {} series more than half of the runs would have been excluded. So all of their \
             runs count, and their figures are doubtful.",
            analysis.selection.doubtful.len()
        ));
    }
    lines.extend(calibration_line(analysis));
    lines.extend(before_line(analysis));
    lines.extend(before::differing(record).map(|(mpi, here, there)| {
        format!(
            "{mpi} is {here} to this build, and {there} to the other: their ratio compares these, \
             too. WEFT_MPI_PATH may name the same prefix to both."
        )
    }));
    lines
}

/// How many runs were excluded, of how many, and why.
pub fn excluded_line(analysis: &Analysis<'_>) -> String {
    let (excluded, runs) = (
        analysis.selection.excluded.len(),
        analysis.selection.run_count,
    );
    let were = if excluded == 1 { "was" } else { "were" };
    let why = if excluded == 0 {
        ": the machine kept its speed".to_owned()
    } else {
        format!(
            ": the machine's speed changed during them by more than {:.0} %",
            (weft_statistics::speed::TOLERANCE - 1.0) * 100.0
        )
    };
    format!("{excluded} of {runs} runs {were} excluded{why}.")
}

/// What came of comparing the same with itself.
pub fn calibration_line(analysis: &Analysis<'_>) -> Option<String> {
    let found = calibration(analysis)?;
    let part = |count: f64| percent(count / found.intervals as f64);
    Some(format!(
        "The same compared with itself: {} of {} intervals ({}) contain the ratio 1; by \
         their confidence it should be {:.0} ({}).",
        found.hold,
        found.intervals,
        part(found.hold as f64),
        found.expected,
        part(found.expected)
    ))
}

/// What came of comparing this build with another.
fn before_line(analysis: &Analysis<'_>) -> Option<String> {
    let found = before::in_all(analysis)?;
    Some(format!(
        "This build beside the other (before): {} of {} intervals contain the ratio 1. If both \
         were equally fast, it should be {:.0}.",
        found.hold, found.intervals, found.expected
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::Record;
    use crate::compare::record::tests::filled;

    #[test]
    fn few_rounds_are_called_few() {
        let mut record = filled();
        record.turns.retain(|turn| turn.round < 3);
        let lines = lines(&Analysis::of(&record)).join("\n");
        assert!(
            lines.contains("3 rounds can carry a confidence of 75.0 %"),
            "{lines}"
        );
    }

    #[test]
    fn two_builds_that_ran_different_mpis_by_one_name_are_told_of() {
        let mut record = filled();
        let told = |record: &Record| {
            let lines = lines(&Analysis::of(record)).join("\n");
            lines.contains("/lib/libmpi.so to this build, and /usr/lib/libmpi.so to the other")
        };
        let ours = record
            .turns
            .iter()
            .filter(|turn| turn.configuration.is_ours());
        let mut before: Vec<_> = ours.cloned().collect();
        for turn in &mut before {
            turn.configuration = turn.configuration.before();
        }
        record.turns.extend(before.iter().cloned());
        assert!(!told(&record), "the same");
        for turn in &mut before {
            turn.library = "/usr/lib/libmpi.so".into();
        }
        record
            .turns
            .retain(|turn| turn.configuration.variant().is_none());
        record.turns.extend(before);
        assert!(told(&record));
    }

    #[test]
    fn excluded_runs_are_a_part_of_all_runs() {
        let mut record = filled();
        let none = excluded_line(&Analysis::of(&record));
        assert_eq!(
            none,
            "0 of 42 runs were excluded: the machine kept its speed."
        );
        for turn in record.turns.iter_mut().filter(|turn| turn.round == 1) {
            (turn.before.copy_ns, turn.after.copy_ns) = (400_000.0, 400_000.0);
        }
        assert_eq!(
            excluded_line(&Analysis::of(&record)),
            "6 of 42 runs were excluded: the machine's speed changed during them by more than 25 %."
        );
    }
}

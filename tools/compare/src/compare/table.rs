// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as text for a terminal: for each MPI Weft beside its native transport, then every
//! goal and whether it is reached.
//!
//! Called by compare; reads analysis, ratio and goals. This table shows some sizes only; the page
//! and the files have all figures.

use super::analysis::Analysis;
use super::before;
use super::caveats;
use super::configuration::{self, Configuration, Workload};
use super::goals::{self, Check};
use super::ratio::Ratio;
use super::record::{better, unit};
use super::tails;
use std::fmt::Write;
use weft_chart::axis::{bytes, figure};
use weft_statistics::interval::{Better, Interval, percent};

/// Sizes are shown in steps of this factor, and the largest (chosen: a screenful per MPI).
const STEP: usize = 8;

/// What the columns mean.
const LEGEND: &str = "
Weft beside each MPI's native transport
For each size the median over the rounds, and in parentheses the median of the runs' means.
Weft/native, Weft/best: the median of the ratios round by round, * where Weft is ahead; in brackets
the interval in which the true ratio lies, then with what confidence; in parentheses the ratio of
the means. Figures and ratio are from the same rounds.
native: the MPI's own transport. best: the best of all MPIs and transports here without Weft.
";
/// Said where another build was measured too.
const BEFORE: &str = "before: another build of Weft (--before). Weft/before: this build over it.
";
/// Said where something was started as by a plain mpirun.
const PLAIN: &str =
    "plain: as a plain mpirun starts it (weft run --plain): no shared heap, no rules
for collectives. It is divided by native, plain where that was measured, and else by native, which
is then the same.
";
/// Said where something waited with pauses.
const PAUSE: &str =
    "pause: with weft run --yield pause, which is how Weft is set up under MPICH and
Intel MPI.
";
/// Said where the MPI's own collectives ran over Weft.
const BY_MPI: &str = "mpi: with weft run --collectives mpi, the MPI's own collectives over Weft's
messages.
";
/// Said where a testbed's hosts were measured.
const TESTBED: &str = "testbed: hosts that weft made on this machine. There the MPIs' own transport
is TCP: UCX under MPICH (native), btl/tcp under Open MPI and libfabric's tcp under Intel MPI (tcp).
";

/// The whole text.
pub fn all(analysis: &Analysis<'_>) -> String {
    let mut text = LEGEND.to_owned();
    if analysis.record.matrix.has_variant(configuration::PLAIN) {
        text.push_str(PLAIN);
    }
    if analysis.record.matrix.has_variant(configuration::PAUSE) {
        text.push_str(PAUSE);
    }
    if analysis.record.matrix.has_variant(configuration::BY_MPI) {
        text.push_str(BY_MPI);
    }
    if analysis.record.matrix.has_variant(configuration::BEFORE) {
        text.push_str(BEFORE);
    }
    if analysis.record.matrix.has_testbed() {
        text.push_str(TESTBED);
    }
    for mpi in analysis.record.mpis() {
        let version = analysis
            .record
            .short_version(mpi)
            .unwrap_or("no run of it worked");
        let _ = writeln!(text, "\n{mpi}: {version}");
        for workload in &analysis.record.matrix.workloads {
            text.push_str(&one(analysis, mpi, workload));
        }
    }
    text.push_str(&goals(analysis));
    text
}

fn one(analysis: &Analysis<'_>, mpi: &str, workload: &Workload) -> String {
    let mine: Vec<&Configuration> = analysis
        .record
        .configurations(workload)
        .into_iter()
        .filter(|configuration| configuration.mpi == mpi)
        .filter(|configuration| !analysis.sizes(workload, configuration).is_empty())
        .collect();
    let mut sizes: Vec<usize> = mine
        .iter()
        .flat_map(|configuration| analysis.sizes(workload, configuration))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return String::new();
    }
    let unit = unit(&workload.benchmark);
    let columns = columns(analysis, workload, &mine);
    let mut text = format!("  {workload} ({unit})\n  {:<8}", "size");
    for configuration in &mine {
        let _ = write!(text, " {:>16}", configuration.short());
    }
    for column in &columns {
        let _ = write!(text, "  {:>32}", column.title());
    }
    text.push('\n');
    for size in shown(&sizes) {
        let _ = write!(text, "  {:<8}", bytes(size as f64));
        for configuration in &mine {
            let middle = analysis.middle(workload, configuration, size);
            let cell = middle.map_or("-".to_owned(), |middle| {
                format!("{} ({})", figure(middle.median), figure(middle.mean))
            });
            let _ = write!(text, " {cell:>16}");
        }
        let better = better(&workload.benchmark);
        for column in &columns {
            let found = column.ratio(analysis, workload, size);
            let _ = write!(text, "  {:>32}", ratio(found, better));
        }
        text.push('\n');
    }
    text.push_str(&tails::text(analysis, workload, &mine, &shown(&sizes)));
    text
}

/// A column of ratios.
enum Ratios<'a> {
    /// Of a configuration to its baseline.
    Native(&'a Configuration, Configuration),
    /// Of Weft to the other build's.
    Before(&'a Configuration),
    /// Of Weft to the best of the others.
    Best(&'a Configuration),
}

impl Ratios<'_> {
    fn title(&self) -> String {
        match self {
            Self::Native(ours, baseline) => format!("{}/{}", ours.short(), baseline.carrier()),
            Self::Before(_) => "Weft/before".to_owned(),
            Self::Best(_) => "Weft/best".to_owned(),
        }
    }

    fn ratio(&self, analysis: &Analysis<'_>, workload: &Workload, size: usize) -> Option<Ratio> {
        match self {
            Self::Native(ours, baseline) => analysis.ratio(workload, ours, baseline, size),
            Self::Before(configuration) => {
                before::to_before(analysis, workload, configuration, size)
            }
            Self::Best(configuration) => analysis.to_best(workload, configuration, size),
        }
    }
}

/// The ratios that are shown: those for which both sides were measured.
fn columns<'a>(
    analysis: &Analysis<'_>,
    workload: &Workload,
    mine: &[&'a Configuration],
) -> Vec<Ratios<'a>> {
    let measured = |one: &Configuration| !analysis.sizes(workload, one).is_empty();
    let mut list: Vec<Ratios<'_>> = mine
        .iter()
        .filter(|one| one.is_weft() || !one.is_rival())
        .filter_map(|one| Some(Ratios::Native(one, analysis.baseline(workload, one)?)))
        .collect();
    if let Some(ours) = mine.iter().find(|one| one.is_ours()) {
        if measured(&ours.before()) {
            list.push(Ratios::Before(ours));
        }
        let all = analysis.record.configurations(workload);
        if all.iter().any(|one| one.is_rival() && measured(one)) {
            list.push(Ratios::Best(ours));
        }
    }
    list
}

/// The smallest, every one that is [`STEP`] times the last or more, and the largest.
fn shown(sizes: &[usize]) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for size in sizes {
        if chosen
            .last()
            .is_none_or(|last| *size >= (last * STEP).max(1))
        {
            chosen.push(*size);
        }
    }
    if let Some(largest) = sizes
        .last()
        .filter(|largest| chosen.last() != Some(largest))
    {
        chosen.push(*largest);
    }
    chosen
}

/// `0.50* [0.45-0.55] 96.9 % (0.52)`.
fn ratio(ratio: Option<Ratio>, better: Better) -> String {
    let Some(Ratio {
        of_medians,
        of_means,
        ..
    }) = ratio
    else {
        return "-".to_owned();
    };
    // Judged by what is shown: 0.999 is printed as 1.00 and is no lead.
    let shown = (of_medians.value * 100.0).round() / 100.0;
    let ahead = better.of(shown, 1.0) == shown && shown != 1.0;
    format!(
        "{shown:.2}{} [{:.2}-{:.2}] {} ({:.2})",
        if ahead { "*" } else { " " },
        of_medians.low,
        of_medians.high,
        percent(of_medians.confidence),
        of_means.value
    )
}

/// Every goal with its figure, its confidence and how it stands.
pub fn goals(analysis: &Analysis<'_>) -> String {
    if !analysis
        .record
        .matrix
        .entrants
        .iter()
        .any(|entrant| entrant.configuration.is_ours())
    {
        return caveats(analysis);
    }
    let mut text = String::from("\nWeft's goals, and how they stand\n");
    text.push_str(
        "Weft's figure over the other's: of the medians, in brackets the interval, and \
                   behind it of the means.\n",
    );
    text.push_str(
        "met and missed: the whole interval says so. likely: the goal lies within the interval.\n",
    );
    text.push_str(
        "Against the best of the others: in each round the best MPI over Weft and the \
                   best without Weft.\n",
    );
    if let Some(usual) = analysis.selection.usual {
        let handover = usual.handover_ns.map_or("not measured".to_owned(), |time| {
            format!("{:.0} ns", time.median)
        });
        let _ = writeln!(
            text,
            "The limits here: a cache line from core to core takes {handover}, a copy of 4 MiB \
             {:.0} us.",
            usual.copy_ns.median / 1000.0
        );
    }
    for workload in &analysis.record.matrix.workloads {
        let checks = goals::checks(analysis, workload);
        if !checks.is_empty() {
            text.push_str(&group(workload, &checks));
        }
    }
    text.push_str(&caveats(analysis));
    text.push('\n');
    text
}

fn group(workload: &Workload, checks: &[Check]) -> String {
    let mut text = String::new();
    let met = checks.iter().filter(|check| check.verdict.is_met()).count();
    let of_means = checks
        .iter()
        .filter(|check| check.verdict_of_means.is_met())
        .count();
    let _ = writeln!(
        text,
        "\n  {workload}: {met} of {} met, by the means {of_means}",
        checks.len()
    );
    for check in checks.iter().filter(|check| !check.is_own()) {
        let size = check
            .size_bytes
            .map_or("all".to_owned(), |size| bytes(size as f64));
        let _ = writeln!(
            text,
            "    {size:>6}  {:<36}{:>18} {:>7}  means {:.2}   {} {:<5} {:<14} {}",
            check.against,
            in_brackets(&check.ratio),
            percent(check.ratio.confidence),
            check.ratio_of_means.value,
            check.bound(),
            check.goal,
            check.verdict.words(),
            check.who
        );
    }
    let mut natives: Vec<&str> = checks
        .iter()
        .filter(|check| check.is_own())
        .map(|check| check.against.as_str())
        .collect();
    natives.dedup();
    for against in natives {
        text.push_str(&against_own(workload, against, checks));
    }
    text
}

/// One line for what an MPI has of its own: how many sizes, the ratio at each, the worst.
fn against_own(workload: &Workload, against: &str, checks: &[Check]) -> String {
    let better = better(&workload.benchmark);
    let list: Vec<&Check> = checks
        .iter()
        .filter(|check| check.against == against)
        .collect();
    let met = list.iter().filter(|check| check.verdict.is_met()).count();
    let mut text = format!(
        "    {against}: {met} of {} sizes met (means in parentheses, ! where missed):",
        list.len()
    );
    for check in &list {
        let mark = if check.verdict.is_met() { "" } else { "!" };
        let _ = write!(
            text,
            " {} {:.2}{mark} ({:.2})",
            bytes(check.size_bytes.unwrap_or(0) as f64),
            check.ratio.value,
            check.ratio_of_means.value
        );
    }
    let worst = list.into_iter().reduce(|one, other| {
        if better.of(one.ratio.value, other.ratio.value) == one.ratio.value {
            other
        } else {
            one
        }
    });
    if let Some(worst) = worst {
        let size = bytes(worst.size_bytes.unwrap_or(0) as f64);
        let _ = write!(text, "; worst at {size}: {}", in_brackets(&worst.ratio));
    }
    text + "\n"
}

/// `0.83 [0.80-0.86]`.
pub fn in_brackets(interval: &Interval) -> String {
    format!(
        "{:.2} [{:.2}-{:.2}]",
        interval.value, interval.low, interval.high
    )
}

/// What a reader must know before believing it.
pub fn caveats(analysis: &Analysis<'_>) -> String {
    let mut text = String::from("\n");
    for line in caveats::lines(analysis) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::filled;

    /// Weft of this build takes a quarter longer than that of the other.
    fn with_another_build() -> crate::compare::record::Record {
        let mut record = filled();
        record
            .turns
            .retain(|turn| turn.configuration.mpi == "mpich");
        for turn in &mut record.turns {
            if turn.configuration.transport == "native" {
                turn.configuration = turn.configuration.before();
                for row in &mut turn.rows {
                    (row.value, row.median) = (row.value * 0.4, row.median * 0.4);
                }
            }
        }
        record.matrix.entrants.truncate(2);
        record.matrix.entrants[1].configuration = record.matrix.entrants[0].configuration.before();
        record
    }

    #[test]
    fn this_build_is_divided_by_the_other_and_nothing_else_is_shown() {
        let record = with_another_build();
        let analysis = Analysis::of(&record);
        let text = all(&analysis);
        let head = text
            .lines()
            .find(|line| line.starts_with("  size"))
            .expect("a head");
        assert!(head.trim_end().ends_with("Weft/before"), "{head}");
        assert!(!head.contains("native") && !head.contains("best"), "{head}");
        assert!(text.contains("1.25  [1.25-1.25]"), "{text}");
        assert!(
            text.contains("0 of 4 intervals contain the ratio 1. If both were equally fast, it"),
            "{text}"
        );
    }

    #[test]
    fn table_shows_medians_means_and_both_ratios_with_their_confidence() {
        let record = filled();
        let text = all(&Analysis::of(&record));
        assert!(text.contains("Weft beside each MPI's native transport"));
        let line = text
            .lines()
            .find(|line| line.starts_with("  8 "))
            .expect("a row for 8 bytes");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "8",
                "0.30",
                "(0.30)",
                "0.60",
                "(0.60)",
                "0.50*",
                "[0.50-0.50]",
                "98.4",
                "%",
                "(0.50)",
                "0.67*",
                "[0.67-0.67]",
                "98.4",
                "%",
                "(0.67)"
            ]
        );
        assert!(
            text.contains("best of the others, geometric mean") && text.contains("at most 0.8"),
            "{text}"
        );
        assert!(
            text.contains(
                "mpich native: 2 of 2 sizes met (means in parentheses, ! where missed): \
                           8 0.50 (0.50) 4K"
            ),
            "{text}"
        );
    }

    #[test]
    fn first_and_last_size_are_always_shown() {
        let sizes: Vec<usize> = std::iter::once(0)
            .chain((0..23).map(|power| 1 << power))
            .collect();
        let chosen = shown(&sizes);
        assert_eq!(
            (chosen.first(), chosen.get(1), chosen.last(), chosen.len()),
            (Some(&0), Some(&1), Some(&(4 << 20)), 10)
        );
    }
}

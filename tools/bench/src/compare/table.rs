// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as text for a terminal: for each MPI Weft beside its own transport, then every aim and how it stands.
//!
//! Called by compare; reads analysis and reach. All figures are in the page and the files; here is a choice of sizes.

use super::analysis::Analysis;
use super::plan::{Contender, Discipline};
use super::reach::{self, Check};
use super::record::{better, unit};
use crate::report::axis::{bytes, figure};
use crate::statistics::bootstrap::{Better, Interval, attainable};
use crate::statistics::spread;
use std::fmt::Write;

/// Sizes are shown in steps of this factor, and the largest (chosen: a screenful per MPI).
const STEP: usize = 8;

/// The whole text.
pub fn all(analysis: &Analysis<'_>) -> String {
    let mut text = String::from("\nWeft against this MPI's own transport\n");
    text.push_str("Medians over the rounds, in brackets P10-P90. The ratio is Weft's figure over the other's; * marks where Weft is ahead.\n");
    text.push_str("own: the MPI's own transport. best: the best of all MPIs and transports here without Weft.\n");
    for mpi in analysis.record.mpis() {
        let version = analysis
            .record
            .version(mpi)
            .map_or("no run of it worked", |(version, _)| version);
        let _ = writeln!(text, "\n{mpi}: {version}");
        for discipline in &analysis.record.matrix.disciplines {
            text.push_str(&one(analysis, mpi, discipline));
        }
    }
    text.push_str(&aims(analysis));
    text
}

fn one(analysis: &Analysis<'_>, mpi: &str, discipline: &Discipline) -> String {
    let mine: Vec<&Contender> = analysis
        .record
        .contenders(discipline)
        .into_iter()
        .filter(|contender| contender.mpi == mpi)
        .collect();
    let mut sizes: Vec<usize> = mine
        .iter()
        .flat_map(|contender| analysis.sizes(discipline, contender))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "  {:<26}",
        format!("{discipline} ({})", unit(&discipline.benchmark))
    );
    for contender in &mine {
        let name = match contender.transport.as_str() {
            "weft" => "Weft",
            "native" => "own",
            other => other,
        };
        let _ = write!(text, "{name:>26}");
    }
    let _ = writeln!(text, "{:>12}{:>12}", "Weft/own", "Weft/best");
    let ours = mine.iter().find(|contender| contender.is_ours());
    for size in shown(&sizes) {
        let _ = write!(text, "  {size:<26}");
        for contender in &mine {
            let cell = analysis.cell(discipline, contender, size);
            let cell = cell.map_or("-".to_owned(), |cell| {
                format!(
                    "{} [{}-{}]",
                    figure(cell.summary.median),
                    figure(cell.summary.p10),
                    figure(cell.summary.p90)
                )
            });
            let _ = write!(text, "{cell:>26}");
        }
        let better = better(&discipline.benchmark);
        let own = ours.and_then(|ours| analysis.ratio(discipline, (ours, &ours.own()), size));
        let best = ours.and_then(|ours| analysis.against_best(discipline, ours, size));
        let _ = writeln!(
            text,
            "{:>12}{:>12}",
            ratio(own, better),
            ratio(best, better)
        );
    }
    text
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

fn ratio(interval: Option<Interval>, better: Better) -> String {
    let Some(interval) = interval else {
        return "-".to_owned();
    };
    // Judged by what is shown: 0.999 is printed as 1.00 and is no lead.
    let ratio = (interval.value * 100.0).round() / 100.0;
    let ahead = better.of(ratio, 1.0) == ratio && ratio != 1.0;
    format!("{ratio:.2}{}", if ahead { "*" } else { " " })
}

/// Every aim with its figure, its confidence and how it stands.
pub fn aims(analysis: &Analysis<'_>) -> String {
    let mut text = String::from("\nWhat Weft aims at, and how it stands\n");
    text.push_str("Weft's figure over the other's, in brackets where it lies with 95 % confidence (less where noted below). Best over all MPIs on both sides.\n");
    text.push_str("met and missed are sure; likely met and likely missed: the aim lies within the brackets.\n");
    if let Some(usual) = analysis.usual {
        let handover = usual.handover_ns.map_or("not measured".to_owned(), |time| {
            format!("{:.0} ns", time.median)
        });
        let _ = writeln!(
            text,
            "The limits here: a cache line from core to core takes {handover}, a copy of 4 MiB {:.0} us.",
            usual.copy_ns.median / 1000.0
        );
    }
    for discipline in &analysis.record.matrix.disciplines {
        let checks = reach::checks(analysis, discipline);
        if !checks.is_empty() {
            text.push_str(&group(discipline, &checks));
        }
    }
    text.push_str(&caveats(analysis));
    text.push('\n');
    text
}

fn group(discipline: &Discipline, checks: &[Check]) -> String {
    let mut text = String::new();
    let met = checks.iter().filter(|check| check.verdict.is_met()).count();
    let _ = writeln!(text, "\n  {discipline}: {met} of {} met", checks.len());
    for check in checks
        .iter()
        .filter(|check| !check.against.ends_with("own transport"))
    {
        let size = check
            .size_bytes
            .map_or("all".to_owned(), |size| bytes(size as f64));
        let _ = writeln!(
            text,
            "    {size:>6}  {:<30}{:>22}   {} {:<5} {:<14} {}",
            check.against,
            in_brackets(&check.ratio),
            if better(&discipline.benchmark) == Better::Less {
                "at most"
            } else {
                "at least"
            },
            check.aim,
            check.verdict.words(),
            check.who
        );
    }
    let mut own: Vec<&str> = checks
        .iter()
        .filter(|check| check.against.ends_with("own transport"))
        .map(|check| check.against.as_str())
        .collect();
    own.dedup();
    for against in own {
        text.push_str(&against_own(discipline, against, checks));
    }
    text
}

/// One line for an MPI's own transport: how many sizes, the ratio at each, the worst.
fn against_own(discipline: &Discipline, against: &str, checks: &[Check]) -> String {
    let better = better(&discipline.benchmark);
    let list: Vec<&Check> = checks
        .iter()
        .filter(|check| check.against == against)
        .collect();
    let met = list.iter().filter(|check| check.verdict.is_met()).count();
    let mut text = format!("    {against}: {met} of {} sizes met:", list.len());
    for check in &list {
        let mark = if check.verdict.is_met() { "" } else { "!" };
        let _ = write!(
            text,
            " {} {:.2}{mark}",
            bytes(check.size_bytes.unwrap_or(0) as f64),
            check.ratio.value
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
    for line in caveat_lines(analysis) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The same as sentences.
pub fn caveat_lines(analysis: &Analysis<'_>) -> Vec<String> {
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
            "{rounds} rounds carry a confidence of {:.0} % at most; 95 % need {} rounds.",
            attainable(rounds) * 100.0,
            spread::FEWEST_ROUNDS
        ));
    }
    let slow = record.slow_series();
    if !slow.is_empty() {
        lines.push(format!(
            "{} took many times as long as the others, and took part in the first two rounds only: {}.",
            if slow.len() == 1 { "One series".to_owned() } else { format!("{} series", slow.len()) },
            slow.join("; ")
        ));
    }
    if let Some((wanted, most)) = analysis
        .rounds_wanted()
        .filter(|(wanted, _)| *wanted > rounds)
    {
        let or_more = if wanted >= spread::MOST_ROUNDS {
            " or more, and wants quieting instead"
        } else {
            ""
        };
        lines.push(format!(
            "For medians within 5 % in nine tenths of the series this machine needs {wanted} rounds{or_more}; the widest is {most}."
        ));
    }
    if !analysis.excluded().is_empty() {
        lines.push(format!(
            "{} of {} runs do not count, since the machine's speed around them was another by more than a quarter; see the page for which.",
            analysis.excluded().len(),
            record.turns.len()
        ));
    }
    if !analysis.doubtful().is_empty() {
        lines.push(format!(
            "{} series are doubtful: the machine had another speed in most of their runs, so all of these count.",
            analysis.doubtful().len()
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::filled;

    #[test]
    fn table_shows_medians_spread_and_both_ratios() {
        let record = filled();
        let text = all(&Analysis::of(&record));
        assert!(text.contains("Weft against this MPI's own transport"));
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
                "[0.23-0.37]",
                "0.60",
                "[0.46-0.74]",
                "0.50*",
                "0.67*"
            ]
        );
        assert!(
            text.contains("best peer, geometric mean") && text.contains("at most 0.8"),
            "{text}"
        );
        assert!(
            text.contains("mpich's own transport: 2 of 2 sizes met: 8 0.50 4K 0.50; worst at"),
            "{text}"
        );
    }

    #[test]
    fn few_rounds_are_called_few() {
        let mut record = filled();
        record.turns.retain(|turn| turn.round < 3);
        let lines = caveat_lines(&Analysis::of(&record)).join("\n");
        assert!(
            lines.contains("3 rounds carry a confidence of 75 %"),
            "{lines}"
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

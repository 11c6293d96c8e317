// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as a page: what it comes to, curves for every benchmark, every aim, the machine, how to repeat it.
//!
//! Called by files; fills report's figures and tables from analysis and reach. `pages/` holds the parts.

mod curves;
mod machine;
mod tables;

use super::analysis::Analysis;
use super::arguments::{Baseline, Settings};
use super::plan::Discipline;
use super::reach::{self, Check, Verdict};
use super::table;
use super::thresholds::Outcome;
use crate::report::figure::Figure;
use crate::report::html::identifier;
use crate::report::page::{Block, Page, Section, Tile};
use crate::report::table::Tone;

/// The whole page.
pub fn page(analysis: &Analysis<'_>, settings: &Settings, outcomes: &[Outcome]) -> Page {
    let mut sections = vec![short(analysis, outcomes)];
    for group in groups(analysis) {
        sections.push(benchmark(analysis, &settings.baseline, &group));
    }
    let checks = all_checks(analysis);
    if !checks.is_empty() {
        sections.push(Section {
            id: "aims".into(),
            title: "Every aim".into(),
            blocks: vec![
                Block::Paragraph("Weft's figure over the other's. The aim lies within the interval where it says likely.".into()),
                Block::Table(tables::aims(&checks)),
            ],
        });
    }
    sections.push(machine::section(analysis));
    sections.push(machine::repeat(analysis));
    Page {
        title: "Weft beside other transports".into(),
        lead: machine::lead(analysis),
        sections,
    }
}

/// The figures that a picture alone shows: the best of all, for each benchmark with two ranks.
pub fn overview(analysis: &Analysis<'_>, baseline: &Baseline) -> Vec<Figure> {
    let disciplines = analysis.record.matrix.disciplines.iter();
    let curves = disciplines.filter(|discipline| analysis.all_sizes(discipline).len() > 1);
    let all: Vec<Figure> = curves
        .map(|discipline| curves::best(analysis, discipline))
        .collect();
    let of_mpis = analysis
        .record
        .matrix
        .disciplines
        .iter()
        .filter(|discipline| reach::pairs(discipline));
    let mpis = of_mpis.flat_map(|discipline| curves::of_mpis(analysis, discipline, baseline));
    all.into_iter().chain(mpis).collect()
}

/// Disciplines of one benchmark on one set of hosts belong together.
fn groups<'a>(analysis: &Analysis<'a>) -> Vec<Vec<&'a Discipline>> {
    let mut groups: Vec<Vec<&Discipline>> = Vec::new();
    for discipline in &analysis.record.matrix.disciplines {
        let known = groups.iter_mut().find(|group| {
            group[0].benchmark == discipline.benchmark && group[0].hosts == discipline.hosts
        });
        match known {
            Some(group) => group.push(discipline),
            None => groups.push(vec![discipline]),
        }
    }
    groups
}

fn all_checks(analysis: &Analysis<'_>) -> Vec<Check> {
    analysis
        .record
        .matrix
        .disciplines
        .iter()
        .flat_map(|discipline| reach::checks(analysis, discipline))
        .collect()
}

/// What it comes to.
fn short(analysis: &Analysis<'_>, outcomes: &[Outcome]) -> Section {
    let mut blocks = vec![Block::Tiles(tiles(analysis))];
    blocks.push(Block::Paragraph(
        "Each benchmark ran in several short rounds in which all MPIs and transports took turns. A figure is the median over the rounds; \
         bands are its tenth and ninetieth percentile, whiskers and ranges of ratios are 95 % bootstrap intervals over rounds. Ratios are taken round by \
         round. No figure is dropped for its value; a run does not count when the machine itself had another speed beside it."
            .into(),
    ));
    for line in table::caveat_lines(analysis) {
        blocks.push(Block::Paragraph(line));
    }
    let doubtful: Vec<String> = analysis
        .doubtful()
        .iter()
        .map(|(discipline, contender)| format!("{contender}: {discipline}"))
        .collect();
    if !doubtful.is_empty() {
        blocks.push(Block::Folded(
            "Doubtful series".into(),
            vec![Block::Lines(doubtful)],
        ));
    }
    let crossed: Vec<String> = outcomes
        .iter()
        .flat_map(|outcome| outcome.crossed.clone())
        .collect();
    if !crossed.is_empty() {
        blocks.push(Block::Paragraph("Thresholds that were crossed:".into()));
        blocks.push(Block::Lines(crossed));
    }
    let failures = analysis.record.failures();
    if !failures.is_empty() {
        blocks.push(Block::Paragraph(
            "Runs that failed; the others went on without them:".into(),
        ));
        blocks.push(Block::Lines(failures));
    }
    if !analysis.record.matrix.left_out.is_empty() {
        blocks.push(Block::Folded(
            "Left out, since it cannot run here".into(),
            vec![Block::Lines(analysis.record.matrix.left_out.clone())],
        ));
    }
    Section {
        id: "short".into(),
        title: "In short".into(),
        blocks,
    }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Met => Tone::Good,
        Verdict::LikelyMet | Verdict::LikelyMissed => Tone::Unsure,
        Verdict::Missed => Tone::Bad,
    }
}

/// The means and the limits, and for collectives how many sizes are met.
fn tiles(analysis: &Analysis<'_>) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for discipline in &analysis.record.matrix.disciplines {
        let checks = reach::checks(analysis, discipline);
        let single = checks
            .iter()
            .filter(|check| check.size_bytes.is_none() || check.against.starts_with("one "));
        let mut mine: Vec<Tile> = single.map(tile).collect();
        if mine.is_empty() && !checks.is_empty() {
            mine.push(count_tile(discipline, &checks));
        }
        tiles.extend(mine);
    }
    tiles
}

fn tile(check: &Check) -> Tile {
    let name = match check.size_bytes {
        Some(size) => format!(
            "{}, {} over {}",
            check.group,
            tables::size_text(size),
            check.against
        ),
        None => format!("{} over the {}", check.group, check.against),
    };
    let more = if reach_up(check) {
        "at least"
    } else {
        "at most"
    };
    Tile {
        name,
        value: format!("{:.2}", check.ratio.value),
        note: format!(
            "{:.2} to {:.2}; aim {more} {}: {}",
            check.ratio.low,
            check.ratio.high,
            check.aim,
            check.verdict.words()
        ),
        tone: tone(check.verdict),
    }
}

/// Whether the aim is a lower bound: those above 1 that are not about the hardware's limits.
fn reach_up(check: &Check) -> bool {
    check.aim > 1.0 && !check.against.starts_with("one ")
}

fn count_tile(discipline: &Discipline, checks: &[Check]) -> Tile {
    let met = checks.iter().filter(|check| check.verdict.is_met()).count();
    let sure = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Met)
        .count();
    Tile {
        name: format!("{discipline}: no worse than the best peer"),
        value: format!("{met} of {}", checks.len()),
        note: format!("sizes; {sure} of them surely"),
        tone: match (met, sure) {
            (_, sure) if sure == checks.len() => Tone::Good,
            (met, _) if met == checks.len() => Tone::Unsure,
            _ => Tone::Bad,
        },
    }
}

fn benchmark(analysis: &Analysis<'_>, baseline: &Baseline, group: &[&Discipline]) -> Section {
    let first = group[0];
    let place = if first.hosts.is_empty() {
        String::new()
    } else {
        format!(" on {}", first.hosts)
    };
    let mut blocks = vec![Block::Figures(
        group
            .iter()
            .map(|discipline| curves::best(analysis, discipline))
            .collect(),
    )];
    for discipline in group {
        let figures = curves::of_mpis(analysis, discipline, baseline);
        if figures.is_empty() {
            continue;
        }
        if reach::pairs(discipline) {
            blocks.push(Block::Figures(figures));
        } else {
            blocks.push(Block::Folded(
                format!("Each MPI by itself, {} ranks", discipline.ranks),
                vec![Block::Figures(figures)],
            ));
        }
    }
    blocks.push(Block::Folded(
        "All figures as a table".into(),
        vec![Block::Table(tables::all(analysis, group))],
    ));
    Section {
        id: identifier(&format!("{}{place}", first.benchmark)),
        title: format!("{}{place}", first.benchmark),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arguments;
    use crate::compare::record::tests::filled;

    #[test]
    fn page_shows_curves_aims_machine_and_commands() {
        let record = filled();
        let settings = arguments::parse(Vec::new()).expect("good usage");
        let page = page(&Analysis::of(&record), &settings, &[]);
        let titles: Vec<&str> = page
            .sections
            .iter()
            .map(|section| section.title.as_str())
            .collect();
        assert_eq!(
            titles,
            [
                "In short",
                "latency",
                "bw",
                "Every aim",
                "The machine",
                "How to repeat it"
            ]
        );
        let text = page.html();
        for words in [
            "latency, 2 ranks over the best peer, geometric mean",
            "0.67",
            "Weft faster",
            "env A=1 mpiexec",
            "mpich 1.0",
        ] {
            assert!(text.contains(words), "{words} is missing");
        }
        let mut ids: Vec<&str> = text
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "an id stands twice");
    }

    #[test]
    fn picture_alone_shows_best_and_each_mpi() {
        let record = filled();
        assert_eq!(
            overview(&Analysis::of(&record), &Baseline::Own).len(),
            2 + 2
        );
    }
}

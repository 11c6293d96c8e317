// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as a page: the result in short, curves for every benchmark, every goal, the
//! machine, and how to repeat the comparison.
//!
//! Called by files; fills the figures and tables of weft-chart from analysis and goals. `pages/`
//! holds the parts.

mod curves;
mod machine;
mod tables;

use super::analysis::Analysis;
use super::arguments::{Baseline, Settings};
use super::caveats;
use super::configuration::{self, Workload};
use super::goals::{self, Check, Verdict};
use super::record::{quantity, unit};
use super::thresholds::Outcome;
use weft_chart::figure::Figure;
use weft_chart::html::identifier;
use weft_chart::page::{Block, Page, Section, Tile};
use weft_chart::table::Tone;
use weft_statistics::interval::{Better, percent};

/// How it was measured, in a few sentences.
const METHOD: &str = "Each benchmark ran in several short rounds, in which all MPIs and transports \
    took turns. A figure is the median over the rounds. Ratios are taken within each round, \
    because what disturbs one run of a round disturbs its neighbours too; the ratio shown is their \
    median. No run is excluded for what it measured. A run is excluded when the machine itself \
    changed its speed during it.";
/// What the table of goals shows.
const GOALS: &str = "Weft's figure divided by the other's: of times less is better, of bandwidths \
    more. met and missed: the whole interval says so. likely met and likely missed: the goal lies \
    within the interval. Best of the others: in each round the best MPI over Weft against the best \
    MPI without Weft.";
/// Words that a newcomer needs, and those that figures use.
const WORDS: [(&str, &str); 7] = [
    (
        "native",
        "the MPI's own transport within a machine; the baseline: what Weft is divided by",
    ),
    ("best", "the best MPI and transport here without Weft"),
    (
        "median, mean",
        "of a run: the middle one of 25 blocks of iterations, and the mean of all iterations, \
         which includes rare events. Of a comparison: the median over the rounds of either",
    ),
    (
        "band",
        "P10 to P90: a tenth of the rounds lies below it, a tenth above",
    ),
    (
        "interval, confidence",
        "whiskers, and ranges after a ratio: where the true median lies, and with what \
         probability. It follows from how many rounds count, not from an assumption about noise",
    ),
    (
        "excluded",
        "not used, because the machine's speed changed during the run",
    ),
    (
        "goal",
        "what this project wants to reach; not a measured figure",
    ),
];
/// One more where something was started so.
const PLAIN: (&str, &str) = (
    "plain",
    "started as by a plain mpirun (weft run --plain): no shared heap, no rules for collectives",
);
/// One more where something waited with pauses.
const PAUSE: (&str, &str) = (
    "pause",
    "with weft run --yield pause, which is how Weft is set up under MPICH and Intel MPI",
);
/// One more where the MPI's own collectives ran over Weft.
const BY_MPI: (&str, &str) = (
    "mpi",
    "with weft run --collectives mpi: the MPI's own collectives, over Weft's messages",
);

fn words(analysis: &Analysis<'_>) -> Vec<(String, String)> {
    let has_plain = analysis.record.matrix.has_variant(configuration::PLAIN);
    let plain = has_plain.then_some(PLAIN);
    let has_pause = analysis.record.matrix.has_variant(configuration::PAUSE);
    let pause = has_pause.then_some(PAUSE);
    let has_by_mpi = analysis.record.matrix.has_variant(configuration::BY_MPI);
    let by_mpi = has_by_mpi.then_some(BY_MPI);
    let list = WORDS.into_iter().chain(plain).chain(pause).chain(by_mpi);
    list.map(|(word, meaning)| (word.to_owned(), meaning.to_owned()))
        .collect()
}

/// The whole page.
pub fn page(analysis: &Analysis<'_>, settings: &Settings, outcomes: &[Outcome]) -> Page {
    let baseline = settings.baseline(analysis.record.matrix.has_testbed());
    let mut sections = vec![short(analysis, outcomes)];
    for group in groups(analysis) {
        sections.push(benchmark(analysis, &baseline, &group));
    }
    let checks = all_checks(analysis);
    if !checks.is_empty() {
        sections.push(Section {
            id: "goals".into(),
            title: "Every goal".into(),
            blocks: vec![
                Block::Paragraph(GOALS.into()),
                Block::Table(tables::goals(&checks)),
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
    let workloads = analysis.record.matrix.workloads.iter();
    let curves = workloads.filter(|workload| analysis.all_sizes(workload).len() > 1);
    let all: Vec<Figure> = curves
        .map(|workload| curves::best(analysis, workload))
        .collect();
    let of_mpis = analysis
        .record
        .matrix
        .workloads
        .iter()
        .filter(|workload| goals::pairs(workload));
    let mpis = of_mpis.flat_map(|workload| curves::of_mpis(analysis, workload, baseline));
    all.into_iter().chain(mpis).collect()
}

/// Workloads of one benchmark on one set of hosts belong together.
fn groups<'a>(analysis: &Analysis<'a>) -> Vec<Vec<&'a Workload>> {
    let mut groups: Vec<Vec<&Workload>> = Vec::new();
    for workload in &analysis.record.matrix.workloads {
        let known = groups.iter_mut().find(|group| {
            group[0].benchmark == workload.benchmark && group[0].place == workload.place
        });
        match known {
            Some(group) => group.push(workload),
            None => groups.push(vec![workload]),
        }
    }
    groups
}

fn all_checks(analysis: &Analysis<'_>) -> Vec<Check> {
    analysis
        .record
        .matrix
        .workloads
        .iter()
        .flat_map(|workload| goals::checks(analysis, workload))
        .collect()
}

/// What it comes to.
fn short(analysis: &Analysis<'_>, outcomes: &[Outcome]) -> Section {
    let mut blocks = vec![Block::Tiles(tiles(analysis))];
    blocks.push(Block::Paragraph(METHOD.into()));
    blocks.push(Block::Facts(words(analysis)));
    for line in caveats::lines(analysis) {
        blocks.push(Block::Paragraph(line));
    }
    let doubtful: Vec<String> = analysis
        .selection
        .doubtful
        .iter()
        .map(|(workload, configuration)| format!("{configuration}: {workload}"))
        .collect();
    if !doubtful.is_empty() {
        blocks.push(Block::Folded(
            "Series whose figures are doubtful".into(),
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
            "MPIs and transports that were not measured here, and why".into(),
            vec![Block::Lines(analysis.record.matrix.left_out.clone())],
        ));
    }
    Section {
        id: "short".into(),
        title: "In short".into(),
        blocks,
    }
}

/// The means and the limits, and for collectives how many sizes are met.
fn tiles(analysis: &Analysis<'_>) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for workload in &analysis.record.matrix.workloads {
        let checks = goals::checks(analysis, workload);
        let single = checks
            .iter()
            .filter(|check| check.size_bytes.is_none() || check.is_limit());
        let mut mine: Vec<Tile> = single.map(tile).collect();
        if mine.is_empty() && !checks.is_empty() {
            mine.push(count_tile(workload, &checks));
        }
        tiles.extend(mine);
    }
    tiles
}

fn tile(check: &Check) -> Tile {
    let size = match check.size_bytes {
        Some(size) => format!(", {}", tables::size_text(size)),
        None => String::new(),
    };
    let good = match check.better {
        Better::Less => "less",
        Better::More => "more",
    };
    Tile {
        name: format!("{}{size}: Weft / {}", check.group, check.against),
        value: format!("{:.2}", check.ratio.value),
        note: format!(
            "{good} is better; {:.2} to {:.2} with {} confidence; means {:.2}; goal: {} {}, {}",
            check.ratio.low,
            check.ratio.high,
            percent(check.ratio.confidence),
            check.ratio_of_means.value,
            check.bound(),
            check.goal,
            check.verdict.words()
        ),
        tone: tables::tone(check.verdict),
    }
}

fn count_tile(workload: &Workload, checks: &[Check]) -> Tile {
    let count = |is_one: fn(&Check) -> bool| checks.iter().filter(|check| is_one(check)).count();
    let met = count(|check| check.verdict.is_met());
    let sure = count(|check| check.verdict == Verdict::Met);
    let of_means = count(|check| check.verdict_of_means.is_met());
    Tile {
        name: format!("{workload}: Weft no worse than the best of the others"),
        value: format!("{met} of {}", checks.len()),
        note: format!("sizes; {sure} of them surely; {of_means} by the means"),
        tone: match (met, sure) {
            (_, sure) if sure == checks.len() => Tone::Good,
            (met, _) if met == checks.len() => Tone::Unsure,
            _ => Tone::Bad,
        },
    }
}

fn benchmark(analysis: &Analysis<'_>, baseline: &Baseline, group: &[&Workload]) -> Section {
    let first = group[0];
    let place = &first.place;
    let mut blocks = vec![Block::Figures(
        group
            .iter()
            .map(|workload| curves::best(analysis, workload))
            .collect(),
    )];
    for workload in group {
        let figures = curves::of_mpis(analysis, workload, baseline);
        if figures.is_empty() {
            continue;
        }
        if goals::pairs(workload) {
            blocks.push(Block::Figures(figures));
        } else {
            blocks.push(Block::Folded(
                format!("Each MPI by itself, {} ranks", workload.ranks),
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
        title: format!(
            "{}{place}: {} in {}",
            first.benchmark,
            quantity(&first.benchmark),
            unit(&first.benchmark)
        ),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arguments;
    use crate::compare::place::Place;
    use crate::compare::record::tests::filled;
    use crate::testbed::network::Network;

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
                "latency: one-way latency in us",
                "bw: bandwidth in MB/s",
                "Every goal",
                "The machine",
                "How to repeat it"
            ]
        );
        let text = page.html();
        for words in [
            "latency, 2 ranks: Weft / best of the others, geometric mean",
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
    fn page_of_testbeds_that_is_written_anew_divides_by_the_best() {
        let mut record = filled();
        let testbed = Place::of_testbed(&Network::default());
        let matrix = &mut record.matrix;
        let workloads = matrix.workloads.iter_mut().map(|one| &mut one.place);
        let entrants = matrix.entrants.iter_mut().map(|one| &mut one.place);
        let turns = record.turns.iter_mut().map(|one| &mut one.workload.place);
        let places = workloads.chain(entrants).chain(turns);
        places.for_each(|place| *place = testbed.clone());
        let settings = arguments::parse(vec!["--render".into()]).expect("good usage");
        let text = page(&Analysis::of(&record), &settings, &[]).html();
        assert!(text.contains("Weft / best") && !text.contains("Weft / native"));
    }

    #[test]
    fn picture_alone_shows_best_and_each_mpi() {
        let record = filled();
        assert_eq!(
            overview(&Analysis::of(&record), &Baseline::Native).len(),
            2 + 2
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files that a comparison writes beside its journal: summary, CSV, JUnit, the picture, the
//! page.
//!
//! Called by compare at the end, also when some runs failed; calls pages. docs/report.md describes
//! the fields.

use super::analysis::{Analysis, for_each};
use super::arguments::Settings;
use super::before;
use super::cpu;
use super::environment::libfabric_beside;
use super::goals;
use super::ratio::{Ratio, calibration};
use super::record::{Entrant, Turn, unit};
use super::tails;
use super::thresholds::Outcome;
use super::{caveats, journal, pages};
use crate::error::Error;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use weft_chart::draw;
use weft_chart::html::escaped;

/// Version of the form of summary.json; it grows when fields change their meaning or vanish.
const SCHEMA: u32 = 3;

/// Where they are.
pub struct Files {
    /// Every run.
    pub runs: PathBuf,
    /// Medians, means, spread, ratios, goals.
    pub summary: PathBuf,
    /// The same as a table.
    pub csv: PathBuf,
    /// What ran and what crossed a threshold, for continuous integration.
    pub junit: PathBuf,
    /// The curves.
    pub plot: PathBuf,
    /// Everything for a reader, in one file.
    pub page: PathBuf,
    /// What stands in the summary.
    pub summary_text: String,
}

/// Writes them into the folder of --out.
///
/// # Errors
/// A sentence with the path that could not be written.
pub fn write(
    settings: &Settings,
    analysis: &Analysis<'_>,
    outcomes: &[Outcome],
) -> Result<Files, Error> {
    let at = |name: &str| settings.out.join(name);
    let summary = serde_json::to_string_pretty(&summary(analysis, outcomes)).unwrap_or_default();
    let files = Files {
        runs: at(journal::NAME),
        summary: at("summary.json"),
        csv: at("results.csv"),
        junit: at("junit.xml"),
        plot: at("compare.svg"),
        page: at("index.html"),
        summary_text: summary,
    };
    save(&files.summary, &format!("{}\n", files.summary_text))?;
    save(&files.csv, &csv(analysis))?;
    save(&files.junit, &junit(analysis, outcomes))?;
    let baseline = settings.baseline(analysis.record.matrix.has_testbed());
    let overview = pages::overview(analysis, &baseline);
    save(&files.plot, &draw::sheet(&overview, 2))?;
    save(
        &files.page,
        &pages::page(analysis, settings, outcomes).html(),
    )?;
    Ok(files)
}

/// By a new file and a rename, so that a full disk leaves the older one whole.
fn save(path: &Path, text: &str) -> Result<(), Error> {
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        Error::file_with(
            "write",
            path,
            ". Finished runs are kept in runs.jsonl; make room, then write the reports with \
             --render",
        )(error)
    })
}

fn summary(analysis: &Analysis<'_>, outcomes: &[Outcome]) -> Value {
    let record = analysis.record;
    let goals: Vec<_> = record
        .matrix
        .workloads
        .iter()
        .flat_map(|workload| goals::checks(analysis, workload))
        .collect();
    let threshold = |outcome: &Outcome| {
        let (rule, checked, crossed) = (&outcome.rule, outcome.checked, &outcome.crossed);
        json!({ "rule": rule, "checked": checked, "crossed": crossed })
    };
    json!({
        "schema": SCHEMA,
        "environment": record.environment,
        "rounds": record.matrix.rounds,
        "repeat_scale": record.matrix.repeat_scale,
        "speed": analysis.selection.usual,
        "configurations": configurations(analysis),
        "left_out": record.matrix.left_out,
        "failures": record.failures(),
        "run_count": analysis.selection.run_count,
        "excluded": excluded(analysis),
        "calibration": calibration(analysis),
        "caveats": caveats::lines(analysis),
        "commands": record.matrix.commands,
        "goals": goals,
        "thresholds": outcomes.iter().map(threshold).collect::<Vec<_>>(),
        "results": results(analysis),
    })
}

fn configurations(analysis: &Analysis<'_>) -> Vec<Value> {
    let record = analysis.record;
    let one = |entrant: &Entrant| {
        let configuration = &entrant.configuration;
        let (version, library) = record.version(&configuration.mpi).unwrap_or_default();
        json!({
            "mpi": configuration.mpi,
            "transport": configuration.transport,
            "hosts": entrant.place.hosts,
            "testbed": entrant.place.testbed,
            "version": version,
            "library": library,
            "libfabric": libfabric_beside(library),
            "dry_run": entrant.launch,
        })
    };
    record.matrix.entrants.iter().map(one).collect()
}

fn results(analysis: &Analysis<'_>) -> Vec<Value> {
    let mut results = Vec::new();
    for_each(analysis, |workload, configuration, size| {
        let Some(cell) = analysis.cell(workload, configuration, size) else {
            return;
        };
        results.push(json!({
            "benchmark": workload.benchmark,
            "ranks": workload.ranks,
            "hosts": workload.place.hosts,
            "testbed": workload.place.testbed,
            "mpi": configuration.mpi,
            "transport": configuration.transport,
            "size_bytes": size,
            "unit": unit(&workload.benchmark),
            "figure": cell,
            "baseline": analysis.baseline(workload, configuration).map(|one| one.transport),
            "ratio_to_native": analysis.to_native(workload, configuration, size),
            "ratio_to_best": analysis.to_best(workload, configuration, size),
            "cpu": cpu::cost(analysis, workload, configuration, size),
            "tails": tails::of(analysis, workload, configuration, size),
            "ratio_to_before": before::to_before(analysis, workload, configuration, size),
        }));
    });
    results
}

fn excluded(analysis: &Analysis<'_>) -> Vec<Value> {
    let one = |turn: &&Turn| {
        json!({
            "mpi": turn.configuration.mpi,
            "transport": turn.configuration.transport,
            "benchmark": turn.workload.benchmark,
            "ranks": turn.workload.ranks,
            "round": turn.round,
            "attempt": turn.attempt,
        })
    };
    analysis.selection.excluded.iter().map(one).collect()
}

fn csv(analysis: &Analysis<'_>) -> String {
    let mut text = String::from(
        "benchmark,ranks,hosts,testbed,mpi,transport,size_bytes,unit,rounds,median,p10,p90,low,\
         high,confidence,mean,mean_low,mean_high,far",
    );
    for to in ["native", "best"] {
        for column in RATIO_COLUMNS {
            let _ = write!(text, ",{to}_{column}");
        }
    }
    text.push('\n');
    for_each(analysis, |workload, configuration, size| {
        let Some(cell) = analysis.cell(workload, configuration, size) else {
            return;
        };
        let mut line: Vec<String> = vec![
            field(&workload.benchmark),
            workload.ranks.to_string(),
            field(&workload.place.hosts),
            field(&workload.place.testbed),
            field(&configuration.mpi),
            field(&configuration.transport),
            size.to_string(),
            unit(&workload.benchmark).to_owned(),
            cell.summary.count.to_string(),
        ];
        let interval = cell.interval;
        let numbers = [
            cell.summary.median,
            cell.summary.p10,
            cell.summary.p90,
            interval.low,
            interval.high,
            interval.confidence,
            cell.mean.value,
            cell.mean.low,
            cell.mean.high,
        ];
        line.extend(numbers.iter().map(ToString::to_string));
        line.push(cell.far_count.to_string());
        line.extend(ratio_fields(analysis.to_native(
            workload,
            configuration,
            size,
        )));
        line.extend(ratio_fields(analysis.to_best(
            workload,
            configuration,
            size,
        )));
        let _ = writeln!(text, "{}", line.join(","));
    });
    text
}

/// What stands of a ratio in a line, each with what is divided by in front.
const RATIO_COLUMNS: [&str; 10] = [
    "rounds",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_confidence",
    "ratio_of_means",
    "figure_median",
    "figure_mean",
    "baseline_median",
    "baseline_mean",
];

fn ratio_fields(ratio: Option<Ratio>) -> Vec<String> {
    let Some(ratio) = ratio else {
        return vec![String::new(); RATIO_COLUMNS.len()];
    };
    let numbers = [
        ratio.of_medians.rounds as f64,
        ratio.of_medians.value,
        ratio.of_medians.low,
        ratio.of_medians.high,
        ratio.of_medians.confidence,
        ratio.of_means.value,
        ratio.figure.median,
        ratio.figure.mean,
        ratio.baseline.median,
        ratio.baseline.mean,
    ];
    numbers.iter().map(ToString::to_string).collect()
}

/// A field of a CSV line. Source: RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// One test for each run that ran, one for each threshold.
fn junit(analysis: &Analysis<'_>, outcomes: &[Outcome]) -> String {
    let record = analysis.record;
    let mut runs = Vec::new();
    for command in &record.matrix.commands {
        let mine = || {
            record.turns.iter().filter(|turn| {
                turn.configuration == command.configuration && turn.workload == command.workload
            })
        };
        let seconds: f64 = mine().map(|turn| turn.wall_seconds).sum();
        let reasons: Vec<&str> = mine().filter_map(|turn| turn.failure.as_deref()).collect();
        let name = format!("{}: {}", command.configuration, command.workload);
        runs.push(test("weft.compare.runs", &name, seconds, &reasons));
    }
    let rules: Vec<(bool, String)> = outcomes
        .iter()
        .map(|outcome| {
            let reasons: Vec<&str> = outcome.crossed.iter().map(String::as_str).collect();
            test("weft.compare.thresholds", &outcome.rule, 0.0, &reasons)
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n{}{}</testsuites>\n",
        suite("runs", &runs),
        suite("thresholds", &rules)
    )
}

fn test(class: &str, name: &str, seconds: f64, reasons: &[&str]) -> (bool, String) {
    let mut text = format!(
        "<testcase classname=\"{class}\" name=\"{}\" time=\"{seconds:.3}\"",
        escaped(name)
    );
    if reasons.is_empty() {
        text.push_str("/>\n");
    } else {
        let _ = writeln!(
            text,
            "><failure message=\"{}\">{}</failure></testcase>",
            escaped(reasons[0]),
            escaped(&reasons.join("\n"))
        );
    }
    (reasons.is_empty(), text)
}

fn suite(name: &str, tests: &[(bool, String)]) -> String {
    let failed = tests.iter().filter(|(passed, _)| !passed).count();
    let inner: String = tests.iter().map(|(_, text)| text.as_str()).collect();
    format!(
        "<testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\">\n{inner}</testsuite>\n",
        tests.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arguments;
    use crate::compare::record::Command;
    use crate::compare::record::tests::{configuration, filled, workload};

    fn written() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let settings =
            arguments::parse(vec!["--out".into(), folder.path().into()]).expect("good usage");
        let mut record = filled();
        record
            .matrix
            .left_out
            .push("intel over weft: <none>".into());
        record.matrix.commands.push(Command {
            configuration: configuration("mpich", "weft"),
            workload: workload("latency"),
            command: "weft run".into(),
            launch: String::new(),
        });
        let outcomes = [Outcome {
            rule: "a < b".into(),
            checked: 1,
            crossed: vec!["it is \"worse\"".into()],
        }];
        let files = write(&settings, &Analysis::of(&record), &outcomes).expect("written");
        (folder, files)
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("written")
    }

    #[test]
    fn summary_holds_figures_ratios_and_goals() {
        let (_folder, files) = written();
        let summary: Value = serde_json::from_str(&text(&files.summary)).expect("JSON");
        let first = &summary["results"][0];
        assert_eq!(
            (
                &first["transport"],
                &first["size_bytes"],
                &first["figure"]["count"]
            ),
            (&"weft".into(), &8.into(), &7.into())
        );
        let ratio = &first["ratio_to_native"];
        for of in ["of_medians", "of_means"] {
            let value = ratio[of]["value"].as_f64().expect("a number");
            assert!((value - 0.5).abs() < 1e-9, "{ratio}");
        }
        assert_eq!(ratio["of_medians"]["confidence"], 0.984375);
        assert_eq!(first["figure"]["mean"]["value"], 0.3);
        assert_eq!(first["cpu"]["seconds_per_million"], 0.6);
        assert_eq!(first["cpu"]["to_native"]["value"], 0.5);
        assert_eq!(
            (&summary["run_count"], &first["baseline"]),
            (&42.into(), &"native".into())
        );
        assert_eq!(summary["left_out"][0], "intel over weft: <none>");
        assert_eq!(summary["goals"][0]["verdict"], "met");
        assert_eq!(summary["thresholds"][0]["checked"], 1);
    }

    #[test]
    fn csv_has_a_line_for_each_figure_and_as_many_fields_as_its_head() {
        let (_folder, files) = written();
        let text = text(&files.csv);
        // 3 configurations, 2 workloads, 2 sizes, and the head.
        assert_eq!(text.lines().count(), 13);
        let fields = |line: &str| line.split(',').count();
        assert!(
            text.lines()
                .all(|line| fields(line) == fields(text.lines().next().expect("a head")))
        );
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn junit_counts_failures_and_escapes_them() {
        let (_folder, files) = written();
        let text = text(&files.junit);
        assert!(
            text.contains("<testsuite name=\"runs\" tests=\"1\" failures=\"0\">"),
            "{text}"
        );
        assert!(
            text.contains("<testsuite name=\"thresholds\" tests=\"1\" failures=\"1\">"),
            "{text}"
        );
        assert!(
            text.contains("name=\"a &lt; b\"")
                && text.contains("message=\"it is &quot;worse&quot;\""),
            "{text}"
        );
    }

    #[test]
    fn page_and_picture_are_there() {
        let (_folder, files) = written();
        assert!(text(&files.page).contains("intel over weft: &lt;none&gt;"));
        assert!(text(&files.plot).starts_with("<svg xmlns="));
    }
}

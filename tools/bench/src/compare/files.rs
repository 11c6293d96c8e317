// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files that a comparison leaves: every row as JSON lines, the summary, the plot, the page.
//!
//! Called by compare at the end; calls plot and page.

use super::arguments::Settings;
use super::environment::Environment;
use super::plan::{Contender, Plan};
use super::record::{self, Record};
use super::{page, plot, table};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Where they are.
pub struct Files {
    /// Every row of every run, one JSON object a line, after one that describes the machine.
    pub runs: PathBuf,
    /// Medians, spread and ratios.
    pub summary: PathBuf,
    /// The plot.
    pub plot: PathBuf,
    /// Everything for a reader, in one file.
    pub page: PathBuf,
    /// What stands in the summary.
    pub summary_text: String,
}

/// Writes them into the folder of --out, which is made when missing.
///
/// # Errors
/// A sentence with the path that could not be written.
pub fn write(
    settings: &Settings,
    plan: &Plan,
    environment: &Environment,
    record: &Record,
) -> Result<Files, String> {
    fs::create_dir_all(&settings.out)
        .map_err(|error| format!("cannot make {}: {error}", settings.out.display()))?;
    let at = |name: &str| settings.out.join(name);
    let summary = serde_json::to_string_pretty(&summary(settings, plan, environment, record))
        .unwrap_or_default();
    let files = Files {
        runs: at("runs.jsonl"),
        summary: at("summary.json"),
        plot: at("compare.svg"),
        page: at("index.html"),
        summary_text: summary,
    };
    save(&files.runs, &runs(environment, record))?;
    save(&files.summary, &format!("{}\n", files.summary_text))?;
    plot::draw(&files.plot, plan, record)?;
    let drawn = fs::read_to_string(&files.plot).unwrap_or_default();
    save(&files.page, &page::page(plan, environment, record, &drawn))?;
    Ok(files)
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn runs(environment: &Environment, record: &Record) -> String {
    let mut text = format!(
        "{}\n",
        json!({ "type": "environment", "environment": environment })
    );
    for sample in record.samples() {
        text.push_str(&serde_json::to_string(sample).unwrap_or_default());
        text.push('\n');
    }
    text
}

fn summary(settings: &Settings, plan: &Plan, environment: &Environment, record: &Record) -> Value {
    let contenders: Vec<Contender> = plan
        .contenders
        .iter()
        .map(|(contender, _)| contender.clone())
        .collect();
    let shown: Vec<Value> = plan
        .contenders
        .iter()
        .map(|(contender, command)| {
            let (version, library) = record.version(&contender.mpi).cloned().unwrap_or_default();
            json!({ "mpi": contender.mpi, "transport": contender.transport, "version": version, "library": library,
                    "dry_run": command })
        })
        .collect();
    let commands: Vec<Value> = plan
        .legs
        .iter()
        .map(|leg| {
            leg.command
                .iter()
                .map(|word| word.to_string_lossy())
                .collect::<Vec<_>>()
                .join(" ")
                .into()
        })
        .collect();
    let mut results = Vec::new();
    for benchmark in table::benchmarks(plan) {
        let best = record.best_without_weft(benchmark, &contenders);
        for contender in &contenders {
            let own = Contender {
                mpi: contender.mpi.clone(),
                transport: "native".to_owned(),
            };
            let own = record.summary(benchmark, &own);
            for (size, summary) in record.summary(benchmark, contender) {
                results.push(json!({
                    "benchmark": benchmark, "mpi": contender.mpi, "transport": contender.transport, "size_bytes": size,
                    "unit": record::unit(benchmark), "median": summary.median, "p10": summary.p10, "p90": summary.p90,
                    "rounds": summary.count,
                    "ratio_to_own": own.get(&size).map(|own| summary.median / own.median),
                    "ratio_to_best": best.get(&size).map(|best| summary.median / best),
                }));
            }
        }
    }
    json!({
        "environment": environment, "rounds": settings.rounds, "repeat_scale": settings.scale, "ranks": settings.ranks,
        "contenders": shown, "left_out": plan.left_out, "failures": record.failures(), "commands": commands,
        "results": results,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{contender, filled, leg};
    use crate::compare::{arguments, environment};

    #[test]
    fn files_hold_every_row_and_both_ratios() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let out = folder.path().join("new/report");
        let settings =
            arguments::parse(vec!["--out".into(), out.clone().into()]).expect("good usage");
        let plan = Plan {
            contenders: ["weft", "native"]
                .map(|transport| (contender("mpich", transport), String::new()))
                .to_vec(),
            left_out: vec!["intel over weft: not found".into()],
            legs: vec![leg("mpich", "weft", "latency")],
        };
        let record = filled();
        let files =
            write(&settings, &plan, &environment::of_this_machine(), &record).expect("written");
        let lines = fs::read_to_string(&files.runs).expect("written");
        assert_eq!(lines.lines().count(), 1 + record.samples().len());
        let summary: Value =
            serde_json::from_str(&fs::read_to_string(&files.summary).expect("written"))
                .expect("JSON");
        let first = &summary["results"][0];
        assert_eq!(
            (&first["transport"], &first["size_bytes"], &first["rounds"]),
            (&"weft".into(), &8.into(), &3.into())
        );
        assert!((first["ratio_to_own"].as_f64().expect("a number") - 0.5).abs() < 1e-9);
        assert_eq!(summary["left_out"][0], "intel over weft: not found");
        assert!(files.plot.exists() && files.page.ends_with("index.html") && files.page.exists());
    }
}

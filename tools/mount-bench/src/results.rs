// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table on standard output, the page, and every run as JSON.

use std::fs;

use weft_chart::page::{Block, Page, Section};
use weft_chart::table::{Cell, Table};
use weft_ranks::say;
use weft_statistics::interval::{self, Column, Interval};

use crate::fault::Fault;
use crate::loads::{self, Load};
use crate::rounds::Run;
use crate::settings::Settings;

const HEADS: [&str; 7] = [
    "peer",
    "median",
    "interval",
    "weft / peer",
    "runs",
    "sent / asked",
    "requests of a run",
];

/// Writes page and JSON into the folder of `--out`, and prints the tables.
///
/// # Errors
/// The folder, or that runs failed.
pub fn write(settings: &Settings, runs: &[Run]) -> Result<(), Fault> {
    let tables: Vec<(&Load, Table)> = loads::ALL
        .iter()
        .filter(|load| runs.iter().any(|run| run.load == load.name))
        .map(|load| (load, table(load, runs)))
        .collect();
    for (load, table) in &tables {
        println!("\n{}, {}: {}\n", load.name, load.unit, load.what);
        println!("{}", markdown(table));
    }
    let failed = Fault::system(format!("write {}", settings.out.display()));
    fs::create_dir_all(&settings.out).map_err(&failed)?;
    let json = serde_json::to_string_pretty(runs).map_err(|error| failed(error.into()))?;
    fs::write(settings.out.join("runs.json"), json).map_err(&failed)?;
    fs::write(settings.out.join("index.html"), page(tables).html()).map_err(&failed)?;
    say!("{}", settings.out.join("index.html").display());
    let failures: Vec<&Run> = runs.iter().filter(|run| run.failure.is_some()).collect();
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(Fault::Runs {
            failed: failures.len(),
            all: runs.len(),
            load: first.load,
            peer: first.peer,
            why: first.failure.clone().unwrap_or_default(),
        }),
    }
}

/// The figures of one peer, a place for each round.
fn column(runs: &[Run], load: &Load, peer: &str) -> Column {
    let mine = runs
        .iter()
        .filter(|run| run.load == load.name && run.peer == peer);
    mine.map(|run| run.figure).collect()
}

fn shown(interval: &Interval) -> String {
    format!("{:.3} to {:.3}", interval.low, interval.high)
}

fn table(load: &Load, runs: &[Run]) -> Table {
    let mut peers: Vec<&str> = Vec::new();
    for run in runs.iter().filter(|run| run.load == load.name) {
        if !peers.contains(&run.peer) {
            peers.push(run.peer);
        }
    }
    let ours = column(runs, load, "weft");
    let rows = peers.iter().map(|peer| {
        let figures = column(runs, load, peer);
        let median = interval::of_median(&figures);
        let ratio = interval::of_ratio(&ours, &figures).filter(|_| *peer != "weft");
        let mine = runs
            .iter()
            .filter(|run| run.load == load.name && run.peer == *peer);
        let is_cut = mine.clone().any(|run| run.is_cut);
        let last = mine.clone().next_back();
        let sent = last
            .filter(|run| run.asked_bytes > 0)
            .and_then(|run| Some(run.counters["sent_bytes"].as_f64()? / run.asked_bytes as f64));
        let requests = last.and_then(|run| run.counters["requests"].as_object());
        let requests = requests.map(|requests| {
            let texts = requests
                .iter()
                .map(|(name, count)| format!("{count} {name}"));
            texts.collect::<Vec<_>>().join(", ")
        });
        let number = |value: Option<f64>, text: String| {
            value.map_or(Cell::text("-"), |value| Cell::number(text, value))
        };
        let value = median.map(|median| median.value);
        let limit = if is_cut { "limit: " } else { "" };
        vec![
            Cell::text(*peer),
            number(value, format!("{limit}{:.3}", value.unwrap_or_default())),
            Cell::text(median.as_ref().map(shown).unwrap_or_default()),
            number(
                ratio.map(|ratio| ratio.value),
                ratio
                    .map(|ratio| format!("{:.3} ({})", ratio.value, shown(&ratio)))
                    .unwrap_or_default(),
            ),
            Cell::text(figures.iter().flatten().count().to_string()),
            number(sent, format!("{:.2}", sent.unwrap_or_default())),
            Cell::text(requests.unwrap_or_default()),
        ]
    });
    Table {
        caption: format!("{}, {}: {}", load.name, load.unit, load.what),
        rows: rows.collect(),
        columns: HEADS.map(str::to_owned).to_vec(),
    }
}

fn markdown(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![line(table.columns.iter().map(String::as_str).collect())];
    lines.push(format!("|{}", "---|".repeat(table.columns.len())));
    for row in &table.rows {
        lines.push(line(row.iter().map(|cell| &*cell.text).collect()));
    }
    lines.join("\n")
}

fn page(tables: Vec<(&Load, Table)>) -> Page {
    let sections = tables.into_iter().map(|(load, table)| Section {
        id: load.name.to_owned(),
        title: load.name.to_owned(),
        blocks: vec![
            Block::Paragraph(format!("{}. Figures are in {}.", load.what, load.unit)),
            Block::Table(table),
        ],
    });
    Page {
        title: "weft-mount beside its peers".to_owned(),
        lead: "Runs take turns, each on a fresh mount; medians with the interval that holds the \
            true one with a probability of 0.95, or what so many runs allow."
            .to_owned(),
        sections: sections.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(peer: &'static str, round: u32, figure: Option<f64>) -> Run {
        Run {
            load: "list",
            peer,
            round,
            figure,
            is_cut: false,
            failure: None,
            asked_bytes: 0,
            counters: json!({"requests": {"ListObjectsV2": 3}, "sent_bytes": 10}),
            resident_bytes: 0,
        }
    }

    #[test]
    fn table_has_medians_and_ratios_round_by_round() {
        let figures = [(1.0, 2.0), (2.0, 8.0), (3.0, 6.0)];
        let runs: Vec<Run> = (0..3)
            .flat_map(|round| {
                let (ours, theirs) = figures[round as usize];
                [
                    run("weft", round, Some(ours)),
                    run("s3fs", round, Some(theirs)),
                ]
            })
            .collect();
        let text = markdown(&table(loads::named("list").unwrap(), &runs));
        assert!(text.contains("| weft | 2.000 | 1.000 to 3.000 | - | 3 | - | 3 ListObjectsV2 |"));
        assert!(text.contains("0.500 (0.250 to 0.500)"), "{text}");
    }
}

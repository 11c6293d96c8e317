// SPDX-License-Identifier: Apache-2.0 OR MIT
//! mdtest's text output, line by line.
//!
//! Called by report. Pure. The layouts are those that mdtest 4.0 prints, so that its parsers can
//! read them.

use crate::ior::text::entry;
use crate::mdtest::figures::{Row, Spread, Subject};
use crate::mdtest::finished::Finished;

/// The first lines.
pub fn head(version: &str, started: &str, words: &[String], tasks: usize, nodes: usize) -> String {
    let quoted: String = words.iter().map(|word| format!(" '{word}'")).collect();
    format!(
        "-- started at {started} --\n\nmdtest-{version} was launched with {tasks} total task(s) \
         on {nodes} node(s)\n\
         Command line used: weft bench mdtest{quoted}\n"
    )
}

/// What a test works on: `nodemap` has a 1 for each task on the first task's node.
pub fn place(path: &str, file_system: &str, nodemap: &str) -> String {
    format!(
        "{}{}Nodemap: {nodemap}\n",
        entry("Path", path),
        entry("FS", file_system)
    )
}

/// How much a test works on.
pub fn amount(finished: &Finished) -> String {
    let shape = finished.test.shape;
    let what = match (shape.folders, shape.files) {
        (true, false) => "directories",
        (false, true) => "files",
        _ => "files/directories",
    };
    format!(
        "{} tasks, {} {what}\n",
        finished.place.tasks, finished.items
    )
}

/// A phase as it ends (-v).
pub fn row(row: &Row) -> String {
    format!(
        "V-1:   {:<22}: {:14.3} sec, {:14.3} ops/sec\n",
        row.subject.name(),
        row.seconds,
        row.rate()
    )
}

/// The table at the end: rates, times or both.
pub fn summary(finished: &Finished) -> String {
    let iterations = finished.iterations();
    let mut text = String::new();
    let output = finished.test.output;
    if output.rates {
        text += &table("rate", iterations, finished, Row::rate);
    }
    if output.times {
        text += &table("time", iterations, finished, |row| row.seconds);
    }
    text
}

fn table(what: &str, iterations: u32, finished: &Finished, of: fn(&Row) -> f64) -> String {
    let mut text = format!(
        "\nSUMMARY {what}: (of {iterations} iterations)\n   \
         Operation                     Max            Min           Mean        Std Dev\n   \
         ---------                     ---            ---           ----        -------\n"
    );
    let shown = Subject::ALL
        .iter()
        .filter(|subject| subject.is_shown(&finished.test));
    for subject in shown {
        let Spread {
            max,
            min,
            mean,
            deviation,
        } = finished.spread(*subject, of);
        text += &format!(
            "   {:<22} {max:14.3} {min:14.3} {mean:14.3} {deviation:14.3}\n",
            subject.name()
        );
    }
    text
}

/// The last line.
pub fn tail(finished: &str) -> String {
    format!("-- finished at {finished} --\n")
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench mdtest --json`: one object when all tests are done. Called by report. mdtest has no
//! such output; the keys are ours.

use serde_json::{Value, json};

use crate::mdtest::figures::{Row, Subject};
use crate::mdtest::finished::Finished;

/// What all tests have in common: version, begin, command line, machine, end.
pub struct Frame<'a> {
    /// As in the text's first lines.
    pub version: &'a str,
    /// When the program began.
    pub began: &'a str,
    /// The command line.
    pub command: String,
    /// System and host.
    pub machine: &'a str,
    /// When it ended.
    pub finished: &'a str,
    /// Whether a task failed, so that phases are missing.
    pub has_failed: bool,
}

/// The whole output.
pub fn document(frame: &Frame<'_>, tests: &[Finished]) -> Value {
    json!({
        "version": frame.version,
        "began": frame.began,
        "command": frame.command,
        "machine": frame.machine,
        "complete": !frame.has_failed,
        "tests": tests.iter().map(one).collect::<Vec<_>>(),
        "finished": frame.finished,
    })
}

fn one(finished: &Finished) -> Value {
    let rows = finished.rows.iter().map(|(iteration, row)| {
        json!({
            "iteration": iteration,
            "operation": row.subject.name(),
            "count": row.count,
            "seconds": row.seconds,
            "ops_per_second": row.rate(),
        })
    });
    let is_measured = |subject: &&Subject| {
        finished
            .rows
            .iter()
            .any(|(_, row)| row.subject == **subject)
    };
    let summary = Subject::ALL.iter().filter(is_measured).map(|subject| {
        let rate = finished.spread(*subject, Row::rate);
        let time = finished.spread(*subject, |row| row.seconds);
        json!({
            "operation": subject.name(),
            "rate": {"max": rate.max, "min": rate.min, "mean": rate.mean, "stddev": rate.deviation},
            "seconds": {
                "max": time.max, "min": time.min, "mean": time.mean, "stddev": time.deviation
            },
        })
    });
    let test = &finished.test;
    json!({
        "tasks": finished.place.tasks,
        "nodes": finished.place.nodes,
        "items": finished.items,
        "paths": test.roots,
        "iterations": finished.iterations(),
        "branching": test.shape.branching,
        "depth": test.shape.depth,
        "unique_trees": test.sharing.own_tree,
        "stride": test.sharing.stride,
        "write_bytes": test.moves.write_bytes,
        "read_bytes": test.moves.read_bytes,
        "wrong_files": finished.wrong_files,
        "results": rows.collect::<Vec<_>>(),
        "summary": summary.collect::<Vec<_>>(),
    })
}

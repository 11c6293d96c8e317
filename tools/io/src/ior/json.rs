// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR's JSON output: one object when all tests are done. Called by report.

use serde_json::{Value, json};

use crate::ior::figures::{Access, Row};
use crate::ior::finished::{Finished, MIB};
use crate::ior::size;

/// What all tests have in common: version, begin, command line, machine, end.
pub struct Frame<'a> {
    /// As in the text's first line.
    pub version: &'a str,
    /// When the program began.
    pub began: &'a str,
    /// The command line.
    pub command: &'a str,
    /// System and host.
    pub machine: &'a str,
    /// When it ended.
    pub finished: &'a str,
}

/// The whole output.
pub fn document(frame: &Frame<'_>, tests: &[Finished]) -> Value {
    let summaries = tests.iter().enumerate().flat_map(|(number, test)| {
        test.accesses()
            .into_iter()
            .filter_map(move |access| summary(test, access, number))
    });
    json!({
        "Version": frame.version,
        "Began": frame.began,
        "Command line": frame.command,
        "Machine": frame.machine,
        "tests": (0..).zip(tests).map(|(number, test)| one(test, number)).collect::<Vec<_>>(),
        "summary": summaries.collect::<Vec<_>>(),
        "Finished": frame.finished,
    })
}

fn one(finished: &Finished, number: usize) -> Value {
    let test = &finished.test;
    let repetitions = finished
        .rows
        .iter()
        .map(|row| row.2)
        .max()
        .map_or(0, |last| last + 1);
    let rows = |repetition| {
        let own = finished.rows.iter().filter(move |row| row.2 == repetition);
        own.map(|(access, row, _)| result(finished, *access, row))
            .collect::<Vec<_>>()
    };
    let max = |access| {
        finished
            .summary(access)
            .map(|summary| summary.bandwidth.max)
    };
    json!({
        "TestID": number,
        "StartTime": finished.started,
        "Path": finished.path,
        "Parameters": {
            "testID": number,
            "refnum": test.output.reference,
            "api": "POSIX",
            "numTasks": finished.place.tasks,
            "nodes": finished.place.nodes,
            "tasksPerNode": finished.place.tasks_per_node,
            "repetitions": test.run.repetitions,
            "multiFile": test.files.per_repetition,
            "filePerProc": test.files.per_process,
            "reorderTasks": test.order.next_node,
            "taskPerNodeOffset": test.order.task_offset.max(1),
            "reorderTasksRandom": test.order.random_task,
            "reorderTasksRandomSeed": test.order.random_seed,
            "randomOffset": test.order.random_offset,
            "checkWrite": test.does.check_write,
            "checkRead": test.does.check_read,
            "keepFile": test.files.keep,
            "fsync": test.through.sync_at_end,
            "fsyncPerWrite": test.through.sync_each,
            "useO_DIRECT": test.through.direct,
            "segmentCount": test.sizes.segments,
            "blockSize": test.sizes.block_bytes,
            "transferSize": test.sizes.transfer_bytes,
            "deadlineForStonewalling": test.run.deadline_s,
        },
        "Options": {
            "api": "POSIX",
            "test filename": test.files.given,
            "access": test.files.access(),
            "segments": test.sizes.segments.to_string(),
            "tasks": finished.place.tasks.to_string(),
            "clients per node": finished.place.tasks_per_node.to_string(),
            "repetitions": test.run.repetitions.to_string(),
            "xfersize": size::describe(test.sizes.transfer_bytes),
            "blocksize": size::describe(test.sizes.block_bytes),
        },
        "Results": (0..repetitions).map(rows).collect::<Vec<_>>(),
        "max": {
            "writeMiB": max(Access::Write).map(|best| best / MIB),
            "writeMB": max(Access::Write).map(|best| best / 1e6),
            "readMiB": max(Access::Read).map(|best| best / MIB),
            "readMB": max(Access::Read).map(|best| best / 1e6),
        },
    })
}

fn result(finished: &Finished, access: Access, row: &Row) -> Value {
    json!({
        "access": access.name(),
        "bwMiB": row.bytes_per_s / MIB,
        "blockKiB": finished.test.sizes.block_bytes as f64 / 1024.0,
        "xferKiB": finished.test.sizes.transfer_bytes as f64 / 1024.0,
        "iops": row.transfers_per_s,
        "latency": row.latency_s,
        "openTime": row.open_s,
        "wrRdTime": row.move_s,
        "closeTime": row.close_s,
        "totalTime": row.total_s,
    })
}

fn summary(finished: &Finished, access: Access, number: usize) -> Option<Value> {
    let summary = finished.summary(access)?;
    let (bandwidth, rate, test) = (summary.bandwidth, summary.transfers, &finished.test);
    Some(json!({
        "operation": access.name(),
        "API": "POSIX",
        "TestID": number,
        "ReferenceNumber": test.output.reference,
        "segmentCount": test.sizes.segments,
        "blockSize": test.sizes.block_bytes,
        "transferSize": test.sizes.transfer_bytes,
        "numTasks": finished.place.tasks,
        "tasksPerNode": finished.place.tasks_per_node,
        "repetitions": test.run.repetitions,
        "filePerProc": test.files.per_process,
        "reorderTasks": test.order.next_node,
        "taskPerNodeOffset": test.order.task_offset.max(1),
        "reorderTasksRandom": test.order.random_task,
        "reorderTasksRandomSeed": test.order.random_seed,
        "bwMaxMIB": bandwidth.max / MIB,
        "bwMinMIB": bandwidth.min / MIB,
        "bwMeanMIB": bandwidth.mean / MIB,
        "bwStdMIB": bandwidth.deviation / MIB,
        "OPsMax": rate.max,
        "OPsMin": rate.min,
        "OPsMean": rate.mean,
        "OPsSD": rate.deviation,
        "MeanTime": summary.mean_s,
        "xsizeMiB": summary.moved_bytes / MIB,
    }))
}

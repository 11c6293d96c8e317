// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The request that submits a job to AWS Batch: the JSON of SubmitJob.
//!
//! Called by `export.rs`. Source: the API reference of AWS Batch, SubmitJob.

use clap::Args;
use serde_json::{Value, json};

use super::batch::NAMES;
use super::exported::{Exported, Notes};
use super::name::name_of;
use super::shape::Shape;
use super::source::Source;
use crate::fault::Fault;
use crate::file::JobFile;
use crate::job::{Array, When};

/// The words of `weft export batch-submit`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// The queue of Batch
    #[arg(long, value_name = "QUEUE")]
    pub job_queue: String,
    /// The job definition [default: the name that weft export batch gives it]
    #[arg(long, value_name = "NAME")]
    pub job_definition: Option<String>,
}

/// The most jobs that one may wait for: Batch's own limit.
const DEPENDENCIES_MOST: usize = 20;

/// The submission.
///
/// # Errors
/// An array of jobs of several nodes, and more dependencies than Batch takes.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let job = &file.job;
    let mut notes = Notes::of(file);
    let name = name_of(job, NAMES, &mut notes);
    if job.array.is_some() && Shape::of(job).nodes > 1 {
        let text = "Batch has no arrays of jobs of several nodes; submit each task by itself";
        return Err(file.fault("array", text));
    }
    let array = job
        .array
        .as_ref()
        .and_then(|array| array_of(array, &mut notes));
    let mut waits: Vec<Value> = Vec::new();
    for (index, dependency) in job.dependencies.iter().enumerate() {
        if dependency.when != When::Succeeded {
            let field = format!("dependencies[{index}].when");
            let text = "Batch can only wait for success (`when: succeeded`)";
            return Err(file.fault(&field, text));
        }
        waits.push(json!({ "jobId": dependency.job }));
    }
    if waits.len() > DEPENDENCIES_MOST {
        let text = format!(
            "{} dependencies are too many; Batch allows at most {DEPENDENCIES_MOST}",
            waits.len()
        );
        return Err(file.fault("dependencies", text));
    }
    let definition = options.job_definition.as_ref().unwrap_or(&name);
    notes.with_json(json!({
        "jobName": name,
        "jobQueue": options.job_queue,
        "jobDefinition": definition,
        "arrayProperties": array,
        "dependsOn": (!waits.is_empty()).then_some(waits),
    }))
}

/// Batch's arrays have 2 to 10000 tasks, and no bound on how many run together.
fn array_of(array: &Array, notes: &mut Notes<'_>) -> Option<Value> {
    if array.at_once.is_some() {
        let text = "Batch runs as many tasks together as the queue has room for";
        notes.add("array.at_once", text);
    }
    if array.size.get() < 2 {
        let text = "Batch has no array of one task; the job runs once, without a number";
        notes.add("array.size", text);
        return None;
    }
    Some(json!({ "size": array.size }))
}

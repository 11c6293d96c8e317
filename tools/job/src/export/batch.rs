// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job definition of AWS Batch: the JSON of RegisterJobDefinition.
//!
//! Called by `export.rs`; `convert/batch.rs` reads it back. Sources: the API reference of AWS
//! Batch, RegisterJobDefinition; the user guide of AWS Batch, "Elastic Fabric Adapter".

use clap::Args;
use serde_json::{Value, json};

use super::command_line::{Included, command_line};
use super::exported::{Exported, Notes, variables};
use super::mounting::Mounting;
use super::name::{Rules, name_of};
use super::shape::Shape;
use super::source::Source;
use crate::fault::Fault;
use crate::file::JobFile;
use crate::job::Job;
use crate::size::ShmSize;

/// The words of `weft export batch`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// The container image, which holds the program, its MPI and Weft
    #[arg(long)]
    pub image: String,
    /// For jobs of several nodes: the instance type of each
    #[arg(long, value_name = "TYPE")]
    pub instance_type: Option<String>,
    /// Processors of each node [default: the ranks on it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub vcpus: Option<u32>,
    /// Memory of each node, as 64g [default: 2g for each rank, and the size of /dev/shm]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ShmSize>,
    /// Give the containers the instance's EFA device
    #[arg(long)]
    pub efa: bool,
    #[command(flatten)]
    pub mounting: Mounting,
    /// For jobs of one node: the role with which the container uses AWS and its buckets
    #[arg(long, value_name = "ARN")]
    pub job_role: Option<String>,
}

/// Where the containers of a job of several nodes find the list of their hosts.
pub(crate) const HOSTFILE: &str = "/run/weft/hosts";

/// The rules of jobDefinitionName and jobName.
pub(super) const NAMES: Rules = Rules {
    has_capitals: true,
    most: 128,
};

/// The most attempts, and the shortest limit: what Batch itself takes.
const SECONDS_LEAST: u64 = 60;

/// Memory for a rank of which nothing is known. Chosen: what a core has on the general purpose
/// instances with the least.
const MIB_PER_RANK: u64 = 2048;

/// The definition.
///
/// # Errors
/// A word of the command that Batch would take for a parameter; options that do not fit the job.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let job = &file.job;
    let mut notes = Notes::of(file);
    let name = name_of(job, NAMES, &mut notes);
    let shape = Shape::of(job);
    let is_single = shape.nodes == 1;
    let container = container_of(file, options, shape, &mut notes)?;
    let retries = job
        .retries
        .map(|retries| json!({ "attempts": retries.get() + 1 }));
    let timeout = timeout_of(job, &mut notes);
    note_others(job, shape, &mut notes);
    let mut definition = json!({
        "jobDefinitionName": name,
        "type": if is_single { "container" } else { "multinode" },
        "retryStrategy": retries,
        "timeout": timeout,
    });
    if is_single {
        if options.instance_type.is_some() {
            return Err(Fault::new(
                "--instance-type is for jobs of several nodes; Batch chooses the instance of a \
                 job of one by its processors and memory",
            ));
        }
        definition["platformCapabilities"] = json!(["EC2"]);
        definition["containerProperties"] = container;
    } else {
        if options.job_role.is_some() {
            return Err(Fault::new(
                "--job-role is for jobs of one node: ranks on other nodes come through sshd, \
                 which has no such role; give the instances of the compute environment one",
            ));
        }
        let types = options.instance_type.as_ref().map(|one| json!([one]));
        definition["nodeProperties"] = json!({
            "numNodes": shape.nodes,
            "mainNode": 0,
            "nodeRangeProperties": [
                { "targetNodes": "0:", "instanceTypes": types, "container": container },
            ],
        });
    }
    notes.with_json(definition)
}

fn container_of(
    file: &JobFile,
    options: &Options,
    shape: Shape,
    notes: &mut Notes<'_>,
) -> Result<Value, Fault> {
    let job = &file.job;
    let is_single = shape.nodes == 1;
    // Ranks on other nodes have the variables of their own shell, and those that weft run sets.
    let has_mounts = options.mounting.is_wanted(file, notes)?;
    let included = Included {
        hostfile: (!is_single).then_some(HOSTFILE),
        has_variables: !is_single,
        has_mounts,
    };
    let words = command_line(job, included);
    if let Some(word) = words.iter().find(|word| word.contains("Ref::")) {
        let shown = crate::node::shortened(word);
        let text = format!("`{shown}` has Ref::, which Batch takes for a parameter; rename it");
        return Err(Fault::new(text).in_file(file.name()));
    }
    let shm_mib = job.shm_size.map(|size| in_mib(size, notes));
    let (cores, mib) = resources(options, shape, shm_mib.unwrap_or(0), notes);
    let own = job.environment.iter().filter(|_| is_single);
    let (reserved, own): (Vec<_>, Vec<_>) = own.partition(|(name, _)| is_reserved(name));
    for (name, _) in reserved {
        let text = format!("{name} is left out: Batch keeps names that begin with AWS_BATCH");
        notes.add("environment", text);
    }
    let own = own.into_iter();
    let efa = options
        .efa
        .then(|| json!([{ "hostPath": "/dev/infiniband/uverbs0" }]));
    let memlock = options
        .efa
        .then(|| json!([{ "name": "memlock", "softLimit": -1, "hardLimit": -1 }]));
    let linux = (shm_mib.is_some() || efa.is_some())
        .then(|| json!({ "sharedMemorySize": shm_mib, "devices": efa }));
    Ok(json!({
        "image": options.image,
        "command": words,
        "environment": variables(own.map(|(name, value)| (name.as_str(), value.clone()))),
        "resourceRequirements": [
            { "type": "VCPU", "value": cores.to_string() },
            { "type": "MEMORY", "value": mib.to_string() },
        ],
        "linuxParameters": linux,
        "ulimits": memlock,
        "privileged": has_mounts.then_some(true),
        "jobRoleArn": options.job_role,
    }))
}

/// Names that Batch sets itself, and refuses.
fn is_reserved(name: &str) -> bool {
    name.starts_with("AWS_BATCH")
}

fn in_mib(size: ShmSize, notes: &mut Notes<'_>) -> u64 {
    let mib = size.bytes().div_ceil(1 << 20);
    if mib << 20 != size.bytes() {
        notes.add(
            "shm_size",
            format!("Batch counts in MiB; {size} becomes {mib}m"),
        );
    }
    if size.is_best_effort {
        notes.add(
            "shm_size",
            "Batch has no `try:`; the size is required there",
        );
    }
    mib
}

/// Processors and MiB of each node; Batch requires both.
fn resources(options: &Options, shape: Shape, shm_mib: u64, notes: &mut Notes<'_>) -> (u32, u64) {
    let cores = options.vcpus.unwrap_or(shape.ranks_per_node);
    let mib = options.memory.map(|size| size.bytes().div_ceil(1 << 20));
    let mib = mib.unwrap_or_else(|| {
        let ranks = u64::from(shape.ranks_per_node);
        let mib = MIB_PER_RANK * ranks + shm_mib;
        let text =
            format!("{ranks} on a node: {mib} MiB of memory are asked for; change it by --memory");
        notes.add("ranks", text);
        mib
    });
    (cores, mib)
}

fn timeout_of(job: &Job, notes: &mut Notes<'_>) -> Option<Value> {
    let seconds = job.time_limit?.seconds();
    let whole = (seconds.ceil() as u64).max(SECONDS_LEAST);
    if whole as f64 != seconds {
        let text =
            format!("Batch takes whole seconds from {SECONDS_LEAST}; {seconds} becomes {whole}");
        notes.add("time_limit", text);
    }
    Some(json!({ "attemptDurationSeconds": whole }))
}

fn note_others(job: &Job, shape: Shape, notes: &mut Notes<'_>) {
    if !job.hosts.is_empty() {
        let text = format!(
            "Batch chooses the hosts; the job takes {} of them",
            shape.nodes
        );
        notes.add("hosts", text);
    }
    notes.add_present(&[
        (
            "array",
            job.array.is_some(),
            "this is said at submission: weft export batch-submit",
        ),
        (
            "dependencies",
            !job.dependencies.is_empty(),
            "this is said at submission: weft export batch-submit",
        ),
    ]);
    if shape.nodes > 1 {
        let text =
            format!("the containers must find their hosts in {HOSTFILE}: docs/exports.md says how");
        notes.add("nodes", text);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A configuration of AWS ParallelCluster 3: a cluster that has what the job needs.
//!
//! Called by `export.rs`; `convert/parallel_cluster.rs` reads it back. Source: the documentation of
//! ParallelCluster 3, "Cluster configuration file".

use clap::Args;
use serde_json::{Value, json};

use super::exported::{Exported, Notes};
use super::shape::Shape;
use super::source::Source;
use crate::fault::Fault;
use crate::file::JobFile;
use crate::job::{Job, Mount};

/// The words of `weft export parallelcluster`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// The instance type of the nodes
    #[arg(long, value_name = "TYPE")]
    pub instance_type: String,
    /// The subnet of the cluster
    #[arg(long, value_name = "SUBNET")]
    pub subnet: String,
    /// The instance type of the head node
    #[arg(long, value_name = "TYPE", default_value = "c5.large")]
    pub head_node: String,
    /// The operating system of all nodes
    #[arg(long, default_value = "alinux2023")]
    pub os: String,
    /// The region [default: that of the AWS command line]
    #[arg(long)]
    pub region: Option<String>,
    /// The key pair for ssh to the head node
    #[arg(long, value_name = "NAME")]
    pub key_name: Option<String>,
    /// Give the nodes EFA; the instance type must have it
    #[arg(long)]
    pub efa: bool,
    /// Where examples/parallelcluster/install-weft.sh was put: s3://... or https://...
    #[arg(long, value_name = "URL", requires = "archive")]
    pub install_script: Option<String>,
    /// Where a Weft in a tar file was put, for the install script
    #[arg(long, value_name = "URL", requires = "install_script")]
    pub archive: Option<String>,
}

/// The name of the queue.
const QUEUE: &str = "weft";

const AT_START: &str = "a cluster's configuration starts no program; run the job there with weft \
    run --spec, or submit it";

/// The configuration.
///
/// # Errors
/// None today; what the options say is the cluster's to judge.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let job = &file.job;
    let mut notes = Notes::of(file);
    let shape = Shape::of(job);
    let actions = actions_of(job, options, &mut notes);
    let mounts = &job.mounts;
    let access: Vec<Value> = mounts.iter().map(access_of).collect();
    let iam = (!access.is_empty()).then(|| json!({ "S3Access": access }));
    note_others(job, options.install_script.is_some(), &mut notes);
    let efa = options.efa.then(|| json!({ "Enabled": true }));
    let head_actions = options
        .install_script
        .as_ref()
        .map(|_| install(options, &[]));
    let resource = json!({
        "Name": "nodes",
        "InstanceType": options.instance_type,
        "MinCount": 0,
        "MaxCount": shape.nodes,
        // A rank on each core, as HPC codes want it.
        "DisableSimultaneousMultithreading": true,
        "Efa": efa,
    });
    let ssh = options
        .key_name
        .as_ref()
        .map(|name| json!({ "KeyName": name }));
    notes.with_yaml(vec![json!({
        "Region": options.region,
        "Image": { "Os": options.os },
        "HeadNode": {
            "InstanceType": options.head_node,
            "Networking": { "SubnetId": options.subnet },
            "Ssh": ssh,
            "CustomActions": head_actions,
            "Iam": iam.clone(),
        },
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmQueues": [{
                "Name": QUEUE,
                "Networking": {
                    "SubnetIds": [options.subnet],
                    // Alone it would be refused where the region has no room for the group.
                    "PlacementGroup": (shape.nodes > 1).then(|| json!({ "Enabled": true })),
                },
                "ComputeResources": [resource],
                "CustomActions": actions,
                "Iam": iam,
            }],
        },
    })])
}

/// What installs Weft on a node, sizes its /dev/shm, and prepares what jobs mount buckets on.
fn actions_of(job: &Job, options: &Options, notes: &mut Notes<'_>) -> Option<Value> {
    let size = job.shm_size;
    if options.install_script.is_none() {
        if size.is_some() {
            let text = "a node's /dev/shm has half its memory; --install-script sizes it";
            notes.add("shm_size", text);
        }
        return None;
    }
    let mut words = Vec::new();
    if let Some(size) = size {
        notes.add(
            "shm_size",
            "it is that of the node, shared by all jobs on it",
        );
        words = vec!["--shm-bytes".to_owned(), size.bytes().to_string()];
    }
    for mount in &job.mounts {
        words.extend(["--mount-folder".to_owned(), mount.target.clone()]);
    }
    Some(install(options, &words))
}

fn install(options: &Options, more: &[String]) -> Value {
    let mut words: Vec<String> = options.archive.iter().cloned().collect();
    words.extend(more.iter().cloned());
    let action = json!({ "Script": options.install_script, "Args": words });
    json!({ "OnNodeConfigured": { "Sequence": [action] } })
}

/// `s3://bucket/prefix` as a right to use it.
fn access_of(mount: &Mount) -> Value {
    let rest = mount.source.strip_prefix("s3://").unwrap_or(&mount.source);
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_matches('/');
    let key = (!prefix.is_empty()).then(|| format!("{prefix}/*"));
    json!({
        "BucketName": bucket,
        "KeyName": key,
        "EnableWriteAccess": !mount.read_only,
    })
}

fn note_others(job: &Job, has_script: bool, notes: &mut Notes<'_>) {
    notes.add("program", AT_START);
    for (index, _) in job.mounts.iter().enumerate() {
        let text = if has_script {
            "the nodes may use the bucket, and have the folder; the job mounts it while it runs"
        } else {
            "the nodes may use the bucket; the job mounts it while it runs, on a folder that must \
             be there: --install-script makes it"
        };
        notes.add(&format!("mounts[{index}]"), text);
    }
    notes.add_present(&[
        ("name", job.name.is_some(), AT_START),
        ("arguments", !job.arguments.is_empty(), AT_START),
        ("folder", job.folder.is_some(), AT_START),
        ("ranks", job.ranks.is_some(), AT_START),
        ("ranks_per_node", job.ranks_per_node.is_some(), AT_START),
        (
            "hosts",
            !job.hosts.is_empty(),
            "the cluster names its nodes",
        ),
        ("mpi", job.mpi.is_some(), AT_START),
        ("transport", job.transport.is_some(), AT_START),
        ("environment", !job.environment.is_empty(), AT_START),
        ("time_limit", job.time_limit.is_some(), AT_START),
        ("retries", job.retries.is_some(), AT_START),
        ("array", job.array.is_some(), AT_START),
        ("dependencies", !job.dependencies.is_empty(), AT_START),
    ]);
}

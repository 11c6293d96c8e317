// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configurations of AWS ParallelCluster: what a job on one of the cluster's queues may take.
//!
//! Called by `import.rs`. Source: the documentation of ParallelCluster 3, "Cluster configuration
//! file".

use super::object::{Known, Notes, Object};
use crate::fault::Fault;
use crate::imported::Imported;
use crate::job::{Job, Mount};
use crate::node::{Node, shortened};
use crate::places::Places;
use crate::whole::Whole;

const OF_CLUSTER: &str = "this is about the cluster, and has no meaning in a job file";
const OF_NETWORK: &str = "Weft takes the network that there is";
const OF_RANKS: &str = "`ranks_per_node` says how many ranks a node takes";

const CLUSTER: Known = Known {
    read: &["Scheduling"],
    left_out: &[
        ("Region", OF_CLUSTER),
        ("Image", OF_CLUSTER),
        ("HeadNode", OF_CLUSTER),
        ("LoginNodes", OF_CLUSTER),
        (
            "SharedStorage",
            "the cluster mounts these folders before a job begins",
        ),
        ("Monitoring", OF_CLUSTER),
        ("Tags", OF_CLUSTER),
        ("Iam", OF_CLUSTER),
        ("DirectoryService", OF_CLUSTER),
        ("DeploymentSettings", OF_CLUSTER),
        ("DevSettings", OF_CLUSTER),
        ("Imds", OF_CLUSTER),
        ("CustomS3Bucket", OF_CLUSTER),
        ("AdditionalResources", OF_CLUSTER),
        ("AdditionalPackages", OF_CLUSTER),
    ],
};

const SCHEDULING: Known = Known {
    read: &["Scheduler", "SlurmQueues", "AwsBatchQueues"],
    left_out: &[
        ("SlurmSettings", OF_CLUSTER),
        ("ScalingStrategy", OF_CLUSTER),
        ("AwsBatchSettings", OF_CLUSTER),
    ],
};

const QUEUE: Known = Known {
    read: &["Name", "ComputeResources", "Iam"],
    left_out: &[
        ("CapacityType", OF_CLUSTER),
        ("AllocationStrategy", OF_CLUSTER),
        ("CapacityReservationTarget", OF_CLUSTER),
        ("ComputeSettings", OF_CLUSTER),
        (
            "CustomActions",
            "the cluster runs these before a job begins",
        ),
        ("CustomSlurmSettings", OF_CLUSTER),
        ("HealthChecks", OF_CLUSTER),
        ("Image", OF_CLUSTER),
        (
            "JobExclusiveAllocation",
            "whether a node is shared is said when the job is submitted",
        ),
        ("Networking", OF_NETWORK),
        ("Tags", OF_CLUSTER),
    ],
};

const RESOURCE: Known = Known {
    read: &["Name", "MaxCount"],
    left_out: &[
        ("MinCount", OF_CLUSTER),
        ("InstanceType", OF_RANKS),
        ("Instances", OF_RANKS),
        ("DisableSimultaneousMultithreading", OF_CLUSTER),
        ("Efa", OF_NETWORK),
        ("Networking", OF_NETWORK),
        ("SpotPrice", OF_CLUSTER),
        ("CapacityReservationTarget", OF_CLUSTER),
        ("HealthChecks", OF_CLUSTER),
        ("CustomSlurmSettings", OF_CLUSTER),
        ("SchedulableMemory", OF_CLUSTER),
        ("StaticNodePriority", OF_CLUSTER),
        ("DynamicNodePriority", OF_CLUSTER),
        ("LaunchTemplateOverrides", OF_CLUSTER),
        ("Tags", OF_CLUSTER),
    ],
};

const IAM: Known = Known {
    read: &["S3Access"],
    left_out: &[
        ("AdditionalIamPolicies", OF_CLUSTER),
        ("InstanceRole", OF_CLUSTER),
        ("InstanceProfile", OF_CLUSTER),
    ],
};

const ACCESS: Known = Known {
    read: &["BucketName", "KeyName", "EnableWriteAccess"],
    left_out: &[],
};

/// The nodes of a compute resource that does not say `MaxCount`: ParallelCluster's own default.
const MAX_COUNT: u64 = 10;

/// Whether a file is such a configuration.
pub(crate) fn is_configuration(root: &Node) -> bool {
    let marks = ["Scheduling", "HeadNode"];
    root.get("version").is_none() && marks.iter().any(|mark| root.get(mark).is_some())
}

/// Reads a configuration, for a job of these words on a queue.
///
/// # Errors
/// What is no such configuration; no word, no queue of this name, or several and no name.
pub(crate) fn import(
    root: &Node,
    queue: Option<&str>,
    words: &[String],
) -> Result<Imported, Fault> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Fault::new(
            "a cluster's configuration names no program; write it last, as in: weft import \
             cluster.yaml -- ./code input.dat",
        ));
    };
    let notes = Notes::default();
    let cluster = Object::open(root, "", CLUSTER, &notes)?;
    let Some(scheduling) = cluster.object("Scheduling", SCHEDULING)? else {
        return Err(cluster.fault("`Scheduling` is missing, and with it the queues"));
    };
    match scheduling.text("Scheduler")? {
        None | Some("slurm") => {}
        Some(other) => {
            return Err(scheduling.fault(format!(
                "Scheduler is `{}`; only the queues of slurm can be read",
                shortened(other)
            )));
        }
    }
    let queue = queue_of(&scheduling, queue)?;
    let mut job = Job::of(program.clone());
    job.arguments = arguments.to_vec();
    let mut places = Places::default();
    let mut count = 0;
    for resource in queue.objects("ComputeResources", RESOURCE)? {
        let most = resource.whole::<1, 65_536>("MaxCount")?;
        count += most.map_or(MAX_COUNT, |most| most.get().into());
    }
    let nodes = u32::try_from(count).ok().and_then(Whole::new);
    job.nodes = Some(nodes.ok_or_else(|| {
        queue.fault(format!("the queue has {count} nodes; a job has 1 to 65536"))
    })?);
    places.add("nodes", queue.node.place);
    if let Some(iam) = queue.object("Iam", IAM)? {
        for access in iam.objects("S3Access", ACCESS)? {
            places.add(format!("mounts[{}]", job.mounts.len()), access.node.place);
            job.mounts.push(mount_of(&access)?);
        }
    }
    let notes = notes.in_order();
    Ok(Imported { job, notes, places })
}

/// The queue of this name, or the only one. The others are noted.
fn queue_of<'a>(scheduling: &Object<'a>, name: Option<&str>) -> Result<Object<'a>, Fault> {
    let nodes = scheduling.list("SlurmQueues")?;
    let name_of = |node: &Node| {
        let found = node.get("Name").map(Node::in_words);
        found.unwrap_or_default().trim_matches('`').to_owned()
    };
    let names: Vec<String> = nodes.iter().map(name_of).collect();
    let list = names.join(", ");
    let index = match name {
        Some(name) => names.iter().position(|one| one == name).ok_or_else(|| {
            let name = shortened(name);
            Fault::new(format!(
                "--queue {name}: there is no such queue; there are {list}"
            ))
        })?,
        None if nodes.len() == 1 => 0,
        None if nodes.is_empty() => return Err(scheduling.fault("`SlurmQueues` names no queue")),
        None => {
            let text = format!("there are several queues; choose one by --queue: {list}");
            return Err(scheduling.fault(text));
        }
    };
    for (other, node) in nodes
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
    {
        let field = format!("{}[{other}]", scheduling.field("SlurmQueues"));
        let text = format!("another queue than {}", names[index]);
        scheduling.notes.add(node.place, &field, text);
    }
    let path = format!("{}[{index}]", scheduling.field("SlurmQueues"));
    Object::open(&nodes[index], &path, QUEUE, scheduling.notes)
}

/// A bucket that the queue may use. `KeyName` may end in `*`.
fn mount_of(access: &Object<'_>) -> Result<Mount, Fault> {
    let Some(bucket) = access.text("BucketName")? else {
        return Err(access.fault("`BucketName` is missing"));
    };
    let key = access.text("KeyName")?.unwrap_or_default();
    let key = key.trim_end_matches('*').trim_matches('/');
    let between = if key.is_empty() { "" } else { "/" };
    Ok(Mount {
        source: format!("s3://{bucket}{between}{key}"),
        target: format!("/mnt/{bucket}{between}{key}"),
        read_only: !access.truth("EnableWriteAccess")?,
        shared_writes: false,
    })
}

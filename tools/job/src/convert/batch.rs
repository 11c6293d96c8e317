// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Job definitions of AWS Batch: the JSON of RegisterJobDefinition.
//!
//! Called by `file.rs` and `import.rs`. Source: the API reference of AWS Batch,
//! RegisterJobDefinition.

use std::collections::BTreeMap;

use super::container::{self, CONTAINER, OF_AWS, OF_FOLDERS, OF_IMAGE};
use super::object::{Known, Notes, Object, text_of};
use crate::fault::Fault;
use crate::imported::Imported;
use crate::node::{Node, shortened};
use crate::places::Places;
use crate::time::{SECONDS_MOST, TimeLimit};
use crate::whole::Whole;

const OF_QUEUE: &str = "this is for the queues of Batch, and has no meaning in a job file";
const OF_HOSTS: &str = "the job runs on hosts that you name";
const OF_TAGS: &str = "tags are for AWS, and have no meaning in a job file";

const DEFINITION: Known = Known {
    read: &[
        "jobDefinitionName",
        "type",
        "parameters",
        "containerProperties",
        "ecsProperties",
        "nodeProperties",
        "retryStrategy",
        "timeout",
        "eksProperties",
    ],
    left_out: &[
        ("schedulingPriority", OF_QUEUE),
        ("propagateTags", OF_TAGS),
        ("tags", OF_TAGS),
        ("platformCapabilities", OF_HOSTS),
        ("consumableResourceProperties", OF_QUEUE),
        ("resourceRetentionPolicy", OF_QUEUE),
    ],
};

const RETRY: Known = Known {
    read: &["attempts"],
    left_out: &[(
        "evaluateOnExit",
        "a job is run again after every failure of its program",
    )],
};

const TIMEOUT: Known = Known {
    read: &["attemptDurationSeconds"],
    left_out: &[],
};

const NODES: Known = Known {
    read: &["numNodes", "mainNode", "nodeRangeProperties"],
    left_out: &[],
};

const RANGE: Known = Known {
    read: &["targetNodes", "container", "ecsProperties", "eksProperties"],
    left_out: &[
        ("instanceTypes", OF_HOSTS),
        ("consumableResourceProperties", OF_QUEUE),
    ],
};

const ECS: Known = Known {
    read: &["taskProperties"],
    left_out: &[],
};

const TASK: Known = Known {
    read: &["containers"],
    left_out: &[
        ("ephemeralStorage", OF_FOLDERS),
        ("executionRoleArn", OF_AWS),
        ("taskRoleArn", OF_AWS),
        ("platformVersion", OF_AWS),
        ("networkMode", "the job uses the network of its hosts"),
        ("ipcMode", "the ranks of a host share its memory"),
        ("pidMode", "the ranks of a host see each other"),
        ("networkConfiguration", OF_AWS),
        ("runtimePlatform", OF_IMAGE),
        ("volumes", OF_FOLDERS),
        ("enableExecuteCommand", OF_AWS),
    ],
};

/// The most nodes of a job file.
const NODES_MOST: u32 = 65_536;

/// Whether a file is such a definition, and no job file.
pub(crate) fn is_definition(root: &Node) -> bool {
    let marks = [
        "jobDefinitionName",
        "containerProperties",
        "nodeProperties",
        "ecsProperties",
    ];
    root.get("version").is_none() && marks.iter().any(|mark| root.get(mark).is_some())
}

/// Reads a definition; `given` are parameters that replace those of the file.
///
/// # Errors
/// What Batch would refuse as far as it matters here, and what a job file cannot say.
pub(crate) fn import(root: &Node, given: &[(String, String)]) -> Result<Imported, Fault> {
    let notes = Notes::default();
    let definition = Object::open(root, "", DEFINITION, &notes)?;
    let mut places = Places::default();
    let nodes = definition.object("nodeProperties", NODES)?;
    let container = match &nodes {
        Some(nodes) => container_of_main_node(nodes)?,
        None => container_in(&definition, "containerProperties")?,
    };
    check_type(&definition, nodes.is_some())?;
    let mut parameters = parameters_of(&definition)?;
    for (name, value) in given {
        if !container::names(container.list("command")?, name) {
            return Err(Fault::new(format!(
                "--parameter {}: there is no Ref::{0} in the command",
                shortened(name)
            )));
        }
        parameters.insert(name.clone(), value.clone());
    }
    let mut job = container::job_of(&container, &parameters, &mut places)?;
    job.name = definition.text("jobDefinitionName")?.map(str::to_owned);
    note_place(&definition, "jobDefinitionName", "name", &mut places);
    if let Some(nodes) = &nodes {
        job.nodes = nodes.whole("numNodes")?;
        note_place(nodes, "numNodes", "nodes", &mut places);
    }
    if let Some(retry) = definition.object("retryStrategy", RETRY)? {
        let attempts = retry.whole::<1, 10>("attempts")?.map(Whole::get);
        let again = attempts.filter(|&attempts| attempts > 1);
        job.retries = again.and_then(|attempts| Whole::new(attempts - 1));
        note_place(&retry, "attempts", "retries", &mut places);
    }
    if let Some(timeout) = definition.object("timeout", TIMEOUT)? {
        // Batch refuses less than a minute.
        let seconds = timeout.whole::<60, SECONDS_MOST>("attemptDurationSeconds")?;
        job.time_limit = seconds.and_then(|seconds| TimeLimit::of_seconds(seconds.get().into()));
        note_place(
            &timeout,
            "attemptDurationSeconds",
            "time_limit",
            &mut places,
        );
    }
    let notes = notes.in_order();
    Ok(Imported { job, notes, places })
}

fn note_place(object: &Object<'_>, name: &str, field: &str, places: &mut Places) {
    if let Some(node) = object.get(name) {
        places.add(field, node.place);
    }
}

fn check_type(definition: &Object<'_>, has_nodes: bool) -> Result<(), Fault> {
    let wanted = if has_nodes { "multinode" } else { "container" };
    match definition.text("type")? {
        None => Ok(()),
        Some(kind) if kind == wanted => Ok(()),
        Some(kind) => Err(definition.fault(format!(
            "type is `{}`, and the definition is one of type {wanted}; make them agree",
            shortened(kind)
        ))),
    }
}

fn parameters_of(definition: &Object<'_>) -> Result<BTreeMap<String, String>, Fault> {
    let Some(node) = definition.get("parameters") else {
        return Ok(BTreeMap::new());
    };
    let Some(entries) = node.entries() else {
        return Err(Fault::new("parameters must be a map of names and values").at(node.place));
    };
    let one = |entry: &crate::node::Entry| {
        let field = format!("parameters.{}", shortened(&entry.name));
        let value = text_of(&entry.node, &field)?;
        Ok((entry.name.clone(), value.to_owned()))
    };
    entries.iter().map(one).collect()
}

/// The container behind one of the two names under which it may stand.
fn container_in<'a>(object: &Object<'a>, plain: &str) -> Result<Object<'a>, Fault> {
    if object.get("eksProperties").is_some() {
        return Err(object.fault(
            "eksProperties describe a pod of Kubernetes, which is not read; describe the container \
             in containerProperties",
        ));
    }
    if let Some(container) = object.object(plain, CONTAINER)? {
        return Ok(container);
    }
    let Some(ecs) = object.object("ecsProperties", ECS)? else {
        let text = format!("there is no container; describe one in `{plain}`");
        return Err(object.fault(text));
    };
    let mut found = Vec::new();
    for task in ecs.objects("taskProperties", TASK)? {
        found.extend(task.objects("containers", CONTAINER)?);
    }
    match (found.pop(), found.len()) {
        (Some(container), 0) => Ok(container),
        (_, others) => Err(ecs.fault(format!(
            "there are {} containers; a job has one program, so it takes one container",
            if others == 0 { 0 } else { others + 1 }
        ))),
    }
}

/// The container of the main node; what the others run is noted.
fn container_of_main_node<'a>(nodes: &Object<'a>) -> Result<Object<'a>, Fault> {
    let count = nodes.whole::<1, NODES_MOST>("numNodes")?;
    let main = nodes.whole::<0, NODES_MOST>("mainNode")?;
    let (Some(count), Some(main)) = (count.map(Whole::get), main.map(Whole::get)) else {
        return Err(nodes.fault("`numNodes` or `mainNode` is missing; Batch requires both"));
    };
    if main >= count {
        let text = format!("mainNode {main} is not among {count} nodes, numbered from 0");
        return Err(nodes.fault(text));
    }
    let mut found = None;
    for range in nodes.objects("nodeRangeProperties", RANGE)? {
        let target = range.text("targetNodes")?.unwrap_or_default();
        let (first, last) = bounds(target, count).ok_or_else(|| {
            range.fault(format!(
                "targetNodes: `{}` is no range of {count} nodes, as 0:{}",
                shortened(target),
                count - 1
            ))
        })?;
        let is_main = (first..=last).contains(&main);
        if is_main && found.is_none() {
            found = Some(container_in(&range, "container")?);
        } else {
            let text = "only the container of the main node is taken, for all nodes";
            range.notes.add(range.node.place, &range.path, text);
        }
    }
    found.ok_or_else(|| {
        nodes.fault(format!(
            "no range of nodeRangeProperties holds mainNode {main}"
        ))
    })
}

/// `0:3`, `0:`, `:3` or `2`: the first and the last node.
fn bounds(text: &str, count: u32) -> Option<(u32, u32)> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str, none: u32| match text {
        "" => Some(none),
        text => text.parse().ok(),
    };
    let (first, last) = (number(first, 0)?, number(last, count - 1)?);
    (!text.is_empty() && first <= last && last < count).then_some((first, last))
}

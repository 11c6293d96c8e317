// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A container of AWS Batch: its command, its variables, its shared memory.
//!
//! Called by `batch.rs`. Sources: the API reference of AWS Batch, ContainerProperties,
//! TaskContainerProperties, LinuxParameters, ResourceRequirement.

use std::collections::BTreeMap;

use super::launcher;
use super::object::{Known, Object, text_of};
use crate::fault::Fault;
use crate::job::Job;
use crate::node::{Node, Place, shortened};
use crate::places::Places;
use crate::size::{MIB_MOST, ShmSize};

pub(crate) const OF_IMAGE: &str = "a job file starts a program, and no container image";
pub(crate) const OF_AWS: &str = "this is about AWS, and has no meaning in a job file";
pub(crate) const OF_FOLDERS: &str = "the program sees the folders of its host";
const OF_OUTPUT: &str = "the output goes where `weft run` writes it";
const OF_CONTAINER: &str = "this is about the container; the program runs without one";

/// The fields of a container, whether of ECS tasks or not.
pub(crate) const CONTAINER: Known = Known {
    read: &[
        "command",
        "environment",
        "linuxParameters",
        "resourceRequirements",
        "vcpus",
        "memory",
    ],
    left_out: &[
        ("image", OF_IMAGE),
        ("name", OF_CONTAINER),
        ("repositoryCredentials", OF_IMAGE),
        ("runtimePlatform", OF_IMAGE),
        ("jobRoleArn", OF_AWS),
        ("executionRoleArn", OF_AWS),
        ("instanceType", OF_AWS),
        (
            "secrets",
            "a job file holds no secrets; set these variables where the job starts",
        ),
        ("logConfiguration", OF_OUTPUT),
        ("firelensConfiguration", OF_OUTPUT),
        ("networkConfiguration", OF_AWS),
        ("fargatePlatformConfiguration", OF_AWS),
        ("ephemeralStorage", OF_AWS),
        ("enableExecuteCommand", OF_AWS),
        ("mountPoints", OF_FOLDERS),
        ("volumes", OF_FOLDERS),
        ("readonlyRootFilesystem", OF_CONTAINER),
        ("privileged", OF_CONTAINER),
        ("user", "the program runs as who starts it"),
        (
            "ulimits",
            "limits are those of the shell that starts the job",
        ),
        ("essential", OF_CONTAINER),
        ("startTimeout", OF_CONTAINER),
        ("stopTimeout", OF_CONTAINER),
        ("dependsOn", OF_CONTAINER),
    ],
};

const LINUX: Known = Known {
    read: &["sharedMemorySize", "tmpfs"],
    left_out: &[
        ("devices", "the program sees the devices of its host"),
        ("initProcessEnabled", OF_CONTAINER),
        ("maxSwap", OF_CONTAINER),
        ("swappiness", OF_CONTAINER),
    ],
};

const TMPFS: Known = Known {
    read: &["containerPath", "size"],
    left_out: &[(
        "mountOptions",
        "a sized /dev/shm has the options of any other",
    )],
};

const VARIABLE: Known = Known {
    read: &["name", "value"],
    left_out: &[],
};

const RESOURCE: Known = Known {
    read: &["type", "value"],
    left_out: &[],
};

/// The job of a container, and where its fields stand.
pub(crate) fn job_of(
    container: &Object<'_>,
    parameters: &BTreeMap<String, String>,
    places: &mut Places,
) -> Result<Job, Fault> {
    let Some(command) = container.get("command") else {
        return Err(container.fault(
            "`command` is missing, and what the image starts is not known here; add a `command`",
        ));
    };
    let mut words = Vec::new();
    for (index, node) in container.list("command")?.iter().enumerate() {
        let field = format!("{}[{index}]", container.field("command"));
        let place = |text| Fault::new(text).at(node.place).within(&field);
        words.push(with_parameters(text_of(node, &field)?, parameters).map_err(place)?);
    }
    let place = |fault: Fault| fault.at(command.place).within(&container.field("command"));
    let mut job = launcher::job_of(words).map_err(place)?;
    for field in ["program", "arguments", "ranks", "ranks_per_node", "folder"] {
        places.add(field, command.place);
    }
    add_variables(&mut job, container, places)?;
    if let Some((size, place)) = shm_size(container)? {
        job.shm_size = Some(size);
        places.add("shm_size", place);
    }
    note_resources(container)?;
    Ok(job)
}

/// The variables of the container; those of a launcher in the command win.
fn add_variables(job: &mut Job, container: &Object<'_>, places: &mut Places) -> Result<(), Fault> {
    for variable in container.objects("environment", VARIABLE)? {
        let Some(name) = variable.text("name")? else {
            return Err(variable.fault("`name` is missing; a variable has a name"));
        };
        let value = variable.text("value")?.unwrap_or_default();
        let own = job.environment.entry(name.to_owned());
        own.or_insert_with(|| value.to_owned());
    }
    if let Some(node) = container.get("environment") {
        places.add("environment", node.place);
    }
    Ok(())
}

/// The size of /dev/shm, in MiB in Batch, from either of two fields.
fn shm_size(container: &Object<'_>) -> Result<Option<(ShmSize, Place)>, Fault> {
    let Some(linux) = container.object("linuxParameters", LINUX)? else {
        return Ok(None);
    };
    let mut found = size_in(&linux, "sharedMemorySize")?;
    for tmpfs in linux.objects("tmpfs", TMPFS)? {
        let target = tmpfs.text("containerPath")?.unwrap_or_default();
        if target.trim_end_matches('/') != "/dev/shm" {
            let text = format!("only a tmpfs at /dev/shm has a meaning here, not {target:?}");
            tmpfs.notes.add(tmpfs.node.place, &tmpfs.path, text);
            continue;
        }
        let size = size_in(&tmpfs, "size")?;
        match (found, size) {
            (Some((one, _)), Some((other, _))) if one != other => {
                return Err(tmpfs.fault(format!(
                    "/dev/shm is {other} here and {one} in sharedMemorySize; make them agree"
                )));
            }
            _ => found = found.or(size),
        }
    }
    Ok(found)
}

fn size_in(object: &Object<'_>, name: &str) -> Result<Option<(ShmSize, Place)>, Fault> {
    let mib = object.whole::<1, MIB_MOST>(name)?;
    let size = mib.and_then(|mib| ShmSize::of_mib(mib.get().into()));
    let place = object.get(name).map(|node| node.place);
    Ok(size.zip(place))
}

/// Cores and memory: a job file says how many ranks, and they take what there is.
fn note_resources(container: &Object<'_>) -> Result<(), Fault> {
    let note = |node: &Node, field: &str, kind: &str| {
        let text = match kind {
            "VCPU" => "ranks take the cores that there are; `ranks_per_node` says how many ranks",
            "GPU" => "the program sees the GPUs of its host",
            _ => "the program takes the memory that it needs",
        };
        container.notes.add(node.place, field, text);
    };
    for (name, kind) in [("vcpus", "VCPU"), ("memory", "MEMORY")] {
        if let Some(node) = container.get(name) {
            note(node, &container.field(name), kind);
        }
    }
    for resource in container.objects("resourceRequirements", RESOURCE)? {
        let kind = resource.text("type")?.unwrap_or_default();
        if !["VCPU", "GPU", "MEMORY"].contains(&kind) {
            let text = format!(
                "type: `{}` is no resource of Batch; it has VCPU, MEMORY and GPU",
                shortened(kind)
            );
            return Err(resource.fault(text));
        }
        note(resource.node, &format!("{} ({kind})", resource.path), kind);
    }
    Ok(())
}

/// The next parameter that a text names: what stands before it, its name, and what follows.
fn next_parameter(text: &str) -> Option<(&str, &str, &str)> {
    let (before, behind) = text.split_once("Ref::")?;
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == '-';
    let length = behind.find(|one| !is_name(one)).unwrap_or(behind.len());
    let (name, after) = behind.split_at(length);
    Some((before, name, after))
}

/// A word of the command with the values of its parameters.
fn with_parameters(word: &str, parameters: &BTreeMap<String, String>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = word;
    while let Some((before, name, after)) = next_parameter(rest) {
        let value = parameters.get(name).ok_or_else(|| {
            let name = shortened(name);
            format!(
                "Ref::{name} has no value in `parameters`; add one there, or give it: weft import \
                 --parameter {name}=VALUE"
            )
        })?;
        whole.push_str(before);
        whole.push_str(value);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

/// Whether a command names a parameter.
pub(crate) fn names(command: &[Node], parameter: &str) -> bool {
    let names_it = |text: &str| {
        let mut parameters =
            std::iter::successors(next_parameter(text), |one| next_parameter(one.2));
        parameters.any(|(_, name, _)| name == parameter)
    };
    let texts = command.iter().filter_map(|node| text_of(node, "").ok());
    texts.into_iter().any(names_it)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An MPIJob v2beta1 of Kubeflow's MPI Operator.
//!
//! Called by `export.rs`. Source: kubeflow/mpi-operator, pkg/apis/kubeflow/v2beta1/types.go.

use serde_json::{Value, json};

use super::exported::{Exported, Notes};
use super::name::name_of;
use super::pods::{self, Options};
use super::shape::Shape;
use crate::fault::Fault;
use crate::file::JobFile;

/// The MPIJob: workers that run sshd, and a launcher that runs `weft run`.
///
/// # Errors
/// Buckets of which it is not said what to do; when it is longer than a file may be.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let job = &file.job;
    let mut notes = Notes::of(file);
    let name = name_of(job, pods::NAMES, &mut notes);
    let shape = Shape::of(job);
    let has_mounts = options.mounting.is_wanted(file, &mut notes)?;
    let deadline = pods::deadline(job, &mut notes);
    pods::note_others(job, &mut notes);
    let (shm_mounts, shm_volumes) = pods::shm(job).unzip();
    let launcher = json!({
        "containers": [{
            "name": "launcher",
            "image": options.image,
            "command": pods::command(job, has_mounts),
        }],
        "serviceAccountName": options.service_account,
    });
    let worker = json!({
        "containers": [{
            "name": "worker",
            "image": options.image,
            "env": pods::environment(job),
            "resources": pods::resources(options),
            "volumeMounts": shm_mounts,
            "securityContext": pods::security(has_mounts),
        }],
        "serviceAccountName": options.service_account,
        "volumes": shm_volumes,
    });
    notes.with_yaml(vec![json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": { "name": name },
        "spec": {
            "slotsPerWorker": shape.ranks_per_node,
            "mpiImplementation": pods::implementation(job),
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": job.retries.map_or(0, |retries| retries.get()),
                "activeDeadlineSeconds": deadline,
            },
            "mpiReplicaSpecs": {
                "Launcher": replica(1, launcher),
                "Worker": replica(shape.nodes, worker),
            },
        },
    })])
}

fn replica(count: u32, pod: Value) -> Value {
    json!({ "replicas": count, "restartPolicy": "Never", "template": { "spec": pod } })
}

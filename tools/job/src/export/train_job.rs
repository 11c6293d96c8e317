// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TrainJob of Kubeflow Trainer 2, with the TrainingRuntime that it needs. The runtime says that
//! MPI starts the job, and gives the pods their /dev/shm.
//!
//! Called by `export.rs`. Source: kubeflow/trainer, pkg/apis/trainer/v1alpha1, and its runtimes for
//! MPI in manifests/base/runtimes.

use serde_json::{Value, json};

use super::exported::{Exported, Notes};
use super::name::name_of;
use super::pods::{self, Options};
use super::shape::Shape;
use crate::fault::Fault;
use crate::file::JobFile;

/// By this label the Trainer knows which of the jobs runs the command.
const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// The runtime and the job.
///
/// # Errors
/// Buckets of which it is not said what to do; when they are longer than a file may be.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let job = &file.job;
    let mut notes = Notes::of(file);
    let name = name_of(job, pods::NAMES, &mut notes);
    let shape = Shape::of(job);
    let has_mounts = options.mounting.is_wanted(file, &mut notes)?;
    let deadline = pods::deadline(job, &mut notes);
    pods::note_others(job, &mut notes);
    let retries = job.retries.map_or(0, |retries| retries.get());
    let train_job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": { "name": name },
        "spec": {
            "runtimeRef": { "kind": "TrainingRuntime", "name": name },
            "activeDeadlineSeconds": deadline,
            "trainer": {
                "image": options.image,
                "command": pods::command(job, has_mounts),
                "numNodes": shape.nodes,
                "numProcPerNode": shape.ranks_per_node,
            },
        },
    });
    let mpi = json!({
        "mpiImplementation": pods::implementation(job),
        "numProcPerNode": shape.ranks_per_node,
        "runLauncherAsNode": false,
        "sshAuthMountPath": "/root/.ssh",
    });
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": { "name": name },
        "spec": {
            "mlPolicy": { "numNodes": shape.nodes, "mpi": mpi },
            "template": { "spec": {
                "network": { "publishNotReadyAddresses": true },
                "failurePolicy": { "maxRestarts": retries },
                "successPolicy": { "operator": "All", "targetReplicatedJobs": ["launcher"] },
                "replicatedJobs": [node(file, options, has_mounts), launcher(options)],
            } },
        },
    });
    notes.with_yaml(vec![runtime, train_job])
}

/// The pods in which the ranks run; sshd starts them.
fn node(file: &JobFile, options: &Options, has_mounts: bool) -> Value {
    let (shm_mounts, shm_volumes) = pods::shm(&file.job).unzip();
    let container = json!({
        "name": "node",
        "image": options.image,
        "command": ["/usr/sbin/sshd", "-De"],
        "env": pods::environment(&file.job),
        "resources": pods::resources(options),
        "volumeMounts": shm_mounts,
        "securityContext": pods::security(has_mounts),
        "readinessProbe": { "tcpSocket": { "port": 22 }, "initialDelaySeconds": 1 },
    });
    let pod = json!({
        "containers": [container],
        "volumes": shm_volumes,
        "serviceAccountName": options.service_account,
    });
    json!({
        "name": "node",
        "template": { "spec": { "backoffLimit": 0, "template": { "spec": pod } } },
    })
}

/// The pod that runs `weft run`, once the others are ready; the Trainer puts the command into its
/// container `node`.
fn launcher(options: &Options) -> Value {
    let pod = json!({
        "containers": [{ "name": "node", "image": options.image }],
        "serviceAccountName": options.service_account,
    });
    json!({
        "name": "launcher",
        "dependsOn": [{ "name": "node", "status": "Ready" }],
        "template": {
            "metadata": { "labels": { STEP: "trainer" } },
            "spec": { "backoffLimit": 0, "template": { "spec": pod } },
        },
    })
}

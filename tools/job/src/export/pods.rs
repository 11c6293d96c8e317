// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The common part of both Kubeflow targets: the options, the pods' containers and their /dev/shm.
//!
//! Called by `mpi_job.rs` and `train_job.rs`. Sources: the API reference of Kubernetes, PodSpec;
//! its documentation, "Volumes", emptyDir, and "Define Dependent Environment Variables" for `$`.

use clap::Args;
use serde_json::{Value, json};

use super::command_line::{Included, command_line};
use super::exported::{Notes, variables};
use super::mounting::Mounting;
use super::name::Rules;
use super::source::Source;
use crate::job::Job;
use crate::size::ShmSize;

/// The words of `weft export trainjob` and `weft export mpijob`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// The container image, which holds the program, its MPI, Weft and sshd
    #[arg(long)]
    pub image: String,
    /// Processors of each pod [default: none is asked for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cpus: Option<u32>,
    /// Memory of each pod, as 64g; what is in /dev/shm counts [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ShmSize>,
    #[command(flatten)]
    pub mounting: Mounting,
    /// The service account of the pods; it needs the right to use the job's buckets
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,
}

/// Names of jobs: a pod's name has some more letters, and 63 at most. Chosen.
pub(super) const NAMES: Rules = Rules {
    has_capitals: false,
    most: 40,
};

/// Where both operators put the list of hosts (constants MPIHostfileDir and MPIHostfileName of
/// kubeflow/trainer; `configMountPath` of kubeflow/mpi-operator).
const HOSTFILE: &str = "/etc/mpi/hostfile";

/// The `weft run` of the launcher's pod.
pub(super) fn command(job: &Job, has_mounts: bool) -> Vec<String> {
    let included = Included {
        hostfile: Some(HOSTFILE),
        has_variables: true,
        has_mounts,
    };
    command_line(job, included)
        .iter()
        .map(|word| escaped(word))
        .collect()
}

/// Kubernetes takes `$(NAME)` for a variable, and `$$` for `$`.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// The same variables for the processes of the image itself.
pub(super) fn environment(job: &Job) -> Value {
    let pairs = job.environment.iter();
    variables(pairs.map(|(name, value)| (name.as_str(), escaped(value))))
}

/// Which MPI's form the operator gives its list of hosts; weft run reads all of them.
pub(super) fn implementation(job: &Job) -> &'static str {
    match job.mpi.as_deref() {
        Some("mpich" | "debian-mpich") => "MPICH",
        Some("intel") => "Intel",
        _ => "OpenMPI",
    }
}

/// What a pod asks for.
pub(super) fn resources(options: &Options) -> Option<Value> {
    let asked = json!({
        "cpu": options.cpus.map(|cpus| cpus.to_string()),
        "memory": options.memory.map(quantity),
    });
    let is_some = options.cpus.is_some() || options.memory.is_some();
    is_some.then(|| json!({ "requests": asked.clone(), "limits": asked }))
}

/// A container's /dev/shm of the job's size, and the volume behind it.
pub(super) fn shm(job: &Job) -> Option<(Value, Value)> {
    let size = job.shm_size?;
    Some((
        json!([{ "name": "shm", "mountPath": "/dev/shm" }]),
        json!([{ "name": "shm", "emptyDir": { "medium": "Memory", "sizeLimit": quantity(size) } }]),
    ))
}

/// What a container may do that mounts buckets.
pub(super) fn security(has_mounts: bool) -> Option<Value> {
    has_mounts.then(|| json!({ "privileged": true }))
}

/// As Kubernetes writes it: `4Gi`.
fn quantity(size: ShmSize) -> String {
    let text = size.to_string();
    text.trim_start_matches("try:").to_ascii_uppercase() + "i"
}

/// Whole seconds, at least 1.
pub(super) fn deadline(job: &Job, notes: &mut Notes<'_>) -> Option<u64> {
    let seconds = job.time_limit?.seconds();
    let whole = seconds.ceil() as u64;
    if whole as f64 != seconds {
        let text = format!("Kubernetes takes whole seconds; {seconds} becomes {whole}");
        notes.add("time_limit", text);
    }
    Some(whole)
}

/// The fields that Kubeflow has no place for.
pub(super) fn note_others(job: &Job, notes: &mut Notes<'_>) {
    let is_best_effort = job.shm_size.is_some_and(|size| size.is_best_effort);
    let no_size = job.shm_size.is_none();
    notes.add_present(&[
        (
            "shm_size",
            is_best_effort,
            "Kubernetes has no `try:`; the size is a limit there",
        ),
        (
            "shm_size",
            no_size,
            "none is given; /dev/shm of the pods has 64 MiB, which is little for other transports \
             than weft",
        ),
        (
            "hosts",
            !job.hosts.is_empty(),
            "Kubernetes chooses the nodes",
        ),
        (
            "array",
            job.array.is_some(),
            "Kubeflow has no arrays; make a job for each task",
        ),
        (
            "dependencies",
            !job.dependencies.is_empty(),
            "Kubeflow waits for no other jobs; apply this one when they have ended",
        ),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_quantities_of_kubernetes() {
        for (size, written) in [
            ("4g", "4Gi"),
            ("try:64m", "64Mi"),
            ("1k", "1Ki"),
            ("2t", "2Ti"),
        ] {
            assert_eq!(quantity(size.parse().unwrap()), written);
        }
        assert_eq!(escaped("a$(B)$$"), "a$$(B)$$$$");
    }
}

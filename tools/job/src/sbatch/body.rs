// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of a script: the record, the environment, the key, the start of the ranks, the next
//! attempt.

use std::ffi::{OsStr, OsString};

use crate::job::Job;
use crate::sbatch::directives;
use crate::sbatch::script::{KEY, Script, Start};
use crate::shell::quote_as_text;

/// How the names of variables begin that `weft exec` would change: they are given to it by --env.
const VARIABLES_OF_MPIS: [&str; 8] = [
    "FI_", "OMPI_", "PMIX_", "PRTE_", "I_MPI_", "MPIR_", "MPICH_", "LD_",
];

/// Slurm's count of the job's tasks.
const TASKS: &str = "\"$SLURM_NTASKS\"";

/// When the job began and how it ended: `began`, `ended` and `exit_code` of docs/slurm.md. A folder
/// that cannot be written to is no reason to fail.
const RECORD: &str = "
# A record of when this job begins and ends, for clusters without accounting (docs/slurm.md).
record=${WEFT_JOBS_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/weft/jobs}
record=$record/$SLURM_CLUSTER_NAME/${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}
mkdir -p -m 700 \"$record\" && record=$record/task-${SLURM_ARRAY_TASK_ID:-0} || record=/dev/null
note() { printf '%s\\n' \"$@\" >>\"$record\"; }
: >\"$record\"
note version=1 \"restarts=${SLURM_RESTART_COUNT:-0}\" \"array=${SLURM_ARRAY_TASK_ID:+yes}\" \\
    \"nodes=$SLURM_JOB_NODELIST\" \"node_count=$SLURM_JOB_NUM_NODES\" \\
    \"output=$(readlink /proc/$$/fd/1)\" \"began=$(date +%s)\"
trap 'code=$?; note \"ended=$(date +%s)\" \"exit_code=$code\"; exit $code' EXIT
trap 'note signal=TERM; exit 143' TERM";

/// All commands.
pub(super) fn lines(script: &Script<'_>) -> Vec<String> {
    let mut lines = vec![RECORD.to_owned(), String::new()];
    lines.extend(variables(script));
    if script.is_over_weft() && script.start != Start::Inside {
        let weft = word(script.weft);
        lines.push(
            "# Ranks on several nodes know each other by a key, made here: no file has it.".into(),
        );
        lines.push(format!("eval \"$({weft} env --only-key)\""));
        lines.push(String::new());
    }
    lines.push(command(script));
    lines.extend(another_attempt(script));
    lines
}

fn word(word: impl AsRef<OsStr>) -> String {
    quote_as_text(word.as_ref())
}

/// An option with its value.
fn option(name: &str, value: impl AsRef<OsStr>) -> String {
    format!("{name} {}", word(value))
}

fn is_of_an_mpi(name: &str) -> bool {
    VARIABLES_OF_MPIS
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// The job's variables that are set in the script, and so are on no command line.
fn variables(script: &Script<'_>) -> Vec<String> {
    let set = script.variables.iter();
    let mut lines: Vec<String> = set
        .map(|(name, value)| format!("export {name}={}", word(value)))
        .collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The one line that starts the ranks.
fn command(script: &Script<'_>) -> String {
    let mut words = launcher(script);
    words.extend(label(script));
    if script.is_over_weft() && script.start != Start::Inside {
        words.extend([word(script.weft), "exec".into()]);
        let job = script.job;
        if directives::ranks(job).is_some() {
            words.push(format!("--world {TASKS}"));
        }
        words.extend(script.mpi.as_ref().map(|mpi| option("--mpi", mpi)));
        let set = script.variables.iter();
        let set = set.filter(|(name, _)| is_of_an_mpi(name));
        words.extend(set.map(|(name, value)| {
            let mut pair = OsString::from(format!("{name}="));
            pair.push(value);
            option("--env", pair)
        }));
        if let Some(size) = job.shm_size {
            words.push(format!("--shm-size {size}"));
        }
        words.extend(mounts(job));
        words.extend(script.exec_options.iter().map(word));
        words.push("--".to_owned());
    }
    if script.start == Start::Inside {
        words.push("--".to_owned());
    }
    words.extend(script.program.iter().map(word));
    words.join(" ")
}

/// The launcher's option for ranks in front of lines.
fn label(script: &Script<'_>) -> Option<String> {
    let option = match script.start {
        Start::Srun { .. } | Start::Inside => "--label",
        Start::OpenMpi(_) => "--tag-output",
        Start::Hydra(_) => "-l",
    };
    script.label.then(|| option.to_owned())
}

/// What starts the ranks, up to `weft exec` or the program.
fn launcher(script: &Script<'_>) -> Vec<String> {
    // Where the job does not say how many, the launcher takes what Slurm gives.
    let ranks = directives::ranks(script.job).map(|_| format!("-n {TASKS}"));
    match &script.start {
        // Also where sbatch was told to pass nothing on: the key and the variables are ours.
        Start::Srun { pmi } => vec![
            "srun".into(),
            format!("--mpi={}", word(pmi)),
            "--export=ALL".into(),
        ],
        Start::OpenMpi(path) => {
            let mut words = vec![word(path)];
            words.extend(ranks);
            words.push(format!("-x {KEY}"));
            let names = script.variables.keys();
            words.extend(names.map(|name| format!("-x {name}")));
            if !script.job.mounts.is_empty() {
                // What reaches the store, by name alone.
                words.push("$(compgen -e AWS_ | sed 's/^/-x /')".into());
            }
            words
        }
        Start::Hydra(path) => {
            let mut words = vec![word(path), "-bootstrap slurm".into()];
            words.extend(ranks);
            words
        }
        Start::Inside => {
            let mut words = vec![word(script.weft), "run --slurm".into()];
            words.extend(script.mpi.as_ref().map(|mpi| option("--mpi", mpi)));
            if let Some(size) = script.job.shm_size {
                words.push(format!("--shm-size {size}"));
            }
            words.extend(mounts(script.job));
            words.extend(script.exec_options.iter().map(word));
            words
        }
    }
}

/// The buckets, as options of `weft exec` and `weft run`.
fn mounts(job: &Job) -> impl Iterator<Item = String> {
    let all = job.mounts.iter();
    all.map(|mount| option("--mount", mount.to_string()))
}

/// What runs a job that failed again: Slurm does, on nodes that it chooses anew.
fn another_attempt(script: &Script<'_>) -> Vec<String> {
    let Some(retries) = script.job.retries.map(u32::from).filter(|&count| count > 0) else {
        return Vec::new();
    };
    let text = format!(
        "code=$?

# A job that failed is queued again, up to {retries} times; Slurm then ends this attempt.
if [ $code != 0 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {retries} ]; then
    echo \"weft: exit code $code; the job is queued again\" >&2
    scontrol requeue \"$SLURM_JOB_ID\" && sleep 60
fi
exit $code"
    );
    vec![text]
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft submit`: checks whether the cluster can run the job, writes its batch script and gives it
//! to sbatch.
//!
//! Called by `weft`. The job comes from `requested_job.rs`, the script from `weft_job::sbatch`.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use weft_job::sbatch::{self, KEY, Script, Start};
use weft_launch::slurm_start;

use crate::arguments::SubmitArguments;
use crate::command;
use crate::fault::Fault;
use crate::job_id::JobId;
use crate::partition::{self, Request};
use crate::record::Submitted;
use crate::requested_job::{self, RequestedJob};
use crate::{pass_through, tasks, wait};

/// The command line of `weft submit`, as a shell completes it.
#[must_use]
pub fn command_line() -> clap::Command {
    SubmitArguments::command()
}

/// Runs `weft submit`; answers its exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    crate::carry_out("weft submit", pass_through::parse(words), submit)
}

fn submit(arguments: &SubmitArguments) -> Result<u8, Fault> {
    let requested = requested_job::of(arguments)?;
    let start = start(arguments, &requested)?;
    let weft = std::env::current_exe().and_then(std::fs::canonicalize);
    let weft = weft.unwrap_or_else(|_| "weft".into());
    let script = Script {
        job: &requested.job,
        program: &requested.program,
        variables: &requested.variables,
        mpi: requested.mpi_option.clone(),
        start,
        weft: weft.as_os_str(),
        options: &requested.options,
        label: arguments.label,
        exec_options: &requested.exec_options,
    };
    let text = sbatch::text(&script).map_err(|fault| requested.named(fault))?;
    if arguments.dry_run {
        let written = std::io::stdout().write_all(text.as_bytes());
        return written
            .map(|()| 0)
            .map_err(|error| Fault::Slurm(format!("writing to standard output: {error}")));
    }
    let limit_seconds = check(arguments, &requested)?;
    let id = give(&text)?;
    let submitted = Submitted {
        name: requested
            .job
            .name
            .clone()
            .unwrap_or_else(|| "sbatch".into()),
        limit_seconds,
        script: text,
    };
    remember(&id, &submitted);
    answer(&id)?;
    say_how(&id, &script.start);
    if arguments.wait {
        return wait::until_over(&[id], None);
    }
    Ok(0)
}

/// How the ranks start. Without a Slurm a script can still be printed.
fn start(arguments: &SubmitArguments, requested: &RequestedJob) -> Result<Start, Fault> {
    let offered = match slurm_start::offered() {
        Ok(offered) => offered,
        Err(_) if arguments.dry_run => {
            crate::say("weft: note: there is no srun here; the script chooses how ranks start");
            return Ok(Start::Inside);
        }
        Err(_) => Vec::new(),
    };
    if !arguments.dry_run {
        command::check_version()?;
    }
    let mpi = &requested.mpi;
    let program = &requested.program[0];
    let decided = slurm_start::decide(program, mpi, &offered, arguments.pmi.as_deref())?;
    if let Some(note) = &decided.chosen.note {
        crate::say(&format!("weft: note: {note}"));
    }
    Ok(decided.start)
}

/// Refuses what the partition never gives; answers the time limit.
fn check(arguments: &SubmitArguments, requested: &RequestedJob) -> Result<Option<u64>, Fault> {
    let seconds = requested.seconds();
    let request = Request {
        name: arguments.partition.as_deref(),
        nodes: requested.nodes(),
        seconds,
    };
    partition::check(&partition::all()?, &request)
}

/// Gives the script to sbatch. The key of another job would be stored with the environment.
fn give(text: &str) -> Result<JobId, Fault> {
    let failed = |error: std::io::Error| Fault::Slurm(format!("sbatch: {error}"));
    let mut sbatch = Command::new("sbatch");
    sbatch.arg("--parsable").env_remove(KEY);
    let mut child = sbatch
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A refusal of the first lines closes the pipe; what sbatch says of it comes below.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .map(|line| line.trim_start_matches("sbatch: "))
        .collect();
    if !output.status.success() {
        return Err(Fault::Slurm(format!(
            "sbatch refused the job: {}; weft submit --dry-run prints the script that it got",
            said.join("; ")
        )));
    }
    for line in said {
        crate::say(&format!("sbatch: {line}"));
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    let number = answer.trim().split(';').next().unwrap_or_default();
    let read = number.parse();
    read.map_err(|_| Fault::Slurm(format!("sbatch answered {answer:?}, and no number")))
}

/// Prints the job's number for whoever called. The job is in the queue by then: if the number
/// cannot be written, the error has it.
fn answer(id: &JobId) -> Result<(), Fault> {
    writeln!(std::io::stdout(), "{id}").map_err(|error| {
        Fault::Slurm(format!(
            "job {id} is in the queue, but its number could not be written to standard output: \
             {error}"
        ))
    })
}

/// A job without a record is a job all the same.
fn remember(id: &JobId, submitted: &Submitted) {
    let records = tasks::records().ok().flatten();
    let Some(records) = records else { return };
    if let Err(error) = records.write(id.job, submitted) {
        crate::say(&format!("weft: note: the job has no record: {error}"));
    }
    records.remove_old();
}

fn say_how(id: &JobId, start: &Start) {
    let how = match start {
        Start::Srun { pmi } => format!("srun --mpi={pmi}"),
        Start::OpenMpi(path) | Start::Hydra(path) => path.display().to_string(),
        Start::Inside => "weft run --slurm".to_owned(),
    };
    crate::say(&format!(
        "weft: job {id} is in the queue; {how} will start its ranks. weft logs -f {id} shows its \
         output, weft wait {id} its exit code"
    ));
}

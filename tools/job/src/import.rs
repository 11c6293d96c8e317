// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft import`: a job file from the file of another system.
//!
//! Called by the command `weft` with the words behind `import`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::answer::answer;
use crate::convert::{batch, parallel_cluster};
use crate::fault::Fault;
use crate::file::{JobFile, Unread, text_of, write_out};
use crate::parse::parse;
use crate::write::to_yaml;

/// The parsed command line of `weft import`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft import",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Make a job file from a job definition of AWS Batch or a configuration of \
        ParallelCluster",
    after_help = AFTER_HELP
)]
pub struct Arguments {
    /// The file: JSON of Batch's RegisterJobDefinition, or YAML of ParallelCluster
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the job file to JOB, which must not exist [default: standard output]
    #[arg(long, value_name = "JOB")]
    pub output: Option<PathBuf>,
    /// Of Batch: put VALUE in the place of Ref::NAME in the command
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = pair)]
    pub parameters: Vec<(String, String)>,
    /// Of ParallelCluster: the queue on which the job is to run
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Of ParallelCluster: the program and its arguments
    #[arg(last = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<String>,
}

const AFTER_HELP: &str = "\
Examples:
  weft import definition.json --output job.yaml
  weft import definition.json --parameter input=s3://bucket/a.dat
  weft import cluster.yaml --queue compute -- ./code input.dat

Fields that have no meaning in a job file are listed on standard error, one a line.
docs/job-file.md says what becomes of each field. Exit codes: 0 done, 1 a file cannot be read or
written, 2 wrong input.";

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must be of the form NAME=VALUE".to_owned()),
    }
}

/// Runs `weft import` with the words behind it; answers the exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return answer("weft import", &error),
    };
    match import(&arguments) {
        Ok(()) => 0,
        Err(unread) => {
            eprintln!("weft import: {unread}");
            unread.exit_code()
        }
    }
}

fn import(arguments: &Arguments) -> Result<(), Unread> {
    let name = arguments.file.display().to_string();
    let text = text_of(&arguments.file)?;
    let file = read(arguments, &name, &text)?;
    let yaml = to_yaml(&file.job).map_err(|fault| fault.in_file(&name))?;
    for note in &file.notes {
        eprintln!("weft import: {name}, {note}");
    }
    write_out(arguments.output.as_deref(), &yaml)
}

/// The job of the text of the file of this name. Options for the other kind of file are refused.
///
/// # Errors
/// The first fault of the file or of the options.
pub fn read(arguments: &Arguments, name: &str, text: &str) -> Result<JobFile, Fault> {
    imported(arguments, name, text).map_err(|fault| fault.in_file(name))
}

fn imported(arguments: &Arguments, name: &str, text: &str) -> Result<JobFile, Fault> {
    let root = parse(text)?;
    if batch::is_definition(&root) {
        refuse(
            arguments.queue.is_some(),
            "--queue is for files of ParallelCluster",
        )?;
        let has_program = !arguments.program.is_empty();
        refuse(
            has_program,
            "the definition names its program; write none after --",
        )?;
        return JobFile::new(name, batch::import(&root, &arguments.parameters)?);
    }
    if parallel_cluster::is_configuration(&root) {
        let has_parameters = !arguments.parameters.is_empty();
        refuse(has_parameters, "--parameter is for files of AWS Batch")?;
        let queue = arguments.queue.as_deref();
        let imported = parallel_cluster::import(&root, queue, &arguments.program)?;
        return JobFile::new(name, imported);
    }
    let is_job = root.get("version").is_some() && root.get("program").is_some();
    Err(Fault::new(if is_job {
        "this is a job file already; weft run --spec runs it"
    } else {
        "this is neither a job definition of AWS Batch (it has `jobDefinitionName`) nor a \
         configuration of ParallelCluster (it has `Scheduling`)"
    }))
}

fn refuse(is_wrong: bool, text: &str) -> Result<(), Fault> {
    if is_wrong {
        return Err(Fault::new(text));
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--spec FILE`: what no option says is taken from a job file (docs/job-file.md).
//!
//! Called by `lib.rs` in the place of clap alone. What `weft run` cannot do yet is refused here,
//! with the field's line, before anything looks at the machine.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use weft_job::JobFile;
use weft_job::time::TimeLimit;

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::hosts;
use crate::limits;
use crate::rank_arguments::Variable;
use crate::stderr::say;

/// The arguments from the words of the command line, and from the job file that they name.
///
/// # Errors
/// Outside: what clap says, which may be the help that was asked for. Inside: what is wrong with
/// the job file.
pub(crate) fn arguments(words: &[OsString]) -> Result<Result<Arguments, Fault>, clap::Error> {
    let mut command = Arguments::command();
    let matches = command.try_get_matches_from_mut(words)?;
    let read = Arguments::from_arg_matches(&matches);
    let mut arguments = read.map_err(|error| error.format(&mut command))?;
    let Some(path) = arguments.spec.clone() else {
        return Ok(Ok(arguments));
    };
    let file = match JobFile::read(&path) {
        Ok(file) => file,
        Err(weft_job::Unread::File { path, source }) => {
            let what = format!("--spec {} cannot be read", path.display());
            return Ok(Err(Fault::System { what, source }));
        }
        Err(wrong) => return Ok(Err(Fault::Usage(wrong.to_string()))),
    };
    let spec = Spec {
        file: &file,
        given: &matches,
    };
    let filled = spec.refuse_what_cannot_be_done();
    let filled = filled.and_then(|()| spec.fill(&mut arguments));
    if filled.is_ok() && !arguments.quiet {
        spec.say_what_was_left_out();
    }
    Ok(filled.map(|()| arguments))
}

/// A job file beside a command line.
struct Spec<'a> {
    file: &'a JobFile,
    given: &'a ArgMatches,
}

impl Spec<'_> {
    /// Whether an option stands on the command line.
    fn is_given(&self, option: &str) -> bool {
        self.given.value_source(option) == Some(ValueSource::CommandLine)
    }

    fn names_hosts(&self) -> bool {
        self.is_given("hosts") || self.is_given("hostfile")
    }

    fn wrong(&self, field: &str, text: impl Into<String>) -> Fault {
        Fault::Usage(self.file.fault(field, text).to_string())
    }

    /// The fields that have no option yet.
    fn refuse_what_cannot_be_done(&self) -> Result<(), Fault> {
        let job = &self.file.job;
        let is_elsewhere = self.names_hosts() || !job.hosts.is_empty() || self.is_given("slurm");
        if let Some(bytes) = limits::memory_bytes().filter(|_| !is_elsewhere) {
            let checked = self.file.check_memory(bytes);
            checked.map_err(|fault| Fault::Usage(fault.to_string()))?;
        }
        if let Some(array) = &job.array {
            return Err(self.wrong(
                "array",
                format!(
                    "weft run starts one job, and not {}; remove the field, and start one for each \
                     task",
                    array.size
                ),
            ));
        }
        if let Some(dependency) = job.dependencies.first() {
            return Err(self.wrong(
                "dependencies",
                format!(
                    "weft run starts at once, and does not know job {}; wait for it, and remove \
                     the field",
                    dependency.job
                ),
            ));
        }
        if is_elsewhere {
            return Ok(());
        }
        self.check_one_machine()
    }

    /// Without hosts, all ranks run on this machine.
    fn check_one_machine(&self) -> Result<(), Fault> {
        let job = &self.file.job;
        let ranks = job.ranks.filter(|_| !self.is_given("ranks"));
        let each = job.ranks_per_node.filter(|_| !self.is_given("ppn"));
        if let (Some(ranks), Some(each)) = (ranks, each) {
            let nodes = ranks.get().div_ceil(each.get());
            if nodes > 1 {
                return Err(self.wrong(
                    "ranks_per_node",
                    format!(
                        "{ranks} ranks, {each} on each node, need {nodes} nodes; name them in \
                         `hosts`, or remove the field to run them on this machine"
                    ),
                ));
            }
        }
        match job.nodes {
            Some(nodes) if nodes.get() > 1 => Err(self.wrong(
                "nodes",
                format!(
                    "weft run cannot choose {nodes} nodes itself; name them in `hosts`, or by \
                     --hosts"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Each field that no option stands against.
    fn fill(&self, arguments: &mut Arguments) -> Result<(), Fault> {
        let job = &self.file.job;
        if arguments.program.is_empty() {
            let words = std::iter::once(&job.program).chain(&job.arguments);
            arguments.program = words.map(OsString::from).collect();
        }
        arguments.ranks = arguments.ranks.or(job.ranks.map(u32::from));
        arguments.ppn = arguments.ppn.or(job.ranks_per_node.map(u32::from));
        if arguments.folder.is_none() {
            arguments.folder = job.folder.as_ref().map(Into::into);
        }
        if let Some(mpi) = job.mpi.as_ref().filter(|_| !self.is_given("mpi")) {
            arguments.rank.mpi = mpi.parse().map_err(|why: String| self.wrong("mpi", why))?;
        }
        let transport = job.transport.as_ref();
        if let Some(transport) = transport.filter(|_| !self.is_given("transport")) {
            let read = transport.parse();
            arguments.transport = read.map_err(|why: String| self.wrong("transport", why))?;
        }
        if arguments.timeout.is_none() {
            arguments.timeout = job.time_limit.map(TimeLimit::seconds);
        }
        arguments.shm_size = arguments.shm_size.or(job.shm_size);
        if arguments.mounts.is_empty() {
            arguments.mounts.clone_from(&job.mounts);
        }
        if let Some(retries) = job.retries.filter(|_| !self.is_given("retries")) {
            arguments.retries = retries.get();
        }
        self.add_variables(arguments);
        if !job.hosts.is_empty() && !self.names_hosts() {
            self.check_hosts()?;
            arguments.hosts.hosts = Some(job.hosts.join(","));
        }
        Ok(())
    }

    /// Those of the file first: of two that set the same variable the last one wins.
    fn add_variables(&self, arguments: &mut Arguments) {
        let given = std::mem::take(&mut arguments.rank.variables);
        let of_file = self.file.job.environment.iter();
        let is_given = |name: &str| given.iter().any(|one| one.name == name);
        arguments.rank.variables = of_file
            .filter(|(name, _)| !is_given(name))
            .map(|(name, value)| Variable {
                name: name.clone(),
                value: value.into(),
            })
            .collect();
        arguments.rank.variables.extend(given);
    }

    fn check_hosts(&self) -> Result<(), Fault> {
        for (index, host) in self.file.job.hosts.iter().enumerate() {
            let said = |fault: Fault| {
                let text = fault.to_string();
                let bare = text.strip_prefix(&format!("--hosts {host}: "));
                self.wrong(&format!("hosts[{index}]"), bare.unwrap_or(&text))
            };
            hosts::from_list(host).map_err(said)?;
        }
        Ok(())
    }

    fn say_what_was_left_out(&self) {
        for note in &self.file.notes {
            say!("weft: note: {}, {note}", self.file.name());
        }
    }
}

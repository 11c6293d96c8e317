// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run` starts an unmodified MPI program, on this host or on several, under the MPI that the
//! program was built for. Weft carries the messages. For comparison the MPI's own shared memory,
//! TCP or another libfabric provider can carry them. At the end `weft run` says what went through
//! Weft.
//!
//! Each MPI needs other settings to use a libfabric provider inside a host. With wrong settings
//! most of them use something else and do not say so. This crate knows the settings of each MPI,
//! refuses combinations that cannot work and says why, and reads the counters of the provider at
//! the end.
//!
//! The modules, in the order of a run:
//!
//! - Command line: `arguments` (with `mpi_choice`) are the options. `spelling` translates options
//!   of other launchers (`launcher_options`). `spec` reads a job file. `fault` lists the reasons
//!   not to start, with their exit codes.
//! - Program: `program` finds the file and how it gets its MPI (`binding`). `linkage` follows its
//!   libraries as the loader would: `elf` reads the files, `loader` knows where to search. `python`
//!   asks an interpreter for its mpi4py. `calls` finds calls of MPI that need other settings.
//! - MPI: `discover` finds the MPIs of this host, `family` tells them apart, `choose` takes the one
//!   for this program. `provider` finds libweft-fi.so. `cores` counts the cores for ranks.
//! - Several hosts: `hosts` reads their list, `placement` distributes the ranks. `remote_shell` is
//!   ssh or its replacement. `node_agents` starts a `node_agent` on each host; they talk by
//!   `agent_protocol` (with `exact_bytes`), with a `heartbeat`; `agent_output` reads what comes.
//!   `several_hosts` tells the MPI's launcher about the hosts. `machines` finds host names that are
//!   the same machine. `inject_size` sets the limit of inject calls.
//! - Settings: `transport` makes the launcher's arguments and the environment, with one file for
//!   each MPI. `job` joins everything. `known_problems` warns of faults that no setting avoids.
//!   `bind` binds MPICH's ranks to cores. `command` is the complete command line, run or printed
//!   (`--dry-run`).
//! - Preloaded libraries: `preloads` lists them, `preload` puts them into the ranks alone.
//!   `launcher_library` is the one that the launcher gets.
//!   `heap` is for `--heap`, `sched_yield` for `--yield`, `collectives` for `--collectives`,
//!   `libfabric` for `--libfabric`.
//! - What a job gets of its own: `dev_shm` (`--shm-size`), `mounts` (`--mount`), and `job_key`, the
//!   secret that its processes on several hosts share.
//! - Running: `launcher_start` starts the launcher, `supervise` watches it until it ends and keeps
//!   the time limit; `deadlock` sees whether it goes on; `signals` are passed on. `rank_ends` hears
//!   how ranks end, `zombies` sees those that nobody asks for, `rank_ledger` knows which one failed
//!   first, and `hung` sees whether the launcher ends then. `retries` is one attempt of a job, and
//!   what a signal does between two (`--retries`).
//! - Ending: `report` receives the counters of the ranks through a socket, and `endpoints` knows
//!   meanwhile who has opened one; `collective_calls` are those of collectives, `number_text`
//!   formats numbers. `leftovers` and `sessions` remove files of processes that were killed.
//!   `limits` names limits that a failed job may have reached. `outcome` makes the exit code, the
//!   summary and the record of `--json`. `stderr` prints lines for the user.
//!
//! `weft exec` gives ranks that another launcher started the same as `weft run` gives its ranks:
//!
//! - `environment` holds changes of an inherited environment. `transport` makes them in two parts,
//!   for the launcher and for the ranks. `rank_arguments`, `rank_environment` and `ranks` are the
//!   part of the ranks.
//! - `exec` becomes the program; `env` prints the variables instead. `started` finds out which rank
//!   this is, `launcher_process` looks at the process that started it, `rank_mpi` finds the
//!   program's MPI, and `pmi` whether this MPI understands the launcher.
//! - `slurm_start` decides how ranks start inside an allocation of Slurm; `slurm` is `weft run`
//!   there.
//!
//! The doctor and `weft info` use `discover`, `provider`, `elf` and `cores` as well, so they see
//! the same as a run.
#![forbid(unsafe_code)]

mod agent_output;
pub mod agent_protocol;
pub mod arguments;
pub mod bind;
pub mod binding;
pub mod calls;
pub mod choose;
pub mod collective_calls;
pub mod collectives;
pub mod command;
#[cfg(test)]
mod compiled;
pub mod cores;
mod deadlock;
pub mod dev_shm;
pub mod discover;
pub mod elf;
pub mod endpoints;
pub mod env;
pub mod environment;
pub mod exact_bytes;
pub mod exec;
pub mod family;
pub mod fault;
pub mod heap;
mod heartbeat;
pub mod hosts;
mod hung;
mod inject_size;
mod job;
pub mod job_key;
mod known_problems;
mod launcher_library;
mod launcher_options;
mod launcher_process;
mod launcher_start;
pub mod leftovers;
pub mod libfabric;
pub mod limits;
pub mod linkage;
pub mod loader;
pub mod machines;
pub mod mounts;
pub mod mpi_choice;
pub mod node_agent;
pub mod node_agents;
pub mod number_text;
pub mod outcome;
pub mod placement;
mod pmi;
pub mod preload;
mod preloads;
pub mod program;
pub mod provider;
pub mod python;
pub mod rank_arguments;
pub mod rank_ends;
pub mod rank_environment;
pub mod rank_ledger;
mod rank_mpi;
mod ranks;
pub mod remote_shell;
pub mod report;
mod retries;
pub mod sched_yield;
mod sessions;
pub mod several_hosts;
pub mod shell;
pub mod signals;
mod slurm;
pub mod slurm_start;
pub mod slurm_version;
mod spec;
mod spelling;
mod started;
pub mod stderr;
pub mod supervise;
pub mod transport;
mod zombies;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Duration;

use arguments::Arguments;
use fault::Fault;
pub use job::Check;
use job::Job;
use leftovers::Leftovers;
use node_agents::NodeAgents;
use outcome::{Record, Usage};
use report::{Collector, Report, Summary};
use retries::{Attempt, Between};
use sessions::Sessions;
use stderr::say;
use supervise::{Elsewhere, Ending, GRACE, Limits, Reason};
use transport::{Shape, Transport};

/// Runs `weft run` with the words that follow it and returns the exit code. `check` is asked about
/// `weft` itself as the program, so that its ranks need not say all the same.
///
/// Blocks until the job has ended. Changes the process: it takes signals and adopts orphans, so
/// call it once, from `main`.
#[must_use]
pub fn run(arguments: Vec<OsString>, check: Check) -> u8 {
    let refuse = |fault: Fault| {
        match &fault {
            Fault::Words(text) => say!("{text}"),
            fault => say!("weft run: {fault}"),
        }
        fault.exit_code()
    };
    let words = match spelling::in_ours(arguments, |name| std::env::var_os(name)) {
        Ok(words) => words,
        Err(fault) => return refuse(fault),
    };
    let mut arguments = match spec::arguments(&words) {
        Ok(Ok(arguments)) => arguments,
        Ok(Err(fault)) => return refuse(fault),
        Err(error) => {
            let line = stderr::CommandLine {
                tool: "weft run",
                example: "weft run -n 4 -- ./code",
                command: arguments::command_line(),
                words: &words,
            };
            return stderr::refusal(&error, line);
        }
    };
    let run = |arguments: &mut Arguments| {
        arguments.enter()?;
        if slurm::is_wanted(arguments)? {
            return slurm::run(arguments);
        }
        run_to_end(arguments, check)
    };
    run(&mut arguments).unwrap_or_else(refuse)
}

/// Runs the job, and again as often as --retries says while its program fails.
fn run_to_end(arguments: &Arguments, check: Check) -> Result<u8, Fault> {
    let mut between: Option<Between> = None;
    let mut left = arguments.retries;
    loop {
        let job = job::prepare(arguments, check)?;
        if arguments.dry_run {
            return print(arguments, &job);
        }
        if let Some(exit_code) = between.as_ref().and_then(Between::exit_code) {
            return Ok(exit_code);
        }
        let attempt = execute(arguments, job)?;
        if left == 0 || !attempt.may_be_repeated {
            return Ok(attempt.exit_code);
        }
        let exit_code = attempt.exit_code;
        let how_often = if left == 1 {
            "once more".to_owned()
        } else {
            format!("again, up to {left} times")
        };
        say!("weft: the job failed with exit code {exit_code}; it is run {how_often}");
        left -= 1;
        between = Some(Between::begin()?);
    }
}

/// Prints the command in the place of running it.
fn print(arguments: &Arguments, job: &Job) -> Result<u8, Fault> {
    let mut line = OsString::new();
    if let Some(folder) = &arguments.folder {
        line.push("cd ");
        line.push(shell::quote(folder.as_os_str()));
        line.push(" && ");
    }
    let is_set = |name: &str| std::env::var_os(name).is_some();
    line.push(job.launch.shell_line(is_set));
    line.push("\n");
    match std::io::stdout().write_all(line.as_bytes()) {
        // As a shell shows who ended by SIGPIPE.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(141),
        written => written
            .map(|()| 0)
            .map_err(Fault::system("writing to standard output")),
    }
}

fn execute(arguments: &Arguments, mut job: Job) -> Result<Attempt, Fault> {
    let mut record_file = match &arguments.json {
        Some(path) => Some(File::create(path).map_err(Fault::system(format!(
            "--json {} cannot be written",
            path.display()
        )))?),
        None => None,
    };
    announce(arguments, &job);
    if let Some(warning) = &job.caution {
        say!("weft: warning: {warning}");
    }
    let limits = limits::Limits::here();
    let Ended {
        ending,
        reports,
        unreadable,
        unpublished,
    } = run_job(arguments, &mut job)?;
    let summary = Summary::of(&reports, unreadable);
    let usage = Usage::of(&arguments.transport, job.ranks, &summary);
    let exit_code = match outcome::exit_code(&ending, usage, arguments.require_weft) {
        0 if !unpublished.is_empty() => mounts::UNPUBLISHED,
        exit_code => exit_code,
    };
    conclude(arguments, &job, &summary, usage, &ending);
    for why in &unpublished {
        say!("weft: --mount {why}");
    }
    let failed = matches!(ending.reason, None | Some(Reason::Deadlock | Reason::Rank))
        && (!outcome::ended_well(&ending) || !unpublished.is_empty());
    if let Some(words) = limits.in_words().filter(|_| failed) {
        say!("weft: note: {words}");
    }
    if let Some(file) = &mut record_file {
        let text = |value: &OsString| value.to_string_lossy().into_owned();
        let record = Record {
            command: outcome::command_words(&job.launch),
            environment: job
                .launch
                .environment
                .set
                .iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            mpi: &job.chosen.installation,
            transport: arguments.transport.to_string(),
            ranks: job.ranks,
            hosts: job.hosts(),
            bound: job.shape.bound,
            end: outcome::End::of(&ending, exit_code),
            elapsed_seconds: ending.elapsed.as_secs_f64(),
            weft: usage,
            summary: &summary,
            reports: &reports,
        };
        outcome::write_record(file, &record).map_err(Fault::system("writing the --json record"))?;
    }
    Ok(Attempt {
        exit_code,
        may_be_repeated: failed || ending.reason == Some(Reason::Host),
    })
}

/// What came of a job.
struct Ended {
    ending: Ending,
    /// What its ranks reported.
    reports: Vec<Report>,
    /// How many reports could not be read.
    unreadable: u32,
    /// For each host: what was written and is not in its bucket.
    unpublished: Vec<String>,
}

/// The job from start to end.
fn run_job(arguments: &Arguments, job: &mut Job) -> Result<Ended, Fault> {
    let mut command = job.launch.command();
    let collector = if arguments.transport == Transport::Weft {
        let collector = Collector::open(&job.report_name)
            .map_err(Fault::system("opening the socket for the ranks' reports"))?;
        command.env(report::VARIABLE, collector.name());
        if job_key::is_needed(job.agents.is_some(), &arguments.rank.variables) {
            job_key::give(&mut command)?;
        }
        Some(collector)
    } else {
        None
    };
    let mut elsewhere = watch_hosts(job, &mut command, arguments.host_patience()?);
    let holder = job.holder.take();
    if let Some(holder) = &holder {
        elsewhere.spared.push(holder.pid());
    }
    let spared = elsewhere.spared.clone();
    let mut ranks = match &job.launcher_library {
        Some(library) => library
            .add(&mut command)
            .map_err(Fault::system("opening the socket for how ranks end"))?,
        None => None,
    };
    if let (Some(ranks), Some(collector)) = (&mut ranks, &collector) {
        ranks.endpoints = collector.endpoints();
    }
    let family = job.chosen.installation.family;
    let leftovers = Leftovers::note(&leftovers::prefixes(family));
    let limits = Limits {
        time: arguments.time_limit()?,
        grace: GRACE,
    };
    let starting = format!("starting {}", job.launch.mpiexec.display());
    let ending = supervise::run(command, family, limits, elsewhere, ranks)
        .map_err(Fault::system(starting))?;
    leftovers.remove(|| {
        let living = signals::descendants(std::process::id(), &spared);
        living.is_empty() && !signals::are_some_ending()
    });
    Sessions::remove_of(&ending);
    let lost = holder.and_then(|holder| holder.finish().err());
    let unpublished = lost.map(|why| why.to_string()).into_iter().collect();
    let (reports, unreadable) = match collector {
        Some(collector) => collector
            .finish()
            .map_err(Fault::system("collecting the ranks' reports"))?,
        None => (Vec::new(), 0),
    };
    let mut ended = Ended {
        ending,
        reports,
        unreadable,
        unpublished,
    };
    if let Some(agents) = job.agents.take() {
        ended.add_hosts(agents, arguments.quiet);
    }
    Ok(ended)
}

/// Listens to the agents of the other hosts, if the job has any.
fn watch_hosts(job: &mut Job, command: &mut Command, patience: Duration) -> Elsewhere {
    let Some(agents) = &mut job.agents else {
        return Elsewhere::default();
    };
    command.env(agent_protocol::MARK, &job.mark);
    let (sender, receiver) = std::sync::mpsc::channel();
    agents.watch(patience, &sender);
    Elsewhere {
        losses: Some(receiver),
        spared: agents.shells(),
    }
}

impl Ended {
    /// What the node agents have to say.
    fn add_hosts(&mut self, agents: NodeAgents, is_quiet: bool) {
        for (host, ended) in agents.finish(self.ending.forced) {
            let ended = match ended {
                Ok(ended) => ended,
                Err(complaint) => {
                    // Open MPI's launcher ends with 0 when it loses a host.
                    self.ending.reason = self.ending.reason.or(Some(Reason::Host));
                    tell_loss(&host, &complaint);
                    continue;
                }
            };
            if ended.ended_count > 0 && !is_quiet {
                say!(
                    "weft: host {host}: ended {} processes that the launcher had left",
                    ended.ended_count
                );
            }
            self.unreadable = self.unreadable.saturating_add(ended.unreadable);
            let on_host = |why| format!("on host {host}: {why}");
            self.unpublished.extend(ended.unpublished.map(on_host));
            self.reports
                .extend(ended.reports.into_iter().map(|report| Report {
                    host: host.clone(),
                    ..report
                }));
        }
    }
}

fn tell_loss(host: &str, complaint: &str) {
    say!(
        "weft: host {host} was lost; its node agent ends what is left of the job there, if it \
         still runs{complaint}"
    );
}

/// One line before the start: what runs, with which MPI, over what, and bound or not.
fn announce(arguments: &Arguments, job: &Job) {
    if arguments.quiet {
        return;
    }
    let Shape { cores, .. } = job.shape;
    let plural = |count: u32, word: &str| {
        if count == 1 {
            format!("1 {word}")
        } else {
            format!("{count} {word}s")
        }
    };
    let binding = if job.shape.bound {
        "each bound to a core".to_owned()
    } else if !job.one_machine.is_empty() {
        let hosts = job.one_machine.join(" and ");
        format!("not bound, as {hosts} are one machine")
    } else if job.shape.oversubscribed() {
        format!("not bound, as they share {}", plural(cores, "core"))
    } else {
        "not bound".to_owned()
    };
    let place = match job.hosts().len() {
        0 => String::new(),
        count => format!(
            " on {}",
            plural(u32::try_from(count).unwrap_or(u32::MAX), "host")
        ),
    };
    say!(
        "weft: {}{place}, {binding}; {}; transport {}",
        plural(job.ranks, "rank"),
        job.chosen.installation.describe(),
        arguments.transport
    );
    for note in job.chosen.note.iter().chain(&job.notes) {
        say!("weft: note: {note}");
    }
}

/// What went through Weft, and warnings; warnings come even with --quiet.
fn conclude(arguments: &Arguments, job: &Job, summary: &Summary, usage: Usage, ending: &Ending) {
    let ranks = job.ranks;
    let is_news = !arguments.quiet || outcome::is_news_to_all(ending);
    if let Some(words) = outcome::end_in_words(ending, arguments.timeout).filter(|_| is_news) {
        say!("weft: {words}");
    }
    if !arguments.quiet && summary.processes > 0 {
        say!("weft: {}", summary.line(ranks));
    }
    if let Some(words) = summary.collectives_line().filter(|_| !arguments.quiet) {
        say!("weft: {words}");
    }
    if let Some(warning) = outcome::warning(usage, summary, ranks, ending) {
        say!("weft: warning: {warning}");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user may write after `weft run`, and the checks that need nothing but those words.
//!
//! Called by `lib.rs` first of all; its `Arguments` is read by every later step. Nothing here looks
//! at the machine.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, Parser};
use weft_facts::parameter::{self, Parameter};
use weft_job::job::{Mount, RETRIES_MOST};
use weft_job::size::ShmSize;
use weft_job::time::SECONDS_MOST;

use crate::fault::Fault;
use crate::hosts;
use crate::placement::{self, Share};
use crate::rank_arguments::RankArguments;
use crate::transport::Transport;

/// The parsed command line of `weft run`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft run",
    no_binary_name = true,
    disable_version_flag = true,
    args_override_self = true,
    about = "Run an unmodified MPI program on this machine or on several, with its messages \
        carried by Weft",
    after_help = AFTER_HELP
)]
// structure: allow struct-fields because each is an option, and clap wants them in one place
pub struct Arguments {
    /// Number of ranks [default: --ppn if given, else as many as cores that this process may use]
    #[arg(short = 'n', long = "np", value_name = "N", value_parser = whole)]
    #[arg(allow_negative_numbers = true)]
    pub ranks: Option<u32>,
    /// Ranks on each host; on this machine alone: at most N ranks, and N if -n is not given
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub ppn: Option<u32>,
    /// What carries the messages: weft, native (the MPI's own shared memory), tcp, or ofi:PROVIDER
    /// (another libfabric provider)
    #[arg(long, value_name = "TRANSPORT", default_value = "weft")]
    pub transport: Transport,
    /// When to bind each rank to a core of its own
    #[arg(long, value_enum, default_value_t = CoreBinding::Auto, value_name = "HOW")]
    pub bind: CoreBinding,
    /// How the ranks are set up.
    #[command(flatten)]
    pub rank: RankArguments,
    /// Let more than 256 ranks share a core
    #[arg(long)]
    pub oversubscribe: bool,
    /// Give the ranks on each host a /dev/shm of their own, SIZE large: 4g or 512m. With try:4g
    /// they use the host's /dev/shm if the host refuses
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub shm_size: Option<ShmSize>,
    /// Mount a bucket on each host while the job runs: s3://BUCKET/PREFIX:/FOLDER; add :ro to
    /// refuse writing, or :shared-writes to let several hosts write one file at once. May be
    /// repeated
    #[arg(long = "mount", value_name = "MOUNT")]
    pub mounts: Vec<Mount>,
    /// Run in DIR; relative paths on this command line begin there, except those of --json and
    /// --hostfile
    #[arg(long = "wdir", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Put the rank in front of each line of output
    #[arg(long)]
    pub label: bool,
    /// Print only errors and warnings of weft run, besides the ranks' output
    #[arg(long)]
    pub quiet: bool,
    /// Write a record of the job to FILE: the command, its environment, and how it ended
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// End the job after SECONDS (fractions allowed); the exit code is then 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<f64>,
    /// Run the job again, up to N times, when its program fails, a host is lost or the launcher
    /// hangs
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = retries)]
    #[arg(allow_negative_numbers = true)]
    pub retries: u32,
    /// Read the job from FILE, in YAML or JSON (docs/job-file.md); options win over the file
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Inside an allocation of Slurm: start the ranks on its nodes by srun [default if it has
    /// several nodes]
    #[arg(long)]
    pub slurm: bool,
    /// Print the command with its environment instead of running it
    #[arg(long)]
    pub dry_run: bool,
    /// Exit with 3 if the program succeeded and no message went through Weft
    #[arg(long)]
    pub require_weft: bool,
    /// The hosts and the way to them.
    #[command(flatten)]
    pub hosts: HostArguments,
    /// The program and its arguments
    #[arg(
        required_unless_present = "spec",
        trailing_var_arg = true,
        value_name = "PROGRAM ARGS"
    )]
    #[arg(help_heading = "Arguments")]
    pub program: Vec<OsString>,
}

/// The command line of `weft run`, as a shell completes it: behind `--env` stand the variables of
/// Weft.
#[must_use]
pub fn command_line() -> clap::Command {
    // Names must live as long as the program, which ends when it has printed them.
    let named = |parameter: &&Parameter| &*format!("{}=", parameter.variable).leak();
    let names: Vec<&'static str> = parameter::ALL.iter().map(named).collect();
    Arguments::command().mut_arg("variables", |argument| {
        let parser = PossibleValuesParser::new(names);
        argument.value_parser(parser).hide_possible_values(true)
    })
}

/// The hosts of a job, where it is to run on others than this machine.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Several hosts")]
pub struct HostArguments {
    /// Run on these hosts: A,B or A:4,B:4 with the number of ranks that each takes
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    pub hosts: Option<String>,
    /// Run on the hosts in FILE, one on each line: `name slots=4` (Open MPI's form) or `name:4`
    /// (MPICH's form)
    #[arg(long, value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// The program that starts processes on other hosts, and that takes the arguments of ssh
    /// [default: the program that the MPI's own variable names, else ssh]
    #[arg(long, value_name = "PROGRAM")]
    pub launcher: Option<OsString>,
    /// Network interfaces for all traffic between hosts, separated by commas: Weft uses all of
    /// them, the MPI and its launcher use the first [default: Weft and the MPI choose;
    /// FI_WEFT_IFACE chooses for Weft alone]
    #[arg(long, value_name = "NAME")]
    pub iface: Option<String>,
    /// End the job when a host has been silent for SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub host_timeout: f64,
}

const AFTER_HELP: &str = "\
Examples:
  weft run -n 4 -- ./code input.dat
  weft run -n 4 --transport native -- ./code input.dat    the MPI's own shared memory, to compare
  weft run -n 2 --mpi mpich -- weft bench latency
  weft run --hosts a,b --ppn 2 -- ./code                  4 ranks on two hosts, started through ssh
  weft run --spec job.yaml -n 8                           a job file, with another number of ranks
  weft run -n 4 --dry-run -- python -m mpi4py.bench ringtest

weft run looks for MPIs in this order: $WEFT_MPI_PATH (a list of prefixes),
.env/mpi/{openmpi,mpich,intel} of the checkout that weft was built in, $VIRTUAL_ENV, the virtual
environment that weft is in, $PATH, /usr/bin/mpiexec.openmpi, /usr/bin/mpiexec.mpich,
$I_MPI_ROOT.

It also takes the options of mpirun and mpiexec (-np, -x, -H, -hostfile, -genv and others).

Exit codes (docs/run.md says more, for each MPI):
  0 to 255      the program's own, as its MPI's launcher passes it on
  1             the job could not be started
  2             wrong usage
  3             no message went through Weft (--require-weft)
  4             a host was lost
  5             the program succeeded, but something that it wrote is not in its bucket (--mount)
  124           --timeout ended the job
  126, 127      the program cannot be executed; there is no such program
  128+signal    weft run was sent a signal (130 after Ctrl-C)";

fn whole(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("it must be a whole number from 1 to {}", u32::MAX))
}

fn retries(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|&count| count <= RETRIES_MOST);
    count.ok_or_else(|| format!("it must be a whole number from 0 to {RETRIES_MOST}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "it must be a number of seconds, as 90 or 0.5".to_owned())
}

/// Whether ranks are bound to cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CoreBinding {
    /// If there are at least as many cores as ranks.
    Auto,
    /// Always; more ranks than cores are refused.
    Core,
    /// Never; best where several jobs share the machine.
    None,
}

/// Most ranks for each core without --oversubscribe: more is a slip of the keyboard. Chosen: 512
/// ranks on 2 cores have been tried; each takes some 30 MB and a place in every table of the MPI.
const RANKS_PER_CORE: u32 = 256;

/// The largest `--timeout`.
const LONGEST_TIMEOUT_SECONDS: f64 = SECONDS_MOST as f64;

impl Arguments {
    /// How many ranks to start on this machine, `cores` being what this process may use.
    ///
    /// # Errors
    /// `Fault::Usage` when fewer than one rank is asked for, or `--ppn` says that one machine is
    /// not enough.
    pub fn rank_count(&self, cores: u32) -> Result<u32, Fault> {
        if self.ppn == Some(0) {
            return Err(Fault::Usage(
                "--ppn 0: a machine holds at least 1 rank".into(),
            ));
        }
        let ranks = self.ranks.or(self.ppn).unwrap_or(cores.max(1));
        if ranks == 0 {
            return Err(Fault::Usage("-n 0: a job has at least 1 rank".into()));
        }
        match self.ppn {
            Some(ppn) if ppn < ranks => Err(Fault::Usage(format!(
                "-n {ranks} with --ppn {ppn} needs {} machines; name them with --hosts or \
                 --hostfile, or leave --ppn out to run on this one",
                ranks.div_ceil(ppn)
            ))),
            _ => Ok(ranks),
        }
    }

    /// Goes where --wdir says; paths that are the user's stay as they were meant.
    ///
    /// # Errors
    /// `Fault::Usage` when there is no such folder, or it may not be entered.
    pub fn enter(&mut self) -> Result<(), Fault> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        for path in [&mut self.json, &mut self.hosts.hostfile]
            .into_iter()
            .flatten()
        {
            *path =
                std::path::absolute(&*path).map_err(Fault::system(path.display().to_string()))?;
        }
        let place = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        std::env::set_current_dir(&place)
            .map_err(|error| Fault::Usage(format!("--wdir {}: {error}", folder.display())))?;
        self.folder = Some(place);
        Ok(())
    }

    /// Whether so many ranks on a machine with `cores` are meant.
    ///
    /// # Errors
    /// `Fault::Usage` where they are far more than its cores, and --oversubscribe does not say that
    /// this is meant.
    pub fn check_ranks_per_core(&self, ranks: u32, cores: u32) -> Result<(), Fault> {
        if self.oversubscribe || ranks <= cores.saturating_mul(RANKS_PER_CORE) {
            return Ok(());
        }
        Err(Fault::Usage(format!(
            "{ranks} ranks are more than {RANKS_PER_CORE} for each core, and this job may use \
             {cores}; start fewer, or say --oversubscribe if this is meant"
        )))
    }

    /// The ranks of each named host; `None` when no host was named.
    ///
    /// # Errors
    /// `Fault::Usage` for a bad list or file, or hosts that do not hold the ranks; `Fault::System`
    /// for a file that cannot be read.
    pub fn shares(&self) -> Result<Option<Vec<Share>>, Fault> {
        let hosts = match (&self.hosts.hosts, &self.hosts.hostfile) {
            (Some(list), _) => hosts::from_list(list)?,
            (None, Some(path)) => hosts::from_file(path)?,
            (None, None) => return Ok(None),
        };
        placement::place(&hosts, self.ranks, self.ppn).map(Some)
    }

    /// How long a host may be silent.
    ///
    /// # Errors
    /// `Fault::Usage` when it is below two seconds, the time between two signs of life and some
    /// more, or not finite.
    pub fn host_patience(&self) -> Result<std::time::Duration, Fault> {
        if self.hosts.host_timeout >= 2.0 && self.hosts.host_timeout <= LONGEST_TIMEOUT_SECONDS {
            return Ok(std::time::Duration::from_secs_f64(self.hosts.host_timeout));
        }
        Err(Fault::Usage(format!(
            "--host-timeout {}: must be at least 2 and at most {LONGEST_TIMEOUT_SECONDS} seconds",
            self.hosts.host_timeout
        )))
    }

    /// Whether to bind each of `ranks` ranks to one of `cores` cores.
    ///
    /// # Errors
    /// `Fault::Usage` when binding was asked for and there are too few cores.
    pub fn bound(&self, ranks: u32, cores: u32) -> Result<bool, Fault> {
        match self.bind {
            CoreBinding::None => Ok(false),
            CoreBinding::Core if ranks > cores => Err(Fault::Usage(format!(
                "--bind core: {ranks} ranks need a core each, and this process may use {cores}; \
                 use --bind auto or none, or fewer ranks"
            ))),
            CoreBinding::Auto | CoreBinding::Core => Ok(ranks <= cores),
        }
    }

    /// The time after which the job is ended.
    ///
    /// # Errors
    /// `Fault::Usage` when it is not a positive, finite number of seconds.
    pub fn time_limit(&self) -> Result<Option<std::time::Duration>, Fault> {
        match self.timeout {
            None => Ok(None),
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_TIMEOUT_SECONDS => {
                Ok(Some(std::time::Duration::from_secs_f64(seconds)))
            }
            Some(seconds) => Err(Fault::Usage(format!(
                "--timeout {seconds}: must be more than 0 and at most {LONGEST_TIMEOUT_SECONDS} \
                 seconds"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(words.iter().copied())
    }

    #[test]
    fn words_after_the_program_are_its_own() {
        let arguments = parse(&["-n", "2", "./a.out", "-n", "7", "--label"]).unwrap();
        assert_eq!(arguments.ranks, Some(2));
        assert!(!arguments.label);
        assert_eq!(arguments.program, ["./a.out", "-n", "7", "--label"]);
    }

    #[test]
    fn an_unknown_option_is_refused_and_no_program() {
        assert!(parse(&["--nonsense", "--", "true"]).is_err());
        assert!(parse(&["-n", "2"]).is_err());
        assert_eq!(
            parse(&["-n", "2", "--", "true", "--", "-x"])
                .unwrap()
                .program,
            ["true", "--", "-x"]
        );
    }

    #[test]
    fn rank_count_follows_n_then_ppn_then_cores() {
        assert_eq!(parse(&["-n", "3", "a"]).unwrap().rank_count(8).unwrap(), 3);
        assert_eq!(
            parse(&["--ppn", "5", "a"]).unwrap().rank_count(8).unwrap(),
            5
        );
        assert_eq!(parse(&["a"]).unwrap().rank_count(8).unwrap(), 8);
        assert_eq!(parse(&["a"]).unwrap().rank_count(0).unwrap(), 1);
    }

    #[test]
    fn what_is_no_number_is_refused_with_what_it_must_be() {
        for (words, said) in [
            (["-n", "two"], "a whole number from 1 to 4294967295"),
            (["-n", "-1"], "a whole number from 1 to 4294967295"),
            (["-n", "4294967296"], "a whole number from 1 to 4294967295"),
            (["--ppn", "1.5"], "a whole number from 1 to 4294967295"),
            (["--retries", "-1"], "a whole number from 0 to 9"),
            (["--shm-size", "-1"], "no size"),
            (["--timeout", "1m"], "a number of seconds"),
            (["--host-timeout", "long"], "a number of seconds"),
        ] {
            let text = parse(&[words[0], words[1], "a"]).unwrap_err().to_string();
            assert!(text.contains(said) && text.contains(words[1]), "{text}");
        }
    }

    #[test]
    fn fewer_than_one_rank_or_more_than_one_machine_is_refused() {
        for words in [["-n", "0"], ["--ppn", "0"]] {
            let arguments = parse(&[words[0], words[1], "a"]).unwrap();
            assert!(
                matches!(arguments.rank_count(4), Err(Fault::Usage(_))),
                "{words:?}"
            );
        }
        let fault = parse(&["-n", "5", "--ppn", "2", "a"])
            .unwrap()
            .rank_count(4)
            .unwrap_err();
        assert!(fault.to_string().contains("3 machines"), "{fault}");
    }

    #[test]
    fn far_more_ranks_than_cores_must_be_meant() {
        let plain = parse(&["-n", "100000", "a"]).unwrap();
        let text = plain
            .check_ranks_per_core(100_000, 2)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("100000 ranks") && text.contains("--oversubscribe"),
            "{text}"
        );
        assert!(
            plain.check_ranks_per_core(512, 2).is_ok()
                && plain.check_ranks_per_core(u32::MAX, u32::MAX).is_ok()
        );
        assert!(plain.check_ranks_per_core(513, 2).is_err());
        let meant = parse(&["-n", "100000", "--oversubscribe", "a"]).unwrap();
        assert!(meant.check_ranks_per_core(100_000, 2).is_ok());
    }

    #[test]
    fn ranks_are_bound_only_while_each_has_a_core() {
        let bound = |how: &str, ranks| parse(&["--bind", how, "a"]).unwrap().bound(ranks, 2);
        assert!(bound("auto", 2).unwrap() && bound("core", 2).unwrap());
        assert!(!bound("auto", 3).unwrap() && !bound("none", 1).unwrap());
        assert!(
            bound("core", 3)
                .unwrap_err()
                .to_string()
                .contains("may use 2")
        );
    }

    #[test]
    fn the_last_of_repeated_options_counts_and_variables_add_up() {
        let arguments =
            parse(&["-n", "2", "--env", "A=1", "-n", "3", "--env", "B=2", "a"]).unwrap();
        assert_eq!(
            (arguments.ranks, arguments.rank.variables.len()),
            (Some(3), 2)
        );
    }

    #[test]
    fn time_limit_must_be_positive_and_finite() {
        assert_eq!(
            parse(&["--timeout", "1.5", "a"])
                .unwrap()
                .time_limit()
                .unwrap()
                .unwrap()
                .as_millis(),
            1500
        );
        for bad in ["0", "-1", "inf", "NaN", "1e300"] {
            let arguments = parse(&[&format!("--timeout={bad}"), "a"]).unwrap();
            assert!(arguments.time_limit().is_err(), "{bad}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft env`: prints what `weft exec` sets, as commands of a shell, for jobs whose ranks cannot
//! have a wrapper in front of them.
//!
//! Called by `weft`; the variables are those of `ranks.rs`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, Parser};

use crate::environment::Environment;
use crate::fault::Fault;
use crate::program::{self, Binding, Program};
use crate::rank_arguments::RankArguments;
use crate::ranks::{self, Place};
use crate::shell::Shell;
use crate::stderr::{self, say};
use crate::{cores, job_key};

/// What may stand behind `weft env`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft env",
    no_binary_name = true,
    disable_version_flag = true,
    args_override_self = true,
    about = "Print the variables that weft exec sets, as commands of a shell",
    after_help = AFTER_HELP
)]
struct EnvArguments {
    /// How the ranks are set up.
    #[command(flatten)]
    rank: RankArguments,
    /// The shell whose commands are printed
    #[arg(long, value_enum, default_value_t = Shell::Sh, value_name = "SHELL")]
    shell: Shell,
    /// Also make and print a key for a job on several hosts, unless one is set. Standard output
    /// must be a pipe, as in eval "$(weft env --key)"
    #[arg(long)]
    key: bool,
    /// As --key, but print no other variable: for a batch script that starts its ranks with weft
    /// exec
    #[arg(long, conflicts_with_all = ["key", "ppn", "program"])]
    only_key: bool,
    /// Ranks on each host, if there are more ranks than cores
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    ppn: u32,
    /// The program that the ranks run [default: any program of the first MPI that is found]
    program: Option<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  eval \"$(weft env)\"; mpirun -n 4 ./code              sh, bash, zsh
  eval `weft env --shell csh`; mpirun -n 4 ./code     csh, tcsh
  weft env --shell fish | source; mpirun -n 4 ./code
  eval \"$(weft env --mpi openmpi --key)\"              a job on several hosts, in its batch script

Every program that the shell starts preloads the shell's libraries. So here --heap is private
and --yield is system unless you say otherwise. What --libfabric or WEFT_LIBFABRIC names is among
these libraries: every program of the shell loads it, also one without MPI. weft exec needs none of
this. docs/exec.md says more.";

/// The command line of `weft env`, as a shell completes it.
#[must_use]
pub fn command_line() -> Command {
    let command = EnvArguments::augment_args(Command::new("weft env"));
    let command = command.mut_arg("heap", |heap| heap.default_value("private"));
    command.mut_arg("yielding", |kind| kind.default_value("system"))
}

/// Prints the variables; returns the exit code.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let parsed = command_line().try_get_matches_from(&words);
    let read = |matches: ArgMatches| EnvArguments::from_arg_matches(&matches);
    let arguments = match parsed.and_then(read) {
        Ok(arguments) => arguments,
        Err(error) => {
            let line = stderr::CommandLine {
                tool: "weft env",
                example: "",
                command: command_line(),
                words: &words,
            };
            return stderr::refusal(&error, line);
        }
    };
    match text(&arguments).and_then(|text| {
        let written = io::stdout().write_all(text.as_encoded_bytes());
        written.map_err(Fault::system("writing to standard output"))
    }) {
        Ok(()) => 0,
        Err(fault) => {
            say!("weft env: {fault}");
            fault.exit_code()
        }
    }
}

fn text(arguments: &EnvArguments) -> Result<OsString, Fault> {
    if arguments.only_key {
        let mut environment = Environment::default();
        add_key(&mut environment, arguments)?;
        return Ok(commands(arguments.shell, &environment, |_| false));
    }
    let program = match &arguments.program {
        Some(name) => program::inspect_here(name)?,
        None => Program {
            path: PathBuf::from("the program"),
            binding: Binding::AtRunTime,
        },
    };
    let place = Place::of_this_process()?;
    let chosen = place.mpi(&arguments.rank.mpi, &program)?;
    let mut standing = place.standing();
    if place.started.is_none() {
        standing.local_ranks = arguments.ppn;
        standing.cores = cores::allowed().usable_count;
    }
    let mpi = &chosen.installation;
    let mut ready = ranks::ready(&arguments.rank, &program, mpi, standing)?;
    say!("weft env: for {}", mpi.describe());
    if arguments.key {
        add_key(&mut ready.environment, arguments)?;
    }
    Ok(commands(arguments.shell, &ready.environment, |name| {
        std::env::var_os(name).is_some()
    }))
}

/// A fresh key, unless the user has decided.
fn add_key(environment: &mut Environment, arguments: &EnvArguments) -> Result<(), Fault> {
    if job_key::is_wanted(&arguments.rank.variables) {
        check_pipe()?;
        let key = job_key::fresh()?;
        environment.set(job_key::VARIABLE, &**key);
    }
    Ok(())
}

/// A key in a file or on a terminal would stay there.
fn check_pipe() -> Result<(), Fault> {
    let owned = io::stdout().as_fd().try_clone_to_owned();
    let facts = owned.and_then(|descriptor| File::from(descriptor).metadata());
    if facts.is_ok_and(|facts| facts.file_type().is_fifo()) {
        return Ok(());
    }
    Err(Fault::Usage(
        "--key: standard output must be a pipe, because a file or a terminal would keep the key; \
         write eval \"$(weft env --key)\""
            .into(),
    ))
}

/// The changes as commands, one on a line. `is_set` tells which of the removed variables need one.
fn commands(shell: Shell, environment: &Environment, is_set: impl Fn(&str) -> bool) -> OsString {
    let mut text = OsString::new();
    for name in environment.removed().filter(|name| is_set(name)) {
        text.push(shell.unset(OsStr::new(name)));
        text.push("\n");
    }
    for (name, value) in &environment.set {
        text.push(shell.set(OsStr::new(name), value));
        text.push("\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_and_what_contradicts_it_becomes_commands() {
        let mut environment = Environment::default();
        environment.set("FI_PROVIDER", "weft");
        environment.remove(&["OMPI_MCA_btl", "ABSENT", "FI_PROVIDER"]);
        let text = commands(Shell::Sh, &environment, |name| name != "ABSENT");
        assert_eq!(text, "unset OMPI_MCA_btl;\nexport FI_PROVIDER=weft;\n");
    }

    #[test]
    fn nothing_is_preloaded_unless_it_is_asked_for() {
        let parse = |words: &[&str]| {
            let matches = command_line()
                .no_binary_name(true)
                .try_get_matches_from(words);
            EnvArguments::from_arg_matches(&matches.unwrap()).unwrap()
        };
        use crate::rank_arguments::{Heap, Yield};
        assert_eq!(parse(&[]).rank.heap, Heap::Private);
        assert_eq!(parse(&[]).rank.yielding, Yield::System);
        assert_eq!(parse(&["--heap", "auto"]).rank.heap, Heap::Auto);
        assert_eq!(parse(&["./code"]).program, Some("./code".into()));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft completions`: what a shell completes behind `weft`. It is made from the definitions that
//! parse the words, so it knows each tool, option, benchmark and variable that there is.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use weft_doctor::arguments::{DoctorArguments, InfoArguments};
use weft_doctor::top::TopArguments;

/// `command` with the words of each tool, which it parses on its own, and without those tools that
/// only Weft itself starts.
fn whole(command: &Command) -> Command {
    let tools = [
        ("run", weft_launch::arguments::command_line()),
        ("import", weft_job::import::Arguments::command()),
        ("exec", weft_launch::exec::command_line()),
        ("env", weft_launch::env::command_line()),
        ("bench", weft_bench::command_line()),
        ("doctor", DoctorArguments::command()),
        ("sim", weft_netsim::options::Options::command()),
        ("soak", weft_soak::options::Options::command()),
        ("top", TopArguments::command()),
        ("info", InfoArguments::command()),
    ];
    let tools = tools.map(|(name, tool)| {
        let named = command.find_subcommand(name);
        let about = named.and_then(Command::get_about).cloned();
        tool.name(name).about(about.unwrap_or_default())
    });
    let own = command.find_subcommand("completions").cloned();
    Command::new("weft").subcommands(tools).subcommands(own)
}

/// Prints it; answers the exit code.
pub(crate) fn print(shell: Shell, command: &Command) -> u8 {
    let mut script = Vec::new();
    generate(shell, &mut whole(command), "weft", &mut script);
    let printed = io::stdout().write_all(&script);
    match printed {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("weft completions: cannot write to standard output: {error}");
            1
        }
    }
}

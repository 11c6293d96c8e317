// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The whole command line of `weft` in one definition. `main.rs` parses only the first word; each
//! tool parses the words behind it.
//!
//! Called by `completions.rs` and `manual.rs`, so that no tool, option or benchmark is named twice.

use clap::{Command, CommandFactory};
use weft_doctor::arguments::{DoctorArguments, InfoArguments};
use weft_doctor::top::TopArguments;

use crate::mount;

/// `command` with the words of each tool, and without those tools that only Weft itself starts.
pub(crate) fn whole(command: &Command) -> Command {
    let tools = [
        ("run", weft_launch::arguments::command_line()),
        ("submit", weft_slurm::submit::command_line()),
        ("jobs", weft_slurm::jobs::command_line()),
        ("logs", weft_slurm::logs::command_line()),
        ("cancel", weft_slurm::cancel::command_line()),
        ("wait", weft_slurm::wait::command_line()),
        ("import", weft_job::import::Arguments::command()),
        ("export", weft_job::export::Arguments::command()),
        ("exec", weft_launch::exec::command_line()),
        ("env", weft_launch::env::command_line()),
        ("bench", weft_bench::command_line()),
        ("doctor", DoctorArguments::command()),
        ("sim", weft_netsim::options::Options::command()),
        ("soak", weft_soak::options::Options::command()),
        ("top", TopArguments::command()),
        ("mount", mount::command_line()),
        ("info", InfoArguments::command()),
    ];
    let tools = tools.map(|(name, tool)| {
        let named = command.find_subcommand(name);
        let short = named.and_then(Command::get_about).cloned();
        let own = tool.get_about().cloned();
        let tool = tool.name(name).about(short.unwrap_or_default());
        match own {
            Some(own) => tool.long_about(own),
            None => tool,
        }
    });
    let own = command.find_subcommand("completions").cloned();
    Command::new("weft")
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default())
        .after_help(command.get_after_help().cloned().unwrap_or_default())
        .subcommands(tools)
        .subcommands(own)
}

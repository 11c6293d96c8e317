// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench`: starts the crate that runs the named benchmark.
//!
//! - weft-osu: benchmarks with the options and output of the OSU micro-benchmarks
//! - weft-io: `ior` and `mdtest`
//! - weft-npb: the kernels `ft` and `is` of the NAS Parallel Benchmarks
//! - weft-mount-bench: `mount`, which measures weft-mount beside its peers
//! - weft-compare: `compare`, `app` and `figures`, which start jobs of their own
#![forbid(unsafe_code)]

use std::ffi::OsString;

use clap::CommandFactory;
use weft_compare::{app, compare, figures};
use weft_io::{ior, mdtest};
use weft_osu::{catalogue, options, runner};
use weft_ranks::refusal::Refusal;
use weft_ranks::{EXIT_OK, EXIT_USAGE, say};

/// Runs `weft bench` with the arguments after `bench`; returns the process's exit code. Several
/// benchmarks, with commas in between, run one after the other in the same job.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let mut arguments = arguments.into_iter();
    let Some(name) = arguments.next() else {
        eprint!("{}", catalogue::overview());
        return EXIT_USAGE;
    };
    let rest: Vec<OsString> = arguments.collect();
    let name = name.to_string_lossy().into_owned();
    if let Some(kernel) = weft_npb::Kernel::named(&name) {
        return weft_npb::run(kernel, rest);
    }
    match name.as_str() {
        "-h" | "--help" | "help" => {
            print!("{}", catalogue::overview());
            EXIT_OK
        }
        "compare" => compare::run(rest),
        "ior" => ior::run(rest),
        "mdtest" => mdtest::run(rest),
        "app" => app::run(rest),
        "figures" => figures::run(rest),
        "mount" => weft_mount_bench::run(rest),
        _ => match find_all(&name) {
            Ok(descriptions) => runner::run(&descriptions, rest),
            Err(text) => {
                say!("{text}");
                EXIT_USAGE
            }
        },
    }
}

/// The command line of `weft bench`, for completions and manual pages: the names, and the options
/// of those that start jobs of their own.
#[must_use]
pub fn command_line() -> clap::Command {
    let starters = [
        ("compare", compare::arguments::Settings::command()),
        ("app", app::arguments::Settings::command()),
        ("figures", figures::settings::Settings::command()),
        ("mount", weft_mount_bench::settings::Settings::command()),
    ];
    let is_starter = |name: &&str| starters.iter().any(|(starter, _)| starter == name);
    let names: Vec<&str> = catalogue::names()
        .filter(|name| !is_starter(name))
        .collect();
    clap::Command::new("bench")
        .after_help(catalogue::overview())
        .subcommands(names.into_iter().map(clap::Command::new))
        .subcommands(starters.map(|(name, command)| command.name(name)))
}

/// The options that the benchmarks of the catalogue share, for the manual page.
#[must_use]
pub fn benchmark_options() -> clap::Command {
    options::command_line()
}

/// What is wrong with the arguments after `bench`, before any MPI is started: `weft run` asks once,
/// where each rank would say it. `None` when nothing is, or when the words ask for help.
#[must_use]
pub fn refusal(arguments: &[OsString]) -> Option<String> {
    let (name, rest) = arguments.split_first()?;
    let name = name.to_str()?;
    let words = || -> Vec<String> {
        let text = |one: &OsString| one.to_string_lossy().into_owned();
        rest.iter().map(text).collect()
    };
    let titled = |refusal| match refusal {
        Refusal::BadUsage(text) => Some(format!("weft bench {name}: {text}")),
        Refusal::Answer(_) => None,
    };
    match name {
        "-h" | "--help" | "help" | "compare" | "app" | "figures" | "mount" | "ft" | "is" => None,
        "ior" => ior::options::parse(&words()).err().and_then(titled),
        "mdtest" => mdtest::options::parse(&words()).err().and_then(titled),
        _ => {
            match find_all(name) {
                Ok(descriptions) => descriptions.into_iter().find_map(|description| {
                    match options::parse(description, rest.to_vec()) {
                        Err(Refusal::BadUsage(text)) => Some(text.trim_end().to_owned()),
                        _ => None,
                    }
                }),
                Err(text) => Some(text),
            }
        }
    }
}

/// Benchmarks by their names, with commas in between.
///
/// # Errors
/// A line that names the one that is not known, and the nearest that is.
fn find_all(names: &str) -> Result<Vec<&'static weft_osu::description::Description>, String> {
    let known = |name| catalogue::find(name).ok_or_else(|| catalogue::unknown(name));
    names.split(',').map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        refusal(&words)
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_known_before_a_job_starts() {
        for (line, words) in [
            ("latancy", "'latancy'; did you mean latency?"),
            ("osu_bcst", "did you mean bcast?"),
            ("bw,latncy", "'latncy'; did you mean latency?"),
            ("mdtst -n 5", "did you mean mdtest?"),
            ("zzzz", "`weft bench` lists them"),
            ("latency -i 0", "-i 0: must be at least 1"),
            ("latency --sise 4", "--sise"),
            ("ior -b x", "weft bench ior:"),
            ("mdtest --nonsense", "weft bench mdtest:"),
        ] {
            let text = refused(line).unwrap();
            assert!(text.contains(words), "{line}: {text}");
        }
        for line in [
            "",
            "--help",
            "latency -m 1:8",
            "latency --help",
            "ior -h",
            "ft -h",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
    }
}

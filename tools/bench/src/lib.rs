// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench`: MPI benchmarks that speak the OSU micro-benchmarks' options and output, and a
//! comparison of MPIs and transports.
//!
//! The benchmarks run inside an MPI job, on whichever MPI started it (weft-mpi finds it), so one
//! binary yields comparable figures for all of them. The options, defaults and output lines are
//! those of OSU 7.5, so existing parsers (ReFrame, Ramble) read them; the code is written from the
//! description of what those benchmarks do.
//!
//! In the order of a run:
//! - [`catalogue`]: the list of benchmarks: name, title, defaults, constructor
//! - [`options`]: the command line, checked, as [`options::Settings`]; `words` for commands that
//!   spell theirs as IOR does
//! - [`runner`]: initialise MPI, measure each size, print, agree on the exit code
//! - [`pt2pt`]: one small file per benchmark; [`collective`]: every collective in every form;
//!   [`one_sided`]: windows;
//!   [`startup`]: init and hello
//! - [`pace`]: fewer iterations where a size would take too long
//! - [`timing`]: the timed loops, the same for all; [`pattern`]: message contents that depend on
//!   size, iteration and rank
//! - [`calendar`]: dates for the outputs
//! - [`agree`]: figures that ranks put together; [`statistics`]: medians and percentiles
//! - [`mod@format`]: rows as OSU 7.5 text, OSU 5 text or JSON lines
//! - [`ior`]: parallel reading and writing of files, as IOR does
//! - [`mdtest`]: many files and directories, as mdtest does
//! - [`npb`]: the kernels FT and IS of the NAS Parallel Benchmarks
//! - [`report`]: figures, tables and the HTML page that holds them
//! - [`compare`]: runs many of the above interleaved, over several MPIs and transports, and reports
//!   medians with their spread
//! - [`app`]: the same for whole programs: HPC Challenge, LAMMPS, GROMACS, OpenFOAM
//! - [`figures`]: published effects, shown again on one page
//! - `say`: what a rank says on stderr; `exit`: exit codes
//! - `job`: a job of `weft run` that `compare` or `app` waits for
//!
//! What is measured: the plain loop is timed in 25 blocks of iterations, with a clock reading
//! between them. Options that need single iterations (-c, -z, -f) time each one, which adds the
//! cost of a clock reading (some 20 ns) to it. The clock is the system's monotonic one and not
//! MPI_Wtime, so that all MPIs are measured with the same ruler.
#![forbid(unsafe_code)]

#[macro_use]
mod say;

pub mod agree;
pub mod app;
pub mod calendar;
pub mod catalogue;
pub mod collective;
pub mod compare;
mod exit;
pub mod figures;
pub mod format;
pub mod ior;
mod job;
pub mod mdtest;
pub mod npb;
pub mod one_sided;
pub mod options;
pub mod pace;
pub mod pattern;
pub mod pt2pt;
pub mod report;
pub mod runner;
pub mod startup;
pub mod statistics;
pub mod timing;
mod words;

use std::ffi::OsString;

pub use exit::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};

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
    if let Some(kernel) = npb::Kernel::named(&name) {
        return npb::run(kernel, rest);
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
        _ => match find_all(&name) {
            Ok(descriptions) => runner::run(&descriptions, rest),
            Err(text) => {
                say!("{text}");
                EXIT_USAGE
            }
        },
    }
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
        options::Refusal::BadUsage(text) => Some(format!("weft bench {name}: {text}")),
        options::Refusal::Answer(_) => None,
    };
    match name {
        "-h" | "--help" | "help" | "compare" | "app" | "figures" | "ft" | "is" => None,
        "ior" => ior::options::parse(&words()).err().and_then(titled),
        "mdtest" => mdtest::options::parse(&words()).err().and_then(titled),
        _ => {
            match find_all(name) {
                Ok(descriptions) => descriptions.into_iter().find_map(|description| {
                    match options::parse(description, rest.to_vec()) {
                        Err(options::Refusal::BadUsage(text)) => Some(text.trim_end().to_owned()),
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
fn find_all(names: &str) -> Result<Vec<&'static catalogue::Description>, String> {
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

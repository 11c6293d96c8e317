// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench compare`.
//!
//! Called by compare; read by plan, leg and files.

use crate::catalogue;
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;

/// The options, checked.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "weft bench compare",
    about = "Compare Weft with each MPI's own transport and TCP on this machine"
)]
pub struct Settings {
    /// MPIs, as `weft run --mpi` knows them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MPI,...",
        default_value = "openmpi,mpich,intel,debian-openmpi,debian-mpich"
    )]
    pub mpi: Vec<String>,
    /// Transports, as `weft run --transport` knows them [default: weft,native,tcp; with --quick: weft,native]
    #[arg(
        long = "transport",
        value_delimiter = ',',
        value_name = "TRANSPORT,..."
    )]
    pub transports: Vec<String>,
    /// Benchmarks [default: latency,bw,alltoallw; with --quick: latency,bw]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", value_parser = known_benchmark)]
    pub benchmarks: Vec<String>,
    /// Rounds, in each of which every run takes its turn [default: 7; with --quick: 3]
    #[arg(
        short = 'r',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub rounds: usize,
    /// Ranks of the benchmarks that take more than two [default: 2 for each core, at least 4 and at most 16]
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub ranks: usize,
    /// Message sizes, as for a single benchmark
    #[arg(short = 'm', long = "message-size", value_name = "[MIN:]MAX")]
    pub sizes: Option<String>,
    /// Factor on OSU's default iterations [default: 1; with --quick: 0.1]
    #[arg(
        long = "repeat-scale",
        value_name = "FACTOR",
        default_value_t = 0.0,
        hide_default_value = true
    )]
    pub scale: f64,
    /// Few and short rounds, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results; made when missing
    #[arg(long, value_name = "FOLDER", default_value = "report")]
    pub out: PathBuf,
    /// Seconds after which one run is ended and counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub timeout: u64,
    /// Print the summary as JSON and no table
    #[arg(long)]
    pub json: bool,
    /// The weft executable to start [default: this one]
    #[arg(long, value_name = "FILE", hide = true)]
    pub weft: Option<PathBuf>,
}

fn known_benchmark(name: &str) -> Result<String, String> {
    match catalogue::find(name) {
        Some(description) => Ok(description.name.to_owned()),
        None => {
            let names: Vec<_> = catalogue::CATALOGUE
                .iter()
                .map(|description| description.name)
                .collect();
            Err(format!("must be one of {}", names.join(", ")))
        }
    }
}

/// Parses and fills the defaults in that depend on --quick.
///
/// # Errors
/// clap's own, which also carries the help text.
pub fn parse(arguments: Vec<OsString>) -> Result<Settings, clap::Error> {
    let mut settings =
        Settings::try_parse_from(std::iter::once("weft bench compare".into()).chain(arguments))?;
    let quick = settings.quick;
    let words = |list: &[&str]| {
        list.iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    if settings.transports.is_empty() {
        settings.transports = words(if quick {
            &["weft", "native"]
        } else {
            &["weft", "native", "tcp"]
        });
    }
    if settings.benchmarks.is_empty() {
        settings.benchmarks = words(if quick {
            &["latency", "bw"]
        } else {
            &["latency", "bw", "alltoallw"]
        });
    }
    if settings.rounds == 0 {
        settings.rounds = if quick { 3 } else { 7 };
    }
    if settings.scale == 0.0 {
        settings.scale = if quick { 0.1 } else { 1.0 };
    }
    if settings.ranks == 0 {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        settings.ranks = (cores * 2).clamp(4, 16);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Settings {
        parse(words.iter().map(OsString::from).collect()).expect("good usage")
    }

    #[test]
    fn quick_is_short_and_keeps_what_was_said() {
        let quick = parsed(&["--quick"]);
        assert_eq!(
            (quick.rounds, quick.benchmarks.len(), quick.transports.len()),
            (3, 2, 2)
        );
        let said = parsed(&[
            "--quick",
            "-r",
            "5",
            "--transport",
            "tcp",
            "--benchmarks",
            "barrier,osu_bcast",
        ]);
        assert_eq!((said.rounds, said.transports), (5, vec!["tcp".to_owned()]));
        assert_eq!(said.benchmarks, ["barrier", "bcast"]);
    }

    #[test]
    fn unknown_benchmark_is_refused_with_the_list() {
        let error = parse(vec!["--benchmarks".into(), "lat".into()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("lat") && error.contains("latency, bw"),
            "{error}"
        );
    }
}

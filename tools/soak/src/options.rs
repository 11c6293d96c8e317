// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words behind `weft soak`.
//!
//! Parsed by the crate's entry.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::fault::FaultSet;

/// Send random messages between processes under faults, and check every one of them
#[derive(Clone, Debug, Parser)]
#[command(name = "weft soak", bin_name = "weft soak", after_help = EXAMPLES)]
pub struct Options {
    /// How long, in minutes: 0.1 to 10000
    #[arg(long, value_name = "M", default_value = "3", value_parser = minutes)]
    #[arg(allow_negative_numbers = true)]
    pub minutes: f64,
    /// The seed of everything random (default: drawn, and printed)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Which way messages go
    #[arg(long, value_name = "ROUTE", default_value = "both")]
    pub route: Route,
    /// Processes: 2 to 32
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u8).range(2..=32),
        allow_negative_numbers = true
    )]
    pub ranks: u8,
    /// all, none, or some of these with commas in between: loss, duplication, reordering,
    /// corruption, replay, paths, firewall, pause, suspend, kill, fork, close, away, deaf, lazy
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub faults: FaultSet,
    /// Print one JSON object at the end instead of sentences
    #[arg(long)]
    pub json: bool,
    /// Go on after a finding, and count all findings
    #[arg(long)]
    pub keep_going: bool,
    /// Repeat one job of the run with --seed S: the number that a finding names
    #[arg(
        long,
        value_name = "J",
        requires = "seed",
        allow_negative_numbers = true
    )]
    pub job: Option<u64>,
    /// Folder of libweft-fi.so (default: WEFT_PROVIDER_DIR, else ../lib/weft from this program)
    #[arg(long, value_name = "DIR")]
    pub provider_dir: Option<PathBuf>,
    /// libfabric's file (default: the libfabric.so.1 that the loader finds)
    #[arg(long, value_name = "PATH")]
    pub libfabric: Option<PathBuf>,
    /// What a worker is; the soak itself passes it
    #[arg(long, hide = true)]
    pub worker: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  weft soak --minutes 10                         both routes, all faults
  weft soak --route srd --faults loss,kill       only datagrams, only these faults
  weft soak --seed 7 --job 12                    job 12 of the run with seed 7 again

Exit codes: 0 nothing was found, 1 something was, or the soak could not run, 2 wrong usage.
Faults of the network need root (also that of a user namespace), ip and /dev/net/tun.";

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// Shared memory.
    Shm,
    /// Datagrams.
    Srd,
    /// Shared memory inside a host and datagrams between two.
    Both,
}

impl Route {
    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Srd => "srd",
            Self::Both => "both",
        }
    }
}

impl Options {
    /// How long.
    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0)
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=10_000.0).contains(&number) {
        return Ok(number);
    }
    Err("must be from 0.1 to 10000 minutes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_refused_with_their_limits() {
        let refused = |words: &[&str]| {
            let all = ["weft soak"].iter().chain(words).copied();
            Options::try_parse_from(all).unwrap_err().to_string()
        };
        assert!(refused(&["--minutes", "0"]).contains("0.1 to 10000"));
        assert!(refused(&["--minutes", "NaN"]).contains("0.1 to 10000"));
        assert!(refused(&["--ranks", "33"]).contains("2..=32"));
        assert!(refused(&["--faults", "rain"]).contains("rain"));
        let options = Options::try_parse_from(["weft soak"]).unwrap();
        assert_eq!(options.length(), Duration::from_secs(180));
    }
}

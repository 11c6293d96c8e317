// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench app`.
//!
//! Called by app; read by rounds and table.

use super::program::{self, Size};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::PathBuf;

/// The options, checked.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "weft bench app",
    about = "Run a real program over several transports in turn, check that the results agree, and report its own figure",
    after_help = "The programs come from Debian's packages, which are linked to Debian's Open MPI, hence the default of --mpi.\n\
                       Exit codes: 0 all ran and agree; 1 not installed, a run failed, or results differ; 2 wrong usage."
)]
pub struct Settings {
    /// What to run: hpcc, lammps, gromacs or openfoam
    #[arg(value_name = "PROGRAM", value_parser = known)]
    pub program: String,
    /// Transports, as `weft run --transport` knows them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TRANSPORT,...",
        default_value = "weft,native,tcp"
    )]
    pub transports: Vec<String>,
    /// The MPI that the program is linked to, as `weft run --mpi` knows it
    #[arg(long, value_name = "MPI", default_value = "debian-openmpi")]
    pub mpi: String,
    /// Ranks
    #[arg(short = 'n', long = "np", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub ranks: u16,
    /// Runs over each transport [default: 5, with --quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Small input: seconds instead of minutes
    #[arg(long)]
    pub quick: bool,
    /// End a run after SECONDS and call it failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// Set a variable for the ranks of all runs; may be repeated
    #[arg(long = "env", value_name = "K=V")]
    pub environment: Vec<String>,
    /// JSON lines instead of a table
    #[arg(long)]
    pub json: bool,
    /// Copy inputs and outputs of all runs to this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

impl Settings {
    /// Runs over each transport.
    pub fn rounds(&self) -> usize {
        usize::from(self.rounds.unwrap_or(if self.quick { 3 } else { 5 }))
    }

    /// How large the input is.
    pub fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Usual }
    }
}

fn known(name: &str) -> Result<String, String> {
    if program::names().contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "'{name}' is none of the programs {}",
        program::names().join(", ")
    ))
}

/// Reads the words after `app`.
///
/// # Errors
/// Wrong usage, or a question for help.
pub fn parse(words: Vec<OsString>) -> Result<Settings, clap::Error> {
    let name = std::iter::once(OsString::from("weft bench app"));
    let settings = Settings::try_parse_from(name.chain(words))?;
    let complain = |text: String| clap::Error::raw(ErrorKind::ValueValidation, text + "\n");
    let mut seen = std::collections::BTreeSet::new();
    for transport in &settings.transports {
        if transport.is_empty() || !seen.insert(transport) {
            return Err(complain(format!(
                "--transports: '{transport}' is empty or comes twice"
            )));
        }
    }
    if let Some(bad) = settings
        .environment
        .iter()
        .find(|text| text.find('=').is_none_or(|at| at == 0))
    {
        return Err(complain(format!("--env: '{bad}' has no form NAME=VALUE")));
    }
    if let Some(place) = settings.keep.as_ref().filter(|place| place.exists()) {
        return Err(complain(format!(
            "--keep: {} exists already; name a folder that does not",
            place.display()
        )));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Settings, clap::Error> {
        parse(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn bad_usage_is_told_with_the_value() {
        for (words, named) in [
            (&["namd"][..], "namd"),
            (&["hpcc", "--rounds", "0"], "0"),
            (&["hpcc", "--transports", "weft,weft"], "comes twice"),
            (&["hpcc", "--env", "X"], "'X'"),
            (&["hpcc", "--keep", "/"], "exists already"),
            (&["hpcc", "-n", "0"], "0"),
            (&[], "PROGRAM"),
        ] {
            let error = parsed(words).expect_err("bad usage");
            assert!(
                error.use_stderr() && error.to_string().contains(named),
                "{error}"
            );
        }
    }

    #[test]
    fn quick_means_a_small_input_and_few_rounds() {
        let quick = parsed(&["lammps", "--quick"]).expect("good usage");
        assert_eq!((quick.size(), quick.rounds()), (Size::Quick, 3));
        let usual = parsed(&["lammps", "--rounds", "7"]).expect("good usage");
        assert_eq!((usual.size(), usual.rounds()), (Size::Usual, 7));
        assert_eq!(usual.transports, ["weft", "native", "tcp"]);
    }
}

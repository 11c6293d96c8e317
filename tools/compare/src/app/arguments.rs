// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench app`.
//!
//! Called by app; read by rounds and table.

use super::list;
use super::program::Size;
use crate::compare::configuration::{BEFORE, Configuration, has_known_variant};
use crate::compare::place::Place;
use crate::testbed::network::Network;
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::PathBuf;

/// Who takes part: a transport, with variables of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entrant {
    /// What it is called in tables.
    pub name: String,
    /// As `weft run --transport` knows it, with its variant: `weft`, `weft+mpi`.
    pub transport: String,
    /// `K=V` for its ranks alone.
    pub environment: Vec<String>,
}

impl Entrant {
    /// It under an MPI.
    pub fn configuration(&self, mpi: &str) -> Configuration {
        Configuration::new(mpi, &self.transport)
    }
}

/// The options, checked.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "weft bench app",
    about = "Run a real program over several transports in turn, check that the results agree, \
        and report its own figure",
    after_help = "The programs come from Debian's packages, which are linked to Debian's Open \
        MPI, hence the default of --mpi.\n\
                       Exit codes: 0 all ran and agree; 1 not installed, a run failed, or results \
                       differ; 2 wrong usage."
)]
pub struct Settings {
    /// What to run: hpcc, lammps, gromacs, openfoam, ft or is
    #[arg(value_name = "PROGRAM", value_parser = known)]
    pub program: String,
    /// Transports, as `weft run --transport` knows them; weft+mpi is Weft with the MPI's own
    /// collectives (weft run --collectives mpi), TRANSPORT+plain and TRANSPORT+pause as in `weft
    /// bench compare` [default: weft,native,tcp; between hosts: weft,tcp]
    #[arg(long, value_delimiter = ',', value_name = "TRANSPORT,...")]
    pub transports: Vec<String>,
    /// Instead of --transports: Weft with the variables K=V, called NAME; given twice or more,
    /// these are compared
    #[arg(
        long = "variant",
        value_name = "NAME:K=V,...",
        value_parser = variant,
        conflicts_with = "transports"
    )]
    pub variants: Vec<Entrant>,
    /// One of the program's cases. LAMMPS: melt (the default) or water (PPPM). OpenFOAM: cavity
    /// (the default), pitzdaily or motorbike; the last two need openfoam-examples
    #[arg(long = "case", value_name = "CASE")]
    pub case: Option<String>,
    /// The MPI that the program is linked to, as `weft run --mpi` knows it
    #[arg(long, value_name = "MPI", default_value = "debian-openmpi")]
    pub mpi: String,
    /// Hosts of the ranks, as `weft run --hosts` takes them; the folder of the runs (TMPDIR) must
    /// be the same on all of them
    #[arg(long, value_name = "HOST,...")]
    pub hosts: Option<String>,
    /// Make hosts on this machine for the time of the runs, as `weft bench compare --testbed` does:
    /// direct, or paths=4,rate=500mbit,loss=1. Needs root
    #[arg(long, value_name = "NETWORK", conflicts_with = "hosts")]
    pub testbed: Option<Network>,
    /// The libfabric.so.1 that ranks over Weft load in place of the one that their MPI was linked
    /// to, as `weft run --libfabric` takes it
    #[arg(long, value_name = "FILE")]
    pub libfabric: Option<PathBuf>,
    /// Ranks
    #[arg(
        short = 'n',
        long = "np",
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub ranks: u16,
    /// Runs over each transport [default: 5, with --quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Small input: seconds instead of minutes
    #[arg(long)]
    pub quick: bool,
    /// End a run after SECONDS and call it failed
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=86400)
    )]
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

    /// Where the ranks run.
    pub fn place(&self) -> Place {
        match (&self.testbed, &self.hosts) {
            (Some(network), _) => Place::of_testbed(network),
            (_, Some(hosts)) => Place::of_hosts(hosts),
            _ => Place::default(),
        }
    }

    /// Who takes part, in the order of the command line.
    pub fn entrants(&self) -> Vec<Entrant> {
        if !self.variants.is_empty() {
            return self.variants.clone();
        }
        let plain = |transport: &String| Entrant {
            name: transport.clone(),
            transport: transport.clone(),
            environment: Vec::new(),
        };
        self.transports.iter().map(plain).collect()
    }

    /// How large the input is.
    pub fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Usual }
    }
}

fn known(name: &str) -> Result<String, String> {
    if list::names().contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "'{name}' is none of the programs {}",
        list::names().join(", ")
    ))
}

fn variant(text: &str) -> Result<Entrant, String> {
    let form = "write NAME:K=V,..., as in shared:FI_WEFT_ROUTE=shm";
    let (name, settings) = text
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| format!("'{text}' has no name before a colon; {form}"))?;
    let environment: Vec<String> = settings.split(',').map(str::to_owned).collect();
    if let Some(bad) = environment.iter().find(|one| !is_assignment(one)) {
        return Err(format!("'{bad}' has no form NAME=VALUE; {form}"));
    }
    Ok(Entrant {
        name: name.to_owned(),
        transport: "weft".to_owned(),
        environment,
    })
}

fn is_assignment(text: &str) -> bool {
    text.find('=').is_some_and(|at| at > 0)
}

/// Reads the words after `app`.
///
/// # Errors
/// Wrong usage, or a question for help.
pub fn parse(words: Vec<OsString>) -> Result<Settings, clap::Error> {
    let name = std::iter::once(OsString::from("weft bench app"));
    let mut settings = Settings::try_parse_from(name.chain(words))?;
    if settings.transports.is_empty() {
        let usual: &[&str] = match settings.place().is_here() {
            true => &["weft", "native", "tcp"],
            false => &["weft", "tcp"],
        };
        settings.transports = usual.iter().map(|name| (*name).to_owned()).collect();
    }
    let complain = |text: String| clap::Error::raw(ErrorKind::ValueValidation, text + "\n");
    let mut seen = std::collections::BTreeSet::new();
    for entrant in settings.entrants() {
        if entrant.name.is_empty() || !seen.insert(entrant.name.clone()) {
            return Err(complain(format!(
                "--transports, --variant: '{}' is empty or comes twice",
                entrant.name
            )));
        }
    }
    let known = |name: &&String| has_known_variant(name) && !name.ends_with(&format!("+{BEFORE}"));
    if let Some(bad) = settings.transports.iter().find(|name| !known(name)) {
        return Err(complain(format!(
            "--transports: '{bad}': after the + write mpi (weft run --collectives mpi), plain \
             (as a plain mpirun starts it), pause (weft run --yield pause) or again (once more)"
        )));
    }
    let cases = list::cases(&settings.program);
    if let Some(bad) = settings
        .case
        .as_ref()
        .filter(|case| !cases.contains(&case.as_str()))
    {
        return Err(complain(match cases.is_empty() {
            true => format!("--case: {} has only one case", settings.program),
            false => format!("--case: '{bad}' is none of {}", cases.join(", ")),
        }));
    }
    if let Some(bad) = settings
        .environment
        .iter()
        .find(|text| !is_assignment(text))
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
            (&["hpcc", "--transports", "weft+fast"], "weft+fast"),
            (&["hpcc", "--transports", "weft+before"], "weft+before"),
            (&["hpcc", "--env", "X"], "'X'"),
            (&["hpcc", "--keep", "/"], "exists already"),
            (&["hpcc", "-n", "0"], "0"),
            (&["hpcc", "--case", "cavity"], "only one case"),
            (&["lammps", "--case", "cavity"], "melt, water"),
            (&["openfoam", "--case", "submarine"], "submarine"),
            (&["hpcc", "--testbed", "paths=0"], "from 1 to 64"),
            (
                &["hpcc", "--testbed", "direct", "--hosts", "a,b"],
                "--hosts",
            ),
            (&["hpcc", "--variant", "shared"], "'shared'"),
            (&["hpcc", "--variant", "a:K=V,B"], "'B'"),
            (
                &["hpcc", "--variant", "a:K=V", "--variant", "a:K=W"],
                "comes twice",
            ),
            (
                &["hpcc", "--variant", "a:K=V", "--transports", "tcp"],
                "--transports",
            ),
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
        let between = parsed(&["lammps", "--testbed", "direct"]).expect("good usage");
        assert_eq!(between.transports, ["weft", "tcp"]);
        assert_eq!(between.place().hosts, "a0,b1");
    }

    #[test]
    fn variants_are_weft_with_variables_of_their_own() {
        let words = ["lammps", "--variant", "one:A=1,B=2", "--variant", "two:A=2"];
        let entrants = parsed(&words).expect("good usage").entrants();
        assert_eq!(entrants.len(), 2);
        assert_eq!(
            (entrants[0].name.as_str(), entrants[0].transport.as_str()),
            ("one", "weft")
        );
        assert_eq!(entrants[0].environment, ["A=1", "B=2"]);
    }
}

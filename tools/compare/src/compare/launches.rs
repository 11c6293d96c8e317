// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How `weft run` starts the runs of a comparison: its options, and the command that it makes of
//! them.
//!
//! Called by plan and app. The transports of one MPI get the same options except for the transport;
//! a test (tests/compare) compares the complete command lines and environments.

use super::builds::Builds;
use super::configuration::{BY_MPI, Configuration, PAUSE, PLAIN, Workload};
use super::job_start::{JobStart, Testbeds};
use super::place::Place;
use crate::error::Error;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The lines by which launchers are started, asked for once.
pub struct Launches<'a> {
    builds: Builds<'a>,
    testbeds: &'a Testbeds,
    known: BTreeMap<(Configuration, Place, usize), String>,
}

impl<'a> Launches<'a> {
    /// None known yet.
    pub fn of(builds: Builds<'a>, testbeds: &'a Testbeds) -> Self {
        Self {
            builds,
            testbeds,
            known: BTreeMap::new(),
        }
    }

    /// Empty where it could not be found out.
    pub fn line(&mut self, configuration: &Configuration, workload: &Workload) -> String {
        let key = (
            configuration.clone(),
            workload.place.clone(),
            workload.ranks,
        );
        let ask = || {
            dry_run(
                self.builds.launcher(configuration),
                configuration,
                &self.testbeds.job_start(&workload.place),
                workload.ranks,
            )
        };
        let line = self
            .known
            .entry(key)
            .or_insert_with(|| ask().unwrap_or_default());
        line.clone()
    }

    /// Whether a plain configuration is started as the one that `weft run` sets up: then it would
    /// be measured twice.
    pub fn repeats(&mut self, configuration: &Configuration, workload: &Workload) -> bool {
        if configuration.variant() != Some(PLAIN) {
            return false;
        }
        let full = Configuration::new(&configuration.mpi, configuration.carrier());
        let line = self.line(configuration, workload);
        !line.is_empty() && line == self.line(&full, workload)
    }
}

/// How `weft run` would start it there with so many ranks, without starting it.
///
/// # Errors
/// Why it cannot: the MPI or the transport is not here.
pub fn dry_run(
    program: &Path,
    configuration: &Configuration,
    job_start: &JobStart,
    ranks: usize,
) -> Result<String, Error> {
    let mut words = job_start.enter.clone();
    words.push(program.into());
    let output = Command::new(&words[0])
        .args(&words[1..])
        .arg("run")
        .args(run_options(configuration, job_start, ranks))
        .args(["--dry-run", "--"])
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .map_err(Error::start(program.display().to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    match complaint
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
    {
        Some(line) => Err(Error::Missing(
            line.trim_start_matches("weft run: ")
                .trim_start_matches("error: ")
                .to_owned(),
        )),
        None => Err(Error::failed(output.status, b"").about("weft run")),
    }
}

/// What `weft run` is told of a job: the runs of one workload differ in these words for their
/// configuration, and else only in whether a run over Weft must really go over Weft.
pub fn run_options(
    configuration: &Configuration,
    job_start: &JobStart,
    ranks: usize,
) -> Vec<OsString> {
    let ranks = ranks.to_string();
    let mut words = vec![
        "--mpi",
        &configuration.mpi,
        "--transport",
        configuration.carrier(),
        "-n",
        &ranks,
    ];
    match configuration.variant() {
        Some(PLAIN) => words.push("--plain"),
        Some(PAUSE) => words.extend(["--yield", "pause"]),
        Some(BY_MPI) => words.extend(["--collectives", "mpi"]),
        _ => {}
    }
    let words = words.into_iter().map(OsString::from);
    words.chain(job_start.options.iter().cloned()).collect()
}

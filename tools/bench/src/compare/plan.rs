// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which MPIs and transports are here, and every run of a round with its command line.
//!
//! Called by compare once; asks `weft run --dry-run` whether each combination could start, so that what is missing is left out
//! with the reason before the clock runs.

use super::arguments::Settings;
use crate::catalogue::{self, Description};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An MPI over a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Contender {
    /// As `weft run --mpi` knows it.
    pub mpi: String,
    /// As `weft run --transport` knows it.
    pub transport: String,
}

/// One run.
#[derive(Clone)]
pub struct Leg {
    /// Who runs.
    pub contender: Contender,
    /// What runs.
    pub benchmark: &'static Description,
    /// The whole command line.
    pub command: Vec<OsString>,
    /// When to end it.
    pub limit: Duration,
}

/// All runs of a round, and what cannot run here.
pub struct Plan {
    /// Who takes part, with the launcher's command line as the dry run printed it.
    pub contenders: Vec<(Contender, String)>,
    /// Why the others do not.
    pub left_out: Vec<String>,
    /// The runs of one round.
    pub legs: Vec<Leg>,
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} over {}", self.mpi, self.transport)
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.contender, self.benchmark.name)
    }
}

impl Plan {
    /// Finds out what can run and lays the runs out: benchmark by benchmark, MPI by MPI, the transports next to each other.
    pub fn make(settings: &Settings, program: &Path) -> Self {
        let mut plan = Self {
            contenders: Vec::new(),
            left_out: Vec::new(),
            legs: Vec::new(),
        };
        for mpi in &settings.mpi {
            for transport in &settings.transports {
                let contender = Contender {
                    mpi: mpi.clone(),
                    transport: transport.clone(),
                };
                match dry_run(program, &contender) {
                    Ok(shown) => plan.admit(contender, shown),
                    Err(reason) => plan.left_out.push(format!("{contender}: {reason}")),
                }
            }
        }
        for benchmark in settings
            .benchmarks
            .iter()
            .filter_map(|name| catalogue::find(name))
        {
            for (contender, _) in &plan.contenders {
                let command = command(settings, program, contender, benchmark);
                // `weft run` ends the job itself; this limit is for the case that it does not.
                let limit = Duration::from_secs(settings.timeout + 30);
                plan.legs.push(Leg {
                    contender: contender.clone(),
                    benchmark,
                    command,
                    limit,
                });
            }
        }
        plan
    }

    /// Adds a contender unless it is one already there by another name (`openmpi` may well be Debian's).
    fn admit(&mut self, contender: Contender, shown: String) {
        let same = |(other, other_shown): &&(Contender, String)| {
            *other_shown == shown && other.transport == contender.transport && !shown.is_empty()
        };
        match self.contenders.iter().find(same) {
            Some((other, _)) => self
                .left_out
                .push(format!("{contender}: is the same MPI as {}", other.mpi)),
            None => self.contenders.push((contender, shown)),
        }
    }

    /// The runs of a round, every other round backwards, so that nobody always comes first.
    pub fn legs_of_round(&self, round: usize) -> Box<dyn Iterator<Item = &Leg> + '_> {
        if round % 2 == 0 {
            Box::new(self.legs.iter())
        } else {
            Box::new(self.legs.iter().rev())
        }
    }
}

fn dry_run(program: &Path, contender: &Contender) -> Result<String, String> {
    let output = Command::new(program)
        .args([
            "run",
            "--mpi",
            &contender.mpi,
            "--transport",
            &contender.transport,
            "-n",
            "2",
            "--dry-run",
            "--",
        ])
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    match complaint
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
    {
        Some(line) => Err(line.trim_start_matches("weft run: ").to_owned()),
        None => Err(format!("weft run: {}", output.status)),
    }
}

fn command(
    settings: &Settings,
    program: &Path,
    contender: &Contender,
    benchmark: &Description,
) -> Vec<OsString> {
    let ranks = if benchmark.ranks == catalogue::Ranks::Two {
        2
    } else {
        settings.ranks
    };
    let mut words: Vec<OsString> = vec![program.into(), "run".into()];
    let mut say = |text: &[&str]| words.extend(text.iter().map(OsString::from));
    say(&[
        "--mpi",
        &contender.mpi,
        "--transport",
        &contender.transport,
        "-n",
        &ranks.to_string(),
        "--quiet",
    ]);
    say(&["--timeout", &settings.timeout.to_string()]);
    if contender.transport == "weft" {
        say(&["--require-weft"]);
    }
    say(&["--"]);
    words.push(program.into());
    let mut say = |text: &[&str]| words.extend(text.iter().map(OsString::from));
    say(&[
        "bench",
        benchmark.name,
        "--json",
        "--repeat-scale",
        &settings.scale.to_string(),
    ]);
    if let Some(sizes) = settings.sizes.as_deref().filter(|_| benchmark.sized) {
        say(&["-m", sizes]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::arguments;

    fn settings(words: &[&str]) -> Settings {
        arguments::parse(words.iter().map(OsString::from).collect()).expect("good usage")
    }

    fn words(settings: &Settings, transport: &str, benchmark: &str) -> String {
        let contender = Contender {
            mpi: "mpich".into(),
            transport: transport.into(),
        };
        let benchmark = catalogue::find(benchmark).expect("listed");
        let command = command(settings, Path::new("/bin/weft"), &contender, benchmark);
        command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn command_line_is_the_one_a_person_would_type() {
        assert_eq!(
            words(&settings(&["--quick", "-m", "8:64"]), "native", "latency"),
            "/bin/weft run --mpi mpich --transport native -n 2 --quiet --timeout 120 -- /bin/weft bench latency --json \
             --repeat-scale 0.1 -m 8:64"
        );
    }

    #[test]
    fn run_over_weft_must_really_go_over_weft() {
        assert!(words(&settings(&[]), "weft", "bw").contains(" --require-weft "));
        assert!(!words(&settings(&[]), "tcp", "bw").contains("--require-weft"));
    }

    #[test]
    fn collectives_take_the_ranks_asked_for_and_barrier_no_sizes() {
        let line = words(&settings(&["-n", "6", "-m", "8"]), "native", "barrier");
        assert!(line.contains(" -n 6 ") && !line.contains(" -m "), "{line}");
    }

    #[test]
    fn same_mpi_by_two_names_takes_part_once() {
        let mut plan = Plan {
            contenders: Vec::new(),
            left_out: Vec::new(),
            legs: Vec::new(),
        };
        for mpi in ["openmpi", "debian-openmpi"] {
            plan.admit(
                Contender {
                    mpi: mpi.into(),
                    transport: "native".into(),
                },
                "mpiexec.openmpi -n 2 x".into(),
            );
        }
        assert_eq!((plan.contenders.len(), plan.left_out.len()), (1, 1));
    }
}

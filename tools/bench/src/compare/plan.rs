// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which MPIs and transports are here, and every run of a round with its command line.
//!
//! Called by compare once; asks `weft run --dry-run` whether each combination could start, so that what is missing is left out
//! with the reason before the clock runs.

use super::arguments::Settings;
use super::record::{Command as Written, Entrant, Matrix};
use crate::catalogue::{self, Description};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An MPI over a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Contender {
    /// As `weft run --mpi` knows it.
    pub mpi: String,
    /// As `weft run --transport` knows it.
    pub transport: String,
}

impl Contender {
    /// Whether it is Weft.
    pub fn is_ours(&self) -> bool {
        self.transport == "weft"
    }

    /// The same MPI over its own transport.
    pub fn own(&self) -> Self {
        Self {
            mpi: self.mpi.clone(),
            transport: "native".to_owned(),
        }
    }
}

/// What contenders are compared in: figures of different disciplines have nothing to do with each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Discipline {
    /// The benchmark.
    pub benchmark: String,
    /// Ranks of the job.
    pub ranks: usize,
    /// Hosts as `weft run --hosts` takes them; empty for this machine.
    #[serde(default)]
    pub hosts: String,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Leg {
    /// Who runs.
    pub contender: Contender,
    /// What runs.
    pub discipline: Discipline,
    /// The whole command line.
    pub command: Vec<OsString>,
    /// When to end it.
    pub limit: Duration,
}

/// All runs of a round, and what cannot run here.
pub struct Plan {
    /// What takes part, as it is written down.
    pub matrix: Matrix,
    /// The runs of one round.
    pub legs: Vec<Leg>,
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} over {}", self.mpi, self.transport)
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {} ranks", self.benchmark, self.ranks)?;
        if self.hosts.is_empty() {
            Ok(())
        } else {
            write!(formatter, " on {}", self.hosts)
        }
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.contender, self.discipline)
    }
}

impl Plan {
    /// Finds out what can run and lays the runs out: discipline by discipline, MPI by MPI, the transports next to each other.
    pub fn make(settings: &Settings, program: &Path) -> Self {
        let mut matrix = Matrix {
            rounds: settings.rounds,
            repeat_scale: settings.scale,
            size_seconds: settings.size_seconds(),
            sizes: settings.sizes.clone(),
            disciplines: disciplines(settings),
            ..Matrix::default()
        };
        let mut legs = Vec::new();
        for hosts in &settings.hosts {
            for contender in contenders(settings) {
                match dry_run(program, &contender, hosts) {
                    Ok(shown) => admit(&mut matrix, contender, shown, hosts),
                    Err(reason) => matrix
                        .left_out
                        .push(format!("{contender}{}: {reason}", on(hosts))),
                }
            }
        }
        for discipline in &matrix.disciplines {
            for entrant in matrix
                .entrants
                .iter()
                .filter(|entrant| entrant.hosts == discipline.hosts)
            {
                let Some(command) = command(settings, program, &entrant.contender, discipline)
                else {
                    continue;
                };
                let words: Vec<_> = command
                    .iter()
                    .map(|word| quoted(&word.to_string_lossy()))
                    .collect();
                matrix.commands.push(Written {
                    contender: entrant.contender.clone(),
                    discipline: discipline.clone(),
                    command: words.join(" "),
                });
                legs.push(Leg {
                    contender: entrant.contender.clone(),
                    discipline: discipline.clone(),
                    command,
                    // `weft run` ends the job itself; this limit is for the case that it does not.
                    limit: Duration::from_secs(settings.timeout + 30),
                });
            }
        }
        Self { matrix, legs }
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

/// Adds a contender unless it is one already there by another name (`openmpi` may well be Debian's).
fn admit(matrix: &mut Matrix, contender: Contender, launch: String, hosts: &str) {
    let same = |other: &&Entrant| {
        other.launch == launch
            && other.contender.transport == contender.transport
            && other.hosts == hosts
            && !launch.is_empty()
    };
    match matrix.entrants.iter().find(same) {
        Some(other) => {
            let reason = format!("{contender}: is the same MPI as {}", other.contender.mpi);
            matrix.left_out.push(reason);
        }
        None => matrix.entrants.push(Entrant {
            contender,
            hosts: hosts.to_owned(),
            launch,
        }),
    }
}

fn on(hosts: &str) -> String {
    if hosts.is_empty() {
        String::new()
    } else {
        format!(" on {hosts}")
    }
}

/// Every MPI over every transport; a transport written `MPI/TRANSPORT` belongs to that MPI alone.
fn contenders(settings: &Settings) -> Vec<Contender> {
    let mut list = Vec::new();
    for mpi in &settings.mpi {
        for transport in &settings.transports {
            let transport = match transport.split_once('/') {
                Some((only, transport)) if only == mpi => transport,
                Some(_) => continue,
                None => transport,
            };
            list.push(Contender {
                mpi: mpi.clone(),
                transport: transport.to_owned(),
            });
        }
    }
    list
}

/// Every benchmark on every set of hosts with every number of ranks that it can use.
fn disciplines(settings: &Settings) -> Vec<Discipline> {
    let mut list = Vec::new();
    for hosts in &settings.hosts {
        let benchmarks = settings
            .benchmarks
            .iter()
            .filter_map(|name| catalogue::find(name));
        for benchmark in benchmarks {
            let ranks: &[usize] = match benchmark.ranks {
                catalogue::Ranks::All => &settings.ranks,
                _ => &[2],
            };
            list.extend(ranks.iter().map(|ranks| Discipline {
                benchmark: benchmark.name.to_owned(),
                ranks: *ranks,
                hosts: hosts.clone(),
            }));
        }
    }
    list
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// How `weft run` would start it, without starting it.
///
/// # Errors
/// Why it cannot: the MPI or the transport is not here.
pub fn dry_run(program: &Path, contender: &Contender, hosts: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args([
        "run",
        "--mpi",
        &contender.mpi,
        "--transport",
        &contender.transport,
        "-n",
        "2",
    ]);
    if !hosts.is_empty() {
        command.args(["--hosts", hosts]);
    }
    let output = command
        .args(["--dry-run", "--"])
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
        Some(line) => Err(line
            .trim_start_matches("weft run: ")
            .trim_start_matches("error: ")
            .to_owned()),
        None => Err(format!("weft run: {}", output.status)),
    }
}

/// `None` for a benchmark that no longer exists.
fn command(
    settings: &Settings,
    program: &Path,
    contender: &Contender,
    discipline: &Discipline,
) -> Option<Vec<OsString>> {
    let benchmark: &Description = catalogue::find(&discipline.benchmark)?;
    let mut words: Vec<OsString> = vec![program.into(), "run".into()];
    let mut say = |text: &[&str]| words.extend(text.iter().map(OsString::from));
    say(&[
        "--mpi",
        &contender.mpi,
        "--transport",
        &contender.transport,
        "-n",
        &discipline.ranks.to_string(),
        "--quiet",
    ]);
    if !discipline.hosts.is_empty() {
        say(&["--hosts", &discipline.hosts]);
    }
    say(&["--timeout", &settings.timeout.to_string()]);
    if contender.is_ours() {
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
        "--size-time",
        &settings.size_seconds().to_string(),
    ]);
    if let Some(sizes) = settings.sizes.as_deref().filter(|_| benchmark.sized) {
        say(&["-m", sizes]);
    }
    Some(words)
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
        let all = disciplines(settings);
        let discipline = all
            .iter()
            .find(|discipline| discipline.benchmark == benchmark)
            .expect("listed");
        let command =
            command(settings, Path::new("/bin/weft"), &contender, discipline).expect("a benchmark");
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
            "/bin/weft run --mpi mpich --transport native -n 2 --quiet --timeout 60 -- /bin/weft bench latency --json \
             --repeat-scale 0.1 --size-time 0.1 -m 8:64"
        );
    }

    #[test]
    fn run_over_weft_must_really_go_over_weft() {
        assert!(words(&settings(&[]), "weft", "bw").contains(" --require-weft "));
        assert!(!words(&settings(&[]), "tcp", "bw").contains("--require-weft"));
    }

    #[test]
    fn matrix_is_the_product_and_pairs_always_have_two_ranks() {
        let settings = settings(&[
            "--benchmarks",
            "latency,barrier",
            "-n",
            "2,4",
            "--hosts",
            "local",
            "--hosts",
            "a,b",
            "-m",
            "8",
        ]);
        let shown: Vec<String> = disciplines(&settings)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "latency, 2 ranks",
                "barrier, 2 ranks",
                "barrier, 4 ranks",
                "latency, 2 ranks on a,b",
                "barrier, 2 ranks on a,b",
                "barrier, 4 ranks on a,b"
            ]
        );
        let contender = Contender {
            mpi: "mpich".into(),
            transport: "weft".into(),
        };
        let far = command(
            &settings,
            Path::new("w"),
            &contender,
            &disciplines(&settings)[4],
        )
        .expect("listed");
        assert!(
            far.windows(2)
                .any(|pair| pair[0] == "--hosts" && pair[1] == "a,b")
        );
        assert!(!far.contains(&OsString::from("-m")), "barrier has no sizes");
    }

    #[test]
    fn transport_of_one_mpi_takes_part_under_that_one_only() {
        let list = contenders(&settings(&[
            "--mpi",
            "mpich,intel",
            "--transport",
            "native,intel/ofi:shm",
        ]));
        let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "mpich over native",
                "intel over native",
                "intel over ofi:shm"
            ]
        );
    }

    #[test]
    fn same_mpi_by_two_names_takes_part_once() {
        let mut matrix = Matrix::default();
        for mpi in ["openmpi", "debian-openmpi"] {
            let contender = Contender {
                mpi: mpi.into(),
                transport: "native".into(),
            };
            admit(&mut matrix, contender, "mpiexec.openmpi -n 2 x".into(), "");
        }
        assert_eq!((matrix.entrants.len(), matrix.left_out.len()), (1, 1));
    }

    #[test]
    fn words_are_quoted_for_the_shell_where_they_need_it() {
        assert_eq!(
            (quoted("a/b=c"), quoted("a b"), quoted("it's")),
            ("a/b=c".into(), "'a b'".into(), "'it'\\''s'".into())
        );
    }
}

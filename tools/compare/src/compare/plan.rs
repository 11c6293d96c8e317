// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which MPIs and transports are here, and every run of a round with its command line.
//!
//! Called by compare once. It asks `weft run --dry-run` whether each combination could start. A
//! combination that cannot start is left out with its reason before measuring begins.

use super::arguments::Settings;
use super::builds::Builds;
use super::configuration::{Configuration, PLAIN, Run, Workload};
use super::job_start::{JobStart, Testbeds};
use super::launches::{Launches, dry_run, run_options};
use super::place::Place;
use super::record::{Command as Written, Entrant, Matrix};
use super::tails;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use weft_osu::catalogue;
use weft_osu::description::{Description, Ranks};

/// Ranks of the smallest job, with which it is tried whether an MPI can be started at all.
const FEWEST_RANKS: usize = 2;

/// All runs of a round, and what cannot run here.
pub struct Plan {
    /// What takes part, as it is written down.
    pub matrix: Matrix,
    /// The runs of one round.
    pub runs: Vec<Run>,
}

impl Plan {
    /// Finds out what can run and lays the runs out: workload by workload, MPI by MPI, the
    /// transports next to each other.
    pub fn make(settings: &Settings, program: &Path, testbeds: &Testbeds) -> Self {
        let builds = Builds {
            this: program,
            before: settings.before.as_deref(),
        };
        let mut matrix = Matrix {
            rounds: settings.rounds(),
            repeat_scale: settings.scale(),
            size_seconds: settings.size_seconds(),
            sizes: settings.sizes.clone(),
            workloads: workloads(settings),
            ..Matrix::default()
        };
        for place in settings.places() {
            for configuration in configurations(settings) {
                let launcher = builds.launcher(&configuration);
                let job_start = testbeds.job_start(&place);
                match dry_run(launcher, &configuration, &job_start, FEWEST_RANKS) {
                    Ok(shown) => admit(&mut matrix, configuration, shown, &place),
                    Err(reason) => matrix
                        .left_out
                        .push(format!("{configuration}{place}: {reason}")),
                }
            }
        }
        let mut launches = Launches::of(builds, testbeds);
        let mut runs = Vec::new();
        for workload in &matrix.workloads {
            for entrant in &matrix.entrants {
                let configuration = &entrant.configuration;
                if entrant.place != workload.place || launches.repeats(configuration, workload) {
                    continue;
                }
                let job_start = testbeds.job_start(&workload.place);
                let Some(command) = command(settings, builds, configuration, workload, &job_start)
                else {
                    continue;
                };
                let words: Vec<_> = command
                    .iter()
                    .map(|word| quoted(&word.to_string_lossy()))
                    .collect();
                matrix.commands.push(Written {
                    configuration: configuration.clone(),
                    workload: workload.clone(),
                    command: words.join(" "),
                    launch: launches.line(configuration, workload),
                });
                runs.push(Run {
                    configuration: configuration.clone(),
                    workload: workload.clone(),
                    command,
                    // `weft run` ends the job itself; this limit is for the case that it does not.
                    limit: Duration::from_secs(settings.timeout + 30),
                });
            }
        }
        leave_out_repeats(&mut matrix);
        Self { matrix, runs }
    }

    /// The runs of a round, every other round backwards, so that nobody always comes first.
    pub fn runs_of_round(&self, round: usize) -> Box<dyn Iterator<Item = &Run> + '_> {
        if round.is_multiple_of(2) {
            Box::new(self.runs.iter())
        } else {
            Box::new(self.runs.iter().rev())
        }
    }
}

/// Adds a configuration unless it is one already there by another name (`openmpi` may well be
/// Debian's).
fn admit(matrix: &mut Matrix, configuration: Configuration, launch: String, place: &Place) {
    let same = |other: &&Entrant| {
        other.launch == launch
            && other.configuration.transport == configuration.transport
            && other.place == *place
            && !launch.is_empty()
    };
    match matrix.entrants.iter().find(same) {
        Some(other) => {
            let reason = format!(
                "{configuration}: is the same MPI as {}",
                other.configuration.mpi
            );
            matrix.left_out.push(reason);
        }
        None => matrix.entrants.push(Entrant {
            configuration,
            place: place.clone(),
            launch,
        }),
    }
}

/// Takes out those for which no run remains.
fn leave_out_repeats(matrix: &mut Matrix) {
    let Matrix {
        entrants,
        commands,
        left_out,
        ..
    } = matrix;
    entrants.retain(|entrant| {
        let runs = commands.iter().any(|command| {
            command.configuration == entrant.configuration
                && command.workload.place == entrant.place
        });
        if !runs && entrant.configuration.variant() == Some(PLAIN) {
            left_out.push(format!(
                "{}{}: it is started as without +{PLAIN}, which is measured",
                entrant.configuration, entrant.place
            ));
            return false;
        }
        true
    });
}

/// Every MPI over every transport; a transport written `MPI/TRANSPORT` belongs to that MPI alone.
fn configurations(settings: &Settings) -> Vec<Configuration> {
    let mut list = Vec::new();
    for mpi in &settings.mpi {
        for transport in &settings.transports {
            let transport = match transport.split_once('/') {
                Some((only, transport)) if only == mpi => transport,
                Some(_) => continue,
                None => transport,
            };
            list.push(Configuration {
                mpi: mpi.clone(),
                transport: transport.to_owned(),
            });
        }
    }
    list
}

/// Every benchmark at every place with every number of ranks that it can use. Pairs are one pair
/// inside a machine, where more would only share its cores.
fn workloads(settings: &Settings) -> Vec<Workload> {
    let mut list = Vec::new();
    for place in settings.places() {
        let benchmarks = settings
            .benchmarks
            .iter()
            .filter_map(|name| catalogue::find(name));
        for benchmark in benchmarks {
            let ranks: &[usize] = match benchmark.ranks {
                Ranks::All => &settings.ranks,
                Ranks::Pairs if !place.is_here() => &settings.ranks,
                _ => &[2],
            };
            list.extend(ranks.iter().map(|ranks| Workload {
                benchmark: benchmark.name.to_owned(),
                ranks: *ranks,
                place: place.clone(),
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

/// `None` for a benchmark that no longer exists.
fn command(
    settings: &Settings,
    builds: Builds<'_>,
    configuration: &Configuration,
    workload: &Workload,
    job_start: &JobStart,
) -> Option<Vec<OsString>> {
    let benchmark: &Description = catalogue::find(&workload.benchmark)?;
    let mut words = job_start.enter.clone();
    words.extend([builds.launcher(configuration).into(), "run".into()]);
    words.extend(run_options(configuration, job_start, workload.ranks));
    let mut say = |text: &[&str]| words.extend(text.iter().map(OsString::from));
    say(&["--quiet", "--timeout", &settings.timeout.to_string()]);
    if configuration.is_weft() {
        say(&["--require-weft"]);
    }
    say(&["--"]);
    words.push(builds.this.into());
    let mut say = |text: &[&str]| words.extend(text.iter().map(OsString::from));
    say(&[
        "bench",
        benchmark.name,
        "--json",
        "--repeat-scale",
        &settings.scale().to_string(),
        "--size-time",
        &settings.size_seconds().to_string(),
    ]);
    if let Some(sizes) = settings.sizes.as_deref().filter(|_| benchmark.sized) {
        say(&["-m", sizes]);
    }
    if tails::wanted(workload) {
        say(&[tails::WANTED]);
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
        let configuration = Configuration {
            mpi: "mpich".into(),
            transport: transport.into(),
        };
        let all = workloads(settings);
        let workload = all
            .iter()
            .find(|workload| workload.benchmark == benchmark)
            .expect("listed");
        let builds = Builds {
            this: Path::new("/bin/weft"),
            before: settings.before.as_deref(),
        };
        let job_start = Testbeds::default().job_start(&workload.place);
        let command = command(settings, builds, &configuration, workload, &job_start);
        let command = command.expect("a benchmark");
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
            "/bin/weft run --mpi mpich --transport native -n 2 --quiet --timeout 60 -- \
             /bin/weft bench latency --json --repeat-scale 0.1 --size-time 0.1 -m 8:64"
        );
    }

    #[test]
    fn latencies_between_hosts_say_their_tails() {
        let between = settings(&["--testbed", "direct"]);
        assert!(words(&between, "weft", "latency").ends_with(" -z99,99.9"));
        assert!(!words(&between, "weft", "bw").contains("-z"));
    }

    #[test]
    fn another_build_carries_the_same_benchmark() {
        let mut with = settings(&["--quick"]);
        with.before = Some("/old/bin/weft".into());
        let (now, before) = (
            words(&with, "weft", "latency"),
            words(&with, "weft+before", "latency"),
        );
        assert_eq!(before, now.replacen("/bin/weft", "/old/bin/weft", 1));
        assert!(before.contains(" -- /bin/weft bench latency "), "{before}");
    }

    #[test]
    fn run_over_weft_must_really_go_over_weft() {
        assert!(words(&settings(&[]), "weft", "bw").contains(" --require-weft "));
        assert!(!words(&settings(&[]), "tcp", "bw").contains("--require-weft"));
    }

    #[test]
    fn matrix_is_the_product_and_pairs_have_two_ranks_inside_a_machine() {
        let settings = settings(&[
            "--benchmarks",
            "latency,mbw_mr,barrier",
            "-n",
            "2,4",
            "--hosts",
            "local",
            "--hosts",
            "a,b",
            "-m",
            "8",
        ]);
        let shown: Vec<String> = workloads(&settings)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "latency, 2 ranks",
                "mbw_mr, 2 ranks",
                "barrier, 2 ranks",
                "barrier, 4 ranks",
                "latency, 2 ranks on a,b",
                "mbw_mr, 2 ranks on a,b",
                "mbw_mr, 4 ranks on a,b",
                "barrier, 2 ranks on a,b",
                "barrier, 4 ranks on a,b"
            ]
        );
        let configuration = Configuration {
            mpi: "mpich".into(),
            transport: "weft".into(),
        };
        let far = command(
            &settings,
            Builds {
                this: Path::new("w"),
                before: None,
            },
            &configuration,
            &workloads(&settings)[7],
            &Testbeds::default().job_start(&Place::of_hosts("a,b")),
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
        let list = configurations(&settings(&[
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
            let configuration = Configuration {
                mpi: mpi.into(),
                transport: "native".into(),
            };
            admit(
                &mut matrix,
                configuration,
                "mpiexec.openmpi -n 2 x".into(),
                &Place::default(),
            );
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

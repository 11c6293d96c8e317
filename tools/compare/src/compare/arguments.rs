// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench compare`.
//!
//! Called by compare; read by plan, files and pages.

use super::configuration::{Configuration, has_known_variant};
use super::place::Place;
use crate::testbed::network::Network;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use weft_osu::catalogue;
use weft_osu::options::check_repeats;

/// Factor on OSU's iterations (chosen: many short runs say more than few long ones on a machine
/// that others use).
const DEFAULT_SCALE: f64 = 0.1;
/// What a message size may take in a run, in seconds for a factor of 1 on OSU's iterations (chosen:
/// with two ranks on two cores hardly a size takes as long, so that only what waits for its turns
/// on a core is shortened, whose times are milliseconds and need no hundreds).
const SIZE_SECONDS: f64 = 1.0;
/// What the whole comparison compares. Where a plain mpirun and `weft run` start the same, it is
/// measured once.
const ALL_TRANSPORTS: [&str; 7] = [
    "weft",
    "native",
    "weft+plain",
    "native+plain",
    "intel/ofi:shm",
    "mpich/native+pause",
    "intel/native+pause",
];
/// Between the hosts of a testbed: Weft, and TCP as each MPI carries messages over it: UCX under
/// MPICH, btl/tcp under Open MPI, libfabric's tcp under Intel MPI.
const WEFT_AND_TCP: [&str; 6] = [
    "weft",
    "mpich/native",
    "debian-mpich/native",
    "openmpi/tcp",
    "debian-openmpi/tcp",
    "intel/tcp",
];
/// MPIs, the first three of which are compared on testbeds.
const ALL_MPIS: [&str; 5] = [
    "openmpi",
    "mpich",
    "intel",
    "debian-openmpi",
    "debian-mpich",
];
/// In what hosts of a testbed are compared.
const BENCHMARKS_BETWEEN_HOSTS: [&str; 8] = [
    "latency",
    "bw",
    "bibw",
    "mbw_mr",
    "multi_lat",
    "bcast",
    "allreduce",
    "alltoall",
];
/// And in what.
const ALL_BENCHMARKS: [&str; 9] = [
    "latency",
    "bw",
    "bibw",
    "mbw_mr",
    "barrier",
    "bcast",
    "allreduce",
    "alltoall",
    "alltoallw",
];
/// Rounds at most (chosen: more is a typing mistake).
pub const MOST_ROUNDS: usize = 1000;
/// Ranks at most (chosen likewise).
const MOST_RANKS: usize = 4096;

/// The options, checked.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "weft bench compare",
    about = "Compare Weft with each MPI's native transport and with others, in turns",
    after_help = AFTER_HELP
)]
// structure: allow struct-fields because each is an option, and clap wants them in one place
pub struct Settings {
    /// MPIs, as `weft run --mpi` knows them
    /// [default: openmpi,mpich,intel,debian-openmpi,debian-mpich; with --testbed: the first three]
    #[arg(long, value_delimiter = ',', value_name = "MPI,...")]
    pub mpi: Vec<String>,
    /// Transports, as `weft run --transport` knows them; MPI/TRANSPORT for one MPI only;
    /// TRANSPORT+plain as a plain mpirun starts it (weft run --plain), TRANSPORT+pause with
    /// weft run --yield pause, weft+mpi with weft run --collectives mpi, TRANSPORT+again once more
    /// under another name, weft+before with the build of --before
    /// [default: weft,native,weft+plain,native+plain,intel/ofi:shm,mpich/native+pause,
    /// intel/native+pause; with --quick: weft,native; with --testbed: weft and each MPI's TCP]
    #[arg(
        long = "transport",
        value_delimiter = ',',
        value_name = "TRANSPORT,..."
    )]
    pub transports: Vec<String>,
    /// Benchmarks [default: latency,bw,bibw,mbw_mr,barrier,bcast,allreduce,alltoall,alltoallw; with
    /// --quick: latency,bw; with --testbed: latency,bw,bibw,mbw_mr,multi_lat,bcast,allreduce,
    /// alltoall]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", value_parser = known_benchmark)]
    pub benchmarks: Vec<String>,
    /// Hosts of the ranks, as `weft run --hosts` takes them, or `local`; may be given several
    /// times, to compare several sets
    #[arg(long, value_name = "HOST,...")]
    pub hosts: Vec<String>,
    /// Make hosts on this machine for the time of the comparison, joined by one cable (direct) or
    /// by equal-cost paths (paths=4), and compare between them. After a comma: rate=500mbit (of
    /// each path, or none), loss=1 (percent), delay=10ms, flow=500mbit (most of a flow), mtu=1500,
    /// hosts=4. May be given several times. Needs root
    #[arg(long = "testbed", value_name = "NETWORK")]
    pub testbeds: Vec<Network>,
    /// Rounds, in each of which every run takes its turn [default: 6; with --quick: 3]
    #[arg(short = 'r', long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Ranks of the benchmarks that take more than two, between hosts of those with pairs of ranks,
    /// too; several to compare with each [default: 2,4,8; with --quick: 2; with --testbed: 2,8]
    #[arg(short = 'n', long, value_delimiter = ',', value_name = "N,...")]
    pub ranks: Vec<usize>,
    /// Message sizes, as for a single benchmark
    #[arg(short = 'm', long = "message-size", value_name = "[MIN:]MAX")]
    pub sizes: Option<String>,
    /// Factor on OSU's default iterations [default: 0.1]
    #[arg(long = "repeat-scale", value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Seconds that a message size may take in a run; a slow one has fewer iterations [default: as
    /// many as --repeat-scale says, so 0.1]
    #[arg(long = "size-time", value_name = "SECONDS")]
    pub size_time: Option<f64>,
    /// Few and short rounds, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Try the method itself: each MPI's native transport against itself under another name, whose
    /// ratio is 1. Says how many of the intervals contain 1, and how many should [sets --transport
    /// native,native+again, and 10 rounds of latency and bw]
    #[arg(long, conflicts_with = "transports")]
    pub calibrate: bool,
    /// Compare this build with another: FILE is the other's `weft` (its bin/weft beside its
    /// lib/weft), which carries weft+before [sets --transport weft,weft+before and --benchmarks
    /// latency,bw,mbw_mr]
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    pub before: Option<PathBuf>,
    /// Print how each run would be started, and measure nothing
    #[arg(long, conflicts_with_all = ["render", "resume"])]
    pub dry_run: bool,
    /// Folder for the results; made when missing
    #[arg(long, value_name = "FOLDER", default_value = "report")]
    pub out: PathBuf,
    /// Go on with the comparison in --out that was broken off
    #[arg(long, conflicts_with = "render")]
    pub resume: bool,
    /// Measure nothing: write the reports in --out anew from its runs.jsonl
    #[arg(long)]
    pub render: bool,
    /// What Weft is divided by in the pictures: native (the same MPI's own transport), best (of all
    /// others), or MPI/TRANSPORT [default: native; with --testbed: best]
    #[arg(long, value_name = "WHICH")]
    pub baseline: Option<Baseline>,
    /// Fail when a figure is worse than this file allows (docs/report.md)
    #[arg(long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,
    /// An earlier comparison, for thresholds against `previous`: its folder or its runs.jsonl
    #[arg(long, value_name = "PATH")]
    pub previous: Option<PathBuf>,
    /// Seconds after which one run is ended and counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// Print the summary as JSON and no table
    #[arg(long)]
    pub json: bool,
    /// The weft executable to start [default: this one]
    #[arg(long, value_name = "FILE", hide = true)]
    pub weft: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  weft bench compare --quick                           a first look, a few minutes
  weft bench compare --mpi mpich --benchmarks allreduce -n 4,16      one collective
  weft bench compare --testbed direct,mtu=1500 --testbed paths=4     between hosts it makes
  weft bench compare --resume                          go on after an interruption
  weft bench compare --calibrate                       do intervals hold as often as said?
  weft bench compare --before old/dist/bin/weft        this build beside another
  weft bench compare --thresholds limits.json --previous old/        in CI: what got worse

Results go to --out: index.html (all of it), runs.jsonl (every run, as it ends), summary.json,
results.csv, junit.xml, compare.svg.

Exit codes: 0 all ran and no threshold was crossed; 1 a run failed or a threshold was crossed;
2 wrong usage; 130 interrupted.";

/// What Weft is divided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The same MPI's native transport.
    Native,
    /// The best of all that are not Weft.
    Best,
    /// This one.
    Fixed(Configuration),
}

impl FromStr for Baseline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once('/')) {
            // "own" is how it was called at first.
            ("native" | "own", _) => Ok(Self::Native),
            ("best", _) => Ok(Self::Best),
            (_, Some((mpi, transport))) if !mpi.is_empty() && !transport.is_empty() => {
                Ok(Self::Fixed(Configuration::new(mpi, transport)))
            }
            _ => Err("must be native, best or MPI/TRANSPORT, as openmpi/native".to_owned()),
        }
    }
}

impl Settings {
    /// Rounds that every run takes part in.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(match (self.calibrate, self.quick) {
            (true, _) => 10,
            (_, true) => 3,
            _ => 6,
        })
    }

    /// What Weft is divided by in the pictures of a comparison with a testbed, or without. These
    /// options need not say which: --render does without --testbed.
    pub fn baseline(&self, has_testbed: bool) -> Baseline {
        let usual = match has_testbed {
            true => Baseline::Best,
            false => Baseline::Native,
        };
        self.baseline.clone().unwrap_or(usual)
    }

    /// Where the ranks run.
    pub fn places(&self) -> Vec<Place> {
        let hosts = self.hosts.iter().map(|hosts| Place::of_hosts(hosts));
        let testbeds = self.testbeds.iter().map(Place::of_testbed);
        hosts.chain(testbeds).collect()
    }

    /// Factor on the default iterations.
    pub fn scale(&self) -> f64 {
        self.scale.unwrap_or(DEFAULT_SCALE)
    }

    /// What a message size may take in a run, in seconds.
    pub fn size_seconds(&self) -> f64 {
        self.size_time.unwrap_or(self.scale() * SIZE_SECONDS)
    }
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
    let short = settings.quick || settings.calibrate;
    let fill = |list: &mut Vec<String>, words: &[&str]| {
        if list.is_empty() {
            *list = words.iter().map(|word| (*word).to_owned()).collect();
        }
    };
    let builds = settings.before.is_some();
    let between_hosts = !settings.testbeds.is_empty();
    fill(
        &mut settings.mpi,
        &ALL_MPIS[..if between_hosts { 3 } else { 5 }],
    );
    let transports: &[&str] = match (settings.calibrate, settings.quick) {
        (true, _) => &["native", "native+again"],
        _ if builds => &["weft", "weft+before"],
        _ if between_hosts => &WEFT_AND_TCP,
        (_, true) => &["weft", "native"],
        _ => &ALL_TRANSPORTS,
    };
    fill(&mut settings.transports, transports);
    let benchmarks: &[&str] = match (short, builds) {
        (true, _) => &["latency", "bw"],
        (_, true) => &["latency", "bw", "mbw_mr"],
        _ if between_hosts => &BENCHMARKS_BETWEEN_HOSTS,
        _ => &ALL_BENCHMARKS,
    };
    fill(&mut settings.benchmarks, benchmarks);
    if settings.ranks.is_empty() {
        settings.ranks = match (short, between_hosts) {
            (true, _) => vec![2],
            (_, true) => vec![2, 8],
            _ => vec![2, 4, 8],
        };
    }
    if settings.hosts.is_empty() && !between_hosts {
        settings.hosts = vec![String::new()];
    }
    for hosts in settings.hosts.iter_mut().filter(|hosts| *hosts == "local") {
        hosts.clear();
    }
    check(&settings)?;
    Ok(settings)
}

fn check(settings: &Settings) -> Result<(), clap::Error> {
    let refuse = |text: String| Err(Settings::command().error(ErrorKind::ValueValidation, text));
    if !(1..=MOST_ROUNDS).contains(&settings.rounds()) {
        return refuse(format!(
            "-r {}: must be 1 to {MOST_ROUNDS} rounds",
            settings.rounds()
        ));
    }
    if let Some(ranks) = settings
        .ranks
        .iter()
        .find(|ranks| !(2..=MOST_RANKS).contains(*ranks))
    {
        return refuse(format!("-n {ranks}: must be 2 to {MOST_RANKS} ranks"));
    }
    if let Err(why) = check_repeats(settings.scale(), Some(settings.size_seconds())) {
        return refuse(why.to_string());
    }
    if settings.timeout == 0 {
        return refuse("--timeout 0: must be at least 1 second".to_owned());
    }
    if let Some(transport) = settings
        .transports
        .iter()
        .find(|name| name.is_empty() || name.starts_with('/') || name.ends_with('/'))
    {
        return refuse(format!(
            "--transport '{transport}': must be TRANSPORT or MPI/TRANSPORT"
        ));
    }
    if let Some(transport) = settings
        .transports
        .iter()
        .find(|name| !has_known_variant(name))
    {
        return refuse(format!(
            "--transport '{transport}': after the + write plain (as a plain mpirun starts it), \
             pause (weft run --yield pause), mpi (weft run --collectives mpi) or again (once \
             more); after weft+ also before (another build)"
        ));
    }
    let names: Vec<String> = settings.testbeds.iter().map(Network::to_string).collect();
    if let Some(name) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return refuse(format!(
            "--testbed {}: is given twice; the same network is made once",
            names[name]
        ));
    }
    check_before(settings).or_else(refuse)
}

/// The other build must be named where it takes part, and must be there.
fn check_before(settings: &Settings) -> Result<(), String> {
    let takes_part = |name: &&String| name.ends_with("+before");
    let Some(before) = &settings.before else {
        return match settings.transports.iter().find(takes_part) {
            Some(name) => Err(format!(
                "--transport '{name}': --before FILE must name the other build's weft"
            )),
            None => Ok(()),
        };
    };
    if let Some(name) = settings
        .transports
        .iter()
        .filter(takes_part)
        .find(|name| name.rsplit('/').next() != Some("weft+before"))
    {
        return Err(format!(
            "--transport '{name}': another build carries weft alone: weft+before"
        ));
    }
    // A page is rendered from the journal where the other build is no longer there.
    if !settings.render && !before.is_file() {
        return Err(format!(
            "--before {}: no such file; it must be the other build's weft, with its libraries in \
             ../lib/weft",
            before.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run` inside an allocation of Slurm: the ranks run on its nodes. This process becomes srun,
//! or the MPI's own launcher, with `weft exec` in front of each rank.
//!
//! Called by `lib.rs` in the place of all that starts a job without Slurm; `slurm_start.rs` chooses
//! the way. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES" of sbatch(1) and salloc(1).

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use weft_job::sbatch::Start;

use crate::arguments::{Arguments, CoreBinding};
use crate::fault::Fault;
use crate::mpi_choice::MpiChoice;
use crate::rank_arguments::joined;
use crate::shell::quote;
use crate::slurm_start::{self, Decided};
use crate::stderr::say;
use crate::transport::Transport;
use crate::{job_key, mounts, program};

/// Reads one variable.
type Get<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Whether the job is to run on the nodes of an allocation: --slurm says so, or this is a batch
/// script (or the shell of salloc) with several nodes, and nothing was asked that only `weft run`
/// itself can do. On one node `weft run` does all that it does elsewhere.
///
/// # Errors
/// `Fault::Usage` for --slurm where there is no allocation, or with what srun cannot do.
pub(crate) fn is_wanted(arguments: &Arguments) -> Result<bool, Fault> {
    let get = |name: &str| std::env::var(name).ok();
    let is_inside = get("SLURM_JOB_ID").is_some();
    let unable = unable(arguments);
    if !arguments.slurm {
        let is_wide = nodes(&get).is_some_and(|nodes| nodes > 1);
        // A step's process is started already, and has no nodes to give.
        let is_step = get("SLURM_STEP_NUM_TASKS").is_some();
        return Ok(is_inside && is_wide && !is_step && unable.is_none());
    }
    if !is_inside {
        return Err(Fault::Usage(
            "--slurm: this is no allocation of Slurm (SLURM_JOB_ID is not set); write weft submit \
             to queue a job, or get an allocation with salloc first"
                .into(),
        ));
    }
    match unable {
        Some(option) => Err(Fault::Usage(format!(
            "{option} is not possible with --slurm, where srun starts the ranks; leave it out"
        ))),
        None => Ok(true),
    }
}

fn nodes(get: Get<'_>) -> Option<u32> {
    let count = get("SLURM_JOB_NUM_NODES").or_else(|| get("SLURM_NNODES"))?;
    count.parse().ok()
}

/// An option that takes more than starting the ranks.
fn unable(arguments: &Arguments) -> Option<String> {
    let hosts = &arguments.hosts;
    let given = [
        ("--hosts", hosts.hosts.is_some()),
        ("--hostfile", hosts.hostfile.is_some()),
        ("--launcher", hosts.launcher.is_some()),
        ("--iface", hosts.iface.is_some()),
        ("--json", arguments.json.is_some()),
        ("--retries", arguments.retries > 0),
        ("--timeout", arguments.timeout.is_some()),
        ("--require-weft", arguments.require_weft),
        ("--shm-size with --transport native", {
            arguments.shm_size.is_some() && arguments.transport != Transport::Weft
        }),
        ("--mount with --transport native", {
            !arguments.mounts.is_empty() && arguments.transport != Transport::Weft
        }),
        ("--bind core", arguments.bind == CoreBinding::Core),
    ];
    let option = given.iter().find(|(_, is_given)| *is_given);
    let transport = &arguments.transport;
    let carried = matches!(transport, Transport::Weft | Transport::Native);
    match option {
        Some((name, _)) => Some((*name).to_owned()),
        None => (!carried).then(|| format!("--transport {transport}")),
    }
}

/// Becomes the launcher; returns only where that fails, or after --dry-run.
///
/// # Errors
/// As [`slurm_start::decide`], and where the launcher cannot be started.
pub(crate) fn run(arguments: &Arguments) -> Result<u8, Fault> {
    let (name, rest) = program::split(&arguments.program)?;
    let no_srun = Fault::system("srun --mpi=list: srun is not on PATH");
    let offered = slurm_start::offered().map_err(no_srun)?;
    let decided = slurm_start::decide(name, &arguments.rank.mpi, &offered, None)?;
    let get = |name: &str| std::env::var(name).ok();
    let ranks = ranks(arguments, &get)?;
    let mut words = launcher(&decided, arguments, ranks);
    if arguments.transport == Transport::Weft {
        words.extend(exec(arguments, ranks)?);
    }
    words.push(decided.program.path.clone().into_os_string());
    words.extend(rest.iter().cloned());
    if arguments.dry_run {
        return print(&words);
    }
    if !arguments.quiet {
        let how = words[0].to_string_lossy();
        say!(
            "weft: {} on the nodes of this allocation, by {how}",
            decided.chosen.installation.describe()
        );
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    if job_key::is_wanted(&arguments.rank.variables) {
        job_key::give(&mut command)?;
    }
    let what = format!("{} cannot be started", words[0].to_string_lossy());
    Err(Fault::system(what)(command.exec()))
}

/// How many ranks; `None` where the launcher is to take all that Slurm gives.
fn ranks(arguments: &Arguments, get: Get<'_>) -> Result<Option<u32>, Fault> {
    if arguments.ranks == Some(0) || arguments.ppn == Some(0) {
        return Err(Fault::Usage(
            "a job has at least 1 rank, also on each node".into(),
        ));
    }
    let of_nodes = || arguments.ppn?.checked_mul(nodes(get)?);
    let of_job = || get("SLURM_NTASKS")?.parse().ok();
    Ok(arguments.ranks.or_else(of_nodes).or_else(of_job))
}

/// What starts the ranks, with its own options.
fn launcher(decided: &Decided, arguments: &Arguments, ranks: Option<u32>) -> Vec<OsString> {
    let count = ranks.map(|ranks| ["-n".to_owned(), ranks.to_string()]);
    let count = count.into_iter().flatten();
    let each = arguments.ppn.map(|ppn| ppn.to_string());
    let label = |option: &str| arguments.label.then(|| option.to_owned());
    let (first, rest): (OsString, Vec<String>) = match &decided.start {
        Start::Srun { pmi } => {
            let own = [format!("--mpi={pmi}"), "--export=ALL".into()];
            let each = each.map(|each| format!("--ntasks-per-node={each}"));
            let all = own.into_iter().chain(count).chain(each);
            ("srun".into(), all.chain(label("--label")).collect())
        }
        Start::OpenMpi(path) => {
            let key = ["-x".to_owned(), job_key::VARIABLE.to_owned()];
            let of_stores = if arguments.mounts.is_empty() {
                Vec::new()
            } else {
                mounts::variables().into_keys().collect()
            };
            let of_stores = of_stores
                .into_iter()
                .flat_map(|name| ["-x".to_owned(), name]);
            let each = each.map(|each| ["-npernode".to_owned(), each]);
            let all = count.chain(key).chain(of_stores);
            let all = all.chain(each.into_iter().flatten());
            (path.into(), all.chain(label("--tag-output")).collect())
        }
        Start::Hydra(path) => {
            let own = ["-bootstrap", "slurm"].map(str::to_owned);
            let each = each.map(|each| ["-ppn".to_owned(), each]);
            let all = own.into_iter().chain(count);
            let all = all.chain(each.into_iter().flatten());
            (path.into(), all.chain(label("-l")).collect())
        }
        // Chosen here, and nowhere else.
        Start::Inside => return Vec::new(),
    };
    let rest = rest.into_iter().map(OsString::from);
    std::iter::once(first).chain(rest).collect()
}

/// `weft exec` with what it is to be told.
fn exec(arguments: &Arguments, ranks: Option<u32>) -> Result<Vec<OsString>, Fault> {
    let own = std::env::current_exe().map_err(Fault::system("the path of weft"))?;
    let mut words = vec![own.into_os_string(), "exec".into()];
    let mut add = |text: OsString| words.push(text);
    if let Some(ranks) = ranks {
        add(format!("--world={ranks}").into());
    }
    let rank = &arguments.rank;
    if rank.mpi != MpiChoice::Auto {
        add(joined("--mpi=", &rank.mpi.to_word()));
    }
    rank.words().into_iter().for_each(&mut add);
    if let Some(size) = arguments.shm_size {
        add(format!("--shm-size={size}").into());
    }
    for mount in &arguments.mounts {
        add(format!("--mount={mount}").into());
    }
    for variable in &rank.variables {
        add(joined(
            &format!("--env={}=", variable.name),
            &variable.value,
        ));
    }
    add("--".into());
    Ok(words)
}

fn print(words: &[OsString]) -> Result<u8, Fault> {
    let quoted: Vec<OsString> = words.iter().map(|word| quote(word)).collect();
    let mut line = quoted.join(OsStr::new(" "));
    line.push("\n");
    let written = std::io::stdout().write_all(line.as_encoded_bytes());
    written
        .map(|()| 0)
        .map_err(Fault::system("writing to standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::os::unix::ffi::OsStrExt;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::try_parse_from(words.iter().copied()).unwrap()
    }

    #[test]
    fn values_that_are_no_text_go_on_to_weft_exec_as_they_are() {
        let words = [&b"--mpi=/caf\xe9/mpiexec"[..], b"--env=K=caf\xe9"].map(OsStr::from_bytes);
        let with_program = words.into_iter().chain([OsStr::new("x")]);
        let arguments = Arguments::try_parse_from(with_program).unwrap();
        let handed_on = exec(&arguments, None).unwrap();
        assert!(
            words
                .iter()
                .all(|word| handed_on.iter().any(|one| one == word)),
            "{handed_on:?}"
        );
    }

    #[test]
    fn ranks_are_those_of_the_options_else_of_the_allocation() {
        let set = |name: &str| match name {
            "SLURM_NTASKS" => Some("6".to_owned()),
            "SLURM_JOB_NUM_NODES" => Some("3".to_owned()),
            _ => None,
        };
        let of = |words: &[&str]| ranks(&parsed(words), &set);
        assert_eq!(of(&["-n", "4", "a"]).unwrap(), Some(4));
        assert_eq!(of(&["--ppn", "4", "a"]).unwrap(), Some(12));
        assert_eq!(of(&["a"]).unwrap(), Some(6));
        assert_eq!(ranks(&parsed(&["a"]), &|_| None).unwrap(), None);
        assert!(of(&["-n", "0", "a"]).is_err());
    }

    #[test]
    fn what_is_said_of_the_ranks_goes_on_to_weft_exec() {
        for option in [
            "--mpi=mpich",
            "--heap=shared",
            "--yield=pause",
            "--collectives=weft",
            "--libfabric=/f/libfabric.so.1",
            "--shm-size=64m",
            "--mount=s3://data/p:/mnt/p:ro",
            "--plain",
            "--env=K=V",
        ] {
            let words = exec(&parsed(&[option, "x"]), Some(4)).unwrap();
            let is_said = |word: &str| words.iter().any(|other| other == word);
            assert!(is_said("--world=4"), "{words:?}");
            let size = option.replace("64m", "64 MiB");
            assert!(is_said(option) || is_said(&size), "{option}: {words:?}");
        }
    }

    #[test]
    fn what_srun_cannot_do_is_named() {
        for (words, option) in [
            (&["--hosts", "a", "x"][..], Some("--hosts")),
            (&["--timeout", "1", "x"], Some("--timeout")),
            (&["--transport", "tcp", "x"], Some("--transport tcp")),
            (&["--transport", "native", "x"], None),
            (&["--label", "--mpi", "mpich", "x"], None),
        ] {
            assert_eq!(unable(&parsed(words)).as_deref(), option);
        }
    }
}

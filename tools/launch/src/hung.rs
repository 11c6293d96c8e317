// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A launcher that does not end although a rank has failed: it has killed the other ranks and
//! waits for nobody knows what, or the others wait in MPI_Init for the one that will never come.
//! Without `--timeout` the job would last for ever.
//!
//! A rank that ends with 0 has not failed, also where the others wait for it: that is only said.
//! Ranks of Open MPI do not wait for words of their launcher; they look again and again, as
//! programs do that wait for something else. But when they wait for a rank that has ended without
//! MPI_Init, each has its endpoint of Weft, and that rank had none.
//!
//! Called by `supervise.rs`; asks `rank_ledger.rs`. Debian's Open MPI 4.1.4 hangs in some jobs
//! whose ranks fail in or before MPI_Init; that it has sent KILL by then was not seen. MPICH 5.0.2
//! and Intel MPI 2021.18 do the second whenever a rank ends before MPI_Init: they let the others go
//! on, which is right for programs that do not use MPI.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use weft_os::system_call;

use crate::endpoints::Endpoints;
use crate::family::Family;
use crate::rank_ends::locked;
use crate::rank_ledger::Ledger;
use crate::signals;
use crate::stderr::say;

/// From one look to the next.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// After so many looks that saw the same, the job is ended. Chosen: a launcher ends some tenths of
/// a second after it has killed its ranks.
const LOOKS: u32 = 5;
/// How long that is, in words.
pub const PATIENCE_SECONDS: u64 = BETWEEN_LOOKS.as_secs() * LOOKS as u64;

/// What keeps a job that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stuck {
    /// The launcher has killed its ranks, none of this host is left, and it is still there.
    Launcher,
    /// Every rank of this host is in the same waiting for the launcher as before.
    Ranks(Vec<(u32, u64)>),
    /// So is every rank that still runs, and this one has ended with 0: nobody has failed.
    RanksWithout(u32, Vec<(u32, u64)>),
    /// All ranks of Open MPI that run have opened an endpoint, and nobody else has, not this one,
    /// which has ended with 0.
    Endpoints(u32, Vec<u32>),
}

impl Stuck {
    fn now(
        launcher: u32,
        family: Family,
        ledger: &Mutex<Ledger>,
        endpoints: &Endpoints,
    ) -> Option<Self> {
        // Looks at processes may last, and nobody hears meanwhile.
        let (running, kills, first, first_well) = {
            let ledger = locked(ledger);
            let kills = ledger.launcher_kills;
            (ledger.running(), kills, ledger.first, ledger.first_well)
        };
        if first.is_none() {
            let well = first_well?;
            if let Some(waiting) = waits_for_launcher(&running) {
                return Some(Self::RanksWithout(well.rank, waiting));
            }
            let opened = endpoints.all_open().filter(|_| family == Family::OpenMpi)?;
            let is_without = !opened.contains(&well.process) && are_one_for_each(&running, &opened);
            return is_without.then_some(Self::Endpoints(well.rank, running));
        }
        // A rank may need long to give back its memory, or waits inside the kernel.
        let lives = |&rank: &u32| signals::lives(rank);
        if kills && !running.iter().any(lives) {
            return may_go_on(launcher).then_some(Self::Launcher);
        }
        waits_for_launcher(&running).map(Self::Ranks)
    }

    /// What is said where no rank has failed. A program may have its reasons, as one that starts
    /// others by MPI_Comm_spawn and waits long for them. So the job goes on.
    fn words_without(&self) -> Option<String> {
        let (rank, wait, seen) = match self {
            Self::RanksWithout(rank, _) => (
                rank,
                "wait",
                format!(
                    "has ended with exit code 0, and all ranks that still run have waited for \
                     {PATIENCE_SECONDS} seconds for what their launcher says, as ranks wait in \
                     MPI_Init until all have called it"
                ),
            ),
            // Some versions of Open MPI may end MPI_Init without that rank.
            Self::Endpoints(rank, _) => (
                rank,
                "may wait",
                format!(
                    "has ended with exit code 0 and without an endpoint of Weft, and all ranks \
                     that still run have had one for {PATIENCE_SECONDS} seconds, as ranks have in \
                     MPI_Init, which waits until all have called it"
                ),
            ),
            Self::Launcher | Self::Ranks(_) => return None,
        };
        Some(format!(
            "rank {rank} {seen}; if rank {rank} did not call MPI_Init, they {wait} for ever. Have \
             every rank call it, or none; Ctrl-C and --timeout end the job"
        ))
    }
}

/// Whether each of these ranks has opened an endpoint, it or one process that it started, as where
/// a shell is the rank; and nobody else has.
fn are_one_for_each(ranks: &[u32], opened: &BTreeSet<u32>) -> bool {
    let ranks: BTreeSet<u32> = ranks.iter().copied().collect();
    let without = &ranks - opened;
    let parent = |process: &u32| signals::parent_and_start(*process).map(|(parent, _)| parent);
    let rank_of = |&process: &u32| {
        std::iter::successors(Some(process), parent).find(|above| ranks.contains(above))
    };
    let others: Option<BTreeSet<u32>> = (opened - &ranks).iter().map(rank_of).collect();
    !ranks.is_empty() && opened.len() == ranks.len() && others == Some(without)
}

/// Whether nothing holds a process up, as SIGSTOP, a debugger or a slow disk does.
fn may_go_on(process: u32) -> bool {
    let state = signals::stat_after_name(process);
    state.is_some_and(|stat| stat.trim_start().starts_with(['R', 'S']))
}

/// For each of these ranks: its process, and in which waiting for its launcher it is, which is
/// another one after each answer. `None` where one does something else, or there are none.
///
/// Ranks of Hydra wait so in MPI_Init, until all ranks of the job have called it.
fn waits_for_launcher(ranks: &[u32]) -> Option<Vec<(u32, u64)>> {
    let waits = |&process: &u32| Some((process, waiting(process)?));
    let all: Vec<(u32, u64)> = ranks.iter().map(waits).collect::<Option<_>>()?;
    Some(all).filter(|all| !all.is_empty())
}

/// The waiting of a process that reads what its launcher says by PMI; `None` where it does
/// something else.
fn waiting(process: u32) -> Option<u64> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
    let value = |entry: &[u8]| {
        let value = entry.strip_prefix(b"PMI_FD=")?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    let descriptor: u64 = environment.split(|&byte| byte == 0).find_map(value)?;
    // Behind MPI_Finalize the number is free for another file.
    let file = std::fs::read_link(format!("/proc/{process}/fd/{descriptor}")).ok()?;
    if !file.as_os_str().as_encoded_bytes().starts_with(b"socket:") {
        return None;
    }
    let thread = format!("/proc/{process}/task/{process}");
    let reads = system_call::read_descriptor(thread.as_ref()) == Some(descriptor);
    reads.then(|| signals::waits_of(thread.as_ref())).flatten()
}

/// What the looks so far saw.
#[derive(Debug, Default)]
struct Seen {
    last: Option<Stuck>,
    /// How many looks in a row.
    looks: u32,
}

impl Seen {
    fn is_hung(&mut self, now: Option<Stuck>) -> bool {
        self.looks = match &now {
            None => 0,
            Some(_) if now == self.last => self.looks + 1,
            Some(_) => 1,
        };
        self.last = now;
        self.looks >= LOOKS
    }
}

/// Looks at a job in which a rank has ended until its launcher ends or hangs after a failure; then
/// tells it and returns. Where no rank has failed it only says, once, for what the others wait.
/// Blocks; for a thread of its own.
pub(crate) fn watch(
    launcher: u32,
    family: Family,
    ledger: &Mutex<Ledger>,
    endpoints: &Endpoints,
    tell: impl FnOnce(),
) {
    let mut seen = Seen::default();
    let mut said = false;
    loop {
        std::thread::sleep(BETWEEN_LOOKS);
        if !signals::lives(launcher) {
            return;
        }
        // A launcher may wait until somebody reads what the ranks have written.
        let is_read = takes_output(std::io::stdout()) && takes_output(std::io::stderr());
        let now = Stuck::now(launcher, family, ledger, endpoints).filter(|_| is_read);
        let without = now.as_ref().and_then(Stuck::words_without);
        match (seen.is_hung(now), without) {
            (false, _) => {}
            (true, None) => {
                tell();
                return;
            }
            (true, Some(words)) if !said => {
                say!("weft: {words}");
                said = true;
            }
            (true, Some(_)) => {}
        }
    }
}

/// Whether a stream takes more, or reports an error.
fn takes_output(stream: impl AsFd) -> bool {
    let mut entry = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    poll(&mut entry, PollTimeout::ZERO) != Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use nix::sys::signal::Signal;

    use super::*;
    use crate::rank_ledger::Word;

    fn judged(at: impl Fn(u32) -> Option<Stuck>) -> Option<u32> {
        let mut seen = Seen::default();
        (1..50).find(|look| seen.is_hung(at(*look)))
    }

    #[test]
    fn a_job_is_hung_when_it_stays_as_it_is() {
        assert_eq!(judged(|_| Some(Stuck::Launcher)), Some(LOOKS));
        assert_eq!(judged(|_| Some(Stuck::Ranks(vec![(7, 40)]))), Some(LOOKS));
        assert_eq!(judged(|_| None), None);
        let answered = |look: u32| Some(Stuck::Ranks(vec![(7, look.into())]));
        assert_eq!(judged(answered), None);
        let not_read_at_4 = |look: u32| (look != 4).then_some(Stuck::Launcher);
        assert_eq!(judged(not_read_at_4), Some(4 + LOOKS));
    }

    #[test]
    fn a_process_that_reads_from_its_launcher_is_seen_and_another_one_is_not() {
        // Without it, as under gVisor, nobody is seen to wait.
        if !std::path::Path::new("/proc/self/syscall").exists() {
            return;
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let cat = |stdin: Stdio| {
            let mut cat = Command::new("cat");
            cat.env("PMI_FD", "0").stdin(stdin).spawn().unwrap()
        };
        let mut reader = cat(std::os::fd::OwnedFd::from(theirs).into());
        let mut of_a_pipe = cat(Stdio::piped());
        assert_eq!(waits_for_launcher(&[]), None);
        let found = loop {
            if let Some(found) = waits_for_launcher(&[reader.id()]) {
                break found;
            }
            std::thread::yield_now();
        };
        assert_eq!(found[0].0, reader.id());
        assert_eq!(waits_for_launcher(&[reader.id(), std::process::id()]), None);
        let thread = format!("/proc/{0}/task/{0}", of_a_pipe.id());
        while system_call::read_descriptor(thread.as_ref()) != Some(0) {
            std::thread::yield_now();
        }
        assert_eq!(waits_for_launcher(&[of_a_pipe.id()]), None);
        ours.shutdown(std::net::Shutdown::Both).unwrap();
        reader.wait().unwrap();
        drop(of_a_pipe.stdin.take());
        of_a_pipe.wait().unwrap();
    }

    fn ledger(words: &[&str]) -> Mutex<Ledger> {
        let mut ledger = Ledger::default();
        for word in words {
            ledger.hear(Word::read(word).unwrap());
        }
        Mutex::new(ledger)
    }

    #[test]
    fn a_launcher_is_stuck_when_a_rank_failed_and_all_are_gone() {
        let mut launcher = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut rank = Command::new("sleep").arg("1000").spawn().unwrap();
        let runs = format!("rank {} 0", rank.id());
        let killed = format!("sent {} 9", rank.id());
        let fails = ["rank 4194301 1", "ended 4194301 1792"];
        let killed_only = ledger(&[&runs, &killed]);
        let failed = ledger(&[&runs, &killed, fails[0], fails[1]]);
        let process = launcher.id();
        let now = |ledger| Stuck::now(process, Family::OpenMpi, ledger, &Endpoints::default());
        assert_eq!(now(&failed), None, "a rank that is killed may need long");
        rank.kill().unwrap();
        rank.wait().unwrap();
        assert_eq!(now(&failed), Some(Stuck::Launcher));
        assert_eq!(
            now(&killed_only),
            None,
            "as after MPI_Abort: the launcher knows the code"
        );
        signals::send(launcher.id(), Signal::SIGSTOP);
        while may_go_on(launcher.id()) {
            std::thread::yield_now();
        }
        assert_eq!(now(&failed), None);
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        assert_eq!(now(&failed), None);
    }

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    #[test]
    fn ranks_that_have_all_opened_endpoints_wait_for_one_that_ended_without() {
        let mut rank = sleeper();
        let runs = format!("rank {} 1", rank.id());
        let endpoints = Endpoints::default();
        let of = |family, ledger: Mutex<Ledger>| Stuck::now(0, family, &ledger, &endpoints);
        let now = |ledger| of(Family::OpenMpi, ledger);
        let waits = || ledger(&[&runs, "rank 99 0", "ended 99 0"]);
        assert_eq!(now(waits()), None, "no MPI, or another transport than Weft");
        endpoints.hear(rank.id(), true);
        let found = now(waits()).unwrap();
        assert_eq!(found, Stuck::Endpoints(0, vec![rank.id()]));
        let words = found.words_without().unwrap();
        assert!(words.starts_with("rank 0 has ended") && words.contains("may wait"));
        assert_eq!(
            of(Family::Mpich, waits()),
            None,
            "they would wait for Hydra"
        );
        assert_eq!(now(ledger(&[&runs])), None, "nobody has ended");
        endpoints.hear(99, true);
        assert_eq!(now(waits()), None, "who ended had called MPI_Init");
        rank.kill().unwrap();
        rank.wait().unwrap();
    }

    #[test]
    fn a_rank_without_mpi_is_no_substitute_for_one_that_ended_after_mpi_init() {
        let (other, opener) = (sleeper(), sleeper());
        let words = |ended: u32| {
            let runs = [(&other, 1), (&opener, 2)];
            let runs = runs.map(|(child, rank)| format!("rank {} {rank}", child.id()));
            let ended = [format!("rank {ended} 0"), format!("ended {ended} 0")];
            ledger(&[&runs[0], &runs[1], &ended[0], &ended[1]])
        };
        let endpoints = Endpoints::default();
        for process in [99, opener.id()] {
            endpoints.hear(process, true);
        }
        let now = |ended| Stuck::now(0, Family::OpenMpi, &words(ended), &endpoints);
        assert_eq!(now(99), None, "as many as run, and the one that ended");
        assert_eq!(now(98), None, "99 is nobody that runs");
        for mut child in [other, opener] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn an_endpoint_of_what_a_rank_started_is_that_rank_s() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut started = || lines.next().unwrap().unwrap().parse::<u32>().unwrap();
        let (one, two, rank) = (started(), started(), shell.id());
        let own = std::process::id();
        let found = [
            (vec![rank], vec![rank], true),
            (vec![rank], vec![one], true),
            // Which of them waits is not known.
            (vec![rank], vec![one, two], false),
            (vec![rank], vec![rank, one], false),
            (vec![rank], vec![own], false),
            (vec![rank, own], vec![one, two], false),
            (vec![rank, own], vec![rank, one], false),
            (vec![rank], vec![], false),
            (vec![], vec![], false),
        ]
        .map(|(ranks, opened, expected)| {
            let are = are_one_for_each(&ranks, &opened.iter().copied().collect());
            (ranks, opened, are == expected)
        });
        for process in [one, two, rank] {
            signals::send(process, Signal::SIGKILL);
        }
        shell.wait().unwrap();
        for (ranks, opened, is_right) in found {
            assert!(is_right, "{ranks:?} {opened:?}");
        }
    }

    #[test]
    fn a_stream_that_nobody_reads_takes_no_more() {
        let (mut writer, reader) = std::os::unix::net::UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        assert!(takes_output(&writer));
        while writer.write(&[0; 4096]).is_ok() {}
        assert!(!takes_output(&writer));
        // Not by dropping it: a child that another test begins may have it open until its exec.
        reader.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(takes_output(&writer), "an error comes at once");
    }
}

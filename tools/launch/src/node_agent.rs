// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The node agent: one process of ours on every other host of a job, which collects the reports of
//! the ranks there and sees to it that nothing of the job outlives it, whatever becomes of the
//! launcher, its daemons, the network or `weft run` itself.
//!
//! Run as `weft node-agent` by `node_agents.rs` through the remote shell; speaks
//! `agent_protocol.rs` on its standard streams. It never acts on a process that does not carry the
//! job's random mark in its environment, except the daemons of MPI launchers that are ancestors of
//! one that does.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use weft_job::size::ShmSize;

use crate::agent_protocol::{Begin, Ended, FromAgent, MARK, Ready, ToAgent};
use crate::heartbeat::Heartbeat;
use crate::leftovers::Leftovers;
use crate::mounts::holder::Holder;
use crate::report::Collector;
use crate::sessions::Sessions;
use crate::{cores, dev_shm, signals};

/// Between two words to the other side.
const TICK: Duration = Duration::from_secs(1);
/// How long the processes of a job that has ended may take to go by themselves. Chosen: Python
/// takes a few tenths of a second to exit.
const GRACE: Duration = Duration::from_secs(2);
/// Daemons that MPI launchers start on each host.
const DAEMONS: [&str; 4] = ["orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"];

/// Serves until the job has ended or `weft run` is gone, and returns the exit code.
///
/// Blocks; takes signals; call it once, from `main`.
#[must_use]
pub fn serve() -> u8 {
    match watch() {
        Ok(()) => 0,
        Err(error) => {
            crate::stderr::say!("weft node-agent: {error}");
            1
        }
    }
}

fn watch() -> io::Result<()> {
    let orders = orders()?;
    let begin = match orders.recv() {
        Ok(ToAgent::Begin(begin)) => *begin,
        _ => {
            return Err(io::Error::other(
                "started by hand? It is `weft run` that starts node agents, on the hosts of a job",
            ));
        }
    };
    // Where this is the machine of `weft run` after all, under another name, the socket is taken,
    // and that is well.
    let collector = begin
        .report
        .as_deref()
        .and_then(|name| Collector::open(name).ok());
    let leftovers = Leftovers::note(&begin.leftovers);
    let mut ready = ready(&begin);
    let holder = held(&begin, &mut ready);
    say(&FromAgent::Ready(ready))?;
    let mut job = Job::new(&begin.job);
    let end = until_end(&orders, &begin, &mut job);
    let ended_in_order = end != End::Gone;
    let ended_count = job.end(if end == End::Asked {
        GRACE
    } else {
        Duration::ZERO
    });
    leftovers.remove(|| job.has_let_go());
    job.remove_sessions();
    let unpublished = holder.and_then(finished);
    let (reports, unreadable) = match collector {
        Some(collector) => collector.finish()?,
        None => (Vec::new(), 0),
    };
    let last = FromAgent::Ended(Ended {
        reports,
        unreadable,
        ended_count,
        unpublished,
    });
    if ended_in_order { say(&last) } else { Ok(()) }
}

/// Lines from the other side, until its end. Signals that would end this process count as its end.
fn orders() -> io::Result<Receiver<ToAgent>> {
    let (sender, receiver) = channel();
    let from_signals = sender.clone();
    let watch = signals::Watch::start(move |_| from_signals.send(ToAgent::End).is_ok())?;
    std::thread::Builder::new()
        .name("orders".into())
        .spawn(move || {
            let _watch = watch;
            let lines = io::stdin().lock().split(b'\n').map_while(Result::ok);
            for (index, line) in lines.enumerate() {
                let order = match serde_json::from_slice(&line) {
                    Ok(order) => order,
                    Err(_) if index == 0 => {
                        // Nobody hears it where this was started by hand.
                        let _ = say(&FromAgent::Ready(of_another_build()));
                        ToAgent::End
                    }
                    Err(_) => continue,
                };
                if sender.send(order).is_err() {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

/// The answer to a `Begin` that cannot be read: the other side is another Weft, maybe one with the
/// same version, and refuses this one for it.
fn of_another_build() -> Ready {
    Ready {
        weft: format!("{} of another build", env!("CARGO_PKG_VERSION")),
        ..Ready::default()
    }
}

fn say(word: &FromAgent) -> io::Result<()> {
    let mut text = serde_json::to_string(word)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn ready(begin: &Begin) -> Ready {
    let missing: Vec<PathBuf> = begin
        .files
        .iter()
        .filter(|path| !path.exists())
        .cloned()
        .collect();
    Ready {
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        cores: cores::allowed().usable_count,
        core_names: cores::names(),
        boot: cores::boot_id(),
        missing,
        shm_refusal: begin.shm_size.and_then(refusal_here),
        mount_refusal: None,
    }
}

/// Mounts what the job wants here; why not stands in `ready` then.
fn held(begin: &Begin, ready: &mut Ready) -> Option<Holder> {
    let mut wants = begin.mounts.clone()?;
    wants.shm_size = begin.shm_size.filter(|_| ready.shm_refusal.is_none());
    match Holder::start(&wants, &begin.variables) {
        Ok(holder) => Some(holder),
        Err(why) => {
            ready.mount_refusal = Some(why.to_string());
            None
        }
    }
}

/// Waits until all is published, and shows signs of life meanwhile; answers what is not.
fn finished(holder: Holder) -> Option<String> {
    let (sender, receiver) = channel();
    let finish = move || {
        // Nobody hears it once this process is told to end.
        let _ = sender.send(holder.finish().err().map(|why| why.to_string()));
    };
    std::thread::Builder::new()
        .name("mounts".into())
        .spawn(finish)
        .ok()?;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(unpublished) => return unpublished,
            Err(RecvTimeoutError::Timeout) => say(&FromAgent::Tick).ok()?,
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Why the ranks here cannot have such a `/dev/shm`.
fn refusal_here(size: ShmSize) -> Option<String> {
    let tried = dev_shm::probe(size);
    tried.err().map(|why| why.to_string())
}

/// How the watch over a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The other side said that the job has ended.
    Asked,
    /// The same, and that nothing of it is to be waited for.
    AtOnce,
    /// The other side is gone.
    Gone,
}

/// Waits for the end.
fn until_end(orders: &Receiver<ToAgent>, begin: &Begin, job: &mut Job) -> End {
    let patience =
        Duration::try_from_secs_f64(begin.patience_seconds).unwrap_or(Duration::from_secs(10));
    let mut heard = Instant::now();
    // Daemons are noted now and then, ever more rarely: a look through /proc takes time from the
    // ranks.
    let (mut look, mut pause) = (Instant::now() + TICK, TICK);
    let mut heartbeat = Heartbeat::new(TICK);
    loop {
        match orders.recv_timeout(heartbeat.left()) {
            Ok(ToAgent::End) => return End::Asked,
            Ok(ToAgent::Kill) => return End::AtOnce,
            Ok(_) => heard = Instant::now(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return End::Gone,
        }
        if heard.elapsed() > patience || (heartbeat.is_due() && say(&FromAgent::Tick).is_err()) {
            return End::Gone;
        }
        if Instant::now() >= look {
            job.look();
            pause = (pause * 2).min(Duration::from_secs(60));
            look = Instant::now() + pause;
        }
    }
}

/// The processes of the job on this host.
struct Job {
    /// The mark as it stands in an environment.
    mark: Vec<u8>,
    /// Daemons that were seen above one of its processes: number and time of start.
    daemons: BTreeSet<(u32, u64)>,
    /// The folders that they called their own.
    sessions: Sessions,
}

impl Job {
    fn new(job: &str) -> Self {
        Self {
            mark: format!("{MARK}={job}").into_bytes(),
            daemons: BTreeSet::new(),
            sessions: Sessions::default(),
        }
    }

    /// Those that carry the mark.
    fn marked(&self) -> Vec<u32> {
        let own = std::process::id();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|&pid| pid != own && self.carries_mark(pid) && signals::lives(pid))
            .collect()
    }

    fn carries_mark(&self, pid: u32) -> bool {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == self.mark)
    }

    /// Notes the daemons above the marked processes, and returns the latter.
    fn look(&mut self) -> Vec<u32> {
        let marked = self.marked();
        for &pid in &marked {
            self.sessions.note(pid);
            let mut at = pid;
            while let Some((parent, _)) =
                signals::parent_and_start(at).filter(|(parent, _)| *parent > 1)
            {
                if is_daemon(parent) {
                    self.sessions.note(parent);
                    self.daemons.extend(
                        signals::parent_and_start(parent).map(|(_, start)| (parent, start)),
                    );
                }
                at = parent;
            }
        }
        marked
    }

    /// The daemons that still run.
    fn living_daemons(&self) -> Vec<u32> {
        let alive = |&&(pid, start): &&(u32, u64)| {
            signals::parent_and_start(pid).is_some_and(|now| now.1 == start)
        };
        let living = self.daemons.iter().filter(alive);
        living.map(|&(pid, _)| pid).collect()
    }

    fn is_gone(&self) -> bool {
        self.marked().is_empty() && self.living_daemons().is_empty()
    }

    /// Whether no process of the job can hold a file any more. One that ends carries no mark; so it
    /// is asked about last.
    fn has_let_go(&self) -> bool {
        self.marked().is_empty() && !signals::are_some_ending()
    }

    /// What was killed is gone a moment later; until then the folders are somebody's.
    fn remove_sessions(&self) {
        let deadline = Instant::now() + GRACE;
        let is_busy = || !self.is_gone() || self.sessions.have_living_owner();
        while is_busy() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.sessions.remove();
    }

    /// Waits for the processes to go, then ends those that did not. Returns how many it ended.
    fn end(&mut self, grace: Duration) -> usize {
        let deadline = Instant::now() + grace;
        while !self.is_gone() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut hit = BTreeSet::new();
        loop {
            let marked = self.look();
            let fresh: Vec<u32> = marked
                .into_iter()
                .chain(self.living_daemons())
                .filter(|&pid| hit.insert(pid))
                .collect();
            if fresh.is_empty() {
                return hit.len();
            }
            for pid in fresh {
                signals::send(pid, Signal::SIGKILL);
            }
        }
    }
}

fn is_daemon(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe"))
        .ok()
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .is_some_and(|name| DAEMONS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper(job: &str) -> Child {
        Command::new("sleep")
            .arg("600")
            .env(MARK, job)
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// A process has its environment a moment after it has started.
    fn seen(job: &str, child: &Child) -> Job {
        let own = Job::new(job);
        let deadline = Instant::now() + Duration::from_secs(100);
        while own.marked() != [child.id()] {
            assert!(Instant::now() < deadline, "{:?}", own.marked());
            std::thread::yield_now();
        }
        own
    }

    #[test]
    fn processes_with_the_mark_are_ended_and_no_others() {
        let (mut own, mut strange) = (sleeper("agent-test-1"), sleeper("agent-test-2"));
        let ended = seen("agent-test-1", &own).end(Duration::ZERO);
        let status = own.wait().unwrap();
        assert!(ended == 1 && !status.success(), "{ended} {status}");
        assert!(strange.try_wait().unwrap().is_none());
        strange.kill().unwrap();
        strange.wait().unwrap();
    }

    /// Its first thread ends, and with it the environment; another one has the file open until the
    /// input ends.
    const HOLDER: &str = "
import ctypes, os, sys, threading
file = open(sys.argv[1], 'w')
def hold():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).pthread_exit(None)
";

    #[test]
    fn files_of_a_process_that_has_no_mark_any_more_but_holds_them_are_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let prefixes = ["mpich_shm_".to_owned()];
        let leftovers = Leftovers::note_in(folder.path(), &prefixes);
        let file = folder.path().join("mpich_shm_1");
        let mut child = Command::new("python3")
            .args(["-c", HOLDER])
            .arg(&file)
            .env(MARK, "agent-test-4")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(100);
        let is_there = || signals::lives(child.id());
        while !file.exists() || is_there() {
            assert!(Instant::now() < deadline, "its first thread does not end");
            std::thread::yield_now();
        }
        let job = Job::new("agent-test-4");
        let input = std::cell::RefCell::new(child.stdin.take());
        leftovers.remove(|| {
            let has_let_go = job.has_let_go();
            // Asked before it goes.
            drop(input.borrow_mut().take());
            has_let_go
        });
        assert!(!file.exists());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn processes_that_go_by_themselves_are_waited_for() {
        // It goes when its input ends.
        let mut child = Command::new("cat")
            .env(MARK, "agent-test-3")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut job = seen("agent-test-3", &child);
        let reaper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            child.wait().unwrap()
        });
        assert_eq!(job.end(Duration::from_secs(100)), 0);
        assert!(reaper.join().unwrap().success());
    }

    #[test]
    fn files_that_are_not_here_are_named() {
        let begin = Begin {
            weft: String::new(),
            job: String::new(),
            report: None,
            files: vec!["/".into(), "/no/such/file".into()],
            leftovers: Vec::new(),
            patience_seconds: 1.0,
            shm_size: None,
            mounts: None,
            variables: Default::default(),
        };
        let found = ready(&begin);
        assert_eq!(found.missing, [PathBuf::from("/no/such/file")]);
        assert!(found.cores >= 1);
    }
}

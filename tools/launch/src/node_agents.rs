// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The node agents of a job, as seen from `weft run`: started before the job, heard while it runs,
//! asked at its end.
//!
//! Called by `lib.rs`; starts one `node_agent.rs` on each other host through the remote shell, all
//! at once, and speaks `agent_protocol.rs` with them. A host that is not heard for the patience
//! given counts as lost, which `supervise.rs` answers by ending the job.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::agent_output::{self, Complaints};
use crate::agent_protocol::{Begin, Ended, FromAgent, Ready, ToAgent};
use crate::fault::Fault;
use crate::heartbeat::Heartbeat;
use crate::remote_shell::RemoteShell;

/// How long a host may take to answer at first. Chosen: ssh itself gives up connecting after 10 s
/// here.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// How long a node agent may take at the end: its own grace and some more.
const LAST_ANSWER: Duration = Duration::from_secs(10);
/// As good as without end: a month.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);
/// The name of this machine's node agent in messages.
const HERE: &str = "localhost";
const TICK: Duration = Duration::from_secs(1);
/// How long a remote shell that has not ended may take to write what it complains of. Chosen.
const LAST_COMPLAINT: Duration = Duration::from_millis(50);

/// A host that is gone, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss(pub String);

/// All node agents of a job.
#[derive(Debug)]
pub struct NodeAgents {
    list: Vec<NodeAgent>,
    /// Whether buckets are mounted on the hosts.
    has_mounts: bool,
}

#[derive(Debug)]
struct NodeAgent {
    host: String,
    child: Child,
    orders: Arc<Mutex<ChildStdin>>,
    /// Why it was not told what to do.
    untold: Option<io::Error>,
    /// What the node agent said last, and whatever ended the connection.
    words: Option<Receiver<FromAgent>>,
    complaints: Complaints,
    ready: Ready,
    watcher: Option<std::thread::JoinHandle<Option<Ended>>>,
}

impl NodeAgents {
    /// Starts a node agent on each of the hosts, and one here without a remote shell, and waits
    /// until all have answered. One that is this machine under another name gets one too, which
    /// does no harm. The one here collects no reports, as `weft run` does that itself; it is for
    /// the day on which `weft run` is killed. `here` is what the job calls this machine; where
    /// there is nothing, no ranks are here, and nothing is mounted for them.
    ///
    /// # Errors
    /// `Fault::Host`, with a line for each host that cannot be reached, has another Weft or lacks a
    /// file.
    pub fn start(
        shell: &RemoteShell,
        hosts: Vec<String>,
        here: Vec<String>,
        begin: &Begin,
    ) -> Result<Self, Fault> {
        let program = std::env::current_exe().map_err(Fault::system("finding the path of weft"))?;
        let mut agents = Self {
            list: Vec::new(),
            has_mounts: begin.mounts.is_some(),
        };
        for host in &hosts {
            let command = shell.command(host, &program, &["node-agent"]);
            let begin = begin.for_host(host);
            agents.list.push(NodeAgent::start(command, host, &begin)?);
        }
        let mut command = Command::new(&program);
        command.arg("node-agent");
        let mut silent = Begin {
            report: None,
            ..begin.for_host(here.first().map_or(HERE, String::as_str))
        };
        silent.mounts = silent.mounts.filter(|_| !here.is_empty());
        agents.list.push(NodeAgent::start(command, HERE, &silent)?);
        // Mounting asks a store, which may be busy.
        let patience = match begin.mounts {
            Some(_) => FIRST_ANSWER + crate::mounts::PATIENCE,
            None => FIRST_ANSWER,
        };
        let deadline = Instant::now() + patience;
        let problems: Vec<String> = agents
            .list
            .iter_mut()
            .filter_map(|agent| agent.first_answer(deadline, begin, &program).err())
            .collect();
        if problems.is_empty() {
            Ok(agents)
        } else {
            Err(Fault::Host(problems.join("\nweft run: ")))
        }
    }

    /// What the node agent of a host found there; `None` for a host without one.
    #[must_use]
    pub fn found_on(&self, host: &str) -> Option<&Ready> {
        let mut named = self.list.iter().filter(|agent| agent.host == host);
        named.next().map(|agent| &agent.ready)
    }

    /// The processes of the remote shells through which they were started.
    #[must_use]
    pub fn shells(&self) -> Vec<u32> {
        self.list.iter().map(|agent| agent.child.id()).collect()
    }

    /// Listens from now on; each host that is lost is told to `losses` once.
    pub fn watch(&mut self, patience: Duration, losses: &Sender<Loss>) {
        for agent in &mut self.list {
            agent.watch(patience, losses.clone());
        }
    }

    /// Tells all node agents that the job has ended, `at_once` that nothing of it is to be waited
    /// for, and takes what they have to say, with the host of each; for one that is lost, what its
    /// remote shell complained of, maybe nothing.
    #[must_use]
    pub fn finish(mut self, at_once: bool) -> Vec<(String, Result<Ended, String>)> {
        let order = if at_once { ToAgent::Kill } else { ToAgent::End };
        for agent in &self.list {
            // One that is gone has no last answer, and is found out by that.
            let _ = tell(&agent.orders, &order);
        }
        // What was written is published first, as long as that takes; who falls silent is lost.
        let patience = if self.has_mounts {
            LONGEST
        } else {
            LAST_ANSWER
        };
        let deadline = Instant::now() + patience;
        self.list
            .iter_mut()
            .map(|agent| {
                let ended = agent.last_answer(deadline);
                (agent.host.clone(), ended.ok_or_else(|| agent.complaint()))
            })
            .collect()
    }
}

impl NodeAgent {
    fn start(mut command: Command, host: &str, begin: &Begin) -> Result<Self, Fault> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Out of the terminal's reach: Ctrl-C ends the job, and the node agents are needed for
        // that.
        command.process_group(0);
        let failed = || Fault::system(format!("starting the node agent of host {host}"));
        let mut child = command.spawn().map_err(failed())?;
        let (Some(input), Some(output), Some(error)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Host(format!(
                "host {host}: its remote shell has no pipes"
            )));
        };
        let words = agent_output::words(output).map_err(failed())?;
        let complaints = Complaints::read(error).map_err(failed())?;
        let order = line_of(&ToAgent::Begin(Box::new(begin.clone()))).map_err(failed())?;
        let orders = Mutex::new(input);
        let untold = send(&orders, &order).err();
        Ok(Self {
            host: host.to_owned(),
            child,
            orders: Arc::new(orders),
            untold,
            words: Some(words),
            complaints,
            ready: Ready::default(),
            watcher: None,
        })
    }

    fn first_answer(
        &mut self,
        deadline: Instant,
        begin: &Begin,
        program: &Path,
    ) -> Result<(), String> {
        if let Some(error) = self.untold.take() {
            return Err(self.untold_because(&error, program));
        }
        let host = &self.host;
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = self.words.as_ref().map(|words| words.recv_timeout(left));
        match answer {
            Some(Ok(FromAgent::Ready(ready))) => {
                if ready.weft != begin.weft {
                    return Err(format!(
                        "host {host} has Weft {} at {}, this one is {}; install the same on all \
                         hosts",
                        ready.weft,
                        program.display(),
                        begin.weft
                    ));
                }
                if let Some(path) = ready.missing.first() {
                    return Err(format!(
                        "host {host} has no {}; the program, its MPI and Weft must lie at the same \
                         place on every host",
                        path.display()
                    ));
                }
                if let (Some(why), Some(size)) = (&ready.shm_refusal, begin.shm_size)
                    && !size.is_best_effort
                {
                    return Err(format!(
                        "host {host}: --shm-size {size}: {why}. With --shm-size try:{size} \
                             the job goes on with the host's /dev/shm"
                    ));
                }
                if let Some(why) = &ready.mount_refusal {
                    return Err(format!("host {host}: --mount {why}"));
                }
                self.ready = ready;
                Ok(())
            }
            Some(Err(RecvTimeoutError::Timeout)) => Err(format!(
                "host {host} did not answer within {} s; is it up, does `ssh {host} true` work \
                 without a password, and is {} this Weft there, {}?",
                FIRST_ANSWER.as_secs(),
                program.display(),
                begin.weft
            )),
            _ => {
                let code = wait_until(&mut self.child, Instant::now() + TICK);
                Err(self.refusal(code, program))
            }
        }
    }

    /// The remote shell took no order. If it has ended, its own exit code and words say why.
    fn untold_because(&mut self, error: &io::Error, program: &Path) -> String {
        match wait_until(&mut self.child, Instant::now() + TICK) {
            Some(code) => self.refusal(Some(code), program),
            None => {
                let complaint = self.complaint();
                format!(
                    "host {} cannot be told what to do: writing to its remote shell: {error}; the \
                     remote shell must pass its standard input on{complaint}",
                    self.host
                )
            }
        }
    }

    /// The remote shell ended, with this exit code, before the node agent said anything.
    fn refusal(&mut self, code: Option<i32>, program: &Path) -> String {
        let complaint = self.complaint();
        let host = &self.host;
        match code {
            Some(126 | 127) => format!(
                "host {host} has no {} that can be run; Weft must lie at the same place on every \
                 host{complaint}",
                program.display()
            ),
            code => format!(
                "host {host} cannot be reached{}; does `ssh {host} true` work without a \
                 password?{complaint}",
                code.map(|code| format!(" (the remote shell ended with {code})"))
                    .unwrap_or_default()
            ),
        }
    }

    fn complaint(&mut self) -> String {
        // What is read may be a moment behind the end of the process. A process that it started may
        // hold the stream open for ever.
        let has_ended = wait_until(&mut self.child, Instant::now()).is_some();
        let patience = if has_ended { TICK } else { LAST_COMPLAINT };
        self.complaints.text(patience)
    }

    fn watch(&mut self, patience: Duration, losses: Sender<Loss>) {
        let Some(words) = self.words.take() else {
            return;
        };
        let orders = Arc::clone(&self.orders);
        let host = self.host.clone();
        let watcher = std::thread::Builder::new()
            .name("node-agent".into())
            .spawn(move || {
                let mut heard = Instant::now();
                let mut lost = false;
                let mut heartbeat = Heartbeat::new(TICK);
                loop {
                    let gone = match words.recv_timeout(heartbeat.left()) {
                        Ok(FromAgent::Ended(ended)) => return Some(ended),
                        Ok(_) => {
                            heard = Instant::now();
                            None
                        }
                        Err(RecvTimeoutError::Timeout) if heard.elapsed() < patience => None,
                        Err(RecvTimeoutError::Timeout) => Some(format!(
                            "host {host} has not answered for {} s",
                            patience.as_secs_f64()
                        )),
                        Err(RecvTimeoutError::Disconnected) => {
                            if !lost {
                                let _ = losses
                                    .send(Loss(format!("the connection to host {host} ended")));
                            }
                            return None;
                        }
                    };
                    if let Some(text) = gone.filter(|_| !lost) {
                        lost = true;
                        let _ = losses.send(Loss(text));
                    }
                    if lost && heard.elapsed() > patience {
                        return None;
                    }
                    let told = if heartbeat.is_due() {
                        tell(&orders, &ToAgent::Tick)
                    } else {
                        Ok(())
                    };
                    if let Err(error) = told
                        && !lost
                    {
                        lost = true;
                        let _ = losses.send(Loss(format!(
                            "the connection to host {host} ended: {error}"
                        )));
                    }
                }
            });
        self.watcher = watcher.ok();
    }

    fn last_answer(&mut self, deadline: Instant) -> Option<Ended> {
        let watcher = self.watcher.take()?;
        while !watcher.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if watcher.is_finished() {
            watcher.join().ok().flatten()
        } else {
            None
        }
    }
}

impl Drop for NodeAgent {
    /// The node agent ends when its input does; a remote shell that does not is ended.
    fn drop(&mut self) {
        if wait_until(&mut self.child, Instant::now() + Duration::from_millis(50)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn tell(orders: &Mutex<ChildStdin>, order: &ToAgent) -> io::Result<()> {
    send(orders, &line_of(order)?)
}

/// The order as it is sent.
fn line_of(order: &ToAgent) -> io::Result<String> {
    let mut line = serde_json::to_string(order)?;
    line.push('\n');
    Ok(line)
}

fn send(orders: &Mutex<ChildStdin>, line: &str) -> io::Result<()> {
    let mut pipe = orders.lock().unwrap_or_else(PoisonError::into_inner);
    pipe.write_all(line.as_bytes())
}

/// The exit code once the process has ended; `None` when it has not by the deadline, or was killed.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<i32> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code().unwrap_or(-1)),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn started(script: &str) -> NodeAgent {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        NodeAgent::start(command, "a", &begin()).unwrap()
    }

    fn begin() -> Begin {
        Begin {
            weft: String::new(),
            job: String::new(),
            report: None,
            files: Vec::new(),
            leftovers: Vec::new(),
            patience_seconds: 1.0,
            shm_size: None,
            mounts: None,
            variables: BTreeMap::new(),
        }
    }

    /// What is said of a remote shell like this, whose input has no reader.
    fn said_of(script: &str) -> String {
        let mut agent = started(script);
        while send(&agent.orders, "x").is_ok() {
            std::thread::yield_now();
        }
        agent.untold = send(&agent.orders, "x").err();
        // Nobody waits for a word of one that has heard none.
        let deadline = Instant::now() + Duration::from_secs(1000);
        let begin = begin();
        let answer = agent.first_answer(deadline, &begin, Path::new("/weft"));
        answer.unwrap_err()
    }

    #[test]
    fn a_remote_shell_that_takes_no_order_is_named_at_once_with_the_cause() {
        let said = said_of("exec <&-; exec sleep 600");
        let start = "host a cannot be told what to do: writing to its remote shell: Broken pipe";
        assert!(said.starts_with(start), "{said}");
    }

    #[test]
    fn one_that_takes_no_more_orders_counts_as_lost() {
        let ready = serde_json::to_string(&FromAgent::Ready(Ready::default())).unwrap();
        let script = format!("read begin; echo '{ready}'; exec <&-; exec sleep 600");
        let mut agent = started(&script);
        let deadline = Instant::now() + Duration::from_secs(1000);
        let answer = agent.first_answer(deadline, &begin(), Path::new("/weft"));
        assert_eq!(answer, Ok(()));
        let (losses, lost) = std::sync::mpsc::channel();
        // It is silent, and that alone is no loss for a long time.
        agent.watch(Duration::from_secs(1000), losses);
        let Loss(said) = lost.recv().unwrap();
        let start = "the connection to host a ended: Broken pipe";
        assert!(said.starts_with(start), "{said}");
    }

    #[test]
    fn one_that_has_ended_is_named_with_its_exit_code_and_its_words() {
        let said = said_of("echo denied >&2; exit 255");
        let start = "host a cannot be reached (the remote shell ended with 255)";
        assert!(
            said.starts_with(start) && said.ends_with("denied"),
            "{said}"
        );
    }
}

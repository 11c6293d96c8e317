// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft` on another host, as one side of a check between two hosts. It is started through the
//! remote shell, prints one line, and ends when its standard input is closed.
//!
//! Called by `flows.rs` and `reachability.rs`.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A process that serves others ends by itself after this, if nobody ends it (chosen: several times
/// a measurement).
const TAKES: Duration = Duration::from_secs(120);

/// Why nothing was measured between hosts.
#[derive(Debug, thiserror::Error)]
pub enum RemoteFault {
    /// There is nobody to send to.
    #[error("two hosts are needed: --hosts a,b")]
    OneHost,
    /// The program that starts processes on other hosts.
    #[error("the remote shell to {host}: {source}")]
    Shell {
        /// To where.
        host: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It ended without an answer, with these last words.
    #[error("{host}: {words}")]
    Ended {
        /// Where.
        host: String,
        /// What it complained of.
        words: String,
    },
    /// It answered something else than a rate.
    #[error("{host} answered '{line}'; is another version of Weft there?")]
    Answer {
        /// Where.
        host: String,
        /// What it said.
        line: String,
    },
    /// It did not answer.
    #[error("{host}: no answer within {seconds} s")]
    Silent {
        /// Where.
        host: String,
        /// How long was waited.
        seconds: u64,
    },
}

/// A process on another host, ended when dropped: its input ends, and the shell is killed.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    lines: mpsc::Receiver<String>,
    host: String,
}

impl Remote {
    /// Starts it.
    ///
    /// # Errors
    /// That the remote shell does not run.
    pub fn start(mut command: Command, host: &str) -> Result<Self, RemoteFault> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| RemoteFault::Shell {
                host: host.to_owned(),
                source,
            })?;
        let (tell, lines) = mpsc::channel();
        let stderr = child.stderr.take();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut line = String::new();
                if BufReader::new(stdout).read_line(&mut line).unwrap_or(0) == 0 {
                    // It said nothing: why is in its complaints.
                    if let Some(mut stderr) = stderr {
                        let _ = stderr.read_to_string(&mut line);
                        line.insert(0, '!');
                    }
                }
                let _ = tell.send(line);
            });
        }
        Ok(Self {
            child,
            lines,
            host: host.to_owned(),
        })
    }

    /// The first line that it says.
    ///
    /// # Errors
    /// It said none in time, or ended before.
    pub fn line(&mut self, patience: Duration) -> Result<String, RemoteFault> {
        let host = self.host.clone();
        let Ok(line) = self.lines.recv_timeout(patience) else {
            let seconds = patience.as_secs();
            return Err(RemoteFault::Silent { host, seconds });
        };
        let Some(complaints) = line.strip_prefix('!') else {
            return Ok(line.trim().to_owned());
        };
        let mut lines = complaints.lines().rev().map(str::trim);
        let last = lines.find(|line| !line.is_empty());
        let words = last.unwrap_or("it said nothing").to_owned();
        Err(RemoteFault::Ended { host, words })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// On the other host: waits until standard input ends. Whoever started this process may be gone
/// without a word, so it waits for two minutes at most.
pub fn until_let_go() {
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    });
    let _ = end.recv_timeout(TAKES);
}

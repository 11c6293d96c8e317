// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One `weft-mount`: started in the namespaces of a job, and ended with all that was written
//! published.
//!
//! Called by `keeper.rs`. The program ends when its input does (`--held`), so it outlives no
//! keeper; what it has to say comes on its standard error. Address and credentials are in the
//! environment.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use weft_job::job::Mount;

use crate::mounts::mount_error::MountError;
use crate::mounts::nodes::Nodes;

/// Its name in the folder of `weft`, and on the PATH.
pub const PROGRAM: &str = "weft-mount";
/// What it says when the folder can be used.
const READY: &[u8] = b"ready\n";
/// Lines of its log that are kept for the message of a failure. Chosen.
const KEPT_LINES: usize = 8;

/// `weft-mount` beside this program, else by its name, to be found on the PATH.
#[must_use]
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|program| Some(program.parent()?.join(PROGRAM)));
    let beside = beside.filter(|program| program.is_file());
    beside.unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// A bucket that is mounted.
#[derive(Debug)]
pub(crate) struct Daemon {
    mount: Mount,
    child: Child,
    said: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Mounts the bucket, the one with this number of those of `nodes`; the folder can be used
    /// then.
    ///
    /// # Errors
    /// Why it is not mounted, and what to do.
    pub(crate) fn start(
        mount: &Mount,
        number: usize,
        nodes: Option<&Nodes>,
    ) -> Result<Self, MountError> {
        let mut command = Command::new(program());
        command.args([&mount.source, &mount.target]).arg("--held");
        if mount.read_only {
            command.arg("--read-only");
        }
        if let Some(nodes) = nodes {
            command.args(nodes.options(number));
            // On one host all programs use one mount, and share its files as they are.
            if mount.shared_writes {
                command.arg("--shared-writes");
            }
        }
        // What ranks preload is none of its business.
        command.env_remove("LD_PRELOAD");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            MountError(match error.kind() {
                ErrorKind::NotFound => format!(
                    "{mount}: the program {PROGRAM} is neither beside weft nor on the PATH of this \
                 host; install the package weft-mount, or call make build-mount in a checkout"
                ),
                _ => format!("{mount}: {PROGRAM} cannot be started: {error}"),
            })
        })?;
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&said);
        let error = child.stderr.take();
        let listen = move || keep_lines(error, &kept);
        let listener = std::thread::Builder::new()
            .name("mount".into())
            .spawn(listen);
        let mut daemon = Self {
            mount: mount.clone(),
            child,
            said,
            listener: listener.ok(),
        };
        if daemon.becomes_ready() {
            return Ok(daemon);
        }
        Err(daemon.end().err().unwrap_or_else(|| {
            let text = format!("{mount}: {PROGRAM} ended at once");
            MountError(text)
        }))
    }

    fn becomes_ready(&mut self) -> bool {
        let mut word = [0; READY.len()];
        let output = self.child.stdout.as_mut();
        output.is_some_and(|output| output.read_exact(&mut word).is_ok()) && word == READY
    }

    /// Unmounts it, and waits until what was written is published.
    ///
    /// # Errors
    /// What is not, and why.
    pub(crate) fn end(mut self) -> Result<(), MountError> {
        drop(self.child.stdin.take());
        let ended = self.child.wait();
        if let Some(listener) = self.listener.take() {
            // It ends with the pipe, which only that process has.
            let _ = listener.join();
        }
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(MountError(format!("{}: {}", self.mount, self.why(status)))),
            Err(error) => Err(MountError(format!("{}: {error}", self.mount))),
        }
    }

    fn why(&self, status: ExitStatus) -> String {
        if let Some(signal) = status.signal() {
            return format!(
                "{PROGRAM} was ended by signal {signal}; what it had not published is lost"
            );
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            return format!("{PROGRAM} failed ({status}) without a message");
        }
        said.iter().cloned().collect::<Vec<_>>().join("; ")
    }
}

/// Keeps the last lines, without the program's name.
fn keep_lines(from: Option<impl Read>, kept: &Mutex<VecDeque<String>>) {
    let Some(from) = from else { return };
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix("weft-mount: ").unwrap_or(&line);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(line.to_owned());
        if kept.len() > KEPT_LINES {
            kept.pop_front();
        }
    }
}

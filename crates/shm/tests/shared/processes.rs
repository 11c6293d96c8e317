// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A second process for a test: the same test binary, started again to run one test, its role.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// What a process with a role is told.
const WORDS_VARIABLE: &str = "WEFT_TEST_WORDS";

/// What this process was told, if it has a role; each test but the role ends at once then.
pub fn words() -> Option<String> {
    std::env::var(WORDS_VARIABLE).ok()
}

/// A process that runs the test `role` of this binary alone, and is told these words.
pub fn command(role: &str, words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command
        .args([role, "--exact", "--nocapture", "--test-threads=1"])
        .env(WORDS_VARIABLE, words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Another process, killed at the latest when this is dropped.
pub struct Other {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
}

impl Other {
    /// Starts what [`command`] made.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let stdin = child.stdin.take().expect("stdin");
        Ok(Self {
            child,
            lines,
            stdin,
        })
    }

    /// Says a line to it.
    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("told");
    }

    /// The rest of the next line that begins with this; `None` if it ends before.
    pub fn hear(&mut self, beginning: &str) -> Option<String> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned))
    }

    /// Waits until it says this line.
    pub fn await_line(&mut self, wanted: &str) {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line == wanted), "the other process ended");
    }

    /// Waits for its end, whatever it still says.
    pub fn end(&mut self) -> ExitStatus {
        self.lines.by_ref().map_while(Result::ok).for_each(drop);
        self.child.wait().expect("reap")
    }

    /// Kills it; it is gone after that.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the mount in the background. The command starts itself again as a new process and waits
//! until that process says that the folder can be used. If the process ends before that, the
//! command ends with its exit code. Nothing is forked, because a process must have no other threads
//! when it forks.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use nix::unistd::{dup2_stderr, dup2_stdout, setsid};

use crate::mount_error::MountError;

/// Set for the process behind the shell.
const MARK: &str = "WEFT_MOUNT_BEHIND_SHELL";
/// What that process says when the folder can be used.
const READY: &[u8] = b"ready";

/// Whether this process is the one behind the shell.
pub fn is_child() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts the process behind the shell, and waits for its word or its end.
pub fn start() -> Result<(), MountError> {
    let system = |what| move |error| MountError::System { what, error };
    let program = env::current_exe().map_err(system("cannot find the program's own file"))?;
    let mut child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(system("cannot start the process behind the shell"))?;
    let mut word = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout
            .read_to_end(&mut word)
            .map_err(system("cannot hear the process behind the shell"))?;
    }
    if word == READY {
        return Ok(());
    }
    let ended = child
        .wait()
        .map_err(system("cannot wait for the process behind the shell"))?;
    Err(MountError::Child(
        ended
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
    ))
}

/// Says the same to who holds the mount; what it prints later goes nowhere.
pub fn say_held() -> io::Result<()> {
    io::stdout().write_all(READY)?;
    io::stdout().write_all(b"\n")?;
    io::stdout().flush()?;
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    dup2_stdout(&nothing)?;
    env::set_current_dir("/")
}

/// The process behind the shell says that the folder can be used, and lets go of the terminal.
pub fn say_ready() -> io::Result<()> {
    // Fails only for the first process of a group, which this is not; then it is in the shell's.
    let _ = setsid();
    io::stdout().write_all(READY)?;
    io::stdout().flush()?;
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    env::set_current_dir("/")
}

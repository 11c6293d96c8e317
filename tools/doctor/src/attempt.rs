// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tries whether two ranks may read each other's memory. This process keeps some bytes, permits
//! other processes to read them, as Weft does, and starts `weft doctor` again, which reads them.
//! The kernel lets a parent read its child. Here the child reads its parent, so that rule does not
//! help, and the result is the same as between two ranks.
//!
//! Called by `single_copy.rs` and `direct.rs`, which differ in where the bytes are and how they are
//! read. Source: ptrace(2) "Ptrace access mode checking".

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::check::Check;

/// How many bytes are fetched. Chosen: enough not to be right by chance.
pub const PROBE_BYTES: usize = 32;

/// Why the other process could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It was not told where to look.
    #[error("`{0}` is not of the form PID:ADDRESS")]
    Target(String),
    /// Another process cannot map memory that lies in no file.
    #[error("the shared memory of process {0} is in no file that another process can open")]
    NoFile(u32),
    /// What the process has mapped cannot be read.
    #[error("/proc/{pid}/maps cannot be read by another process: {source}")]
    Maps {
        /// The process.
        pid: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel does not copy from the process.
    #[error("process_vm_readv: {}", .0.desc())]
    Read(nix::errno::Errno),
    /// The bytes cannot be handed over, or the two cannot meet.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A check for which nobody else can be started, as this executable cannot be found.
#[must_use]
pub fn alone(name: &str, why: &str) -> Check {
    let value = "no other process can be started, as this executable cannot be found";
    Check::ok(name, value, why).not_tried("mount /proc, which names it")
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The errno of getrandom(2).
pub fn secret() -> io::Result<Vec<u8>> {
    let words = (0..PROBE_BYTES / 8).map(|_| weft_os::process::random_u64());
    let words = words.collect::<io::Result<Vec<_>>>()?;
    Ok(words.into_iter().flat_map(u64::to_le_bytes).collect())
}

/// Has another process fetch what lies at `address` here, by `weft doctor OPTION PID:ADDRESS`, and
/// compares it with what is there.
///
/// # Errors
/// That it cannot be started, why it could not fetch them, or `otherwise` where it fetched other
/// bytes.
pub fn fetch(
    executable: &Path,
    option: &str,
    address: usize,
    secret: &[u8],
    otherwise: &str,
) -> io::Result<()> {
    weft_os::process::allow_readers();
    let target = format!("{}:{address}", std::process::id());
    let output = Command::new(executable)
        .args(["doctor", option, &target])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(text.trim().to_owned()));
    }
    if output.stdout == secret {
        Ok(())
    } else {
        Err(io::Error::other(otherwise.to_owned()))
    }
}

/// The process and the address in `PID:ADDRESS`, as the other process is told them.
///
/// # Errors
/// That it is not of this form.
pub fn target(text: &str) -> Result<(i32, usize), FetchError> {
    let parsed = text.split_once(':').and_then(|(pid, address)| {
        let pid = pid.parse::<i32>().ok().filter(|pid| *pid >= 0)?;
        Some((pid, address.parse().ok()?))
    });
    parsed.ok_or_else(|| FetchError::Target(text.to_owned()))
}

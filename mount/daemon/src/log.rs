// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where messages go: to standard error while there is a shell; in the background to a file of
//! `--log-directory` or to the system's log. Each message is one line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::mount_error::MountError;

/// syslog(3): facility daemon, severity warning.
const PRIORITY: u32 = 3 << 3 | 4;

enum Target {
    Shell,
    File(File),
    System(UnixDatagram),
}

static TARGET: Mutex<Target> = Mutex::new(Target::Shell);

/// Tells one line.
pub fn tell(line: &str) {
    let mut target = TARGET.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    // There is nowhere to tell that telling failed.
    let _ = match &mut *target {
        Target::Shell => writeln!(io::stderr(), "weft-mount: {line}"),
        Target::File(file) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let seconds = now.map_or(0.0, |now| now.as_secs_f64());
            writeln!(file, "{seconds:.3} {process} {line}")
        }
        Target::System(socket) => {
            let text = format!("<{PRIORITY}>weft-mount[{process}]: {line}");
            socket.send_to(text.as_bytes(), "/dev/log").map(drop)
        }
    };
}

/// Where messages go behind the shell.
pub struct Behind(Target);

/// Opens that: a file in `folder`, or the system's log.
///
/// # Errors
/// Where the folder's file cannot be written.
pub fn open(folder: Option<&Path>) -> Result<Behind, MountError> {
    let Some(folder) = folder else {
        let socket = UnixDatagram::unbound();
        let what = "cannot reach the system's log";
        let socket = socket.map_err(|error| MountError::System { what, error })?;
        return Ok(Behind(Target::System(socket)));
    };
    let file = folder.join("weft-mount.log");
    match OpenOptions::new().create(true).append(true).open(&file) {
        Ok(opened) => Ok(Behind(Target::File(opened))),
        Err(error) => Err(MountError::Log { file, error }),
    }
}

/// From now on messages go there.
pub fn leave_shell(behind: Behind) {
    *TARGET.lock().unwrap_or_else(PoisonError::into_inner) = behind.0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts a launcher, and sees that it gets a process number under which it can work. Used by
//! supervise.
//!
//! A session folder that nobody has removed (`sessions`) is in the way of the launcher that gets
//! the same number later: Open MPI 5's finds its own files there, says "The PMIx server's listener
//! thread failed to start", and ends (PMIx 5, src/mca/ptl/base/ptl_base_listener.c,
//! `write_rndz_file`). The folder may be that of a launcher that lives, in another container with
//! the same folder for temporary files. So it stays, and ours takes another number ([`start`]).

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

use weft_os::process::refuse_numbers_with_file;

use crate::family::Family;

/// How the session folder of Open MPI 5's launcher begins; its number follows.
const SESSION: &str = "ompi.";
/// How many numbers are tried. Chosen: so many launchers in a row are not left behind.
const NUMBERS: u32 = 1000;

/// Starts a launcher, for Open MPI under a number whose session folder is not there.
///
/// # Errors
/// Those of a start.
pub(crate) fn start(command: &mut Command, family: Family) -> io::Result<Child> {
    if family == Family::OpenMpi {
        refuse_numbers_with_file(command, &temporary_folder(command).join(SESSION));
    }
    for _ in 1..NUMBERS {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            started => return started,
        }
    }
    command.spawn()
}

/// Where what the command starts puts its temporary files.
fn temporary_folder(command: &Command) -> PathBuf {
    let set = command.get_envs().find(|(name, _)| *name == "TMPDIR");
    match set {
        Some((_, Some(folder))) => folder.into(),
        Some((_, None)) => "/tmp".into(),
        None => std::env::temp_dir(),
    }
}

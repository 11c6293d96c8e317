// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--shm-size`: gives the ranks that a job has on a host a `/dev/shm` of their own, a tmpfs of the
//! size asked for, in namespaces that vanish with their last process (docs/shm-size.md).
//!
//! Called by `job.rs` (`plan`), `node_agent.rs` and `exec.rs`, and by `weft` for what they start
//! (`subcommand`):
//!
//! - `weft run` on one machine has its launcher start as `weft dev-shm own`, which makes the
//!   namespaces and becomes the launcher. So does `weft exec` without a launcher.
//! - Where another launcher starts the ranks, also on the hosts of `weft run`, they meet
//!   (`meeting`): the first one starts a `keeper`, which makes the namespaces; all enter them.
//!   `answer` is what it tells them.
//!
//! `namespace` makes and enters, `refusal` says why a host does not allow it, `room` whether the
//! host has so much memory.

mod answer;
pub(crate) mod keeper;
mod meeting;
pub(crate) mod namespace;
pub(crate) mod plan;
pub(crate) mod refusal;
mod room;
mod subcommand;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use weft_job::size::ShmSize;

use crate::fault::Fault;
use crate::ranks::Place;
use crate::stderr::say;
use meeting::{Apart, Meeting};
use refusal::Refusal;
pub use room::most_bytes;

/// Whether this host gives a job such a `/dev/shm`: it is made, by a process that ends at once.
///
/// # Errors
/// Why not, and what to do.
pub(crate) fn probe(size: ShmSize) -> Result<(), Refusal> {
    room::check(size)?;
    let told = |error: io::Error| Refusal::Told(format!("trying it failed: {error}"));
    let mut trial = subcommand::command(&[subcommand::PROBE, &size.to_string()]).map_err(told)?;
    let made = trial.output().map_err(told)?;
    if made.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    Err(Refusal::Told(text))
}

/// Whether this host gives a job namespaces of its own, with a `/dev/shm` in them: as `weft doctor`
/// tries it, with a small one.
///
/// # Errors
/// `Fault::Limit`: why not, and what to do.
pub fn trial() -> Result<(), Fault> {
    let refused = |why: &dyn ToString| Fault::Limit(why.to_string());
    let small = ShmSize::of_mib(1).ok_or_else(|| refused(&"1 MiB is no size"))?;
    probe(small).map_err(|why| refused(&why))
}

/// The size, if this host has the memory for it; `None` where it has not, and less will do.
///
/// # Errors
/// `Fault::Limit`: why it has not.
pub(crate) fn checked(size: ShmSize) -> Result<Option<ShmSize>, Fault> {
    match room::check(size) {
        Ok(()) => Ok(Some(size)),
        Err(why) if size.is_best_effort => {
            warn(size, &why);
            Ok(None)
        }
        Err(why) => Err(refused(size, &why)),
    }
}

/// Gives this process, which is to become a rank, the `/dev/shm` of its job on this host.
///
/// # Errors
/// `Fault::Limit`: why the host does not allow it. With `try:` that is a warning alone.
pub(crate) fn give(size: ShmSize, place: &Place) -> Result<(), Fault> {
    let given = match place.launcher() {
        None => enter_own(size),
        Some(launcher) => Meeting::below(launcher, size).and_then(|meeting| meeting.join()),
    };
    match given {
        Ok(()) => Ok(()),
        Err(Apart::Refused { why, is_first }) if size.is_best_effort => {
            if is_first {
                warn(size, &why);
            }
            Ok(())
        }
        Err(Apart::Refused { why, .. }) => Err(refused(size, &why)),
        Err(Apart::Failed(why)) => Err(Fault::Limit(format!("--shm-size {size}: {why}"))),
    }
}

fn enter_own(size: ShmSize) -> Result<(), Apart> {
    let refused = |why| Apart::Refused {
        why,
        is_first: true,
    };
    probe(size).map_err(refused)?;
    namespace::make(Some(size.bytes())).map_err(|why| Apart::Failed(why.to_string()))
}

/// The reason not to start a job that insists.
pub(crate) fn refused(size: ShmSize, why: &Refusal) -> Fault {
    Fault::Limit(format!(
        "--shm-size {size}: {why}. With --shm-size try:{size} the job goes on with the host's \
         /dev/shm{}",
        room::present_in_words()
    ))
}

/// Says that the job goes on with less.
pub(crate) fn warn(size: ShmSize, why: &Refusal) {
    say!(
        "weft: warning: --shm-size {size}: {why}. The job goes on with the host's /dev/shm{}",
        room::present_in_words()
    );
}

/// `weft dev-shm`: returns the exit code where it does not become a program.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    match started(words) {
        Ok(()) => 0,
        Err(fault) => {
            say!("weft: {fault}");
            fault.exit_code()
        }
    }
}

fn started(words: Vec<OsString>) -> Result<(), Fault> {
    let text = as_text(&words);
    let size = |text: &str| text.parse::<ShmSize>().map_err(Fault::Usage);
    match text.as_slice() {
        [subcommand::OWN, asked, _, ..] => {
            let asked = size(asked)?;
            let made = namespace::make(Some(asked.bytes()));
            made.map_err(|why| refused(asked, &why))?;
            become_program(&words[2..])
        }
        [subcommand::JOIN, asked, _, ..] => {
            give(size(asked)?, &Place::of_this_process()?)?;
            become_program(&words[2..])
        }
        [subcommand::PROBE, asked] => match namespace::make(Some(size(asked)?.bytes())) {
            Ok(()) => Ok(()),
            Err(refusal) => {
                println!("{refusal}");
                std::process::exit(1)
            }
        },
        [subcommand::START, name, asked, first] => {
            subcommand::command(&[subcommand::KEEP, name, asked, first])
                .and_then(keeper::start)
                .map_err(Fault::system("starting the keeper of /dev/shm"))
        }
        [subcommand::KEEP, name, asked, first] => {
            let first = first.parse().unwrap_or(0);
            keeper::keep(name, size(asked)?, first).map_err(Fault::system("keeping /dev/shm"))
        }
        _ => Err(Fault::Usage(
            "dev-shm is started by --shm-size, and not by hand".to_owned(),
        )),
    }
}

/// The words that Weft itself wrote. Those of a program may be any bytes, and go on as they are.
pub(crate) fn as_text(words: &[OsString]) -> Vec<&str> {
    let text = words.iter().map(|word| word.to_str().unwrap_or_default());
    text.collect()
}

/// Becomes a program; there is none where no word is left.
///
/// # Errors
/// Why it does not run.
pub(crate) fn become_program(words: &[OsString]) -> Result<(), Fault> {
    let Some((program, rest)) = words.split_first() else {
        return Ok(());
    };
    let error = Command::new(program).args(rest).exec();
    Err(match error.kind() {
        io::ErrorKind::NotFound => Fault::ProgramMissing(program.into()),
        _ => Fault::ProgramNotExecutable {
            path: program.into(),
            reason: error.to_string(),
        },
    })
}

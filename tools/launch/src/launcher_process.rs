// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The launcher's process above a rank: its folder, and which cores it may use. The rank itself may
//! be bound to one core, and scripts may run between it and the launcher.
//!
//! Called by `ranks.rs`. Source: proc(5), `stat`, `environ` and `exe`.

use std::path::PathBuf;

use nix::unistd::{Pid, getppid};

use crate::{cores, signals};

/// Most scripts that are looked through. Chosen.
const DEEPEST: u32 = 16;

/// The nearest process above this one that has not the variable of ranks: the launcher, or its
/// daemon on this host.
#[must_use]
pub fn launcher(variable: &str) -> Pid {
    let mut process = getppid();
    for _ in 0..DEEPEST {
        if !has(process, variable) {
            break;
        }
        let Some(parent) = parent_of(process) else {
            break;
        };
        process = parent;
    }
    process
}

/// The folder of its program; `None` where it belongs to another user.
#[must_use]
pub fn folder_of(process: Pid) -> Option<PathBuf> {
    let program = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    program.parent().map(PathBuf::from)
}

/// How many cores the ranks of this host share: those of the launcher, which may have bound each
/// rank to some of them; at least 1.
#[must_use]
pub fn cores_of(process: Pid) -> u32 {
    let (own, all) = (cores::allowed(), cores::allowed_to(process));
    if own.processors.len() < all.processors.len() {
        all.core_count
    } else {
        own.usable_count
    }
}

/// Whether a process has a variable; `false` where it belongs to another user.
fn has(process: Pid, variable: &str) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{process}/environ")) else {
        return false;
    };
    let is_it = |entry: &[u8]| {
        let rest = entry.strip_prefix(variable.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    environment.split(|&byte| byte == 0).any(is_it)
}

fn parent_of(process: Pid) -> Option<Pid> {
    let stat = signals::stat_after_name(process.as_raw().try_into().ok()?)?;
    let parent = stat.split_whitespace().nth(1)?.parse().ok()?;
    Some(Pid::from_raw(parent)).filter(|parent| parent.as_raw() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_the_variable_is_found_through_those_that_have_it() {
        let sleep = |command: &mut std::process::Command| {
            command.args(["-c", "sleep 60; :"]).spawn().unwrap()
        };
        let mut child = sleep(std::process::Command::new("sh").env("WEFT_TEST_RANK", "1"));
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap());
        // It has the variable from when it became the shell on.
        while !has(id, "WEFT_TEST_RANK") {
            std::thread::yield_now();
        }
        assert!(!has(id, "WEFT_TEST_RAN"));
        assert_eq!(parent_of(id), Some(Pid::this()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(launcher("WEFT_TEST_RANK"), getppid());
        assert!(cores_of(Pid::this()) >= 1);
        assert!(folder_of(Pid::this()).is_some());
    }
}

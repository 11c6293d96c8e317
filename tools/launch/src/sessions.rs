// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session folders of Open MPI's launchers and daemons, which stay in the folder for temporary
//! files when their owners are killed.
//!
//! Called by `lib.rs` for the launcher and by `node_agent.rs` for all processes of a job on its
//! host. A folder goes only if all of this holds: a process of the job was seen that says it is its
//! own (PMIX_SERVER_TMPDIR in its environment, or its number in the folder's name), its name is
//! that of a session, it and the folder above it are folders of this user and no links, and the
//! process whose number is in its name, if one is, has ended. Names as seen with Open MPI 4.1.4
//! (`ompi.HOST.UID/pid.N` and `jf.N`) and 5.0.11 (`ompi.N`, `prted.N`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::supervise::Ending;

/// Where a process that runs says that its session's folder is.
const VARIABLE: &[u8] = b"PMIX_SERVER_TMPDIR";
/// Folders that are named after the process that made them.
const NAMED_BY_PROCESS: [&str; 3] = ["ompi", "prted", "prterun"];
/// The same inside a folder of the user, and after the number of a job.
const INNER: [&str; 2] = ["pid", "jf"];
/// How the folder of the user begins.
const OUTER: &str = "ompi.";

/// The folders that the processes of a job called their own.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    folders: BTreeSet<PathBuf>,
}

impl Sessions {
    /// Notes those of a process that runs.
    pub(crate) fn note(&mut self, pid: u32) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let value = |wanted: &[u8]| {
            let mut entries = environment.split(|&byte| byte == 0);
            entries.find_map(|entry| entry.strip_prefix(wanted)?.strip_prefix(b"="))
        };
        let folder = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        self.folders.extend(value(VARIABLE).map(folder));
        let above = value(b"TMPDIR").map_or_else(|| PathBuf::from("/tmp"), folder);
        self.note_in(&above, pid);
    }

    /// Notes those that have this process's number in their names, in a folder for temporary files.
    pub(crate) fn note_in(&mut self, above: &Path, pid: u32) {
        for name in NAMED_BY_PROCESS {
            self.folders.insert(above.join(format!("{name}.{pid}")));
        }
        let user = nix::unistd::geteuid();
        let host = nix::unistd::gethostname().ok();
        let host = host.and_then(|name| name.into_string().ok());
        if let Some(host) = host {
            let short = host.split('.').next().unwrap_or(&host);
            for host in [host.as_str(), short] {
                let outer = above.join(format!("{OUTER}{host}.{user}"));
                self.folders.insert(outer.join(format!("pid.{pid}")));
            }
        }
    }

    /// Removes those of a launcher that was killed.
    pub(crate) fn remove_of(ending: &Ending) {
        if ending.forced || ending.signal.is_some() {
            let mut sessions = Self::default();
            sessions.note_in(&std::env::temp_dir(), ending.launcher);
            sessions.remove();
        }
    }

    /// Whether one of them is there whose process still runs: it may be ending, and then nothing
    /// but its number tells that it is there.
    pub(crate) fn have_living_owner(&self) -> bool {
        let is_alive = |folder: &Path| session(folder).is_some() && !has_ended(folder);
        let mut folders = self.folders.iter();
        folders.any(|folder| is_alive(folder) && is_ours(folder))
    }

    /// Removes what is there of them. All processes of the job must have ended.
    pub(crate) fn remove(&self) {
        for folder in &self.folders {
            if has_ended(folder) && is_ours(folder) && folder.parent().is_some_and(is_above) {
                let _ = std::fs::remove_dir_all(folder);
                if let Some(above) = folder.parent().filter(|above| is_outer(above)) {
                    // Goes only if it is empty.
                    let _ = std::fs::remove_dir(above);
                }
            }
        }
    }
}

/// The kind and the number in the name of a session's folder; `None` if it is called otherwise.
fn session(folder: &Path) -> Option<(&str, u32)> {
    let (kind, number) = folder.file_name()?.to_str()?.split_once('.')?;
    let is_inner = INNER.contains(&kind) && folder.parent().is_some_and(is_outer);
    let is_known = is_inner || NAMED_BY_PROCESS.contains(&kind);
    number
        .parse()
        .ok()
        .filter(|_| is_known)
        .map(|number| (kind, number))
}

/// Whether the folder is that of a session that has ended, as far as its name says whose it is.
fn has_ended(folder: &Path) -> bool {
    // The number of a job's folder is not that of a process.
    let ended = |(kind, number)| kind == "jf" || weft_os::process_id::has_ended(number);
    session(folder).is_some_and(ended)
}

/// Whether this is the folder that holds the sessions of a user of Open MPI 4.
fn is_outer(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(OUTER) && name.matches('.').count() >= 2)
}

/// A folder of the user's own is trusted as far as it is his; one for all is no link of somebody.
fn is_above(folder: &Path) -> bool {
    if is_outer(folder) {
        return is_ours(folder);
    }
    folder.is_absolute() && folder.is_dir()
}

/// Whether this is a folder of this user, and no link to one.
fn is_ours(folder: &Path) -> bool {
    let user = nix::unistd::geteuid().as_raw();
    std::fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir() && facts.uid() == user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn folders_wait_for_a_process_that_is_still_ending() {
        let above = tempfile::tempdir().unwrap();
        for (number, is_alive) in [(ended(), false), (std::process::id(), true)] {
            let mut sessions = Sessions::default();
            sessions.note_in(above.path(), number);
            assert!(!sessions.have_living_owner(), "there is no folder");
            std::fs::create_dir(above.path().join(format!("ompi.{number}"))).unwrap();
            assert_eq!(sessions.have_living_owner(), is_alive);
        }
    }

    /// The number of a process that has ended.
    fn ended() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    fn user() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    #[test]
    fn what_an_ended_process_called_its_own_is_removed_and_nothing_else() {
        let above = tempfile::tempdir().unwrap();
        let (gone, own) = (ended(), std::process::id());
        let outer = above.path().join(format!("ompi.host.{}", user()));
        let path = |name: String| above.path().join(name);
        let all = [
            path(format!("prted.{gone}")),
            path(format!("ompi.{gone}")),
            outer.join("jf.44664"),
            outer.join(format!("pid.{gone}")),
            // Of others, by name or because they live.
            path(format!("prted.{own}")),
            path("data.77".to_owned()),
            path(format!("jf.{gone}")),
            outer.join("pid.x"),
        ];
        let mut sessions = Sessions::default();
        for folder in &all {
            std::fs::create_dir_all(folder.join("1")).unwrap();
            std::fs::write(folder.join("1/file"), "x").unwrap();
            sessions.folders.insert(folder.clone());
        }
        // Named by nobody.
        let stranger = outer.join("jf.5");
        std::fs::create_dir(&stranger).unwrap();
        sessions.remove();
        let left: Vec<bool> = all.iter().map(|folder| folder.exists()).collect();
        assert_eq!(left, [false, false, false, false, true, true, true, true]);
        assert!(stranger.exists());
        std::fs::remove_dir_all(&stranger).unwrap();
        std::fs::remove_dir_all(outer.join("pid.x")).unwrap();
        std::fs::create_dir(outer.join("jf.44664")).unwrap();
        sessions.remove();
        assert!(!outer.exists(), "the last one takes the folder along");
    }

    #[test]
    fn a_link_is_left_alone_wherever_it_leads() {
        let above = tempfile::tempdir().unwrap();
        let there = above.path().join("data");
        let name = format!("pid.{}", ended());
        std::fs::create_dir_all(there.join(&name)).unwrap();
        let mut sessions = Sessions::default();
        let link = above.path().join(format!("prted.{}", ended()));
        std::os::unix::fs::symlink(&there, &link).unwrap();
        sessions.folders.insert(link);
        let outer = above.path().join(format!("ompi.host.{}", user()));
        std::os::unix::fs::symlink(&there, &outer).unwrap();
        sessions.folders.insert(outer.join(&name));
        sessions.remove();
        assert!(there.join(&name).exists());
    }

    #[test]
    fn a_process_names_its_session_and_those_with_its_number() {
        let mut child = Command::new("sleep")
            .arg("600")
            .env("PMIX_SERVER_TMPDIR", "/t/ompi.h.0/jf.1")
            .env("TMPDIR", "/t")
            .spawn()
            .unwrap();
        let mut sessions = Sessions::default();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(100);
        // A process has its environment a moment after it has started.
        while !sessions.folders.contains(Path::new("/t/ompi.h.0/jf.1")) {
            assert!(std::time::Instant::now() < deadline);
            sessions.note(child.id());
        }
        let named = PathBuf::from(format!("/t/prted.{}", child.id()));
        assert!(sessions.folders.contains(&named), "{sessions:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

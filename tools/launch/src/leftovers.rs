// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What ranks that were killed leave behind, removed at the end of the job: shared memory of their
//! MPI in /dev/shm. Folders of launchers and daemons: `sessions.rs`.
//!
//! Called by `lib.rs` and, on each other host, by `node_agent.rs`; `weft doctor` asks what lies
//! there ([`abandoned`]). Where another launcher started the ranks, nothing of Weft is left at
//! their end; so the next ranks of this user there, the first one of each host, remove what they
//! left (`exec.rs`, [`remove_abandoned`]). A file of /dev/shm goes only if all of this holds: its
//! name begins as this MPI's do, it was not there before a job of `weft run`, it is a plain file of
//! this user, and nobody has it open or mapped, of which the kernel vouches by a lease
//! (`weft_os::lease`). Each of these MPIs holds a file mapped from its making to its removal, so
//! such a file is nobody's: its owners are dead. Names as seen with Open MPI 4.1.4 and 5.0.11,
//! MPICH 5.0.2 and Intel MPI 2021.18; UCX may be below each.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::family::Family;

const SHARED_MEMORY: &str = "/dev/shm";
/// How long processes that were killed may take to go. Chosen: the kernel gives gigabytes back in
/// less than a second.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// How the names of an MPI's files begin.
#[must_use]
pub(crate) fn prefixes(family: Family) -> Vec<String> {
    let own: &[&str] = match family {
        // The last is empty, made to see whether shared memory can be had, and removed at once.
        Family::OpenMpi => &[
            "vader_segment.",
            "sm_segment.",
            "osc_sm.",
            "osc_rdma.",
            "open_mpi.",
        ],
        Family::Mpich => &["mpich_shm_", "mpich_shar_tmp"],
        Family::Intel => &["Intel_MPI_", "mpich_shm_", "mpich_shar_tmp"],
    };
    own.iter()
        .chain(&["ucx_shm_"])
        .map(|&one| one.to_owned())
        .collect()
}

/// Files of this user in /dev/shm that an MPI made and nobody has open, with their sizes in bytes,
/// in the order of their names. Nothing is removed.
#[must_use]
pub fn abandoned() -> Vec<(PathBuf, u64)> {
    abandoned_in(Path::new(SHARED_MEMORY))
}

fn abandoned_in(folder: &Path) -> Vec<(PathBuf, u64)> {
    let families = [Family::OpenMpi, Family::Mpich, Family::Intel];
    let leftovers = Leftovers {
        folder: folder.to_owned(),
        prefixes: families.into_iter().flat_map(prefixes).collect(),
        before: HashSet::new(),
    };
    let unused = leftovers.present().into_iter().filter_map(|known| {
        let path = folder.join(&known.name);
        let file = known.open(&path).ok()??;
        let bytes = file.metadata().ok()?.len();
        let is_unused = weft_os::lease::is_unused(file.as_fd()).unwrap_or(false);
        is_unused.then_some((path, bytes))
    });
    let mut list: Vec<_> = unused.collect();
    list.sort();
    list
}

/// Removes the files of this user in /dev/shm that this MPI made and nobody has open.
pub(crate) fn remove_abandoned(family: Family) {
    remove_abandoned_in(Path::new(SHARED_MEMORY), family);
}

fn remove_abandoned_in(folder: &Path, family: Family) {
    let leftovers = Leftovers {
        folder: folder.to_owned(),
        prefixes: prefixes(family),
        before: HashSet::new(),
    };
    leftovers.remove(|| true);
}

/// A file by its name and its inode: one that took the name later is another.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Known {
    name: OsString,
    inode: u64,
}

impl Known {
    /// The file at `path`, if it is this one still.
    fn open(&self, path: &Path) -> std::io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(path)?;
        let is_it = file.metadata()?.ino() == self.inode;
        Ok(is_it.then_some(file))
    }
}

/// What was there before the job.
#[derive(Debug)]
pub(crate) struct Leftovers {
    folder: PathBuf,
    prefixes: Vec<String>,
    before: HashSet<Known>,
}

impl Leftovers {
    /// Notes what is there.
    pub(crate) fn note(prefixes: &[String]) -> Self {
        Self::note_in(Path::new(SHARED_MEMORY), prefixes)
    }

    pub(crate) fn note_in(folder: &Path, prefixes: &[String]) -> Self {
        let mut own = Self {
            folder: folder.to_owned(),
            prefixes: prefixes.to_vec(),
            before: HashSet::new(),
        };
        own.before = own.present();
        own
    }

    /// Files of this user whose names begin so.
    fn present(&self) -> HashSet<Known> {
        let user = nix::unistd::geteuid().as_raw();
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return HashSet::new();
        };
        let named = |entry: &std::fs::DirEntry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            self.prefixes.iter().any(|start| name.starts_with(start))
        };
        entries
            .flatten()
            .filter(named)
            .filter_map(|entry| {
                let facts = entry.metadata().ok()?;
                let is_own = facts.is_file() && facts.uid() == user;
                is_own.then(|| Known {
                    name: entry.file_name(),
                    inode: facts.ino(),
                })
            })
            .collect()
    }

    /// Removes what is new and nobody's. While files are in use and processes of the job may hold
    /// them still (`all_gone` is false), it looks again for a while.
    pub(crate) fn remove(&self, all_gone: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Asked first: who goes in between has let go of his files when they are looked at.
            let last = all_gone() || Instant::now() >= deadline;
            let mut fresh = self.present();
            fresh.retain(|file| !self.before.contains(file) && !self.remove_one(file));
            if fresh.is_empty() || last {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether the file is gone.
    fn remove_one(&self, known: &Known) -> bool {
        let path = self.folder.join(&known.name);
        match known.open(&path) {
            Ok(Some(file)) if weft_os::lease::is_unused(file.as_fd()).unwrap_or(false) => {
                std::fs::remove_file(&path).is_ok()
            }
            Ok(_) => false,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_new_files_of_this_mpi_that_nobody_holds_are_removed() {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        File::create(path("mpich_shm_before_0")).unwrap();
        let leftovers = Leftovers::note_in(folder.path(), &prefixes(Family::Mpich));
        File::create(path("mpich_shm_left_0")).unwrap();
        File::create(path("of_others")).unwrap();
        std::fs::create_dir(path("mpich_shm_folder")).unwrap();
        std::os::unix::fs::symlink(path("of_others"), path("mpich_shm_link")).unwrap();
        let held = File::create(path("mpich_shm_held_0")).unwrap();
        leftovers.remove(|| true);
        let mut kept = vec!["mpich_shm_before_0", "mpich_shm_folder", "mpich_shm_held_0"];
        kept.extend(["mpich_shm_link", "of_others"]);
        assert_eq!(names(folder.path()), kept);
        drop(held);
        leftovers.remove(|| true);
        assert!(!path("mpich_shm_held_0").exists());
    }

    #[test]
    fn a_later_rank_removes_what_a_killed_one_left_of_its_mpi() {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["mpich_shm_left_0", "sm_segment.left", "of_others"] {
            File::create(path(name)).unwrap();
        }
        let _held = File::create(path("mpich_shm_held_0")).unwrap();
        remove_abandoned_in(folder.path(), Family::Mpich);
        let kept = ["mpich_shm_held_0", "of_others", "sm_segment.left"];
        assert_eq!(names(folder.path()), kept);
    }

    #[test]
    fn abandoned_files_are_those_that_an_mpi_made_and_nobody_holds() {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("mpich_shm_left_0"), [0; 7]).unwrap();
        File::create(path("of_others")).unwrap();
        let held = File::create(path("sm_segment.held")).unwrap();
        let left = (path("mpich_shm_left_0"), 7);
        assert_eq!(abandoned_in(folder.path()), std::slice::from_ref(&left));
        drop(held);
        assert_eq!(
            abandoned_in(folder.path()),
            [left, (path("sm_segment.held"), 0)]
        );
    }

    #[test]
    fn a_file_that_a_dying_process_still_holds_is_waited_for() {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let leftovers = Leftovers::note_in(folder.path(), &prefixes(Family::OpenMpi));
        let path = folder.path().join("sm_segment.vm.0");
        let held = std::cell::RefCell::new(Some(File::create(&path).unwrap()));
        // It goes at the third question.
        let asked = std::cell::Cell::new(0);
        leftovers.remove(|| {
            asked.set(asked.get() + 1);
            if asked.get() == 3 {
                held.take();
            }
            asked.get() >= 3
        });
        assert!(!path.exists());
    }
}

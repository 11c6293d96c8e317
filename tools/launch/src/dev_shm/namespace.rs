// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The namespaces in which `/dev/shm` is a tmpfs of the size asked for: made here, and entered.
//!
//! Called by `dev_shm.rs` and `keeper.rs`, always in a process with a single thread, which the
//! system wants of who enters a user namespace. A process that may mount (CAP_SYS_ADMIN) gets a
//! mount namespace alone. Any other gets a user namespace around it, in which it is who it was:
//! its user and its group are mapped to themselves, and nobody else is mapped. Sources:
//! user_namespaces(7), mount_namespaces(7), tmpfs(5).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{chroot, fchdir, getegid, geteuid};

use super::refusal::{Refusal, Step};

/// Where POSIX shared memory lies (shm_overview(7)).
pub(crate) const PLACE: &str = "/dev/shm";
/// CAP_SYS_ADMIN (linux/capability.h).
pub(crate) const SYS_ADMIN: u32 = 21;

/// Gives this process namespaces of its own, with such a `/dev/shm`; with the one that there is
/// where no size is given. Mounts of the world outside still arrive in them, as home folders that
/// are mounted when they are first used; none leaves.
///
/// # Errors
/// Which step the system refused. The process must then end: it may be half way.
pub(crate) fn make(bytes: Option<u64>) -> Result<(), Refusal> {
    let refused = |step: Step| move |error: Errno| Refusal::Step(step, error);
    let may_mount = has_capability(SYS_ADMIN);
    let (user, group) = (geteuid(), getegid());
    if may_mount {
        unshare(CloneFlags::CLONE_NEWNS).map_err(refused(Step::MountNamespace))?;
    } else {
        let both = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
        unshare(both).map_err(refused(Step::UserNamespace))?;
        // Without it the system lets nobody map a group (user_namespaces(7), "setgroups").
        write("/proc/self/setgroups", "deny").map_err(refused(Step::Mapping))?;
        write("/proc/self/uid_map", &format!("{user} {user} 1")).map_err(refused(Step::Mapping))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))
            .map_err(refused(Step::Mapping))?;
    }
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)
        .map_err(refused(Step::Propagation))?;
    let Some(bytes) = bytes else {
        return Ok(());
    };
    let options = format!("size={bytes},mode=1777");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        PLACE,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(refused(Step::Mount))
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let code = |error: io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
    std::fs::write(path, text).map_err(code)
}

/// Whether this process has a capability; root has it where nobody can say.
fn has_capability(number: u32) -> bool {
    let status = weft_os::proc_text::read("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    mask.map_or(geteuid().is_root(), |mask| mask >> number & 1 == 1)
}

/// The namespaces of another process.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// `None` where it is the one of this process.
    user: Option<File>,
    mounts: File,
    /// What it has as its root: a process that enters a mount namespace loses its own.
    root: File,
}

impl Namespaces {
    /// Those of a process of this user that lives.
    ///
    /// # Errors
    /// The errno of open(2), also where it has ended.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let own = std::fs::read_link("/proc/self/ns/user")?;
        let is_own = std::fs::read_link(folder.join("ns/user"))? == own;
        let open = |path: &str| File::open(folder.join(path));
        Ok(Self {
            user: if is_own { None } else { Some(open("ns/user")?) },
            mounts: open("ns/mnt")?,
            root: open("root")?,
        })
    }

    /// Enters them, and stays in the folder in which this process is.
    ///
    /// # Errors
    /// The errno of setns(2) or chroot(2); `NotFound` where that folder is not there.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let folder = std::env::current_dir()?;
        if let Some(user) = &self.user {
            setns(user, CloneFlags::CLONE_NEWUSER)?;
        }
        setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
        fchdir(&self.root)?;
        chroot(Path::new("."))?;
        std::env::set_current_dir(folder)
    }
}

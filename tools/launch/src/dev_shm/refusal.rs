// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a host refuses a `/dev/shm` of its own to a job: what refused, with its value, and what to
//! do about it.
//!
//! Made by `namespace.rs` and `room.rs`. Sources: unshare(2), user_namespaces(7), namespaces(7);
//! Debian's kernel.unprivileged_userns_clone; Ubuntu's
//! kernel.apparmor_restrict_unprivileged_userns.

use std::fmt;
use std::path::Path;

use nix::errno::Errno;

use crate::limits::Memory;

/// On the way to the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A mount namespace, for who may mount.
    MountNamespace,
    /// A user namespace with a mount namespace, for everybody else.
    UserNamespace,
    /// The user's own number in it.
    Mapping,
    /// Mounts that do not leave it.
    Propagation,
    /// The tmpfs.
    Mount,
}

/// Why a job does not get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The system refused a step.
    Step(Step, Errno),
    /// There is less memory.
    Memory(Memory),
    /// What another process of Weft on this host has found out.
    Told(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step, error) => {
                let answer = Answer {
                    step: *step,
                    error: *error,
                };
                f.write_str(&answer.in_words(Path::new("/proc")))
            }
            Self::Memory(memory) => {
                let most = memory.bytes >> 20;
                let (whose, remedy) = match &memory.group {
                    Some(folder) => (
                        format!("its control group may use {most}m ({})", folder.display()),
                        ", or for a job with more memory",
                    ),
                    None => (format!("this host has {most}m of memory"), ""),
                };
                write!(
                    f,
                    "{whose}, and what lies in /dev/shm is memory; ask for {most}m at most{remedy}"
                )
            }
            Self::Told(text) => f.write_str(text),
        }
    }
}

/// The system's answer to a step.
#[derive(Debug, Clone, Copy)]
struct Answer {
    step: Step,
    error: Errno,
}

impl Answer {
    /// What refused, with its value, and the remedy, as the files below `proc` show it.
    fn in_words(self, proc: &Path) -> String {
        let what = match self.step {
            Step::MountNamespace => "a mount namespace (unshare(2))",
            Step::UserNamespace => "a user namespace (unshare(2))",
            Step::Mapping => "a user namespace its user (uid_map)",
            Step::Propagation => "a mount namespace mounts of its own (mount(2))",
            Step::Mount => "a tmpfs at /dev/shm (mount(2))",
        };
        let said = self.error.desc();
        let reason = self.reason(proc);
        format!("this host refuses {what}: {said}; {reason}")
    }

    fn reason(self, proc: &Path) -> String {
        if self.step == Step::Mount && self.error == Errno::ENOENT {
            return "there is no /dev/shm; as root: mkdir /dev/shm".to_owned();
        }
        if self.step == Step::Mount && self.error == Errno::EINVAL {
            return "its kernel takes no tmpfs of that size".to_owned();
        }
        let number = |name: &str| {
            let text = std::fs::read_to_string(proc.join("sys").join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        if self.error == Errno::ENOSPC || number("user/max_user_namespaces") == Some(0) {
            let (name, path) = match self.step {
                Step::MountNamespace => ("user.max_mnt_namespaces", "user/max_mnt_namespaces"),
                _ => ("user.max_user_namespaces", "user/max_user_namespaces"),
            };
            let value = number(path).map_or("unknown".to_owned(), |value| value.to_string());
            return format!("{name} is {value}; as root: sysctl {name}=15000");
        }
        if number("kernel/unprivileged_userns_clone") == Some(0) {
            return "kernel.unprivileged_userns_clone is 0; as root: sysctl \
                    kernel.unprivileged_userns_clone=1"
                .to_owned();
        }
        if number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            return "AppArmor restricts user namespaces \
                    (kernel.apparmor_restrict_unprivileged_userns is 1); as root: give weft a \
                    profile with `userns,`, or sysctl \
                    kernel.apparmor_restrict_unprivileged_userns=0"
                .to_owned();
        }
        if self.error == Errno::EINVAL || self.error == Errno::ENOSYS {
            return "its kernel has none (CONFIG_USER_NS)".to_owned();
        }
        if is_filtered(proc) {
            return "a seccomp filter is in force, as in a container; give the container a larger \
                    /dev/shm (docker run --shm-size), or a profile that allows unshare and mount"
                .to_owned();
        }
        "it is a container, a chroot or a security module that does not allow it; give /dev/shm \
         the size from outside (as root: mount -o remount,size=SIZE /dev/shm)"
            .to_owned()
    }
}

/// Whether a seccomp filter judges this process's system calls (proc(5), `Seccomp`).
fn is_filtered(proc: &Path) -> bool {
    let status = weft_os::proc_text::read(proc.join("self/status")).unwrap_or_default();
    let mut lines = status.lines();
    lines.any(|line| line.strip_prefix("Seccomp:").map(str::trim) == Some("2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(step: Step, error: Errno, files: &[(&str, &str)]) -> String {
        let proc = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = proc.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Answer { step, error }.in_words(proc.path())
    }

    #[test]
    fn what_refused_is_named_with_its_value_and_the_remedy() {
        let clone = "sys/kernel/unprivileged_userns_clone";
        let ubuntu = "sys/kernel/apparmor_restrict_unprivileged_userns";
        let most = "sys/user/max_user_namespaces";
        let filter = ("self/status", "Name:\tweft\nSeccomp:\t2\n");
        for (step, error, file, said) in [
            (
                Step::UserNamespace,
                Errno::ENOSPC,
                (most, "0\n"),
                "user.max_user_namespaces is 0",
            ),
            (
                Step::UserNamespace,
                Errno::ENOSPC,
                (most, "9\n"),
                "user.max_user_namespaces is 9",
            ),
            (
                Step::UserNamespace,
                Errno::EPERM,
                (clone, "0\n"),
                "unprivileged_userns_clone=1",
            ),
            (Step::Mapping, Errno::EACCES, (ubuntu, "1\n"), "AppArmor"),
            (Step::Propagation, Errno::EPERM, filter, "seccomp filter"),
            (
                Step::UserNamespace,
                Errno::EINVAL,
                ("x", ""),
                "CONFIG_USER_NS",
            ),
            (Step::Mount, Errno::ENOENT, ("x", ""), "mkdir /dev/shm"),
            (
                Step::MountNamespace,
                Errno::EPERM,
                ("x", ""),
                "security module",
            ),
        ] {
            let found = words(step, error, &[file]);
            assert!(
                found.contains(said) && found.contains(error.desc()),
                "{found}"
            );
        }
        let mounts = "sys/user/max_mnt_namespaces";
        let found = words(Step::MountNamespace, Errno::ENOSPC, &[(mounts, "5\n")]);
        assert!(found.contains("sysctl user.max_mnt_namespaces="), "{found}");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether one rank may read another's memory (Cross Memory Attach), tried as ranks would: by a
//! process that is no ancestor.
//!
//! Called by `lib.rs`; the other process is `weft doctor --read-memory` (attempt). Source:
//! process_vm_readv(2), Documentation/admin-guide/LSM/Yama.rst.

use std::io::{self, IoSliceMut, Write};
use std::path::Path;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::attempt::{self, FetchError, PROBE_BYTES};
use crate::check::{Check, Status};
use crate::tree::Tree;

/// What surrounds an attempt and explains its failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Circumstances {
    /// Yama's ptrace_scope; `None` where there is no Yama.
    yama: Option<u64>,
    /// Whether a seccomp filter is in force.
    filtered: bool,
    /// Whether this process is in a user namespace below the machine's first.
    inner_user_namespace: bool,
}

impl Circumstances {
    fn read(tree: &Tree) -> Self {
        // The first user namespace maps all 2^32 - 1 ids onto themselves.
        let whole = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
        Self {
            yama: tree.number("/proc/sys/kernel/yama/ptrace_scope"),
            filtered: tree
                .field("/proc/self/status", "Seccomp:")
                .is_some_and(|mode| mode == "2"),
            inner_user_namespace: tree
                .text("/proc/self/uid_map")
                .is_some_and(|map| !whole(map)),
        }
    }

    fn describe(&self) -> String {
        let yama = self.yama.map_or_else(
            || "no Yama".to_owned(),
            |scope| format!("Yama ptrace_scope {scope}"),
        );
        let filter = if self.filtered {
            "a seccomp filter"
        } else {
            "no seccomp filter"
        };
        let namespace = if self.inner_user_namespace {
            ", in a user namespace: ranks in other user namespaces cannot"
        } else {
            ""
        };
        format!("{yama}, {filter}{namespace}")
    }

    fn fix(&self) -> &'static str {
        match self {
            Self {
                yama: Some(2..), ..
            } => {
                "sysctl kernel.yama.ptrace_scope=1 (Weft opens itself to readers, which 1 permits \
                 and 2 does not)"
            }
            Self { filtered: true, .. } => {
                "start the container with --cap-add=SYS_PTRACE, or with a seccomp profile that \
                 allows process_vm_readv and process_vm_writev"
            }
            Self {
                inner_user_namespace: true,
                ..
            } => {
                "start all ranks in one user namespace (one container for the job, not one for \
                 each rank)"
            }
            _ => {
                "see which security module or kernel setting denies process_vm_readv among \
                 processes of one user"
            }
        }
    }
}

const NAME: &str = "single copy";
const WHY: &str = "a receiver that may read the sender's memory copies large messages once instead \
                   of twice; without it Weft pipelines two copies, which is slower on most \
                   machines and never wrong";

/// The check; `executable` is the `weft` that is started to read.
#[must_use]
pub fn check(tree: &Tree, executable: Option<&Path>) -> Check {
    match executable {
        Some(executable) => judge(attempt(executable), &Circumstances::read(tree)),
        None => attempt::alone(NAME, WHY),
    }
}

fn judge(attempt: io::Result<()>, circumstances: &Circumstances) -> Check {
    match attempt {
        Ok(()) => Check::ok(
            NAME,
            format!(
                "another process read this one's memory ({})",
                circumstances.describe()
            ),
            WHY,
        ),
        Err(error) => {
            let check = Check::ok(NAME, format!("{error} ({})", circumstances.describe()), WHY);
            check.but(Status::Warn, circumstances.fix())
        }
    }
}

fn attempt(executable: &Path) -> io::Result<()> {
    let secret = attempt::secret()?;
    let address = secret.as_ptr() as usize;
    let otherwise = "process_vm_readv gave other bytes than were there";
    attempt::fetch(executable, "--read-memory", address, &secret, otherwise)
}

/// The other side of the attempt: reads from the process and address in `target` (`PID:ADDRESS`)
/// and writes the bytes to standard output.
///
/// # Errors
/// When the target is malformed or the kernel refuses.
pub fn read_memory(target: &str) -> Result<(), FetchError> {
    let (pid, address) = attempt::target(target)?;
    let mut bytes = [0_u8; PROBE_BYTES];
    let remote = [RemoteIoVec {
        base: address,
        len: PROBE_BYTES,
    }];
    let count = process_vm_readv(
        Pid::from_raw(pid),
        &mut [IoSliceMut::new(&mut bytes)],
        &remote,
    )
    .map_err(FetchError::Read)?;
    Ok(io::stdout().write_all(&bytes[..count])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(circumstances: &Circumstances) -> Check {
        judge(
            Err(io::Error::other(
                "process_vm_readv: Operation not permitted",
            )),
            circumstances,
        )
    }

    #[test]
    fn the_fix_follows_the_cause() {
        let yama = Circumstances {
            yama: Some(2),
            filtered: true,
            inner_user_namespace: false,
        };
        refused(&yama).assert_wrong(Status::Warn, "ptrace_scope=1");
        let container = Circumstances {
            yama: Some(1),
            filtered: true,
            inner_user_namespace: true,
        };
        refused(&container).assert_wrong(Status::Warn, "SYS_PTRACE");
        let namespace = Circumstances {
            inner_user_namespace: true,
            ..Circumstances::default()
        };
        refused(&namespace).assert_wrong(Status::Warn, "one user namespace");
        assert_eq!(refused(&Circumstances::default()).status, Status::Warn);
        assert_eq!(judge(Ok(()), &container).status, Status::Ok);
        let nobody = check(&Tree::of_this_machine(), None);
        assert_eq!(nobody.status, Status::NotTried);
    }

    #[test]
    fn circumstances_are_read_from_proc() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/sys/kernel/yama")).unwrap();
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        std::fs::write(
            folder.path().join("proc/sys/kernel/yama/ptrace_scope"),
            "1\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("proc/self/status"),
            "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("proc/self/uid_map"),
            "         0       1000          1\n",
        )
        .unwrap();
        let found = Circumstances::read(&Tree::below(folder.path()));
        assert_eq!(
            found,
            Circumstances {
                yama: Some(1),
                filtered: true,
                inner_user_namespace: true
            }
        );
        std::fs::write(
            folder.path().join("proc/self/uid_map"),
            "         0          0 4294967295\n",
        )
        .unwrap();
        assert!(!Circumstances::read(&Tree::below(folder.path())).inner_user_namespace);
    }

    #[test]
    fn a_malformed_target_is_refused() {
        for bad in ["", "1", "1:", "x:1", "1:x", "99999999999:1"] {
            assert!(
                read_memory(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("PID:ADDRESS"),
                "{bad}"
            );
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What one process may see of another: its open region file, and whether it may read its memory.
//! Used by shm at first contact. Sources: proc(5), ptrace(2) "access mode checking", prctl(2).

use std::fs;
use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The digits of the largest number and a zero byte.
const NUMBER_BYTES: usize = 11;

/// Our process id, as our own namespace counts.
pub fn own_pid() -> u32 {
    std::process::id()
}

/// Our effective user.
pub fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Opens the memfd called `name` that process `pid` holds, without that process's help. Slow path:
/// reads the links of its descriptors, `likely` first: ranks of one program tend to use the same
/// numbers.
///
/// # Errors
/// `NotFound` if the process is gone or holds no such file, `PermissionDenied` if we may not look
/// (another user, a hidden /proc, a process that is not dumpable).
pub fn open_memfd_of(pid: u32, name: &str, likely: RawFd) -> io::Result<OwnedFd> {
    let wanted = format!("/memfd:{name} (deleted)");
    let folder = format!("/proc/{pid}/fd");
    let is_it =
        |path: &Path| fs::read_link(path).is_ok_and(|link| link.as_os_str() == wanted.as_str());
    let open = |path: &Path| {
        Ok(fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)?
            .into())
    };
    let guess = Path::new(&folder).join(likely.to_string());
    if is_it(&guess) {
        return open(&guess);
    }
    for entry in fs::read_dir(&folder)?.flatten() {
        if is_it(&entry.path()) {
            return open(&entry.path());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        format!("process {pid} holds no region called {name}"),
    ))
}

/// Lets every process of this user read our memory where Yama's ptrace_scope would forbid it among
/// siblings, and only there: it opens this process to debuggers of the same user, too
/// (docs/threat-model.md). Setup: reads a file.
pub fn allow_readers() {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    if !needs_permission(scope.as_deref(), Path::new("/proc/sys/kernel").exists()) {
        return;
    }
    // SAFETY: prctl with PR_SET_PTRACER takes plain numbers and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Whether this ptrace_scope asks for a permission, and honours it; `None` if there is none to be
/// read.
fn needs_permission(scope: Option<&str>, is_proc_there: bool) -> bool {
    match scope.map(str::trim) {
        Some(scope) => scope == "1",
        // Without /proc nobody can tell; without Yama it does no harm.
        None => !is_proc_there,
    }
}

/// Has the kernel kill the process that `command` starts when the thread that starts it ends.
/// Setup.
pub fn end_with_parent(command: &mut Command) {
    let arrange = || {
        let signal = libc::SIGKILL as libc::c_ulong;
        // SAFETY: prctl with PR_SET_PDEATHSIG takes a plain number and touches no memory.
        crate::check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) }).map(drop)
    };
    // SAFETY: between fork and exec it makes one system call, and allocates nothing.
    unsafe { command.pre_exec(arrange) };
}

/// Has a start of `command` fail with [`io::ErrorKind::AlreadyExists`] where there is a file whose
/// path is `prefix` with the number of the new process behind it. The next start gets another
/// number. Setup.
pub fn refuse_numbers_with_file(command: &mut Command, prefix: &Path) {
    let mut path = prefix.as_os_str().as_bytes().to_vec();
    let digits_at = path.len();
    path.resize(digits_at + NUMBER_BYTES, 0);
    let look = move || {
        write!(&mut path[digits_at..], "{}\0", own_pid())?;
        // SAFETY: the path is ours and ends with a zero byte.
        match unsafe { libc::access(path.as_ptr().cast(), libc::F_OK) } {
            0 => Err(io::Error::from_raw_os_error(libc::EEXIST)),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes two system calls, and allocates nothing: the path has
    // room for the number, and both errors are without a box.
    unsafe { command.pre_exec(look) };
}

/// 64 random bits from the kernel.
///
/// # Errors
/// The errno of getrandom(2).
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is ours and eight bytes long.
    let got =
        crate::check_length(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) })?;
    if got == bytes.len() {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;
    use std::process::Command;

    use super::{needs_permission, refuse_numbers_with_file};

    #[test]
    fn a_process_does_not_start_under_a_number_that_a_file_has() {
        let started_beside = |prefix: &str| {
            let mut command = Command::new("true");
            refuse_numbers_with_file(&mut command, Path::new(prefix));
            let mut twice = [(); 2].map(|()| command.spawn());
            for child in twice.iter_mut().flatten() {
                assert!(child.wait().expect("its end").success());
            }
            twice.map(|child| child.map(drop).map_err(|error| error.kind()))
        };
        // Each process has a folder there while it lives.
        assert_eq!(started_beside("/proc/"), [Err(ErrorKind::AlreadyExists); 2]);
        assert_eq!(started_beside("/proc/none."), [Ok(()); 2]);
    }

    #[test]
    fn only_a_yama_that_asks_for_it_is_given_a_permission() {
        assert!(needs_permission(Some("1\n"), true));
        for scope in [Some("0\n"), Some("2\n"), Some("3\n"), None] {
            assert!(!needs_permission(scope, true));
        }
        assert!(needs_permission(None, false));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that hold regions and have no name anybody could leave behind: memfd_create(2), or
//! O_TMPFILE in a directory of the user's choice. Used by shm when it makes or checks a region.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{check, limits};

/// Makes an anonymous file of `length_bytes`, listed in /proc as `memfd:NAME`, and seals its
/// length.
///
/// # Errors
/// EFBIG where `ulimit -f` forbids so long a file; the errno of memfd_create(2), ftruncate(2) or
/// fcntl(2); `InvalidInput` for a name with a NUL.
pub fn create_memfd(name: &str, length_bytes: u64) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    // SAFETY: the name is a NUL-terminated string that outlives the call.
    let raw = check(unsafe {
        libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
    })?;
    // SAFETY: the call just returned this descriptor and nobody else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(raw) };
    set_length(&file, length_bytes)?;
    // SAFETY: plain fcntl on a descriptor we own.
    check(unsafe {
        libc::fcntl(
            file.as_raw_fd(),
            libc::F_ADD_SEALS,
            LENGTH_SEALS | libc::F_SEAL_SEAL,
        )
    })?;
    Ok(file)
}

/// Makes a nameless file of `length_bytes` in `directory`.
///
/// # Errors
/// The errno of open(2) (not writable, no such directory, no O_TMPFILE there) or posix_fallocate(3)
/// (full).
pub fn create_in(directory: &Path, length_bytes: u64) -> io::Result<OwnedFd> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: the path is a NUL-terminated string that outlives the call.
    let raw = check(unsafe {
        libc::open(
            path.as_ptr(),
            libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC,
            0o600,
        )
    })?;
    // SAFETY: the call just returned this descriptor and nobody else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(raw) };
    set_length(&file, length_bytes)?;
    Ok(file)
}

/// Reserves pages, so that a full file system is an error now and not a fatal signal later.
///
/// # Errors
/// ENOSPC or ENOMEM when the pages cannot be had.
pub fn reserve(file: BorrowedFd<'_>, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
    // SAFETY: plain call on a descriptor that is open while borrowed.
    let errno = unsafe {
        libc::posix_fallocate(file.as_raw_fd(), offset_bytes as i64, length_bytes as i64)
    };
    if errno == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(errno))
    }
}

/// Whether nobody can shorten the file any more.
pub fn is_length_sealed(file: BorrowedFd<'_>) -> bool {
    // SAFETY: plain fcntl on a descriptor that is open while borrowed.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
}

/// Whether a file that another process of our user made may be mapped: nobody can shorten it under
/// us; or it cannot be sealed, and nobody but our user can reach it, by no name.
pub fn may_be_mapped(file: BorrowedFd<'_>) -> bool {
    // SAFETY: both are plain data, for which zero is valid.
    let (mut status, mut system): (libc::stat, libc::statfs) = unsafe { std::mem::zeroed() };
    let raw = file.as_raw_fd();
    // SAFETY: the descriptor is open while borrowed, and both structures are ours to write.
    if unsafe { libc::fstat(raw, &mut status) != 0 || libc::fstatfs(raw, &mut system) != 0 } {
        return false;
    }
    // Huge pages may be lacking when they are touched.
    if status.st_mode & libc::S_IFMT != libc::S_IFREG || system.f_type == libc::HUGETLBFS_MAGIC {
        return false;
    }
    let is_private = status.st_nlink == 0 && status.st_mode & 0o077 == 0;
    is_length_sealed(file) || (is_private && status.st_uid == crate::process::own_uid())
}

const LENGTH_SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// A file longer than `ulimit -f` would end the process by SIGXFSZ; anonymous files count too.
fn set_length(file: &OwnedFd, length_bytes: u64) -> io::Result<()> {
    if limits::file_bytes().is_some_and(|most| length_bytes > most) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    // SAFETY: plain call on a descriptor we own.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), length_bytes as i64) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_memfd_cannot_be_shortened_by_anyone() {
        let file = create_memfd("weft-test", 8192).expect("memfd");
        assert!(is_length_sealed(file.as_fd()));
        // SAFETY: plain call on a descriptor we own.
        assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), 0) }, -1);
    }

    /// Runs as a process of its own, since a limit holds for all threads and SIGXFSZ would end
    /// them.
    #[test]
    fn a_file_longer_than_the_limit_is_an_error_and_no_signal() {
        const INSIDE: &str = "WEFT_TEST_FILE_LIMIT";
        if std::env::var_os(INSIDE).is_some() {
            let error = create_memfd("weft-test", 2 << 20).expect_err("too long");
            assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
            assert!(limits::in_words().contains("`ulimit -f` is 1024"));
            return;
        }
        let own = std::env::current_exe().expect("path");
        let name = "region_file::tests::a_file_longer_than_the_limit_is_an_error_and_no_signal";
        // dash counts 512 bytes.
        let line = format!("ulimit -f 2048 && exec '{}' --exact {name}", own.display());
        let mut shell = std::process::Command::new("dash");
        let output = shell.args(["-c", &line]).env(INSIDE, "1").output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn only_what_nobody_else_can_shorten_may_be_mapped() {
        assert!(may_be_mapped(
            create_memfd("weft-test", 4096).expect("memfd").as_fd()
        ));
        // SAFETY: the name is a string that outlives the call; the descriptor is nobody else's.
        let unsealed = unsafe {
            OwnedFd::from_raw_fd(libc::memfd_create(c"weft-test".as_ptr(), libc::MFD_CLOEXEC))
        };
        assert!(!may_be_mapped(unsealed.as_fd()), "its mode is 0777");
        let folder = std::env::temp_dir();
        match create_in(&folder, 4096) {
            Ok(file) => assert!(may_be_mapped(file.as_fd()), "nameless, and ours"),
            Err(error) => eprintln!("skip: no nameless files in {}: {error}", folder.display()),
        }
        let path = folder.join(format!("weft-test-{}", std::process::id()));
        let named = std::fs::File::create(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        assert!(!may_be_mapped(named.as_fd()), "others may have it open");
        let null = std::fs::File::open("/dev/null").expect("open");
        assert!(!may_be_mapped(null.as_fd()), "no file");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        assert!(create_in(Path::new("/nonexistent/weft"), 4096).is_err());
    }
}

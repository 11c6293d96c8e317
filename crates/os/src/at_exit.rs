// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of this process by exit(3): knowing its exit code, and writing a line once it has ended.
//! Used by libweft-mpi.so. Sources: on_exit(3), exit(3), fork(2).

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// What is done at the exit of the process that asked for it.
struct Work {
    process_id: u32,
    call: fn(exit_code: i32),
}

static WORK: OnceLock<Work> = OnceLock::new();

unsafe extern "C" {
    /// on_exit(3).
    fn on_exit(work: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Has `call` called when this process calls exit(3) or returns from main; not in its children. A
/// library that asks while it is loaded is called behind all destructors of C++ and of libraries,
/// since exit(3) calls in reverse order. Only the first call in a process has an effect. Setup.
///
/// # Errors
/// Out of memory.
pub fn at_exit(call: fn(exit_code: i32)) -> io::Result<()> {
    let process_id = process::id();
    if WORK.set(Work { process_id, call }).is_err() {
        return Ok(());
    }
    // SAFETY: a function of this library, of the type that on_exit(3) asks for; a library with a
    // destructor of the C library's own kind is never unloaded from a process that preloads it.
    if unsafe { on_exit(exits, null_mut()) } == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::OutOfMemory.into())
    }
}

extern "C" fn exits(exit_code: c_int, _argument: *mut c_void) {
    if let Some(work) = WORK.get()
        && work.process_id == process::id()
    {
        (work.call)(exit_code);
    }
}

/// Writes `line` to a descriptor once this process has ended, from a child. The child keeps only
/// that descriptor and its standard output and error: who waits for the end of this process's
/// output sees it behind the line. One fork(2); for the end of a process only. `descriptor` must be
/// above 2.
///
/// # Errors
/// As socketpair(2) and fork(2).
pub fn write_after_end(descriptor: RawFd, line: &[u8]) -> io::Result<()> {
    let (parent_lives, parent_ends) = UnixStream::pair()?;
    // SAFETY: the child calls only functions that signal-safety(7) names.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => write_in_child(parent_ends.as_raw_fd(), descriptor, line),
        _ => {
            // The kernel closes it when this process ends.
            std::mem::forget(parent_lives);
            Ok(())
        }
    }
}

/// The child of [`write_after_end`].
fn write_in_child(parent_ends: RawFd, descriptor: RawFd, line: &[u8]) -> ! {
    let (low, high) = (parent_ends.min(descriptor), parent_ends.max(descriptor));
    let mut byte = 0u8;
    // SAFETY: the child has one thread and no use for any descriptor but these; `byte` and
    // `line` have the lengths that are passed. Kernels before 5.9 have no close_range(2); then they
    // stay open as long as the child runs, which is not long.
    unsafe {
        close_between(libc::STDERR_FILENO + 1, low - 1);
        close_between(low + 1, high - 1);
        close_between(high + 1, RawFd::MAX);
        while libc::read(parent_ends, (&raw mut byte).cast(), 1) == -1
            && *libc::__errno_location() == libc::EINTR
        {}
        libc::write(descriptor, line.as_ptr().cast(), line.len());
        libc::_exit(0)
    }
}

/// Closes all descriptors from `first` to `last`, if there are any.
///
/// # Safety
/// Nobody in this process may use them any more.
unsafe fn close_between(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: numbers only; the caller's promise.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    const DESCRIPTOR: &str = "WEFT_TEST_DESCRIPTOR";

    /// The process of the next test; nothing when it is run by itself.
    #[test]
    fn exits_with_seven() {
        if std::env::var(DESCRIPTOR).is_err() {
            return;
        }
        at_exit(|exit_code| {
            let descriptor = std::env::var(DESCRIPTOR)
                .expect("set")
                .parse()
                .expect("number");
            let line = format!("{exit_code} in {}\n", process::id());
            write_after_end(descriptor, line.as_bytes()).expect("a child");
            // The child has time to be too early.
            std::thread::sleep(Duration::from_millis(100));
            let last: &[u8] = b"the last of the process\n";
            // SAFETY: the line and its length.
            unsafe { libc::write(descriptor, last.as_ptr().cast(), last.len()) };
        })
        .expect("registered");
        // A child that exits says nothing.
        // SAFETY: the child only exits, and takes the handler with it.
        let child = unsafe { libc::fork() };
        if child == 0 {
            process::exit(3);
        }
        // SAFETY: a child of this process.
        unsafe { libc::waitpid(child, null_mut(), 0) };
        process::exit(7);
    }

    #[test]
    fn a_line_with_the_exit_code_is_written_once_the_process_has_ended() {
        let (here, there) = UnixStream::pair().expect("sockets");
        let there = OwnedFd::from(there);
        // SAFETY: a descriptor of ours; it stays open in the process that is executed.
        let passed = unsafe { libc::dup(there.as_raw_fd()) };
        drop(there);
        let mut process = Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "at_exit::tests::exits_with_seven", "--nocapture"])
            .env(DESCRIPTOR, passed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // SAFETY: ours alone in this process.
        unsafe { libc::close(passed) };
        let mut output = Vec::new();
        let end_of_output = process
            .stdout
            .take()
            .expect("piped")
            .read_to_end(&mut output);
        end_of_output.expect("the child has ended");
        here.set_nonblocking(true).expect("set");
        let mut lines = BufReader::new(here).lines();
        let mut line = || lines.next().expect("a line").expect("read");
        assert_eq!(line(), "the last of the process");
        assert_eq!(line(), format!("7 in {}", process.id()));
        assert!(
            lines.next().is_none(),
            "one line, and the descriptor is closed"
        );
        assert_eq!(process.wait().expect("ended").code(), Some(7));
    }
}

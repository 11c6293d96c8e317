// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of this process by exit(3): knowing its exit code, and sending a line once it has ended.
//! Used by libweft-mpi.so. Sources: on_exit(3), exit(3), fork(2).

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::process;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

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

/// Chosen: exit(3) has long ended by then, if it ends at all.
const LONGEST_WAIT_MS: u32 = 60_000;

/// Sends `line` over a socket once this process has ended, from a child. The child keeps standard
/// input, output and error open meanwhile: who waits for the end of this process's output sees it
/// behind the line. Where no child can be made, the line is sent at once. `socket` must be above 2.
/// One fork(2); for the end of a process only.
///
/// # Errors
/// As fork(2), and then as send(2).
pub fn send_after_end(socket: RawFd, line: &[u8]) -> io::Result<()> {
    // The child must not run the program's handlers of signals.
    let before = block_signals()?;
    let parent = process::id();
    // SAFETY: the child calls only functions that signal-safety(7) names.
    let child = unsafe { libc::fork() };
    if child == 0 {
        send_in_child(parent, socket, line);
    }
    // SAFETY: the set that this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut()) };
    if child > 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    send(socket, line);
    Err(error)
}

/// Blocks all signals of this thread, and returns those that were blocked before.
fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: room for two sets; sigfillset(3) fills the first one, pthread_sigmask(3) the second.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Nothing is written where the descriptor is no socket, as after somebody closed it.
fn send(socket: RawFd, line: &[u8]) {
    // SAFETY: the line and its length.
    unsafe { libc::send(socket, line.as_ptr().cast(), line.len(), libc::MSG_NOSIGNAL) };
}

/// The child of [`send_after_end`].
fn send_in_child(parent: u32, socket: RawFd, line: &[u8]) -> ! {
    // SAFETY: the child has one thread, and no use for any descriptor but these. Kernels before 5.9
    // have no close_range(2); then they stay open for a moment.
    unsafe {
        close_between(libc::STDERR_FILENO + 1, socket - 1);
        close_between(socket + 1, RawFd::MAX);
    }
    for _ in 0..LONGEST_WAIT_MS {
        // SAFETY: no arguments. A child whose parent has ended gets another one.
        if u32::try_from(unsafe { libc::getppid() }) != Ok(parent) {
            send(socket, line);
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
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
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    const SOCKET: &str = "WEFT_TEST_SOCKET";
    const CLOSES: &str = "WEFT_TEST_CLOSES";

    /// The process of the tests below; nothing when it is run by itself.
    #[test]
    fn exits_with_seven() {
        if std::env::var(SOCKET).is_err() {
            return;
        }
        at_exit(|exit_code| {
            let socket = std::env::var(SOCKET).expect("set").parse().expect("number");
            let line = format!("{exit_code} in {}\n", process::id());
            send_after_end(socket, line.as_bytes()).expect("a child");
            // The child has time to be too early.
            std::thread::sleep(Duration::from_millis(100));
            send(socket, b"the last of the process\n");
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
        if std::env::var(CLOSES).is_ok() {
            // SAFETY: nobody uses them from here on.
            unsafe { (libc::close(0), libc::close(1), libc::close(2)) };
        }
        process::exit(7);
    }

    /// What a process sends that exits, and whether a child holds its output beyond that.
    fn sent_by(process: &mut Command) {
        let (here, there) = UnixStream::pair().expect("sockets");
        let there = OwnedFd::from(there);
        // SAFETY: a descriptor of ours; it stays open in the process that is executed.
        let passed = unsafe { libc::dup(there.as_raw_fd()) };
        drop(there);
        let mut process = process
            .args(["--exact", "at_exit::tests::exits_with_seven", "--nocapture"])
            .env(SOCKET, passed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // SAFETY: ours alone in this process.
        unsafe { libc::close(passed) };
        let limit = Some(Duration::from_secs(30));
        here.set_read_timeout(limit).expect("set");
        let mut lines = BufReader::new(here).lines();
        let mut line = || lines.next().expect("a line").expect("read");
        assert_eq!(line(), "the last of the process");
        assert_eq!(line(), format!("7 in {}", process.id()));
        assert!(lines.next().is_none(), "one line, and the socket is closed");
        let mut output = Vec::new();
        let end_of_output = process
            .stdout
            .take()
            .expect("piped")
            .read_to_end(&mut output);
        end_of_output.expect("the child has ended");
        assert_eq!(process.wait().expect("ended").code(), Some(7));
    }

    fn own() -> Command {
        Command::new(std::env::current_exe().expect("own path"))
    }

    #[test]
    fn a_line_with_the_exit_code_is_sent_once_the_process_has_ended() {
        sent_by(&mut own());
    }

    #[test]
    fn a_line_is_sent_for_a_process_that_closed_its_standard_descriptors() {
        sent_by(own().env(CLOSES, "1"));
    }

    #[test]
    fn nothing_is_written_into_a_file() {
        let path = std::env::temp_dir().join(format!("weft-no-socket-{}", process::id()));
        let file = std::fs::File::create(&path).expect("made");
        send(file.as_raw_fd(), b"a line");
        let bytes = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("removed");
        assert!(bytes.is_empty());
    }
}

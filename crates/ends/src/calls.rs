// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of the C library by which launchers wait for their children and send signals: the
//! same calls of the kernel, and a word about each to `word`. Sources: wait(2), wait4(2), kill(2).

use std::ffi::{CStr, c_int};
use std::io::{Cursor, Write};

use crate::pause::pause;
use crate::word::{Word, errno_kept, tell};

/// How often, and how long between, a process that is ending is looked at before it is sent a
/// signal. Chosen: all in all 20 ms, in which a process with much memory gives it back.
const LOOKS_AT_END: u32 = 100;
const BETWEEN_LOOKS_US: u32 = 200;

/// wait4(2).
///
/// # Safety
/// As the function of this name.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn wait4(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    let mut own: c_int = 0;
    // SAFETY: `own` is ours to write, `usage` the caller's.
    let ended =
        unsafe { libc::syscall(libc::SYS_wait4, process, &raw mut own, options, usage) } as c_int;
    if ended > 0 {
        if !status.is_null() {
            // SAFETY: the caller's to write.
            unsafe { *status = own };
        }
        // Else it was stopped, or goes on.
        if libc::WIFEXITED(own) || libc::WIFSIGNALED(own) {
            tell(Word::Ended(ended, own));
        }
    }
    ended
}

/// wait3(2).
///
/// # Safety
/// As the function of this name.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    // SAFETY: the caller's promise.
    unsafe { wait4(-1, status, options, usage) }
}

/// waitpid(2).
///
/// # Safety
/// As the function of this name.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn waitpid(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
) -> libc::pid_t {
    // SAFETY: the caller's promise.
    unsafe { wait4(process, status, options, std::ptr::null_mut()) }
}

/// wait(2).
///
/// # Safety
/// As the function of this name.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn wait(status: *mut c_int) -> libc::pid_t {
    // SAFETY: the caller's promise.
    unsafe { wait4(-1, status, 0, std::ptr::null_mut()) }
}

/// kill(2). A launcher may send signals to ranks before it has asked how they ended, so a child
/// that has ended already is told of first.
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn kill(process: libc::pid_t, signal: c_int) -> c_int {
    // A group has the number of its first process. 0 asks whether it is there; CONT ends nobody.
    let first = process.checked_abs().filter(|&first| first > 1);
    if let Some(first) = first.filter(|_| signal != 0 && signal != libc::SIGCONT) {
        errno_kept(|| {
            let mut left = LOOKS_AT_END;
            while !tell_if_ended(first) && left > 0 && is_ending(first) && pause(BETWEEN_LOOKS_US) {
                left -= 1;
            }
            tell(Word::Sent(first, signal));
        });
    }
    // SAFETY: plain numbers.
    (unsafe { libc::syscall(libc::SYS_kill, process, signal) }) as c_int
}

/// killpg(3).
// SAFETY: the same name, arguments and promise as the function whose place it takes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn killpg(group: libc::pid_t, signal: c_int) -> c_int {
    match group.checked_neg().filter(|_| group >= 0) {
        Some(all) => kill(all, signal),
        None => {
            // SAFETY: the address of this thread's errno is always valid.
            unsafe { *libc::__errno_location() = libc::EINVAL };
            -1
        }
    }
}

/// Tells of a child that has ended, and answers whether it has. Its status stays for who asks for
/// it later.
fn tell_if_ended(child: libc::pid_t) -> bool {
    // SAFETY: plain data, for which zero is valid.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `found` is ours to write, and holds a child's end when the call says so.
    let (ended, status) = unsafe {
        if libc::waitid(libc::P_PID, child.unsigned_abs(), &raw mut found, options) != 0 {
            return false;
        }
        (found.si_pid(), found.si_status())
    };
    if ended == child {
        let exited = found.si_code == libc::CLD_EXITED;
        let status = if exited {
            (status & 0xff) << 8
        } else {
            status & 0x7f
        };
        tell(Word::Ended(child, status));
    }
    ended == child
}

/// Whether a process is on its way out: its connections are closed already, by which launchers
/// learn of it, and its status is not there yet.
fn is_ending(process: libc::pid_t) -> bool {
    // Of sched.h, in the kernel.
    const PF_EXITING: u64 = 4;
    let mut path = Cursor::new([0_u8; 32]);
    let mut text = [0_u8; 512];
    let length = write!(path, "/proc/{process}/stat\0")
        .ok()
        .and_then(|()| CStr::from_bytes_until_nul(path.get_ref()).ok())
        .map_or(0, |path| read(path, &mut text));
    // The second field, a name in parentheses, may hold anything. The flags are the ninth
    // (proc(5)).
    let after_name = text[..length].rsplit(|&byte| byte == b')').next();
    let flags = after_name.and_then(|rest| rest.split(|&byte| byte == b' ').nth(7));
    let flags = flags.and_then(|flags| std::str::from_utf8(flags).ok()?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

/// How many bytes of a file were read.
fn read(path: &CStr, text: &mut [u8]) -> usize {
    // SAFETY: the path ends with NUL, `text` is ours to write, and the descriptor is closed once.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    usize::try_from(length).unwrap_or(0)
}

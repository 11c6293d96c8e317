// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words that `weft run` gets: datagrams of text, `SECRET rank PID NUMBER`, `SECRET ended PID
//! STATUS` (as of waitpid(2)) and `SECRET sent PID SIGNAL`. Called by `calls`. Allocates nothing: a
//! launcher may wait for its children in a signal handler.

use std::ffi::CStr;
use std::io::{Cursor, Write};
use std::sync::OnceLock;

use crate::pause::pause;

/// The variable that names the socket, an abstract one, and the secret that each word begins with:
/// `NAME:SECRET`.
pub const VARIABLE: &CStr = c"WEFT_RANK_ENDS";

/// The variables by which launchers tell a rank its number.
const NUMBERS: [&CStr; 3] = [c"OMPI_COMM_WORLD_RANK", c"PMI_RANK", c"PMIX_RANK"];

/// From one try to the next while the socket is full: the kernel keeps as few as ten words.
const BETWEEN_TRIES_US: u32 = 1000;

/// Where words go. Empty in a rank, which has nothing to tell of its children.
static LISTENER: OnceLock<Listener> = OnceLock::new();

#[derive(Debug)]
struct Listener {
    address: libc::sockaddr_un,
    address_bytes: libc::socklen_t,
    secret: &'static [u8],
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// This process is the rank of this number.
    Rank(i32),
    /// This child has ended with this status.
    Ended(i32, i32),
    /// This process, or its group, is sent this signal.
    Sent(i32, i32),
}

#[used]
// SAFETY: the section holds addresses of functions that the loader calls.
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    let Some(listener) = variable(VARIABLE).and_then(Listener::of) else {
        return;
    };
    match rank_number() {
        Some(number) => {
            // What the rank starts is no rank, though it inherits the number. A rank that was
            // started by MPI_Comm_spawn has this library.
            // SAFETY: the name ends with NUL; no other thread runs yet.
            unsafe { libc::unsetenv(VARIABLE.as_ptr()) };
            listener.hear(Word::Rank(number));
        }
        None => drop(LISTENER.set(listener)),
    }
}

/// The number of the rank that this process is, or that started it; `None` in a launcher.
pub(crate) fn rank_number() -> Option<i32> {
    let text = NUMBERS.iter().find_map(|name| variable(name))?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Tells `weft run`; nothing where this is no launcher of its. Leaves errno as it is.
pub fn tell(word: Word) {
    if let Some(listener) = LISTENER.get() {
        errno_kept(|| listener.hear(word));
    }
}

/// Does something that may change errno, and leaves errno as it was.
pub fn errno_kept(work: impl FnOnce()) {
    // SAFETY: the address of this thread's errno is always valid.
    let errno = unsafe { *libc::__errno_location() };
    work();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

impl Listener {
    /// From `NAME:SECRET`.
    fn of(text: &'static [u8]) -> Option<Self> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (name, secret) = (&text[..colon], &text[colon + 1..]);
        // SAFETY: plain data, for which zero is valid.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // The first byte stays NUL: an abstract name.
        let room = address.sun_path.get_mut(1..=name.len())?;
        for (to, from) in room.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
        Some(Self {
            address,
            address_bytes: length as libc::socklen_t,
            secret,
        })
    }

    fn hear(&self, word: Word) {
        // SAFETY: getpid takes nothing.
        let own = unsafe { libc::getpid() };
        let (name, process, value) = match word {
            Word::Rank(number) => ("rank", own, number),
            Word::Ended(process, status) => ("ended", process, status),
            Word::Sent(process, signal) => ("sent", process, signal),
        };
        let mut text = Cursor::new([0_u8; 128]);
        let written = text
            .write_all(self.secret)
            .and_then(|()| write!(text, " {name} {process} {value}"));
        let length = text.position() as usize;
        if written.is_ok() {
            self.send(&text.get_ref()[..length]);
        }
    }

    /// What cannot be sent is lost: the job goes on as it would without this library.
    fn send(&self, text: &[u8]) {
        // SAFETY: a socket takes plain numbers.
        let socket =
            unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return;
        }
        while !self.is_sent(socket, text) && pause(BETWEEN_TRIES_US) {}
        // SAFETY: closed once, by whom it belongs to.
        unsafe { libc::close(socket) };
    }

    /// False where another try may help.
    fn is_sent(&self, socket: libc::c_int, text: &[u8]) -> bool {
        // SAFETY: the pointers are to live values of the lengths that are said.
        let sent = unsafe {
            libc::sendto(
                socket,
                text.as_ptr().cast(),
                text.len(),
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                (&raw const self.address).cast(),
                self.address_bytes,
            )
        };
        // SAFETY: the address of this thread's errno is always valid.
        sent >= 0 || unsafe { *libc::__errno_location() } != libc::EAGAIN
    }
}

/// What a variable held when the library was loaded.
pub(crate) fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name ends with NUL. The value is the environment's, of which the program's start
    // keeps every byte; a launcher that sets this variable anew leaves the old bytes where they
    // are.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that says that this process lives while its program computes (srd-protocol 13.6).
//! Opened by sockets.rs with an endpoint, started when a remote on another host is known; it sleeps
//! in the kernel until somebody asks.
//!
//! It has a socket, a protection and an incarnation of its own, and shares nothing with who calls
//! the library. Nothing outlives dlclose: it ends with its endpoint, or when libfabric gives the
//! provider up. A child after fork has no thread, and waits for none. Why a thread:
//! docs/adr/0014-heartbeats.md.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use weft_os::at_fork::OwnOnly;
use weft_os::process::{own_pid, random_u64};
use weft_os::sleep::{ReadableMembers, Timer, WaitSet, wait_readable};
use weft_os::thread::without_signals;
use weft_seal::PacketProtection;
use weft_srd::HeartbeatResponder;

use crate::authentication::PacketAuthentication;
use crate::ports::PortList;
use crate::settings::Settings;

/// Questions taken in a row, and the pause after so many: whoever floods the port takes a few
/// hundredths of a processor at most. Chosen: a thousand remotes ask once in a second each.
const ROW_COUNT: usize = 256;
/// See [`ROW_COUNT`].
const PAUSE_MS: i32 = 5;
/// A question is shorter; what is longer is none.
const QUESTION_BYTES: usize = 2048;

/// Every thread that may still run.
static ALL: Mutex<Vec<Weak<Running>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all threads: the library is about to be unloaded.
pub fn end_all() {
    let all = std::mem::take(&mut *lock(&ALL));
    let running = all.iter().filter_map(Weak::upgrade);
    running.for_each(|running| running.end());
}

/// What the thread works with.
struct Answerer {
    /// A child has no thread that reads it; whoever comes to this address may have the port.
    socket: OwnOnly<UdpSocket>,
    /// `None` on a network where everybody is trusted.
    protection: Option<PacketProtection>,
    living: HeartbeatResponder,
}

/// A thread, and how to end it.
#[derive(Debug)]
struct Running {
    /// Readable once the thread is to end.
    bell: Timer,
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
}

/// The heartbeats of one endpoint.
pub(crate) struct Heartbeats {
    port: u16,
    /// Until the thread takes it.
    answerer: Option<Answerer>,
    running: Option<Arc<Running>>,
}

impl std::fmt::Debug for Heartbeats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Heartbeats");
        shown.field("port", &self.port);
        shown.field("runs", &self.running.is_some()).finish()
    }
}

impl Heartbeats {
    /// Takes a port, above the first one if it is free: there those ask who do not know us yet.
    /// `None` where there is no port, no key or no random number; then nobody answers. Setup.
    pub(crate) fn reserve(settings: &Settings, list: &PortList) -> Option<Self> {
        let ip = list.address.ip();
        let above = list.address.port().checked_add(1);
        let bind = |port: u16| UdpSocket::bind(SocketAddr::new(ip, port));
        let socket = above.and_then(|port| bind(port).ok());
        let socket = socket.map_or_else(|| bind(0), Ok).ok()?;
        socket.set_nonblocking(true).ok()?;
        // An incarnation of its own, so that its counts are no others' (srd-protocol 14.2).
        let protection = PacketAuthentication::open(settings).ok()?.into_protection();
        let speaker = match &protection {
            Some(protection) => protection.incarnation(),
            None => random_u64().ok()?.max(1),
        };
        Some(Self {
            port: socket.local_addr().ok()?.port(),
            answerer: Some(Answerer {
                socket: OwnOnly::new(socket),
                protection,
                living: HeartbeatResponder {
                    incarnation: list.incarnation,
                    home: list.address,
                    speaker,
                },
            }),
            running: None,
        })
    }

    /// Where.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Starts the thread, unless it was started. Where the system gives none, hosts vouch
    /// (srd-protocol 13.5). Setup.
    pub(crate) fn start(&mut self) {
        let Some(answerer) = self.answerer.take() else {
            return;
        };
        if let Ok(running) = Running::start(answerer) {
            let mut all = lock(&ALL);
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(&running));
            self.running = Some(running);
        }
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.end();
        }
    }
}

impl Running {
    fn start(answerer: Answerer) -> io::Result<Arc<Self>> {
        let running = Arc::new(Self {
            bell: Timer::new()?,
            thread: Mutex::new(None),
        });
        let set = WaitSet::new()?;
        set.add(running.bell.as_fd())?;
        set.add(answerer.socket.as_fd())?;
        let ours = Arc::clone(&running);
        let thread = without_signals(|| {
            thread::Builder::new()
                .name("weft-heartbeat".to_owned())
                .spawn(move || answerer.attend(&set, &ours.bell))
        })?;
        *lock(&running.thread) = Some((thread, own_pid()));
        Ok(running)
    }

    /// Ends the thread and waits for its end. Nothing to do after the first time, or in a child
    /// after fork.
    fn end(&self) {
        let Some((thread, process)) = lock(&self.thread).take() else {
            return;
        };
        if process != own_pid() {
            // The thread stayed in the parent.
            std::mem::forget(thread);
            return;
        }
        // A time that is over.
        self.bell.set(Some(1));
        // It ends with an error only if it panicked, and then it has ended too.
        let _ = thread.join();
    }
}

impl Answerer {
    fn attend(mut self, set: &WaitSet, bell: &Timer) {
        let mut question = vec![0; QUESTION_BYTES];
        let mut answer = Vec::with_capacity(QUESTION_BYTES);
        let mut readable = ReadableMembers::none();
        loop {
            wait_readable(set.descriptor(), -1);
            let bell_number = bell.as_fd().as_raw_fd();
            set.readable(&mut readable);
            if readable
                .iter()
                .any(|member| member.descriptor == bell_number)
            {
                return;
            }
            for _ in 0..ROW_COUNT {
                let Ok((length, from)) = self.socket.get().recv_from(&mut question) else {
                    break;
                };
                if self.answer(&mut question[..length], &mut answer) {
                    // Whoever asks asks again.
                    let _ = self.socket.get().send_to(&answer, from);
                }
            }
            // Many at once: whoever else comes meanwhile waits in the socket.
            if wait_readable(self.socket.as_fd().as_raw_fd(), 0) {
                wait_readable(bell.as_fd().as_raw_fd(), PAUSE_MS);
            }
        }
    }

    /// Writes the answer to a question, if it is one of our job's, and for us.
    fn answer(&mut self, question: &mut [u8], answer: &mut Vec<u8>) -> bool {
        let length = match &mut self.protection {
            None => question.len(),
            Some(protection) => match protection.open(question) {
                Ok(length) => length,
                Err(_) => return false,
            },
        };
        let Some(head) = self.living.answer(&question[..length]) else {
            return false;
        };
        answer.clear();
        answer.extend_from_slice(head.as_bytes());
        if let Some(protection) = &mut self.protection {
            protection.seal(answer);
        }
        true
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Automatic progress: one thread for a domain whose application asked for FI_PROGRESS_AUTO, and
//! for no other.
//!
//! The third kind of lock. While the application calls, the thread only looks once a millisecond
//! whether it still does; when the application has been away for that long, the thread drives the
//! transports, and sleeps on their descriptors when nothing moves. The next call ends that sleep.
//! So large transfers advance while the application computes, and small messages are as fast as
//! with one lock while it does not. Source: fi_domain(3), progress models.
//!
//! Nothing outlives dlclose: the thread ends with its domain, or when libfabric gives the provider
//! up. A child after fork has no thread, and never waits for one.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use weft_endpoint::Waitable;
use weft_os::sleep::{WaitSet, wait_readable, yield_now};
use weft_os::thread::without_signals;

use crate::lock::Lock;
use crate::log::{Subsystem, info};
use crate::routes::Guarded;
use crate::wait::{Bell, LONGEST_SLEEP_MS};

/// How long the application must have been away before the thread acts, in milliseconds. Chosen:
/// waking up a thousand times a second costs less than a hundredth of a processor.
const AWAY_MS: i32 = 1;

/// Rounds without an event before the thread takes a nap although transfers are under way. Chosen:
/// a transfer that waits for its remote goes on within a nap.
const ROUNDS_BEFORE_NAP: u32 = 256;

/// A lock with a thread that makes progress when the application does not.
#[derive(Debug)]
pub struct WithProgressThread {
    shared: Arc<Shared>,
}

/// What the application's threads and ours share.
#[derive(Debug)]
struct Shared {
    domain: Mutex<Watched>,
    /// Wakes our thread.
    bell: Bell,
    /// The bell and the transports.
    set: WaitSet,
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
}

struct Watched {
    guarded: Guarded,
    /// Calls of the application so far.
    calls: u64,
    /// Our thread announced a sleep on everything.
    asleep: bool,
    ending: bool,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Watched")
            .field("calls", &self.calls)
            .field("asleep", &self.asleep)
            .finish_non_exhaustive()
    }
}

impl Watched {
    fn wake_up(&mut self) -> bool {
        let was_asleep = std::mem::take(&mut self.asleep);
        if was_asleep {
            self.guarded.waiting(Waitable::Everything).after_sleep();
        }
        was_asleep
    }
}

/// Every thread that may still run.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// The domain, while the thread waits outside.
pub struct Entered<'a>(MutexGuard<'a, Watched>);

impl Deref for Entered<'_> {
    type Target = Guarded;

    #[inline(always)]
    fn deref(&self) -> &Guarded {
        &self.0.guarded
    }
}

impl DerefMut for Entered<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Guarded {
        &mut self.0.guarded
    }
}

impl Lock for WithProgressThread {
    fn new(value: Guarded) -> io::Result<Self> {
        let bell = Bell::new().ok_or_else(io::Error::last_os_error)?;
        let set = WaitSet::new()?;
        set.add(bell.as_fd())?;
        let shared = Arc::new(Shared {
            domain: Mutex::new(Watched {
                guarded: value,
                calls: 0,
                asleep: false,
                ending: false,
            }),
            bell,
            set,
            thread: Mutex::new(None),
        });
        let ours = Arc::clone(&shared);
        let thread = without_signals(|| {
            thread::Builder::new()
                .name("weft-progress".to_owned())
                .spawn(move || ours.run())
        })?;
        *lock(&shared.thread) = Some((thread, std::process::id()));
        let mut all = lock(&ALL);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&shared));
        info(
            Subsystem::Domain,
            format_args!("a thread makes progress (FI_PROGRESS_AUTO)"),
        );
        Ok(Self { shared })
    }

    type Entered<'a> = Entered<'a>;

    #[inline(always)]
    unsafe fn enter(&self) -> Entered<'_> {
        let mut watched = lock(&self.shared.domain);
        watched.calls += 1;
        if watched.asleep {
            self.shared.interrupt(&mut watched);
        }
        Entered(watched)
    }

    fn learn_transports(&self) {
        let mut watched = lock(&self.shared.domain);
        // A transport without a descriptor is looked after whenever the thread wakes by itself.
        let _ = watched
            .guarded
            .waiting(Waitable::Everything)
            .fds(|descriptor| {
                // SAFETY: the transport keeps its descriptor open while its endpoint is; the lock
                // keeps it open here.
                let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
                // It fails only if the descriptor is there already. A closed one leaves the set by
                // itself.
                let _ = self.shared.set.add(borrowed);
            });
    }
}

impl Drop for WithProgressThread {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Ends all threads: libfabric is about to unload this library.
pub fn end_all() {
    let all = std::mem::take(&mut *lock(&ALL));
    all.iter()
        .filter_map(Weak::upgrade)
        .for_each(|shared| shared.end());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The application is back: senders need not ring, and the thread watches it again.
    #[cold]
    fn interrupt(&self, watched: &mut Watched) {
        watched.wake_up();
        self.bell.raise();
    }

    /// What the thread does.
    fn run(&self) {
        let (mut seen_calls, mut idle_rounds) = (0, 0);
        loop {
            let mut watched = lock(&self.domain);
            if watched.ending {
                return;
            }
            if watched.calls != seen_calls {
                seen_calls = watched.calls;
                drop(watched);
                self.nap();
                continue;
            }
            if watched.guarded.progress_all() > 0 {
                idle_rounds = 0;
            } else if !watched.guarded.is_busy()
                && watched.guarded.waiting(Waitable::Everything).before_sleep()
            {
                watched.asleep = true;
                drop(watched);
                self.sleep();
                continue;
            } else {
                idle_rounds += 1;
            }
            drop(watched);
            if idle_rounds < ROUNDS_BEFORE_NAP {
                yield_now();
            } else {
                idle_rounds = 0;
                self.nap();
            }
        }
    }

    fn nap(&self) {
        wait_readable(self.bell.number(), AWAY_MS);
        self.bell.lower();
    }

    fn sleep(&self) {
        wait_readable(self.set.descriptor(), LONGEST_SLEEP_MS);
        lock(&self.domain).wake_up();
        self.bell.lower();
    }

    /// Ends the thread and waits for its end. Nothing to do after the first time, or in a child
    /// after fork.
    fn end(&self) {
        let Some((thread, process)) = lock(&self.thread).take() else {
            return;
        };
        if process != std::process::id() {
            // The thread stayed in the parent.
            std::mem::forget(thread);
            return;
        }
        lock(&self.domain).ending = true;
        self.bell.raise();
        // It ends with an error only if it panicked, and then it has ended too.
        let _ = thread.join();
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that are open for writing, and files that could not be published. A program that was
//! killed, or that ignores the result of close(2), does not learn that its file could not be
//! published. Whoever waits for the end of the mount does.
//!
//! [`crate::filesystem`] reports to this module; [`crate::serving`] asks it at the end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_files::{Fault, SharedFiles};

/// Between two looks at files that are being closed. Chosen.
const PAUSE: Duration = Duration::from_millis(5);
/// How many lost files are named; the others are counted. Chosen: one message's worth.
const NAMED_FILES: usize = 5;

/// A file that is open for writing.
#[derive(Debug)]
struct Writer {
    ino: u64,
    /// Its name, where this mount made it.
    name: Option<String>,
    /// The kernel has said that it is closed, and a task does that now.
    is_closing: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By the kernel's handle.
    open: HashMap<u64, Writer>,
    /// By file: why something of it was not published, when that was first seen.
    causes: HashMap<u64, String>,
    /// By file: what is said of those that were closed so.
    lost: BTreeMap<u64, String>,
}

/// All of a mount.
#[derive(Debug, Default)]
pub struct Writers {
    state: Mutex<State>,
}

impl Writers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub fn opened(&self, handle: u64, ino: u64, name: Option<String>) {
        let writer = Writer {
            ino,
            name,
            is_closing: false,
        };
        self.state().open.insert(handle, writer);
    }

    /// A call on an open file ended so; what kept it from being published is remembered.
    pub fn called<T>(&self, handle: u64, ended: &Result<T, Fault>) {
        let Err(fault) = ended else { return };
        let mut state = self.state();
        let Some(ino) = state.open.get(&handle).map(|writer| writer.ino) else {
            return;
        };
        if let Some(cause) = &fault.cause {
            state.causes.entry(ino).or_insert_with(|| cause.clone());
        }
    }

    /// The kernel says that a file is closed; [`Writers::closed`] tells what came of it.
    pub fn closing(&self, handle: u64) {
        if let Some(writer) = self.state().open.get_mut(&handle) {
            writer.is_closing = true;
        }
    }

    /// Those that are open, and that nobody closes.
    fn left_open(&self) -> Vec<u64> {
        let state = self.state();
        let left = state.open.iter().filter(|(_, writer)| !writer.is_closing);
        left.map(|(&handle, _)| handle).collect()
    }

    /// A file was closed, and published or not. One that is written again and published then is
    /// lost no more.
    pub fn closed(&self, handle: u64, ended: &Result<(), Fault>) {
        self.called(handle, ended);
        let mut state = self.state();
        let Some(writer) = state.open.remove(&handle) else {
            return;
        };
        let cause = state.causes.remove(&writer.ino);
        match ended {
            Ok(()) => {
                state.lost.remove(&writer.ino);
            }
            Err(fault) => {
                let cause = cause.unwrap_or_else(|| format!("{:?}", fault.reason));
                let text = match writer.name {
                    Some(name) => format!("{name}: {cause}"),
                    None => cause,
                };
                state.lost.entry(writer.ino).or_insert(text);
            }
        }
    }

    /// Closes what the kernel did not say is closed, and waits for what is being closed: what comes
    /// of that only the task knows that closes it.
    pub async fn publish_all(&self, files: &SharedFiles) {
        for handle in self.left_open() {
            self.closing(handle);
            let closed = files.close(handle).await;
            self.closed(handle, &closed);
        }
        while !self.state().open.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Which files are lost, and why; `None` if none is.
    pub fn lost_in_words(&self) -> Option<String> {
        let state = self.state();
        let count = state.lost.len();
        if count == 0 {
            return None;
        }
        let named = state.lost.values().take(NAMED_FILES).cloned();
        let mut words: Vec<String> = named.collect();
        if count > NAMED_FILES {
            words.push(format!("and {} more", count - NAMED_FILES));
        }
        Some(words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_files::Reason;

    #[test]
    fn a_file_is_lost_until_it_is_written_again() {
        let writers = Writers::default();
        let stale = || Err(Fault::because(Reason::Stale, "data/a was replaced"));
        writers.opened(1, 7, None);
        writers.called::<()>(1, &stale());
        writers.closed(1, &Err(Fault::from(Reason::Stale)));
        assert_eq!(writers.lost_in_words().unwrap(), "data/a was replaced");
        // Readers, whom nobody announced, change nothing.
        writers.closed(2, &Ok(()));
        assert!(writers.lost_in_words().is_some());
        writers.opened(3, 7, None);
        writers.closed(3, &Ok(()));
        assert_eq!(writers.lost_in_words(), None);
        for handle in 10..17 {
            writers.opened(handle, handle, Some(format!("f{handle}")));
            writers.closed(handle, &stale());
        }
        // The end of the mount leaves to its task what is being closed.
        writers.opened(20, 20, None);
        writers.opened(21, 21, None);
        writers.closing(20);
        assert_eq!(writers.left_open(), [21]);
        let words = writers.lost_in_words().unwrap();
        assert!(words.starts_with("f10: data/a") && words.ends_with("and 2 more"));
    }
}

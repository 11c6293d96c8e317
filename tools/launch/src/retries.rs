// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One attempt of a job that may be repeated (`--retries`), and what a signal does between two
//! attempts.
//!
//! Called by `lib.rs`.

use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::Signal;

use crate::fault::Fault;
use crate::signals::{self, Watch};

/// What came of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// The exit code of `weft run` if this is the last one.
    pub exit_code: u8,
    /// The program failed by itself, or a host was lost: neither the user nor a time limit ended
    /// the job.
    pub may_be_repeated: bool,
}

/// Signals that arrive between two attempts: the first attempt has taken them from the system's
/// default action, and the second does not listen yet.
#[derive(Debug)]
pub(crate) struct Between {
    arrived: Receiver<Signal>,
    /// Listens as long as it lives.
    _watch: Watch,
}

impl Between {
    /// Begins to listen.
    ///
    /// # Errors
    /// `Fault::System` when the handlers cannot be set up.
    pub(crate) fn begin() -> Result<Self, Fault> {
        let (sender, arrived) = channel();
        let watch = Watch::start(move |arrival| {
            !arrival.asks_to_end() || sender.send(arrival.signal).is_ok()
        });
        Ok(Self {
            arrived,
            _watch: watch.map_err(Fault::system("listening for signals"))?,
        })
    }

    /// The exit code, if somebody asked for the end.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        let signal = self.arrived.try_recv().ok()?;
        Some(signals::killed_by(signal as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_between_two_attempts_is_heard() {
        let between = Between::begin().unwrap();
        assert_eq!(between.exit_code(), None);
        nix::sys::signal::raise(Signal::SIGUSR1).unwrap();
        nix::sys::signal::raise(Signal::SIGTERM).unwrap();
        let first = between.arrived.recv().unwrap();
        assert_eq!(first, Signal::SIGTERM);
        nix::sys::signal::raise(Signal::SIGINT).unwrap();
        let code = std::iter::repeat_with(|| between.exit_code())
            .flatten()
            .next();
        assert_eq!(code, Some(130));
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One process of a job, and what is known of it.
//!
//! Made by the starter, kept by the crew.

use std::io::Write;
use std::process::{Child, ChildStdin};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::control::{Order, Progress};
use crate::traffic::{Life, Stream};

/// One process, alive or not.
pub(super) struct Process {
    pub(super) life: Life,
    pub(super) child: Child,
    pub(super) input: Option<ChildStdin>,
    pub(super) is_ready: bool,
    pub(super) has_begun: bool,
    pub(super) is_alive: bool,
    pub(super) progress: Progress,
    pub(super) posted: Option<Vec<(Stream, u32)>>,
    pub(super) is_quiet: bool,
}

impl Process {
    /// Just started.
    pub(super) fn new(life: Life, mut child: Child) -> Self {
        Self {
            life,
            input: child.stdin.take(),
            child,
            is_ready: false,
            has_begun: false,
            is_alive: true,
            progress: Progress::default(),
            posted: None,
            is_quiet: false,
        }
    }

    /// Forgets the round before.
    pub(super) fn begin(&mut self) {
        self.has_begun = false;
        self.posted = None;
        self.is_quiet = false;
        self.progress.is_idle = false;
    }

    /// Gives it an order. One that is gone does not hear it.
    pub(super) fn send(&mut self, order: &Order) {
        let mut line = serde_json::to_string(order).unwrap_or_default();
        line.push('\n');
        if let (true, Some(input)) = (self.is_alive, &mut self.input) {
            // Its end is heard on its output.
            let _ = input.write_all(line.as_bytes());
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if self.is_alive {
            let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        }
    }
}

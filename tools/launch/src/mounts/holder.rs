// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A keeper, as who started it holds it: by a pipe, at whose end it unmounts. So it does, too, when
//! the one that held it is killed.
//!
//! Called by `plan.rs` for `weft run` on one machine, and by `node_agent.rs` on each of several.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use crate::mounts::KEEP;
use crate::mounts::trouble::Trouble;
use crate::mounts::wants::Wants;
use crate::mounts::word::{self, Word};

/// A keeper that has mounted.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
}

impl Holder {
    /// Starts it, with these variables beside those of this process, and waits until all is
    /// mounted.
    ///
    /// # Errors
    /// Why something is not, and what to do.
    pub(crate) fn start(
        wants: &Wants,
        variables: &BTreeMap<String, OsString>,
    ) -> Result<Self, Trouble> {
        let wants = wants
            .to_word()
            .map_err(|fault| Trouble(fault.to_string()))?;
        let keeper = super::command(&[KEEP, &wants]);
        let mut keeper = keeper.map_err(Trouble::system("finding the path of weft"))?;
        keeper.envs(variables);
        // Out of reach of Ctrl-C: it ends when it is let go.
        keeper.process_group(0).current_dir("/");
        keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = keeper
            .spawn()
            .map_err(Trouble::system("starting its keeper"))?;
        let mut holder = Self { child };
        match holder.hear() {
            Some(Word::Ready) => Ok(holder),
            Some(Word::Refused { why, .. }) => Err(Trouble(why)),
            _ => Err(Trouble("its keeper ended before it had mounted".to_owned())),
        }
    }

    /// The process whose namespaces hold the mounts.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn hear(&mut self) -> Option<Word> {
        word::read(self.child.stdout.as_mut()?).ok()?
    }

    /// Lets it go, and waits until what was written is published.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn finish(mut self) -> Result<(), Trouble> {
        drop(self.child.stdin.take());
        let said = self.hear();
        // It ends behind its last word.
        let _ = self.child.wait();
        match said {
            Some(Word::Done) => Ok(()),
            Some(Word::Failed(why)) => Err(Trouble(why)),
            _ => Err(Trouble(word::GONE.to_owned())),
        }
    }
}

impl Drop for Holder {
    /// Unmounting is waited for by [`Holder::finish`] alone.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.try_wait();
    }
}

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
use crate::mounts::keeper_message::{self, KeeperMessage};
use crate::mounts::keeper_request::KeeperRequest;
use crate::mounts::mount_error::MountError;

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
        wants: &KeeperRequest,
        variables: &BTreeMap<String, OsString>,
    ) -> Result<Self, MountError> {
        let wants = wants
            .to_word()
            .map_err(|fault| MountError(fault.to_string()))?;
        let keeper = super::command(&[KEEP, &wants]);
        let mut keeper = keeper.map_err(MountError::system("finding the path of weft"))?;
        keeper.envs(variables);
        // Out of reach of Ctrl-C: it ends when it is let go.
        keeper.process_group(0).current_dir("/");
        keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = keeper
            .spawn()
            .map_err(MountError::system("starting its keeper"))?;
        let mut holder = Self { child };
        match holder.hear() {
            Some(KeeperMessage::Ready) => Ok(holder),
            Some(KeeperMessage::Refused { why, .. }) => Err(MountError(why)),
            _ => Err(MountError(
                "its keeper ended before it had mounted".to_owned(),
            )),
        }
    }

    /// The process whose namespaces hold the mounts.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn hear(&mut self) -> Option<KeeperMessage> {
        keeper_message::read(self.child.stdout.as_mut()?).ok()?
    }

    /// Lets it go, and waits until what was written is published.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn finish(mut self) -> Result<(), MountError> {
        drop(self.child.stdin.take());
        let said = self.hear();
        // It ends behind its last word.
        let _ = self.child.wait();
        match said {
            Some(KeeperMessage::Done) => Ok(()),
            Some(KeeperMessage::Failed(why)) => Err(MountError(why)),
            _ => Err(MountError(keeper_message::GONE.to_owned())),
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

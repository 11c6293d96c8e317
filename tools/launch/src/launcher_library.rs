// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is preloaded into the MPI's launcher, and what it is for: libweft-ends.so (crates/ends).
//!
//! `job.rs` chooses; `lib.rs` has it loaded when the launcher starts. The ranks get it neither way:
//! `preload.rs` takes it from them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::family::Family;
use crate::rank_ends::{self, Listener};
use crate::transport::Transport;
use crate::{preload, provider};

/// The library, beside the provider.
const FILE_NAME: &str = "libweft-ends.so";
/// The variable that keeps SIGPIPE from a launcher.
const WITHOUT_SIGPIPE: &str = "WEFT_LAUNCHER_WITHOUT_SIGPIPE";

/// The library, and what it does in this launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherLibrary {
    path: PathBuf,
    tells_ends: bool,
    keeps_sigpipe_off: bool,
}

impl LauncherLibrary {
    /// `None` where it would do nothing, is not there, the loader cannot take it, or env(1) could
    /// not keep it from the ranks of this program: it would take a name with `=` for a variable.
    #[must_use]
    pub fn of(
        program: &Path,
        family: Family,
        transport: &Transport,
        on_several_hosts: bool,
    ) -> Option<Self> {
        // Of ranks on other hosts only the launcher knows, and a rank here may fail because one
        // there did.
        let tells_ends = !on_several_hosts;
        // Intel's launcher hands its environment on to other hosts, which have the library in this
        // place where they have the provider.
        let is_everywhere = !on_several_hosts || *transport == Transport::Weft;
        let keeps_sigpipe_off = family == Family::Intel && is_everywhere;
        if !tells_ends && !keeps_sigpipe_off || program.as_os_str().as_bytes().contains(&b'=') {
            return None;
        }
        let path = provider::find_for_this_process().ok()?.join(FILE_NAME);
        (path.is_file() && preload::can_be_named(&path)).then_some(Self {
            path,
            tells_ends,
            keeps_sigpipe_off,
        })
    }

    /// Its variables, which the ranks are not to have.
    #[must_use]
    pub fn variables(&self) -> Vec<&'static str> {
        let ends = self.tells_ends.then_some(rank_ends::VARIABLE);
        let sigpipe = self.keeps_sigpipe_off.then_some(WITHOUT_SIGPIPE);
        ends.into_iter().chain(sigpipe).collect()
    }

    /// Has a launcher preload the library, after what it preloads anyway. Gives what hears how its
    /// ranks end, where the library tells it.
    ///
    /// # Errors
    /// As [`Listener::open`].
    pub fn add(&self, command: &mut Command) -> io::Result<Option<Listener>> {
        let set = command
            .get_envs()
            .find(|(name, _)| *name == preload::PRELOAD)
            .map(|(_, value)| value.map(OsString::from));
        let mut list = set.unwrap_or_else(preload::inherited).unwrap_or_default();
        preload::append(&mut list, &self.path);
        command.env(preload::PRELOAD, list);
        if self.keeps_sigpipe_off {
            command.env(WITHOUT_SIGPIPE, "1");
        }
        let listener = self.tells_ends.then(Listener::open).transpose()?;
        if let Some(listener) = &listener {
            command.env(rank_ends::VARIABLE, listener.value());
        }
        Ok(listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_preloads_the_library_after_its_own() {
        let library = LauncherLibrary {
            path: "/b.so".into(),
            tells_ends: true,
            keeps_sigpipe_off: false,
        };
        let mut command = Command::new("true");
        command.env(preload::PRELOAD, "/a.so");
        let listener = library.add(&mut command).unwrap().unwrap();
        let of = |name: &str| {
            let mut all = command.get_envs();
            all.find(|(set, _)| *set == name)
                .and_then(|(_, value)| value)
        };
        assert_eq!(of(preload::PRELOAD), Some("/a.so:/b.so".as_ref()));
        assert_eq!(
            of(rank_ends::VARIABLE),
            Some(listener.value().as_str().as_ref())
        );
        assert_eq!(of(WITHOUT_SIGPIPE), None);
    }

    #[test]
    fn on_several_hosts_nobody_listens() {
        let library = LauncherLibrary {
            path: "/b.so".into(),
            tells_ends: false,
            keeps_sigpipe_off: true,
        };
        let mut command = Command::new("true");
        assert!(library.add(&mut command).unwrap().is_none());
        let names: Vec<_> = command
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(names, [preload::PRELOAD, WITHOUT_SIGPIPE]);
        assert_eq!(library.variables(), [WITHOUT_SIGPIPE]);
    }
}

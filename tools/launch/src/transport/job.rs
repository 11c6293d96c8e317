// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every MPI family is told of a job, and what comes out: the transport, the job's shape, the
//! launcher's settings.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::calls::Calls;
use crate::environment::Environment;

/// What carries the messages of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Weft's provider.
    Weft,
    /// The MPI's own shared memory.
    Native,
    /// TCP over loopback, by the MPI or by libfabric's tcp provider.
    Tcp,
    /// Another libfabric provider, by name.
    Ofi(String),
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "weft" => Ok(Self::Weft),
            "native" => Ok(Self::Native),
            "tcp" => Ok(Self::Tcp),
            other => match other.strip_prefix("ofi:") {
                Some(name) if !name.is_empty() && !name.contains([',', '^', ':', ' ']) => {
                    Ok(Self::Ofi(name.to_owned()))
                }
                Some(name) => Err(format!(
                    "`{name}` is no provider name; write for example ofi:tcp or ofi:shm"
                )),
                None => Err(format!(
                    "`{other}` is none of weft, native, tcp, ofi:PROVIDER"
                )),
            },
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weft => f.write_str("weft"),
            Self::Native => f.write_str("native"),
            Self::Tcp => f.write_str("tcp"),
            Self::Ofi(name) => write!(f, "ofi:{name}"),
        }
    }
}

impl Transport {
    /// The libfabric provider that this transport goes through in every MPI; `None` for native and
    /// tcp.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        match self {
            Self::Weft => Some("weft"),
            Self::Ofi(name) => Some(name),
            Self::Native | Self::Tcp => None,
        }
    }
}

/// The job as far as the MPI's launcher must know it.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Number of ranks on this machine; of several hosts, on the one that has most.
    pub ranks: u32,
    /// Physical cores that they may use; of several hosts, on the one that has fewest.
    pub cores: u32,
    /// Whether the job is spread over named hosts.
    pub spread: bool,
    /// Whether each rank is bound to a core of its own.
    pub bound: bool,
    /// Whether each line of output is to carry its rank.
    pub label: bool,
    /// Whether the user is root, which Open MPI refuses by default.
    pub root: bool,
    /// The folder of libweft-fi.so; present for `Transport::Weft`.
    pub provider_folder: Option<PathBuf>,
    /// Rules for Open MPI's collectives where ranks share cores, unless the user has said something
    /// about those.
    pub shared_core_rules: Option<PathBuf>,
    /// What the program calls.
    pub calls: Calls,
    /// This executable, by which ranks can be started bound to a core.
    pub own_command: Option<PathBuf>,
}

#[cfg(test)]
impl Shape {
    /// So many ranks on a machine of two cores, for tests: bound where each has a core.
    pub(crate) fn on_two_cores(ranks: u32) -> Self {
        Self {
            ranks,
            cores: 2,
            spread: false,
            bound: ranks <= 2,
            label: false,
            root: true,
            provider_folder: Some("/w".into()),
            shared_core_rules: None,
            calls: Calls::default(),
            own_command: None,
        }
    }
}

impl Shape {
    /// Whether ranks must share cores, so that one that polls takes the core from the one it waits
    /// for.
    #[must_use]
    pub fn oversubscribed(&self) -> bool {
        self.ranks > self.cores
    }
}

/// What an MPI must be told, by who needs it: so that ranks can have their part also where another
/// launcher started them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Arguments of the launcher, before the program.
    pub arguments: Vec<OsString>,
    /// Words that start the program, before it.
    pub before_program: Vec<OsString>,
    /// What the launcher and its daemons read.
    pub launcher: Environment,
    /// What each rank reads.
    pub ranks: Environment,
}

impl Settings {
    pub(crate) fn argument(&mut self, words: &[&str]) {
        self.arguments.extend(words.iter().map(OsString::from));
    }

    /// Sets a variable for the ranks, in place of an earlier value.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.ranks.set(name, value);
    }

    /// Takes variables away from the ranks.
    pub(crate) fn remove(&mut self, names: &[&str]) {
        self.ranks.remove(names);
    }

    pub(crate) fn path_argument(&mut self, path: &Path) {
        self.arguments.push(path.into());
    }

    /// The value that is set for `name`, for the ranks or for the launcher.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&OsString> {
        self.ranks.value(name).or_else(|| self.launcher.value(name))
    }
}

/// Sets FI_PROVIDER and FI_PROVIDER_PATH: over Weft its folder, else `own`, the folder of the MPI's
/// own loadable providers. libfabric loads all files of that folder, those too that FI_PROVIDER
/// does not name, and some take long (Intel's libpsm3-fi.so 0.1 s).
pub(crate) fn set_provider(
    settings: &mut Settings,
    transport: &Transport,
    shape: &Shape,
    own: Option<&Path>,
) {
    let Some(name) = transport.provider() else {
        return;
    };
    settings.set("FI_PROVIDER", name);
    let folder = if *transport == Transport::Weft {
        shape.provider_folder.as_deref()
    } else {
        own
    };
    match folder {
        Some(folder) => settings.set("FI_PROVIDER_PATH", folder),
        None => settings.remove(&["FI_PROVIDER_PATH"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_written() {
        for text in ["weft", "native", "tcp", "ofi:shm"] {
            assert_eq!(text.parse::<Transport>().unwrap().to_string(), text);
        }
        for bad in ["", "shm", "ofi:", "ofi:a,b", "ofi:^tcp", "Weft"] {
            assert!(bad.parse::<Transport>().is_err(), "{bad}");
        }
    }
}

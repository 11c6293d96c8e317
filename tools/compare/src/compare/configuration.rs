// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A configuration is what is compared: an MPI over a transport, set up in some way. A workload is
//! what it runs: a benchmark with its ranks and hosts.
//!
//! Called by plan, record and everything that reads them. A transport may have a variant behind a
//! `+`:
//!
//! - `weft+plain`: Weft as a plain mpirun would use it (`weft run --plain`: no shared heap, no
//!   rules for collectives)
//! - `weft+mpi`: Weft carries messages, and the MPI's own collectives run over it (`weft run
//!   --collectives mpi`)
//! - `native+again`: the native transport once more under another name, to test whether intervals
//!   hold as often as they say
//! - `native+pause`: the native transport waits as ranks over Weft do (`weft run --yield pause`)
//! - `weft+before`: Weft of another build

use super::place::Place;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

/// Stands between a transport and its variant.
const BETWEEN: char = '+';
/// As a plain mpirun would start it.
pub const PLAIN: &str = "plain";
/// The same once more, under another name.
pub const AGAIN: &str = "again";
/// As another build carries it (`--before`).
pub const BEFORE: &str = "before";
/// Waiting with pauses for system calls, as `weft run` sets Weft up.
pub const PAUSE: &str = "pause";
/// Collectives by the MPI, over the messages of the transport.
pub const BY_MPI: &str = "mpi";
/// The transport that an MPI has of its own.
pub const NATIVE: &str = "native";
/// TCP as the MPI carries messages over it.
const TCP: &str = "tcp";
/// Ours.
pub const WEFT: &str = "weft";

/// An MPI over a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Configuration {
    /// As `weft run --mpi` knows it.
    pub mpi: String,
    /// As `weft run --transport` knows it, with its variant: `weft`, `native+plain`.
    pub transport: String,
}

/// Those whose best figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Weft as `weft run` sets it up, under each MPI.
    Ours,
    /// All that it is compared with.
    Rivals,
}

impl Side {
    /// Whether a configuration belongs to it; some belong to none.
    pub fn has(self, configuration: &Configuration) -> bool {
        match self {
            Self::Ours => configuration.is_ours(),
            Self::Rivals => configuration.is_rival(),
        }
    }
}

impl Configuration {
    /// Of an MPI and a transport with its variant.
    pub fn new(mpi: &str, transport: &str) -> Self {
        Self {
            mpi: mpi.to_owned(),
            transport: transport.to_owned(),
        }
    }

    /// What carries the messages, as `weft run --transport` takes it.
    pub fn carrier(&self) -> &str {
        self.transport
            .split_once(BETWEEN)
            .map_or(self.transport.as_str(), |(carrier, _)| carrier)
    }

    /// What is behind the `+`.
    pub fn variant(&self) -> Option<&str> {
        Some(self.transport.split_once(BETWEEN)?.1)
    }

    /// Whether it is Weft as `weft run` sets it up.
    pub fn is_ours(&self) -> bool {
        self.transport == WEFT
    }

    /// Whether Weft carries the messages, in whatever variant.
    pub fn is_weft(&self) -> bool {
        self.carrier() == WEFT
    }

    /// Whether it is one of those that Weft's best is compared with.
    pub fn is_rival(&self) -> bool {
        !self.is_weft() && self.variant() != Some(AGAIN)
    }

    /// The same MPI over its native transport, set up by `weft run`.
    pub fn native(&self) -> Self {
        Self::new(&self.mpi, NATIVE)
    }

    /// Weft under the same MPI, set up alike.
    pub fn weft(&self) -> Self {
        let variant = self.transport.find(BETWEEN);
        let behind = variant.map_or("", |place| &self.transport[place..]);
        Self::new(&self.mpi, &format!("{WEFT}{behind}"))
    }

    /// Weft of the other build under the same MPI.
    pub fn before(&self) -> Self {
        Self::new(&self.mpi, &format!("{WEFT}{BETWEEN}{BEFORE}"))
    }

    /// What it may be divided by, best first: the native transport set up alike, so that only the
    /// transport differs, then the native one as `weft run` sets it up. Where nothing is set up
    /// besides the transport, there is only the second. Weft may be divided by TCP last: between
    /// hosts that is what an MPI without a native transport has.
    pub fn baselines(&self) -> Vec<Self> {
        let alike = self
            .variant()
            .map(|variant| Self::new(&self.mpi, &format!("{NATIVE}{BETWEEN}{variant}")));
        let tcp = self.is_weft().then(|| Self::new(&self.mpi, TCP));
        let list = alike.into_iter().chain([self.native()]).chain(tcp);
        list.filter(|baseline| baseline != self).collect()
    }

    /// As people read it beside the MPI's name: `Weft`, `native`, `Weft, plain`.
    pub fn short(&self) -> String {
        let carrier = if self.is_weft() {
            "Weft"
        } else {
            self.carrier()
        };
        match self.variant() {
            Some(variant) => format!("{carrier}, {variant}"),
            None => carrier.to_owned(),
        }
    }
}

/// Whether a transport has no variant, or one that there is.
pub fn has_known_variant(transport: &str) -> bool {
    transport
        .split_once(BETWEEN)
        .is_none_or(|(_, variant)| [PLAIN, AGAIN, BEFORE, PAUSE, BY_MPI].contains(&variant))
}

/// What configurations are compared in: figures of different workloads have nothing to do with each
/// other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// The benchmark.
    pub benchmark: String,
    /// Ranks of the job.
    pub ranks: usize,
    /// Where its ranks run.
    #[serde(flatten)]
    pub place: Place,
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} over {}", self.mpi, self.transport)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}, {} ranks{}",
            self.benchmark, self.ranks, self.place
        )
    }
}

/// One run: who runs what, and how it is started.
#[derive(Clone, Debug)]
pub struct Run {
    /// Who runs.
    pub configuration: Configuration,
    /// What runs.
    pub workload: Workload,
    /// The whole command line.
    pub command: Vec<OsString>,
    /// When to end it.
    pub limit: Duration,
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.configuration, self.workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_divided_by_plain_and_else_by_what_weft_run_sets_up() {
        let baselines = |transport: &str| -> Vec<String> {
            let list = Configuration::new("m", transport).baselines();
            list.into_iter().map(|one| one.transport).collect()
        };
        assert_eq!(baselines("weft"), ["native", "tcp"]);
        assert_eq!(baselines("weft+plain"), ["native+plain", "native", "tcp"]);
        assert_eq!(baselines("native+plain"), ["native"]);
        assert_eq!(baselines("native+again"), ["native"]);
        assert!(baselines("native").is_empty());
    }

    #[test]
    fn variant_is_told_from_what_carries_the_messages() {
        let shm = Configuration::new("intel", "ofi:shm+plain");
        assert_eq!((shm.carrier(), shm.variant()), ("ofi:shm", Some(PLAIN)));
        let plain = Configuration::new("mpich", "weft+plain");
        assert!(plain.is_weft() && !plain.is_ours() && !plain.is_rival());
        assert_eq!(plain.short(), "Weft, plain");
        assert!(!Configuration::new("mpich", "native+again").is_rival());
        assert!(Configuration::new("mpich", "native+pause").is_rival());
        assert!(has_known_variant("native+pause") && !has_known_variant("native+paus"));
        let alike = |transport| Configuration::new("mpich", transport).weft().transport;
        assert_eq!(
            (alike("native"), alike("native+plain")),
            ("weft".into(), "weft+plain".into())
        );
        let before = Configuration::new("mpich", "weft").before();
        assert!(before.is_weft() && !before.is_ours() && !before.is_rival());
        assert_eq!(
            (before.short(), before.variant()),
            ("Weft, before".into(), Some(BEFORE))
        );
        assert!(has_known_variant("ofi:shm") && has_known_variant("weft+plain"));
        assert!(has_known_variant("weft+mpi"));
        let by_mpi = Configuration::new("mpich", "weft+mpi");
        assert!(by_mpi.is_weft() && !by_mpi.is_ours() && !by_mpi.is_rival());
        assert!(!has_known_variant("weft+fast") && !has_known_variant("weft+"));
    }
}

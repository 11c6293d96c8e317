// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the ranks of a job run: on this machine, on named hosts, or on the hosts of a testbed that
//! weft makes.
//!
//! Set by the command line, kept in the journal, read by plan and by all reports.

use crate::testbed::network::Network;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A place; by default this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// Hosts as `weft run --hosts` takes them; empty for this machine.
    pub hosts: String,
    /// The network of the testbed that these hosts belong to; empty without a testbed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub testbed: String,
}

impl Place {
    /// Of hosts that are there; of none, this machine.
    pub fn of_hosts(hosts: &str) -> Self {
        Self {
            hosts: hosts.to_owned(),
            testbed: String::new(),
        }
    }

    /// Of all hosts of a testbed.
    pub fn of_testbed(network: &Network) -> Self {
        Self {
            hosts: network.host_names().join(","),
            testbed: network.to_string(),
        }
    }

    /// Whether it is this machine alone.
    pub fn is_here(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The best of what Weft is compared with there: without other hardware, all that carries
    /// messages between the hosts of a testbed is TCP.
    pub fn best(&self) -> &'static str {
        match self.is_testbed() {
            true => "best TCP",
            false => "best of the others",
        }
    }

    /// Whether it is a testbed.
    pub fn is_testbed(&self) -> bool {
        !self.testbed.is_empty()
    }
}

/// As it stands behind what ran there: ` on a,b`, and nothing for this machine.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_here(), self.is_testbed()) {
            (true, _) => Ok(()),
            (false, true) => write!(formatter, " on testbed {}", self.testbed),
            (false, false) => write!(formatter, " on {}", self.hosts),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a job is started on its hosts: the command before `weft run`, and the options that it gets.
//!
//! Called by compare, which keeps the testbeds up while it measures; asked by plan and launches.

use super::place::Place;
use crate::error::Error;
use crate::testbed::Testbed;
use crate::testbed::network::Network;
use std::ffi::OsString;

/// How a job is started at a place; by default on this machine.
#[derive(Clone, Debug, Default)]
pub struct JobStart {
    /// Words before `weft run`, by which a command is started on a testbed's first host.
    pub enter: Vec<OsString>,
    /// Options of `weft run`.
    pub options: Vec<OsString>,
}

/// The testbeds of a comparison, up as long as this lives.
#[derive(Default)]
pub struct Testbeds(Vec<(Place, Testbed)>);

impl Testbeds {
    /// Makes one of each network.
    ///
    /// # Errors
    /// Which cannot be made here, why, and what to do; those that were made are removed.
    pub fn up(networks: &[Network]) -> Result<Self, Error> {
        let made = networks.iter().map(|network| {
            let testbed = Testbed::up(network);
            let testbed = testbed.map_err(|error| error.about(format!("--testbed {network}")))?;
            Ok((Place::of_testbed(network), testbed))
        });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// How a job is started at a place.
    pub fn job_start(&self, place: &Place) -> JobStart {
        let hosts = || vec!["--hosts".into(), place.hosts.clone().into()];
        let of_testbed = |testbed: &Testbed| {
            // A host keeps its ranks to its own processors; an MPI that bound them would count
            // those of the whole machine.
            let own = ["--bind".into(), "none".into(), "--launcher".into()];
            let agent = testbed.agent().as_os_str().to_owned();
            JobStart {
                enter: testbed.enter(),
                options: hosts().into_iter().chain(own).chain([agent]).collect(),
            }
        };
        let own = self.0.iter().find(|(known, _)| known == place);
        match own {
            Some((_, testbed)) => of_testbed(testbed),
            None if place.is_here() => JobStart::default(),
            None => JobStart {
                enter: Vec::new(),
                options: hosts(),
            },
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which transports a domain's endpoints get, and how they are set: shared memory always, datagrams
//! where the network may be used.
//!
//! Called by domain when it opens; reads parameters.

use weft_endpoint::Domain;
use weft_endpoint::joined::{self, Joined, Locality};
use {weft_shm as shm, weft_udp as srd};

use crate::address::default_address;
use crate::parameters::{RouteWish, Settings};
use crate::report;

/// What an endpoint sends through.
pub type Route = Joined<shm::Transport, srd::Transport>;
/// What it counts.
pub type Statistics = weft_endpoint::Statistics<<Route as weft_contract::Route>::Statistics>;
/// The endpoint crate's domain with such endpoints.
pub type Guarded = Domain<Route>;

/// How the endpoints of a domain are opened. Setup.
pub fn settings(settings: &Settings) -> <Route as weft_contract::Route>::Settings {
    let local = shm::Settings {
        single_copy: settings.single_copy,
        directory: settings.region_directory.clone(),
        heap: weft_memory::OwnHeap::find(),
        report: report::line,
        ..shm::Settings::default()
    };
    let network = settings.trust.reaches_hosts().then(|| srd::Settings {
        together: settings.interfaces.together(
            [libc::AF_INET, libc::AF_INET6].map(|family| default_address(family, settings)),
        ),
        trust: Some(settings.trust.clone()),
        dead_after: settings.dead_after,
        report: report::line,
        ..srd::Settings::default()
    });
    joined::Settings {
        local,
        network,
        locality: match settings.route {
            RouteWish::Auto => Locality::ByInterface,
            RouteWish::SharedMemory => Locality::Everybody,
            RouteWish::Datagrams => Locality::Nobody,
        },
        report: report::line,
        without_network: srd::seal::trust::WAYS_OUT,
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of routes of this provider's endpoints, and how each is set: shared memory always,
//! datagrams where the network may be used.
//!
//! Called by domain when it opens; reads parameters.

use weft_endpoint::Domain;
use weft_endpoint::routes::{self, RouteSettings, Routes, Scope};
use {weft_shm as shm, weft_udp as srd};

use crate::address::default_address;
use crate::parameters::{RouteChoice, Settings};
use crate::report;

/// The routes of an endpoint, in order of preference. To add a route, write a crate that implements
/// [`weft_contract::Route`], and name its type here (two others are an [`Either`](routes::Either)).
pub type Route = Routes<shm::Transport, srd::Transport>;
/// What they count.
pub type Statistics = weft_endpoint::Statistics<<Route as weft_contract::Route>::Statistics>;
/// The endpoint crate's domain with such endpoints.
pub type Guarded = Domain<Route>;

/// What was carried inside the host, and between hosts; zero for a route that the endpoint does not
/// have.
pub fn by_route(statistics: &Statistics) -> (shm::Statistics, srd::Statistics) {
    let carried = statistics.local.as_ref();
    let local = carried.map_or(shm::Statistics::default(), |carried| carried.first);
    let network = carried.and_then(|carried| carried.others.first().copied());
    (local, network.unwrap_or_default())
}

/// How the endpoints of a domain are opened. Setup.
pub fn settings(settings: &Settings) -> <Route as weft_contract::Route>::Settings {
    routes::Settings {
        first: shared_memory(settings),
        others: datagrams(settings).into_iter().collect(),
        report: report::line,
        way_out: srd::seal::trust::WAYS_OUT,
    }
}

fn shared_memory(settings: &Settings) -> RouteSettings<shm::Settings> {
    RouteSettings {
        settings: shm::Settings {
            single_copy: settings.single_copy,
            directory: settings.region_directory.clone(),
            heap: weft_memory::OwnHeap::find(),
            report: report::line,
            ..shm::Settings::default()
        },
        scope: match settings.route {
            RouteChoice::Auto => Scope::Host,
            RouteChoice::SharedMemory => Scope::Everybody,
            RouteChoice::Datagrams => Scope::Nobody,
        },
    }
}

fn datagrams(settings: &Settings) -> Option<RouteSettings<srd::Settings>> {
    settings.trust.reaches_hosts().then(|| RouteSettings {
        settings: srd::Settings {
            together: settings.interfaces.together(
                [libc::AF_INET, libc::AF_INET6].map(|family| default_address(family, settings)),
            ),
            trust: Some(settings.trust.clone()),
            dead_after: settings.dead_after,
            report: report::line,
            ..srd::Settings::default()
        },
        scope: Scope::Everybody,
    })
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of an endpoint: what its user was told is sent must arrive, and some of it may still be
//! here (docs/backlog.md). Called by calls/open.rs before an endpoint is removed.

use std::net::SocketAddr;
use std::time::Instant;

use weft_contract::Route;

use super::patience::{Patience, Verdict};
use super::{Endpoint, own_addresses};
use crate::shared_objects::SharedObjects;

/// Waits for remotes that have not taken what the user was told is sent, as patience.rs says, and
/// makes progress meanwhile. Not in a child of fork(2), whose parent sends the same; nor where
/// somebody else matches, whom progress would call. Slow path.
pub(crate) fn linger<P: Route>(endpoint: &mut Endpoint<P>, objects: &mut SharedObjects) {
    if endpoint.process != std::process::id() || endpoint.shared.is_some() {
        return;
    }
    let mut patience = Patience::begin(Instant::now());
    loop {
        let owed = owed(endpoint);
        if owed.is_empty() {
            return;
        }
        match patience.judge(Instant::now(), own_addresses::hold_all(&owed)) {
            Verdict::Wait => {}
            Verdict::Tell => tell(endpoint, &owed),
            Verdict::Close => return,
        }
        let before = endpoint.core.sending.queued_count();
        let events = endpoint.make_progress(objects);
        let now = Instant::now();
        if events > 0 || endpoint.core.sending.queued_count() != before {
            patience.note_moved(now);
        } else {
            patience.rest(now);
        }
    }
}

/// Addresses of remotes that lack what the user was told is sent.
fn owed<P: Route>(endpoint: &mut Endpoint<P>) -> Vec<SocketAddr> {
    let Some(route) = &mut endpoint.route else {
        return Vec::new();
    };
    let remotes = &endpoint.core.remotes;
    let told = endpoint.core.sending.told();
    let queued = told.filter_map(|remote| remotes.address(remote));
    let mut owed: Vec<SocketAddr> = queued.collect();
    owed.extend(route.owed());
    owed.sort_unstable();
    owed.dedup();
    owed
}

fn tell<P: Route>(endpoint: &Endpoint<P>, owed: &[SocketAddr]) {
    let (Some(route), Some(first)) = (&endpoint.route, owed.first()) else {
        return;
    };
    let others = match owed.len() - 1 {
        0 => String::new(),
        count => format!(" and {count} others"),
    };
    route.report(&format!(
        "this process closes an endpoint, and waits for {first}{others} to take what was sent \
         there; the process there lives: it computes, or is stopped"
    ));
}

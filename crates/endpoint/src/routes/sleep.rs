// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping on all routes of a list at once: the descriptor is that of
//! wait_set.rs.

use std::os::fd::RawFd;

use weft_contract::{RemoteId, Route, Sleep};

use super::Routes;
use super::routing::RouteTo;

impl<F: Route, O: Route> Sleep for Routes<F, O> {
    fn wait_fd(&self) -> Option<RawFd> {
        match &self.wait_set {
            Some(wait_set) => Some(wait_set.descriptor()),
            None => self.first.wait_fd(),
        }
    }

    // Not asked: `routing.news`. Only a route's progress brings news, and `share` spreads it before
    // that round ends, so that nobody falls asleep over it.
    fn before_sleep(&mut self) -> bool {
        debug_assert!(self.routing.news.is_empty(), "news outlived a round");
        if !self.routing.rerouted.is_empty() || !self.first.before_sleep() {
            return false;
        }
        let awake = self
            .others
            .iter_mut()
            .position(|other| !other.before_sleep());
        if let Some(index) = awake {
            self.turn.now();
            self.first.after_sleep();
            self.others[..index].iter_mut().for_each(Sleep::after_sleep);
        }
        awake.is_none()
    }

    fn after_sleep(&mut self) {
        self.first.after_sleep();
        self.others.iter_mut().for_each(Sleep::after_sleep);
        self.turn.now();
    }

    fn is_busy(&self) -> bool {
        self.first.is_busy() || self.others.iter().any(Sleep::is_busy)
    }

    fn wakes_for_room(&self, remote: RemoteId) -> bool {
        match self.routing.table.to(remote) {
            RouteTo::Other(index) | RouteTo::Rerouted(index) => {
                self.others[usize::from(index)].wakes_for_room(remote)
            }
            RouteTo::First | RouteTo::Nowhere => self.first.wakes_for_room(remote),
        }
    }
}

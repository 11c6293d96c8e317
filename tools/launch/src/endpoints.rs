// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes of a job have opened an endpoint of Weft so far.
//!
//! Filled by `report.rs` as reports come in; read by `hung.rs`. What arrives is a claim by another
//! process, and it decides nothing but what is said on stderr.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What has been heard so far; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    opened: BTreeSet<u32>,
    has_closed: bool,
}

impl Endpoints {
    /// A process says that it has opened an endpoint, or else that it has closed one.
    pub(crate) fn hear(&self, process: u32, has_opened: bool) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.opened.insert(process);
        heard.has_closed |= !has_opened;
    }

    /// Whether so many processes, at least one, have opened an endpoint, no other process has, and
    /// none of them has closed one.
    pub(crate) fn are_open_in_just(&self, processes: usize) -> bool {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        processes > 0 && heard.opened.len() == processes && !heard.has_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_once_and_a_closed_endpoint_ends_it() {
        let endpoints = Endpoints::default();
        assert!(!endpoints.are_open_in_just(0));
        let heard = endpoints.clone();
        for process in [7, 7, 8] {
            heard.hear(process, true);
        }
        assert!(endpoints.are_open_in_just(2));
        assert!(!endpoints.are_open_in_just(1) && !endpoints.are_open_in_just(3));
        heard.hear(7, false);
        assert!(!endpoints.are_open_in_just(2));
    }
}

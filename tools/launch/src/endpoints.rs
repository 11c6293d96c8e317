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

    /// The processes that have opened an endpoint; `None` once any of them has closed one.
    pub(crate) fn all_open(&self) -> Option<BTreeSet<u32>> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!heard.has_closed).then(|| heard.opened.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_once_and_a_closed_endpoint_ends_it() {
        let endpoints = Endpoints::default();
        assert_eq!(endpoints.all_open(), Some(BTreeSet::new()));
        let heard = endpoints.clone();
        for process in [7, 7, 8] {
            heard.hear(process, true);
        }
        assert_eq!(endpoints.all_open(), Some(BTreeSet::from([7, 8])));
        heard.hear(7, false);
        assert_eq!(endpoints.all_open(), None);
    }
}

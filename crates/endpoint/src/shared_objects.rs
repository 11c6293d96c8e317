// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all endpoints of a domain share: the completion queues and counters on which they report,
//! and the memory that remotes may access.
//!
//! Owned by the domain, apart from its endpoints, so that both can be changed at once.

use crate::completion::completions::Completions;
use crate::one_sided::region::Regions;

/// The objects.
#[derive(Debug)]
pub(crate) struct SharedObjects {
    pub(crate) completions: Completions,
    pub(crate) regions: Regions,
}

impl SharedObjects {
    /// None is open.
    pub(crate) fn new() -> Self {
        Self {
            completions: Completions::new(),
            regions: Regions::default(),
        }
    }

    /// Whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.completions.queues.iter().next().is_none()
            && self.completions.counters.iter().next().is_none()
            && self.regions.is_empty()
    }
}

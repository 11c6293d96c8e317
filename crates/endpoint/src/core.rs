// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of an endpoint that its transport's callbacks change, apart from the transport itself.

use crate::completion::Reporter;
use crate::route::Remotes;
use crate::settings::DEFAULT_MIN_MULTI_RECEIVE_BYTES;

/// The core of an endpoint.
pub(crate) struct Core {
    pub(crate) remotes: Remotes,
    pub(crate) report: Reporter,
    pub(crate) min_multi_receive_bytes: usize,
}

impl Core {
    pub(crate) fn new(report: Reporter) -> Self {
        Self {
            remotes: Remotes::default(),
            report,
            min_multi_receive_bytes: DEFAULT_MIN_MULTI_RECEIVE_BYTES,
        }
    }
}

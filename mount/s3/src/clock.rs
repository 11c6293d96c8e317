// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What time it is. [`crate::credentials`] asks this for its pauses, so that a test can let them
//! pass without waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The system's clock, unless it is [`Self::stopped`]. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    stopped_at: Option<Arc<Mutex<Instant>>>,
}

impl Clock {
    /// One that goes on only by [`Self::advance`].
    pub fn stopped() -> Self {
        Self {
            stopped_at: Some(Arc::new(Mutex::new(Instant::now()))),
        }
    }

    /// Lets time pass on a stopped clock; the system's is left as it is.
    pub fn advance(&self, by: Duration) {
        if let Some(at) = &self.stopped_at {
            *at.lock().unwrap_or_else(PoisonError::into_inner) += by;
        }
    }

    pub(crate) fn now(&self) -> Instant {
        match &self.stopped_at {
            Some(at) => *at.lock().unwrap_or_else(PoisonError::into_inner),
            None => Instant::now(),
        }
    }
}

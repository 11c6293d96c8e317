// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often the SDK sent a request. It repeats one whose answer was lost, and the store may refuse
//! the second attempt because it did the first: the caller must know that. [`crate::bucket`] and
//! [`crate::uploads`] count copies and completions.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use weft_store::StoreError;

/// Counts the attempts of one request. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    count: Arc<Mutex<u32>>,
}

impl Attempts {
    /// The error of the last attempt, with what is known of those before.
    pub fn said(&self, error: StoreError) -> StoreError {
        match *self.count.lock().unwrap_or_else(PoisonError::into_inner) {
            0 | 1 => error,
            _ => error.repeated(),
        }
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Ok(())
    }
}

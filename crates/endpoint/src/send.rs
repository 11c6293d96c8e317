// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: every fi_send, fi_tsend and inject call comes here. fi_msg(3), fi_tagged(3).
//!
//! Called by the provider; calls route.rs for the remote and its transport for the rest.

use weft_memory::UserBuffer;

use crate::domain::Domain;
use crate::error::Error;
use crate::ids::{EndpointId, FiAddr};
use crate::route::LocalRoute;
use crate::settings::{Inject, Send};

impl<P: LocalRoute> Domain<P> {
    /// Sends a message. The buffer stays ours until the completion, unless the flags have FI_INJECT. Fast
    /// path for small messages.
    ///
    /// # Errors
    /// [`Error::Again`] when there is no room now: nothing was sent; make progress and call again.
    /// [`Error::Invalid`] if `to` names no remote, [`Error::BadState`] before the endpoint is enabled,
    /// [`Error::TooLong`] beyond the inject limit under FI_INJECT, [`Error::Transfer`] if the remote is gone
    /// or cannot be reached.
    #[inline]
    pub fn send(
        &mut self,
        endpoint: EndpointId,
        to: FiAddr,
        send: &Send,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let _ = (endpoint, to, send, payload);
        Err(Error::Unsupported)
    }

    /// Sends a short message whose buffer is the user's again on return; no entry is written on the queue if
    /// it succeeds, but counters count. Fast path.
    ///
    /// # Errors
    /// As [`Domain::send`].
    #[inline]
    pub fn inject(
        &mut self,
        endpoint: EndpointId,
        to: FiAddr,
        inject: &Inject,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let _ = (endpoint, to, inject, payload);
        Err(Error::Unsupported)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving: every fi_recv and fi_trecv call comes here, fi_cancel too. fi_msg(3), fi_tagged(3).
//!
//! Called by the provider. A receive takes the earliest unexpected message that it matches, or is posted.

use weft_memory::UserBuffer;

use crate::domain::Domain;
use crate::error::Error;
use crate::ids::EndpointId;
use crate::route::LocalRoute;
use crate::settings::Receive;

impl<P: LocalRoute> Domain<P> {
    /// Posts a receive, or does what its flags say: FI_MULTI_RECV, FI_PEEK, FI_CLAIM, FI_DISCARD. The buffer
    /// stays ours until the completion; peeks and discards take an empty one. Fast path.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `source` names no remote, flags contradict each other, or FI_CLAIM comes without
    /// a message claimed under the same context; [`Error::BadState`] before the endpoint is enabled;
    /// [`Error::NotBound`] for a peek without a receive queue to answer on.
    #[inline]
    pub fn receive(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        let _ = (endpoint, receive, buffer);
        Err(Error::Unsupported)
    }

    /// Cancels the earliest receive posted under `context`; an error entry [`Error::Canceled`] follows. Sends,
    /// and receives that were matched, cannot be canceled. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn cancel(&mut self, endpoint: EndpointId, context: usize) -> Result<(), Error> {
        let _ = (endpoint, context);
        Err(Error::NoSuch)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Multi-receives: one buffer that takes message after message until little room is left
//! (FI_MULTI_RECV).
//!
//! Posted by receive.rs; what they keep is in multi_buffer.rs. Specified in fi_msg(3): messages are
//! packed one behind the other; the buffer is released when less than FI_OPT_MIN_MULTI_RECV bytes
//! are left, and the completion that releases it carries FI_MULTI_RECV and is always written.
//! Several messages may be on their way into one buffer at once, so the one that ends last releases
//! it.

use weft_contract::Route;
use weft_memory::UserBuffer;

use crate::core::Posted;
use crate::domain::Domain;
use crate::error::Error;
use crate::ids::EndpointId;
use crate::receive::Target;
use crate::settings::Receive;

impl<P: Route> Domain<P> {
    /// Posts a multi-receive, after it took the unexpected messages that it matches.
    pub(crate) fn receive_many(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        flags: u64,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let want = endpoint.want(receive)?;
        if buffer.length_bytes() == 0 {
            return Err(Error::Invalid);
        }
        let context = receive.context;
        let multi = endpoint.core.multis.open(buffer, context, flags);
        while let Some(id) = endpoint
            .core
            .matching
            .of(receive.class)
            .find_unexpected(want)
        {
            let taken = endpoint
                .core
                .matching
                .of(receive.class)
                .remove_unexpected(id);
            let Some((.., message)) = taken else { break };
            let part = endpoint
                .core
                .multis
                .begin_part(multi, message.kept.length_bytes);
            let Some(part) = part else { break };
            let buffer = endpoint.core.multis.part_buffer(multi, &part);
            endpoint.deliver(
                &mut self.sinks,
                message,
                Target {
                    buffer,
                    end: part.end,
                    multi: Some(multi),
                },
            );
            if part.full {
                return Ok(());
            }
        }
        endpoint.post(
            receive.class,
            want,
            Posted {
                buffer: UserBuffer::empty(),
                context,
                flags,
                multi: Some(multi),
            },
        );
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking for messages without receiving them, and claiming them: FI_PEEK, FI_CLAIM, FI_DISCARD.
//!
//! Called by receive.rs. Specified in fi_tagged(3): a peek makes progress and answers on the
//! completion queue, with an error entry if there is no message; a claimed message is found by no
//! other receive, and belongs to the receive with FI_CLAIM and the same context.

use weft_contract::Route;
use weft_memory::UserBuffer;

use crate::completion::ReceiveEnd;
use crate::core::Posted;
use crate::domain::Domain;
use crate::error::Error;
use crate::flags;
use crate::ids::EndpointId;
use crate::receive::Target;
use crate::settings::Receive;
use crate::unexpected::Claimed;

impl<P: Route> Domain<P> {
    /// Looks for a message; `action` is what to do with it: nothing, FI_CLAIM or FI_DISCARD.
    pub(crate) fn peek(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        action: u64,
    ) -> Result<(), Error> {
        if ![0, flags::CLAIM, flags::DISCARD].contains(&action) {
            return Err(Error::Invalid);
        }
        self.progress(endpoint)?;
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let want = endpoint.want(receive)?;
        let core = &mut endpoint.core;
        if !core.report.has_receive_queue() {
            return Err(Error::NotBound);
        }
        let context = receive.context;
        let matcher = core.matching.of(receive.class);
        let found = matcher.find_unexpected(want);
        let found = found.and_then(|id| Some((id, matcher.unexpected(id)?.2.kept.envelope())));
        let Some((id, envelope)) = found else {
            core.report
                .nothing_peeked(&mut self.sinks, receive.class, context, receive.tag);
            return Ok(());
        };
        let end = ReceiveEnd {
            context,
            flags: 0,
            capacity_bytes: 0,
            address: 0,
            release: false,
        };
        let entry = core.report.entry(
            &envelope,
            core.report.source(&core.remotes, envelope.remote),
            &end,
        );
        core.report.peeked(&mut self.sinks, entry);
        if action != 0 {
            if let Some((.., message)) = core.matching.of(receive.class).remove_unexpected(id) {
                match action {
                    flags::CLAIM => core.claimed.push(Claimed { context, message }),
                    _ => endpoint.drop_message(message),
                }
            }
        }
        Ok(())
    }

    /// Receives, or with FI_DISCARD drops, the message claimed under the same context.
    pub(crate) fn receive_claimed(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        flags: u64,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let context = receive.context;
        let claimed = &mut endpoint.core.claimed;
        let place = claimed
            .iter()
            .position(|claim| claim.context == context && claim.message.kept.class == receive.class)
            .ok_or(Error::Invalid)?;
        let message = claimed.remove(place).message;
        let posted = Posted {
            buffer,
            context,
            flags,
            multi: None,
        };
        if flags & flags::DISCARD == 0 {
            endpoint.deliver(&mut self.sinks, message, Target::whole(posted));
            return Ok(());
        }
        let envelope = message.kept.envelope();
        let end = ReceiveEnd {
            capacity_bytes: usize::MAX,
            ..ReceiveEnd::whole(&posted)
        };
        endpoint.drop_message(message);
        let core = &endpoint.core;
        let source = core.report.source(&core.remotes, envelope.remote);
        let entry = endpoint.core.report.entry(&envelope, source, &end);
        endpoint
            .core
            .report
            .discarded(&mut self.sinks, entry, flags);
        Ok(())
    }
}

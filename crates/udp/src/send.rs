// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starting a send: who, where its payload lies, and off to the machine. Called through `Peer::post_send`.

use weft_contract::{
    Class, CompletionLevel, MESSAGE_LIMIT_BYTES, PostError, Posted, SendOp, TransferError,
};
use weft_memory::UserBuffer;
use weft_srd::{Failure, Send};

use crate::transport::Driver;

/// What the machine's reasons are called above.
pub(crate) fn transfer_error(why: Failure) -> TransferError {
    match why {
        Failure::Lost | Failure::Restarted => TransferError::RemoteLost,
        Failure::Refused(weft_srd::Reason::NoMemory) => TransferError::NoMemory,
        Failure::Refused(weft_srd::Reason::Canceled) => TransferError::Canceled,
    }
}

impl Driver {
    /// Takes a send; datagrams leave with the next flush. Fast path; allocates only to grow.
    #[inline]
    pub(crate) fn post(
        &mut self,
        op: &SendOp,
        payload: &UserBuffer,
        now_ns: u64,
    ) -> Result<Posted, PostError> {
        let Some(remote) = self.remotes.of_id(op.remote, &mut self.machine) else {
            return Err(PostError::Failed(TransferError::NoMemory));
        };
        let length_bytes = payload.length_bytes();
        if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
            return Err(PostError::Failed(TransferError::TooLong));
        }
        let early = op.level == CompletionLevel::Inject && length_bytes <= self.copy_limit_bytes;
        let copies = op.inject || early;
        if copies && !self.sends.may_copy(length_bytes) {
            return Err(PostError::Busy);
        }
        let complete = copies && op.level == CompletionLevel::Inject;
        let token = if copies {
            self.sends.copy((!complete).then_some(op.token), payload)
        } else {
            let is_still = op.class != Class::Service;
            self.sends.lend(op.token, payload, is_still)
        };
        let send = Send {
            remote,
            tag: (op.class != Class::Message).then_some(op.tag),
            cq_data: op.cq_data,
            length_bytes: length_bytes as u64,
            wants_receipt: op.level == CompletionLevel::Delivery,
            is_service: op.class == Class::Service,
            token,
        };
        if let Err(why) = self.machine.post_send(now_ns, &send) {
            self.sends.end(token);
            return Err(refused(why));
        }
        self.statistics.sent_messages += 1;
        self.statistics.sent_bytes += length_bytes as u64;
        self.statistics.copied_messages += u64::from(copies);
        Ok(if complete {
            Posted::Complete
        } else {
            Posted::Pending
        })
    }
}

#[cold]
fn refused(why: weft_srd::PostError) -> PostError {
    match why {
        weft_srd::PostError::Busy => PostError::Busy,
        weft_srd::PostError::Unknown => PostError::Failed(TransferError::Unreachable),
        weft_srd::PostError::Ended(why) => PostError::Failed(transfer_error(why)),
    }
}

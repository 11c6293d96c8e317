// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of an answer, in one piece. [`crate::bucket`] calls it.

use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use weft_store::{Buffers, Failure, Range, StoreError};

use crate::refusal::Asked;

/// Reads a body that must have the length of `range`. One copy: from the connection's buffers into
/// memory of the right size.
pub async fn collect(
    mut body: ByteStream,
    range: Range,
    asked: &Asked<'_>,
    buffers: &Buffers,
) -> Result<Bytes, StoreError> {
    let wanted = range.byte_count() as usize;
    let mut bytes = buffers.take(wanted);
    loop {
        match body.next().await {
            Some(Ok(piece)) if bytes.len() + piece.len() <= wanted => {
                bytes.extend_from_slice(&piece);
            }
            Some(Ok(_)) => {
                let text = format!("more bytes came than the {wanted} of {range:?}");
                return Err(asked.failed(Failure::Corrupt, &text));
            }
            Some(Err(error)) => {
                let text = format!("the answer broke off after {} bytes: {error}", bytes.len());
                return Err(asked.failed(Failure::Corrupt, &text));
            }
            None if bytes.len() == wanted => return Ok(buffers.share(bytes)),
            None => {
                let text = format!("{} bytes came of {wanted}", bytes.len());
                return Err(asked.failed(Failure::Corrupt, &text));
            }
        }
    }
}

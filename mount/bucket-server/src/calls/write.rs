// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PutObject, and what all writes have in common.

use hyper::StatusCode;
use hyper::header::HeaderName;

use crate::answer::{Answer, add, empty};
use crate::checksum::Sum;
use crate::condition::Conditions;
use crate::error::{Code, Result, S3Error};
use crate::fault::Support;
use crate::object::{METADATA, Object, now, stored_headers};
use crate::payload::Received;
use crate::request::Call;
use crate::state::State;

/// S3 takes user metadata of so many bytes.
const METADATA_BYTES: usize = 2048;

/// PutObject.
pub fn put(state: &State, call: &Call, body: Received) -> Result<Answer> {
    let conditions = conditions(call, state.faults.settings().conditional_put)?;
    check_metadata(call)?;
    let object = Object {
        etag: state.etag(body.md5.as_deref()),
        modified: now(),
        headers: stored_headers(&call.headers),
        sum: kept_sum(state, Some(body.sum)),
        content: body.content,
        parts: Vec::new(),
    };
    let mut answer = empty(StatusCode::OK);
    add(&mut answer, "etag", &object.quoted_etag());
    add_sum(&mut answer, object.sum.as_ref());
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    bucket.put(&call.key, object, &conditions)?;
    Ok(answer)
}

/// The conditions of a write, as far as the server is told to know them.
///
/// # Errors
/// `NotImplemented` where it is told to refuse them.
pub fn conditions(call: &Call, support: Support) -> Result<Conditions> {
    let conditions = Conditions::read(&call.headers, "");
    match support {
        Support::Kept => Ok(conditions),
        Support::Ignored => Ok(Conditions::default()),
        Support::Refused if conditions.is_empty() => Ok(conditions),
        Support::Refused => {
            let text = "A header you provided implies functionality that is not implemented";
            Err(S3Error::new(Code::NotImplemented, text))
        }
    }
}

/// Whether user metadata is within S3's limit.
///
/// # Errors
/// `MetadataTooLarge`.
pub fn check_metadata(call: &Call) -> Result<()> {
    let sizes = call.headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(METADATA)?;
        Some(name.len() + value.len())
    });
    if sizes.sum::<usize>() > METADATA_BYTES {
        let text = "Your metadata headers exceed the maximum allowed metadata size";
        return Err(S3Error::new(Code::MetadataTooLarge, text));
    }
    Ok(())
}

/// The checksum, unless the server is told to have none.
pub fn kept_sum(state: &State, sum: Option<Sum>) -> Option<Sum> {
    sum.filter(|_| state.faults.settings().checksums)
}

/// Gives the checksum back in the answer's headers.
pub fn add_sum(answer: &mut Answer, sum: Option<&Sum>) {
    let Some(sum) = sum else { return };
    let name = HeaderName::from_bytes(sum.algorithm.header().as_bytes());
    if let (Ok(name), Ok(value)) = (name, sum.text().parse()) {
        answer.headers_mut().insert(name, value);
        add(answer, "x-amz-checksum-type", sum.kind());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! S3's calls, one file for each group. Each takes the request and its body and gives an answer.

mod bucket;
mod copy;
pub mod date;
mod delete;
mod list;
mod multipart;
mod part;
mod read;
mod write;

use crate::answer::Answer;
use crate::error::Result;
use crate::fault::Draw;
use crate::operation::Operation;
use crate::payload::Received;
use crate::request::Call;
use crate::state::State;

/// Carries out a call.
///
/// # Errors
/// What S3 says in its place.
pub fn carry_out(
    state: &State,
    operation: Operation,
    call: &Call,
    body: Received,
    draw: &Draw,
) -> Result<Answer> {
    match operation {
        Operation::AbortMultipartUpload => multipart::abort(state, call),
        Operation::CompleteMultipartUpload => multipart::complete(state, call, &body),
        Operation::CopyObject => copy::object(state, call),
        Operation::CreateBucket => bucket::create(state, call),
        Operation::CreateMultipartUpload => multipart::create(state, call),
        Operation::CreateSession => bucket::session(state, call),
        Operation::DeleteBucket => bucket::delete(state, call),
        Operation::DeleteObject => delete::one(state, call),
        Operation::DeleteObjects => delete::many(state, call, &body),
        Operation::GetBucketLocation => bucket::location(state, call),
        Operation::GetBucketVersioning => bucket::versioning(state, call),
        Operation::GetObject => read::get(state, call, draw),
        Operation::HeadBucket => bucket::head(state, call),
        Operation::HeadObject => read::head(state, call, draw),
        Operation::ListBuckets => Ok(bucket::list(state)),
        Operation::ListMultipartUploads => multipart::list(state, call),
        Operation::ListObjects => list::first_version(state, call),
        Operation::ListObjectsV2 => list::second_version(state, call),
        Operation::ListParts => part::list(state, call),
        Operation::PutObject => write::put(state, call, body),
        Operation::RenameObject => copy::rename(state, call),
        Operation::UploadPart => part::upload(state, call, body),
        Operation::UploadPartCopy => copy::part(state, call),
    }
}

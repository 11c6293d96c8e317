// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds which of S3's calls a request is. The names are S3's own; counters and faults use them.

use hyper::Method;
use serde::{Deserialize, Serialize};

use crate::request::Call;

/// The calls that the server knows.
#[expect(missing_docs, reason = "the names are S3's")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operation {
    AbortMultipartUpload,
    CompleteMultipartUpload,
    CopyObject,
    CreateBucket,
    CreateMultipartUpload,
    CreateSession,
    DeleteBucket,
    DeleteObject,
    DeleteObjects,
    GetBucketLocation,
    GetBucketVersioning,
    GetObject,
    HeadBucket,
    HeadObject,
    ListBuckets,
    ListMultipartUploads,
    ListObjects,
    ListObjectsV2,
    ListParts,
    PutObject,
    RenameObject,
    UploadPart,
    UploadPartCopy,
}

impl Operation {
    /// The call that a request makes; `None` where the server does not know it.
    pub fn of(call: &Call) -> Option<Self> {
        if call.bucket.is_empty() {
            return (call.method == Method::GET).then_some(Operation::ListBuckets);
        }
        if call.key.is_empty() {
            Self::on_bucket(call)
        } else {
            Self::on_object(call)
        }
    }

    fn on_bucket(call: &Call) -> Option<Self> {
        let has_subresource = ["acl", "policy", "lifecycle", "tagging", "versions", "cors"]
            .into_iter()
            .any(|name| call.asks(name));
        match call.method {
            _ if has_subresource => None,
            Method::GET if call.asks("uploads") => Some(Operation::ListMultipartUploads),
            Method::GET if call.asks("location") => Some(Operation::GetBucketLocation),
            Method::GET if call.asks("versioning") => Some(Operation::GetBucketVersioning),
            Method::GET if call.asks("session") => Some(Operation::CreateSession),
            Method::GET if call.query("list-type") == Some("2") => Some(Operation::ListObjectsV2),
            Method::GET => Some(Operation::ListObjects),
            Method::HEAD => Some(Operation::HeadBucket),
            Method::PUT => Some(Operation::CreateBucket),
            Method::DELETE => Some(Operation::DeleteBucket),
            Method::POST if call.asks("delete") => Some(Operation::DeleteObjects),
            _ => None,
        }
    }

    fn on_object(call: &Call) -> Option<Self> {
        let has_subresource = ["acl", "tagging", "attributes", "retention", "torrent"]
            .into_iter()
            .any(|name| call.asks(name));
        let is_copy = call.header("x-amz-copy-source").is_some();
        match call.method {
            _ if has_subresource => None,
            Method::GET if call.asks("uploadId") => Some(Operation::ListParts),
            Method::GET => Some(Operation::GetObject),
            Method::HEAD => Some(Operation::HeadObject),
            Method::PUT if call.asks("renameObject") => Some(Operation::RenameObject),
            Method::PUT if call.asks("uploadId") && is_copy => Some(Operation::UploadPartCopy),
            Method::PUT if call.asks("uploadId") => Some(Operation::UploadPart),
            Method::PUT if is_copy => Some(Operation::CopyObject),
            Method::PUT => Some(Operation::PutObject),
            Method::POST if call.asks("uploads") => Some(Operation::CreateMultipartUpload),
            Method::POST if call.asks("uploadId") => Some(Operation::CompleteMultipartUpload),
            Method::DELETE if call.asks("uploadId") => Some(Operation::AbortMultipartUpload),
            Method::DELETE => Some(Operation::DeleteObject),
            _ => None,
        }
    }

    /// As in the API reference.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

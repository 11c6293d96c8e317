// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One object: its bytes, its tag, and the metadata that came with the write.

use hyper::HeaderMap;
use time::OffsetDateTime;

use crate::checksum::Sum;
use crate::content::Content;

/// Headers that are stored with an object and given back, beside those of user metadata.
const STORED: [&str; 7] = [
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
];

/// The prefix of user metadata.
pub const METADATA: &str = "x-amz-meta-";

/// An object as it was once written; it never changes, another one takes its place.
#[derive(Clone, Debug)]
pub struct Object {
    /// The bytes.
    pub content: Content,
    /// Without quotes.
    pub etag: String,
    /// In whole seconds.
    pub modified: OffsetDateTime,
    /// User metadata and the other headers that are given back.
    pub headers: HeaderMap,
    /// One checksum, where there is one.
    pub sum: Option<Sum>,
    /// The lengths of its parts; empty where it was written at once.
    pub parts: Vec<u64>,
}

impl Object {
    /// The tag as it stands in headers and XML.
    pub fn quoted_etag(&self) -> String {
        format!("\"{}\"", self.etag)
    }
}

/// Now, in whole seconds, as S3 keeps time.
pub fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(0).unwrap_or(now)
}

/// Of a request's headers those that are stored with the object. `aws-chunked` is how the body was
/// sent, and no encoding of the object.
pub fn stored_headers(headers: &HeaderMap) -> HeaderMap {
    let mut stored = HeaderMap::new();
    for (name, value) in headers {
        let is_stored = STORED.contains(&name.as_str()) || name.as_str().starts_with(METADATA);
        if !is_stored {
            continue;
        }
        let kept: Vec<&str> = value.to_str().map_or(Vec::new(), |text| {
            text.split(',')
                .map(str::trim)
                .filter(|one| *one != "aws-chunked")
                .collect()
        });
        if name != "content-encoding" {
            stored.append(name.clone(), value.clone());
        } else if let Ok(value) = kept.join(",").parse()
            && !kept.is_empty()
        {
            stored.append(name.clone(), value);
        }
    }
    stored
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a request asks for: bucket, key and query from the request line, and the S3 call. Buckets
//! are in the path (`http://host/bucket/key`), not in the host's name.

use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use crate::error::{Code, Result, S3Error};

/// S3 allows keys of so many bytes.
const KEY_BYTES: usize = 1024;

/// A request without its body.
#[derive(Clone, Debug)]
pub struct Call {
    /// `GET`, `PUT` and so on.
    pub method: Method,
    /// Empty where the request names none.
    pub bucket: String,
    /// Empty where the request names none.
    pub key: String,
    /// In the order of the request, decoded; a name without `=` has an empty value.
    pub query: Vec<(String, String)>,
    /// All of them.
    pub headers: HeaderMap,
    /// The path as it was sent, which is what was signed.
    pub path: String,
}

impl Call {
    /// Takes a request apart.
    ///
    /// # Errors
    /// A path that is no text, a key that is too long.
    pub fn read(parts: Parts) -> Result<Self> {
        let path = parts.uri.path().to_owned();
        let (bucket, key) = match path[1..].split_once('/') {
            Some((bucket, key)) => (bucket, key),
            None => (&path[1..], ""),
        };
        let query = parts.uri.query().unwrap_or("");
        let query = query.split('&').filter(|pair| !pair.is_empty());
        let query = query.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(&value.replace('+', "%20"))?))
        });
        let call = Self {
            method: parts.method,
            bucket: decode(bucket)?,
            key: decode(key)?,
            query: query.collect::<Result<_>>()?,
            headers: parts.headers,
            path: path.clone(),
        };
        if call.key.len() > KEY_BYTES {
            return Err(S3Error::new(Code::KeyTooLongError, "Your key is too long"));
        }
        Ok(call)
    }

    /// The value of a name in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a name stands in the query.
    pub fn asks(&self, name: &str) -> bool {
        self.query(name).is_some()
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A number in the query, or `default`.
    ///
    /// # Errors
    /// `InvalidArgument` where it is none.
    pub fn number(&self, name: &str, default: u64) -> Result<u64> {
        match self.query(name) {
            None | Some("") => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                let text = format!("Argument {name} must be a whole number, not {text:?}.");
                S3Error::new(Code::InvalidArgument, text)
            }),
        }
    }

    /// A value that the query must name.
    ///
    /// # Errors
    /// `InvalidArgument` where it does not.
    pub fn required(&self, name: &str) -> Result<&str> {
        self.query(name).ok_or_else(|| {
            let text = format!("The request must name {name}.");
            S3Error::new(Code::InvalidArgument, text)
        })
    }
}

/// Percent-encoded text, decoded.
///
/// # Errors
/// `InvalidArgument` where the bytes are not UTF-8.
pub fn decode(text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| {
        let text = format!("Keys are UTF-8, and {text} is not.");
        S3Error::new(Code::InvalidArgument, text)
    })
}

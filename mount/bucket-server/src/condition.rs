// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions of requests: on what is read, on the source of a copy, and on what a write replaces.
//! Source: RFC 9110, section 13, and "Conditional requests" in the Amazon S3 User Guide.

use hyper::HeaderMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::error::{Code, Result, S3Error};
use crate::object::Object;

/// What must hold for a request to be carried out.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
    if_modified_since: Option<OffsetDateTime>,
    if_unmodified_since: Option<OffsetDateTime>,
}

impl Conditions {
    /// The conditions in headers whose names begin with `prefix`, which is empty or names the
    /// source of a copy.
    pub fn read(headers: &HeaderMap, prefix: &str) -> Self {
        let text = |name: &str| {
            let value = headers.get(format!("{prefix}{name}"))?;
            Some(value.to_str().ok()?.to_owned())
        };
        let date = |name: &str| {
            let text = text(name)?.replace("GMT", "+0000");
            OffsetDateTime::parse(&text, &Rfc2822).ok()
        };
        Self {
            if_match: text("if-match"),
            if_none_match: text("if-none-match"),
            if_modified_since: date("if-modified-since"),
            if_unmodified_since: date("if-unmodified-since"),
        }
    }

    /// Only the tag that must be there, as in the list of a DeleteObjects call.
    pub fn with_match(etag: Option<String>) -> Self {
        Self {
            if_match: etag,
            ..Self::default()
        }
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// Whether `object` may be read.
    ///
    /// # Errors
    /// `PreconditionFailed`, or `NotModified` where the reader has it already.
    pub fn check_read(&self, object: &Object) -> Result<()> {
        match &self.if_match {
            Some(wanted) if !matches(wanted, object) => {
                return Err(S3Error::precondition("If-Match"));
            }
            None if self
                .if_unmodified_since
                .is_some_and(|since| object.modified > since) =>
            {
                return Err(S3Error::precondition("If-Unmodified-Since"));
            }
            _ => {}
        }
        let has_it = match &self.if_none_match {
            Some(known) => matches(known, object),
            None => self
                .if_modified_since
                .is_some_and(|since| object.modified <= since),
        };
        if has_it {
            return Err(S3Error::new(Code::NotModified, "Not Modified"));
        }
        Ok(())
    }

    /// Whether `object` may be the source of a copy.
    ///
    /// # Errors
    /// `PreconditionFailed`.
    pub fn check_source(&self, object: &Object) -> Result<()> {
        self.check_read(object).map_err(|error| match error.code {
            Code::NotModified => S3Error::precondition("x-amz-copy-source-if-none-match"),
            _ => error,
        })
    }

    /// Whether a write may take the place of what is there.
    ///
    /// # Errors
    /// `PreconditionFailed`; `NoSuchKey` where a tag is asked for and nothing is there.
    pub fn check_write(&self, there: Option<&Object>) -> Result<()> {
        if let Some(wanted) = &self.if_match {
            match there {
                None => return Err(S3Error::no_such_key()),
                Some(object) if !matches(wanted, object) => {
                    return Err(S3Error::precondition("If-Match"));
                }
                Some(_) => {}
            }
        }
        match (&self.if_none_match, there) {
            (Some(known), Some(object)) if matches(known, object) => {
                Err(S3Error::precondition("If-None-Match"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether the object's tag is among the tags of a header, or the header says `*`.
fn matches(tags: &str, object: &Object) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/").trim_matches('"') == object.etag)
}

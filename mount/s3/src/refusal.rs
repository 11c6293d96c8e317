// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translates an error of the SDK into one of `mount/store`: the reason, what the store said, and
//! the request's id.

use std::error::Error;
use std::time::SystemTime;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use weft_store::{Failure, StoreError};

use crate::credentials::is_ended;

/// What S3 answers to a request whose signature is of another time than its own.
const SKEWED: &str = "RequestTimeTooSkewed";

/// What was asked for, for messages.
pub struct Asked<'a> {
    /// As `GetObject`.
    pub operation: &'static str,
    /// The key, or the prefix.
    pub key: &'a str,
    /// The bucket's name.
    pub bucket: &'a str,
}

impl Asked<'_> {
    /// An error found on this side.
    pub fn failed(&self, failure: Failure, text: &str) -> StoreError {
        StoreError::new(failure, self.operation, self.key, text)
    }

    /// An error of the SDK.
    pub fn refused<E>(&self, error: &SdkError<E, HttpResponse>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        // An answer that cannot be read as one says nothing of the request.
        let read = error.raw_response();
        let read = read.filter(|_| !matches!(error, SdkError::ResponseError(_)));
        let Some(answer) = read else {
            let failure = match error {
                SdkError::ConstructionFailure(_) => Failure::Refused,
                _ => Failure::Unreachable,
            };
            let text = chain(error);
            return self.failed(
                if is_about_credentials(error) {
                    Failure::Denied
                } else {
                    failure
                },
                &text,
            );
        };
        let status = answer.status().as_u16();
        let code = error.code().unwrap_or_default();
        let mut text = match error.message() {
            Some(message) => format!("{code}: {message} (status {status})"),
            None if code.is_empty() => format!("status {status}"),
            None => format!("{code} (status {status})"),
        };
        if let Some(region) = answer.headers().get("x-amz-bucket-region")
            && matches!(status, 301 | 400)
        {
            text.push_str(&format!("; the bucket is in region {region}"));
        }
        if code == SKEWED {
            let date = answer.headers().get("date");
            text.push_str(&skew(date, SystemTime::now()));
        }
        if is_ended(code) {
            text.push_str("; renew the credentials, and the mount finds them");
        }
        let mut refused = self.failed(failure_of(status, code), &text);
        if refused.failure == Failure::NoBucket {
            refused.message = format!("there is no bucket `{}` ({text})", self.bucket);
        }
        let id = answer.headers().get("x-amz-request-id");
        refused.request_id = id.map(str::to_owned);
        refused
    }
}

/// How far this host's clock is from that of the store, which is the answer's date, and what to do.
fn skew(date: Option<&str>, now: SystemTime) -> String {
    let date = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
    let there = date.and_then(|date| SystemTime::try_from(date).ok());
    let apart = match there.map(|there| (there.duration_since(now), now.duration_since(there))) {
        Some((Ok(behind), _)) => format!("{} s behind the store's", behind.as_secs()),
        Some((_, Ok(ahead))) => format!("{} s ahead of the store's", ahead.as_secs()),
        _ => "wrong".to_owned(),
    };
    format!(
        "; this host's clock is {apart}, and the store permits 15 minutes: set the clock, and have \
         chrony or systemd-timesyncd keep it"
    )
}

/// The message of an error and of those that caused it: the last one says the most.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

/// Whether the store, or the client before it asked, says that there are no good credentials.
pub fn is_about_credentials<E>(error: &SdkError<E, HttpResponse>) -> bool
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error.raw_response() {
        Some(_) => error.code().is_some_and(is_ended),
        None => chain(error).contains("credentials"),
    }
}

fn failure_of(status: u16, code: &str) -> Failure {
    match (status, code) {
        (_, "NoSuchBucket") => Failure::NoBucket,
        (_, "InvalidObjectState") => Failure::Archived,
        (_, code) if is_ended(code) => Failure::Denied,
        (_, SKEWED) => Failure::Skewed,
        (_, "NotImplemented") | (501, _) => Failure::Unsupported,
        (_, "NoSuchKey" | "NotFound" | "NoSuchUpload") | (404, _) => Failure::Missing,
        (401 | 403, _) => Failure::Denied,
        (412 | 409, _) => Failure::Changed,
        (_, "SlowDown" | "InternalError" | "RequestTimeout") | (429 | 500..=599, _) => {
            Failure::Busy
        }
        _ => Failure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clock_that_is_wrong_is_told_with_how_far_and_what_to_do() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let date = Some("Sun, 29 Nov 2026 12:00:00 GMT");
        let noon = 1_795_953_600;
        let ahead = skew(date, at(noon + 1000));
        assert!(ahead.contains("is 1000 s ahead of the store's"), "{ahead}");
        let behind = skew(date, at(noon - 3600));
        assert!(behind.contains("is 3600 s behind the store's"), "{behind}");
        for none in [None, Some("noon")] {
            let said = skew(none, at(noon));
            assert!(
                said.contains("clock is wrong") && said.contains("chrony"),
                "{said}"
            );
        }
    }

    #[test]
    fn status_and_code_say_what_may_be_done() {
        assert_eq!(failure_of(404, ""), Failure::Missing);
        assert_eq!(failure_of(404, "NoSuchBucket"), Failure::NoBucket);
        assert_eq!(failure_of(403, "SignatureDoesNotMatch"), Failure::Denied);
        assert_eq!(failure_of(412, "PreconditionFailed"), Failure::Changed);
        assert_eq!(failure_of(503, "SlowDown"), Failure::Busy);
        assert_eq!(failure_of(400, "ExpiredToken"), Failure::Denied);
        assert_eq!(failure_of(501, ""), Failure::Unsupported);
        assert_eq!(failure_of(400, "MalformedXML"), Failure::Refused);
        assert!(failure_of(500, "").may_pass() && !failure_of(403, "").may_pass());
    }
}

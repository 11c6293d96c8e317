// SPDX-License-Identifier: Apache-2.0 OR MIT
//! S3's errors: a code, its HTTP status and a sentence. Every call returns these; `answer` writes
//! them as XML. Source: "Error responses" in the Amazon S3 API Reference.

/// One of S3's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    AccessDenied,
    AuthorizationHeaderMalformed,
    BadDigest,
    BucketAlreadyOwnedByYou,
    BucketNotEmpty,
    EntityTooLarge,
    EntityTooSmall,
    ExpiredToken,
    IncompleteBody,
    InternalError,
    InvalidAccessKeyId,
    InvalidArgument,
    InvalidDigest,
    InvalidPart,
    InvalidPartOrder,
    InvalidRange,
    InvalidRequest,
    InvalidToken,
    KeyTooLongError,
    MalformedXML,
    MetadataTooLarge,
    MethodNotAllowed,
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    NotImplemented,
    NotModified,
    PreconditionFailed,
    RequestTimeTooSkewed,
    SignatureDoesNotMatch,
    SlowDown,
    XAmzContentSHA256Mismatch,
}

impl Code {
    /// The HTTP status that goes with the code.
    pub fn status(self) -> u16 {
        match self {
            Code::NotModified => 304,
            Code::AccessDenied
            | Code::InvalidAccessKeyId
            | Code::RequestTimeTooSkewed
            | Code::SignatureDoesNotMatch => 403,
            Code::NoSuchBucket | Code::NoSuchKey | Code::NoSuchUpload => 404,
            Code::MethodNotAllowed => 405,
            Code::BucketAlreadyOwnedByYou | Code::BucketNotEmpty => 409,
            Code::PreconditionFailed => 412,
            Code::InvalidRange => 416,
            Code::InternalError => 500,
            Code::NotImplemented => 501,
            Code::SlowDown => 503,
            _ => 400,
        }
    }

    /// The code as it stands in the XML.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// A refusal, with the sentence that explains it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code:?}: {message}")]
pub struct S3Error {
    /// What programs look at.
    pub code: Code,
    /// What people read.
    pub message: String,
}

impl S3Error {
    /// A refusal with this sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// The key that was asked for is not there.
    pub fn no_such_key() -> Self {
        Self::new(Code::NoSuchKey, "The specified key does not exist.")
    }

    /// A condition of the request did not hold.
    pub fn precondition(condition: &str) -> Self {
        let text = format!("The precondition {condition} did not hold.");
        Self::new(Code::PreconditionFailed, text)
    }
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, S3Error>;

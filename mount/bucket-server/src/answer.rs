// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers: status, headers, and a body that is made while it is sent. The faults of bodies are
//! made here too: a body that breaks off, or has a wrong bit.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use crate::content::Content;
use crate::error::S3Error;
use crate::xml::Document;

/// An answer on its way.
pub type Answer = Response<Sending>;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct Sending {
    content: Content,
    at: u64,
    /// Where it breaks off, if before the end.
    cut: Option<u64>,
    /// The bit that is turned over.
    flip: Option<u64>,
}

/// A body broke off on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the body was cut short, as asked")]
pub struct Cut;

impl Sending {
    /// Sends these bytes.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// Breaks off half-way.
    pub fn cut(&mut self) {
        if self.content.length() > 0 {
            self.cut = Some(self.content.length() / 2);
        }
    }

    /// Turns over one bit, chosen by `random`.
    pub fn flip(&mut self, random: u64) {
        self.flip = (random % (8 * self.content.length().max(1))).into();
    }

    /// How many bytes are promised.
    pub fn length(&self) -> u64 {
        self.content.length()
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let end = self.content.length();
        let stop = self.cut.unwrap_or(end);
        if self.at < stop {
            let from = self.at;
            let mut chunk = self.content.chunk(from, stop);
            self.at += chunk.len() as u64;
            if let Some(bit) = self.flip
                && (from..self.at).contains(&(bit / 8))
            {
                let mut turned = chunk.to_vec();
                turned[(bit / 8 - from) as usize] ^= 1 << (bit % 8);
                chunk = Bytes::from(turned);
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        match &self.cut {
            Some(_) => Poll::Ready(Some(Err(Cut))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.content.length() && self.cut.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.length() - self.at)
    }
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Sending::default());
    *answer.status_mut() = status;
    answer
}

/// An answer with a body of some type.
pub fn with_text(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let content = Content::from_bytes(Bytes::from(text));
    let mut answer = Response::new(Sending::new(content));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// A document.
pub fn xml(document: Document) -> Answer {
    with_text(StatusCode::OK, "application/xml", document.finish())
}

/// A refusal as S3 writes it; to HEAD, and where nothing changed, without a body.
pub fn refusal(error: &S3Error, resource: &str, request_id: &str, is_head: bool) -> Answer {
    let status = StatusCode::from_u16(error.code.status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if is_head || status == StatusCode::NOT_MODIFIED {
        return empty(status);
    }
    let mut document = Document::plain("Error");
    document.element("Code", &error.code.name());
    document.element("Message", &error.message);
    document.element("Resource", resource);
    document.element("RequestId", request_id);
    document.element("HostId", request_id);
    with_text(status, "application/xml", document.finish())
}

/// Adds a header; what cannot stand in one is left out.
pub fn add(answer: &mut Answer, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

/// Says how long the body is without sending it, for HEAD.
pub fn promise_length(answer: &mut Answer, length: u64) {
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
}

/// What services return: nothing of ours can fail, except by a connection that is given up.
pub type Served = Result<Answer, Hangup>;

/// The connection is given up without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset, as asked")]
pub struct Hangup;

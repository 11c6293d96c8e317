// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Both versions of ListObjects. The cost of a page depends on what it shows, not on the size of
//! the bucket: keys below a common prefix are skipped.

use std::ops::Bound;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::answer::{Answer, xml};
use crate::calls::date;
use crate::error::{Code, Result, S3Error};
use crate::object::Object;
use crate::request::Call;
use crate::state::State;
use crate::store::Bucket;
use crate::xml::Document;

/// S3 shows no more on one page.
const MOST_KEYS: u64 = 1000;

/// What `encoding-type=url` leaves as it is.
const IN_LISTING: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'*')
    .remove(b'/');

/// What is to be shown.
struct Question<'a> {
    prefix: &'a str,
    delimiter: &'a str,
    /// Only what comes after it.
    after: String,
    most: usize,
}

/// One line of a page.
enum Line {
    Key(String, Arc<Object>),
    /// All keys that begin so.
    Prefix(String),
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Line::Key(text, _) | Line::Prefix(text) => text,
        }
    }
}

/// ListObjectsV2.
pub fn second_version(state: &State, call: &Call) -> Result<Answer> {
    let token = call.query("continuation-token");
    let after = match token {
        Some(token) => read_token(token)?,
        None => call.query("start-after").unwrap_or("").to_owned(),
    };
    let question = question(call, after)?;
    let (lines, is_cut) = page(state.store().bucket(&call.bucket)?, &question);
    let mut document = head(call, &question, is_cut);
    document.element("KeyCount", &lines.len().to_string());
    document.optional("ContinuationToken", token);
    let encoded = |text: &str| encoded(call, text);
    document.optional(
        "StartAfter",
        call.query("start-after").map(encoded).as_deref(),
    );
    if let Some(last) = lines.last().filter(|_| is_cut) {
        let token = URL_SAFE_NO_PAD.encode(last.text());
        document.element("NextContinuationToken", &token);
    }
    write_lines(&mut document, call, &lines);
    Ok(xml(document))
}

/// ListObjects, which older clients use.
pub fn first_version(state: &State, call: &Call) -> Result<Answer> {
    let marker = call.query("marker").unwrap_or("");
    let question = question(call, marker.to_owned())?;
    let (lines, is_cut) = page(state.store().bucket(&call.bucket)?, &question);
    let mut document = head(call, &question, is_cut);
    document.element("Marker", &encoded(call, marker));
    if let Some(last) = lines.last().filter(|_| is_cut) {
        document.element("NextMarker", &encoded(call, last.text()));
    }
    write_lines(&mut document, call, &lines);
    Ok(xml(document))
}

fn question(call: &Call, after: String) -> Result<Question<'_>> {
    Ok(Question {
        prefix: call.query("prefix").unwrap_or(""),
        delimiter: call.query("delimiter").unwrap_or(""),
        after,
        most: call.number("max-keys", MOST_KEYS)?.min(MOST_KEYS) as usize,
    })
}

fn read_token(token: &str) -> Result<String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| {
            let text = "The continuation token provided is incorrect";
            S3Error::new(Code::InvalidArgument, text)
        })
}

/// The lines of a page, and whether more follow.
fn page(bucket: &Bucket, question: &Question<'_>) -> (Vec<Line>, bool) {
    let mut lines = Vec::new();
    let mut from = if question.after.as_str() >= question.prefix && !question.after.is_empty() {
        Bound::Excluded(question.after.clone())
    } else {
        Bound::Included(question.prefix.to_owned())
    };
    loop {
        let mut jump = None;
        for (key, object) in bucket.from(from.as_ref().map(String::as_str)) {
            if !key.starts_with(question.prefix) {
                break;
            }
            let line = match common_prefix(key, question) {
                Some(common) => Line::Prefix(common),
                None => Line::Key(key.clone(), Arc::clone(object)),
            };
            if let Line::Prefix(common) = &line {
                jump = behind(common);
            }
            let is_prefix = matches!(line, Line::Prefix(_));
            if line.text() > question.after.as_str() {
                if lines.len() == question.most {
                    return (lines, question.most > 0);
                }
                lines.push(line);
            }
            if is_prefix {
                break;
            }
        }
        match jump {
            Some(behind) => from = Bound::Included(behind),
            None => return (lines, false),
        }
    }
}

fn common_prefix(key: &str, question: &Question<'_>) -> Option<String> {
    if question.delimiter.is_empty() {
        return None;
    }
    let rest = &key[question.prefix.len()..];
    let at = rest.find(question.delimiter)?;
    Some(key[..question.prefix.len() + at + question.delimiter.len()].to_owned())
}

/// The first text behind all that begin with `prefix`; `None` where there is none.
fn behind(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

fn head(call: &Call, question: &Question<'_>, is_cut: bool) -> Document {
    let mut document = Document::new("ListBucketResult");
    document.element("Name", &call.bucket);
    document.element("Prefix", &encoded(call, question.prefix));
    if !question.delimiter.is_empty() {
        document.element("Delimiter", &encoded(call, question.delimiter));
    }
    document.element("MaxKeys", &question.most.to_string());
    document.optional("EncodingType", call.query("encoding-type"));
    document.element("IsTruncated", if is_cut { "true" } else { "false" });
    document
}

fn write_lines(document: &mut Document, call: &Call, lines: &[Line]) {
    for line in lines {
        let text = encoded(call, line.text());
        let Line::Key(_, object) = line else { continue };
        document.open("Contents");
        document.element("Key", &text);
        document.element("LastModified", &date::in_xml(object.modified));
        document.element("ETag", &object.quoted_etag());
        if let Some(sum) = &object.sum {
            document.element("ChecksumAlgorithm", sum.algorithm.name());
            document.element("ChecksumType", sum.kind());
        }
        document.element("Size", &object.content.length().to_string());
        document.element("StorageClass", "STANDARD");
        document.close();
    }
    for line in lines {
        if let Line::Prefix(prefix) = line {
            document.open("CommonPrefixes");
            document.element("Prefix", &encoded(call, prefix));
            document.close();
        }
    }
}

fn encoded(call: &Call, text: &str) -> String {
    if call.query("encoding-type") == Some("url") {
        percent_encode(text.as_bytes(), &IN_LISTING).to_string()
    } else {
        text.to_owned()
    }
}

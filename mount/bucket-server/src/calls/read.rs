// SPDX-License-Identifier: Apache-2.0 OR MIT
//! GetObject and HeadObject.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use crate::answer::{Answer, Sending, add, empty, promise_length};
use crate::calls::date;
use crate::condition::Conditions;
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::fault::Draw;
use crate::object::Object;
use crate::request::Call;
use crate::state::State;

/// Which bytes are asked for: from the first up to the second, and whether that is a range.
struct Span {
    from: u64,
    to: u64,
    is_range: bool,
}

/// GetObject.
pub fn get(state: &State, call: &Call, draw: &Draw) -> Result<Answer> {
    let object = look_up(state, call, draw)?;
    let span = span(call, &object)?;
    let content = object.content.slice(span.from, span.to);
    state.counters.read(&call.key, span.from, content.length());
    let mut sending = Sending::new(content);
    if draw.cut {
        sending.cut();
    }
    if draw.flip {
        sending.flip(draw.random);
    }
    let length = sending.length();
    let mut answer = Response::new(sending);
    write_head(state, call, &mut answer, &object, &span);
    promise_length(&mut answer, length);
    Ok(answer)
}

/// HeadObject.
pub fn head(state: &State, call: &Call, draw: &Draw) -> Result<Answer> {
    let object = look_up(state, call, draw)?;
    let span = span(call, &object)?;
    let mut answer = empty(StatusCode::OK);
    write_head(state, call, &mut answer, &object, &span);
    promise_length(&mut answer, span.to - span.from);
    Ok(answer)
}

fn look_up(state: &State, call: &Call, draw: &Draw) -> Result<Arc<Object>> {
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    let mut object = Arc::clone(bucket.object(&call.key)?);
    if draw.change {
        let length = object.content.length();
        object = Arc::new(Object {
            content: Content::from_seed(draw.random, length),
            etag: state.etag(None),
            modified: crate::object::now(),
            headers: object.headers.clone(),
            sum: None,
            parts: Vec::new(),
        });
        let object = Arc::clone(&object);
        bucket.objects.insert(call.key.clone(), object);
    }
    Conditions::read(&call.headers, "").check_read(&object)?;
    Ok(object)
}

fn span(call: &Call, object: &Object) -> Result<Span> {
    let length = object.content.length();
    if call.asks("partNumber") {
        return part_span(call, object);
    }
    match call
        .header("range")
        .and_then(|text| read_range(text, length))
    {
        None => Ok(Span {
            from: 0,
            to: length,
            is_range: false,
        }),
        Some((from, to)) if from < to => Ok(Span {
            from,
            to,
            is_range: true,
        }),
        Some(_) => {
            let text = "The requested range is not satisfiable";
            Err(S3Error::new(Code::InvalidRange, text))
        }
    }
}

fn part_span(call: &Call, object: &Object) -> Result<Span> {
    let whole = [object.content.length()];
    let parts = if object.parts.is_empty() {
        &whole[..]
    } else {
        &object.parts
    };
    let number = call.number("partNumber", 1)? as usize;
    if number == 0 || number > parts.len() {
        let text = "The requested partnumber is not satisfiable";
        return Err(S3Error::new(Code::InvalidRange, text));
    }
    let from = parts[..number - 1].iter().sum();
    Ok(Span {
        from,
        to: from + parts[number - 1],
        is_range: true,
    })
}

/// The bytes that a header `Range` means, from the first up to the second; `None` where it is to be
/// ignored, and an empty range where there are none of these bytes.
pub fn read_range(text: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let count: u64 = last.parse().ok()?;
        return Some((length.saturating_sub(count), length));
    }
    let first: u64 = first.parse().ok()?;
    let to = match last {
        "" => length,
        last => last.parse::<u64>().ok()?.checked_add(1)?,
    };
    if to <= first {
        // The end before the beginning; at the end of the object there are no bytes.
        return (to == length).then_some((0, 0));
    }
    Some((first, to.min(length)))
}

fn write_head(state: &State, call: &Call, answer: &mut Answer, object: &Object, span: &Span) {
    let length = object.content.length();
    answer.headers_mut().extend(object.headers.clone());
    if !answer.headers().contains_key("content-type") {
        add(answer, "content-type", "binary/octet-stream");
    }
    add(answer, "etag", &object.quoted_etag());
    add(answer, "last-modified", &date::in_header(object.modified));
    add(answer, "accept-ranges", "bytes");
    if call.asks("partNumber") && !object.parts.is_empty() {
        add(
            answer,
            "x-amz-mp-parts-count",
            &object.parts.len().to_string(),
        );
    }
    if span.is_range {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {}-{}/{length}", span.from, span.to.saturating_sub(1));
        add(answer, "content-range", &range);
    }
    let is_asked = call.header("x-amz-checksum-mode") == Some("ENABLED");
    let is_whole = span.to - span.from == length;
    if let Some(sum) = &object.sum
        && is_asked
        && is_whole
        && state.faults.settings().checksums
    {
        let name = sum.algorithm.header();
        if let (Ok(name), Ok(value)) = (
            hyper::header::HeaderName::from_bytes(name.as_bytes()),
            sum.text().parse(),
        ) {
            answer.headers_mut().insert(name, value);
        }
        add(answer, "x-amz-checksum-type", sum.kind());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_mean_what_rfc_9110_says() {
        let cases = [
            ("bytes=0-4", 10, Some((0, 5))),
            ("bytes=5-", 10, Some((5, 10))),
            ("bytes=5-99", 10, Some((5, 10))),
            ("bytes=-3", 10, Some((7, 10))),
            ("bytes=-30", 10, Some((0, 10))),
            ("bytes=10-", 10, Some((0, 0))),
            ("bytes=0-", 0, Some((0, 0))),
            ("bytes=4-3", 10, None),
            ("lines=0-4", 10, None),
            ("bytes=a-b", 10, None),
        ];
        for (text, length, expected) in cases {
            assert_eq!(read_range(text, length), expected, "{text}");
        }
        let beyond = read_range("bytes=20-30", 10).unwrap();
        assert!(beyond.0 >= beyond.1);
    }
}

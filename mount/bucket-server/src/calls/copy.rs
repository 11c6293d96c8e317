// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CopyObject, UploadPartCopy and RenameObject: bytes that move inside the store.

use std::sync::Arc;

use hyper::StatusCode;

use crate::answer::{Answer, empty, xml};
use crate::calls::bucket::DIRECTORY_BUCKET;
use crate::calls::date;
use crate::calls::part;
use crate::calls::read::read_range;
use crate::calls::write::{check_metadata, conditions};
use crate::checksum::{Algorithm, Hasher, Sum};
use crate::condition::Conditions;
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::object::{Object, now, stored_headers};
use crate::request::{Call, decode};
use crate::state::State;
use crate::store::Part;
use crate::xml::Document;

/// S3 copies no larger object, and no larger part, in one call.
const COPY_BYTES: u64 = 5 << 30;

/// CopyObject.
pub fn object(state: &State, call: &Call) -> Result<Answer> {
    let conditions = conditions(call, state.faults.settings().conditional_copy)?;
    check_metadata(call)?;
    let source = source(state, call)?;
    if source.content.length() > COPY_BYTES {
        return Err(too_large());
    }
    let replaces = call.header("x-amz-metadata-directive") == Some("REPLACE");
    if !replaces && is_itself(call) {
        let text = "This copy request is illegal because it is trying to copy an object to itself \
            without changing the object's metadata, storage class, website redirect location or \
            encryption attributes.";
        return Err(S3Error::new(Code::InvalidRequest, text));
    }
    let sum = match call.header("x-amz-checksum-algorithm") {
        Some(name) => Some(digest(&source.content, algorithm(name)?)),
        None => source.sum.clone().filter(|sum| sum.composite_of.is_none()),
    };
    let is_plain = source.parts.is_empty() && state.options.etag_md5;
    let copy = Object {
        content: source.content.clone(),
        etag: if is_plain {
            source.etag.clone()
        } else {
            state.etag(None)
        },
        modified: now(),
        headers: if replaces {
            stored_headers(&call.headers)
        } else {
            source.headers.clone()
        },
        sum,
        parts: Vec::new(),
    };
    let mut document = Document::new("CopyObjectResult");
    write_result(&mut document, &copy.etag, copy.sum.as_ref());
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    bucket.put(&call.key, copy, &conditions)?;
    Ok(xml(document))
}

/// UploadPartCopy.
pub fn part(state: &State, call: &Call) -> Result<Answer> {
    let (number, id) = part::named(call)?;
    let source = source(state, call)?;
    let length = source.content.length();
    let (from, to) = match call.header("x-amz-copy-source-range") {
        None => (0, length),
        Some(text) => read_range(text, u64::MAX)
            .filter(|(from, to)| from < to && *to <= length)
            .ok_or_else(|| {
                let text = format!(
                    "Range specified is not valid for source object of size: \
                    {length}"
                );
                S3Error::new(Code::InvalidArgument, text)
            })?,
    };
    if to - from > COPY_BYTES {
        return Err(too_large());
    }
    let content = source.content.slice(from, to);
    let mut store = state.store();
    let upload = store.bucket_mut(&call.bucket)?.upload_mut(&call.key, id)?;
    let sum = digest(&content, upload.algorithm.unwrap_or(Algorithm::Crc64Nvme));
    let part = Part {
        etag: state.etag(None),
        sum: Some(sum),
        modified: now(),
        content,
    };
    let mut document = Document::new("CopyPartResult");
    write_result(&mut document, &part.etag, part.sum.as_ref());
    upload.parts.insert(number, part);
    Ok(xml(document))
}

/// RenameObject, which directory buckets have.
pub fn rename(state: &State, call: &Call) -> Result<Answer> {
    if !call.bucket.ends_with(DIRECTORY_BUCKET) {
        let text = "The specified method is not allowed against this resource.";
        return Err(S3Error::new(Code::MethodNotAllowed, text));
    }
    let from = call.header("x-amz-rename-source").unwrap_or("");
    let from = decode(from)?;
    let from = from.trim_start_matches('/');
    let from = from
        .strip_prefix(&format!("{}/", call.bucket))
        .unwrap_or(from);
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    let object = Arc::clone(bucket.object(from)?);
    Conditions::read(&call.headers, "x-amz-rename-source-").check_source(&object)?;
    let conditions = Conditions::read(&call.headers, "");
    bucket.put(&call.key, (*object).clone(), &conditions)?;
    if from != call.key {
        bucket.objects.remove(from);
    }
    Ok(empty(StatusCode::OK))
}

fn source(state: &State, call: &Call) -> Result<Arc<Object>> {
    let (bucket, key) = source_name(call)?;
    let store = state.store();
    let object = Arc::clone(store.bucket(&bucket)?.object(&key)?);
    Conditions::read(&call.headers, "x-amz-copy-source-").check_source(&object)?;
    Ok(object)
}

fn source_name(call: &Call) -> Result<(String, String)> {
    let text = call.header("x-amz-copy-source").unwrap_or("");
    let text = decode(text)?;
    let name = text.trim_start_matches('/').split_once('/');
    let (bucket, key) = name.ok_or_else(|| {
        let text = format!("Copy Source must mention the source bucket and key, not {text:?}");
        S3Error::new(Code::InvalidArgument, text)
    })?;
    Ok((bucket.to_owned(), key.to_owned()))
}

fn is_itself(call: &Call) -> bool {
    source_name(call).is_ok_and(|(bucket, key)| bucket == call.bucket && key == call.key)
}

fn algorithm(name: &str) -> Result<Algorithm> {
    Algorithm::named(name).ok_or_else(|| {
        let text = format!("Checksum algorithm provided is unsupported: {name}.");
        S3Error::new(Code::InvalidRequest, text)
    })
}

fn digest(content: &Content, algorithm: Algorithm) -> Sum {
    let mut hasher = Hasher::new(algorithm);
    content.each_chunk(|chunk| hasher.update(chunk));
    hasher.finish()
}

fn write_result(document: &mut Document, etag: &str, sum: Option<&Sum>) {
    document.element("LastModified", &date::in_xml(now()));
    document.element("ETag", &format!("\"{etag}\""));
    if let Some(sum) = sum {
        document.element(&sum.algorithm.element(), &sum.text());
    }
}

fn too_large() -> S3Error {
    let text = format!(
        "The specified copy source is larger than the maximum allowable size for a copy source: \
         {COPY_BYTES}"
    );
    S3Error::new(Code::InvalidRequest, text)
}

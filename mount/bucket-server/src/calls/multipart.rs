// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole multipart uploads: created, listed, completed, aborted.

use hyper::StatusCode;
use md5::{Digest, Md5};

use crate::answer::{self, Answer, add, empty};
use crate::calls::date;
use crate::calls::write::{check_metadata, conditions, kept_sum};
use crate::checksum::{Algorithm, Sum, join};
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::object::{Object, now, stored_headers};
use crate::payload::Received;
use crate::request::Call;
use crate::sign::hex;
use crate::state::State;
use crate::store::{Part, Upload, no_such_upload};
use crate::xml::{self, Document, Element};

/// CreateMultipartUpload.
pub fn create(state: &State, call: &Call) -> Result<Answer> {
    check_metadata(call)?;
    let algorithm = match call.header("x-amz-checksum-algorithm") {
        None => None,
        Some(name) => Some(Algorithm::named(name).ok_or_else(|| {
            let text = format!("Checksum algorithm provided is unsupported: {name}.");
            S3Error::new(Code::InvalidRequest, text)
        })?),
    };
    let full = match call.header("x-amz-checksum-type") {
        Some(kind) => kind == "FULL_OBJECT",
        None => algorithm.is_none_or(|algorithm| algorithm == Algorithm::Crc64Nvme),
    };
    let mut store = state.store();
    store.bucket(&call.bucket)?;
    let id = store.new_upload_id();
    let upload = Upload {
        created: now(),
        headers: stored_headers(&call.headers),
        algorithm,
        full,
        parts: Default::default(),
    };
    let bucket = store.bucket_mut(&call.bucket)?;
    bucket
        .uploads
        .insert((call.key.clone(), id.clone()), upload);
    let mut document = Document::new("InitiateMultipartUploadResult");
    document.element("Bucket", &call.bucket);
    document.element("Key", &call.key);
    document.element("UploadId", &id);
    let mut answer = answer::xml(document);
    if let Some(algorithm) = algorithm {
        add(&mut answer, "x-amz-checksum-algorithm", algorithm.name());
        let kind = if full { "FULL_OBJECT" } else { "COMPOSITE" };
        add(&mut answer, "x-amz-checksum-type", kind);
    }
    Ok(answer)
}

/// AbortMultipartUpload.
pub fn abort(state: &State, call: &Call) -> Result<Answer> {
    let id = call.required("uploadId")?;
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    let name = (call.key.clone(), id.to_owned());
    bucket.uploads.remove(&name).ok_or_else(no_such_upload)?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// ListMultipartUploads.
pub fn list(state: &State, call: &Call) -> Result<Answer> {
    let prefix = call.query("prefix").unwrap_or("");
    let key_marker = call.query("key-marker").unwrap_or("");
    let id_marker = call.query("upload-id-marker").unwrap_or("");
    let most = call.number("max-uploads", 1000)?.min(1000) as usize;
    let store = state.store();
    let bucket = store.bucket(&call.bucket)?;
    let rest = bucket.uploads.iter().filter(|((key, id), _)| {
        let is_after = key.as_str() > key_marker
            || (key == key_marker && !id_marker.is_empty() && id.as_str() > id_marker);
        key.starts_with(prefix) && is_after
    });
    let shown: Vec<_> = rest.clone().take(most).collect();
    let is_cut = rest.count() > shown.len();
    let mut document = Document::new("ListMultipartUploadsResult");
    document.element("Bucket", &call.bucket);
    document.element("Prefix", prefix);
    document.element("KeyMarker", key_marker);
    document.element("UploadIdMarker", id_marker);
    if let Some(((key, id), _)) = shown.last().filter(|_| is_cut) {
        document.element("NextKeyMarker", key);
        document.element("NextUploadIdMarker", id);
    }
    document.element("MaxUploads", &most.to_string());
    document.element("IsTruncated", if is_cut { "true" } else { "false" });
    for ((key, id), upload) in shown {
        document.open("Upload");
        document.element("Key", key);
        document.element("UploadId", id);
        document.element("Initiated", &date::in_xml(upload.created));
        document.element("StorageClass", "STANDARD");
        document.close();
    }
    Ok(answer::xml(document))
}

/// CompleteMultipartUpload.
pub fn complete(state: &State, call: &Call, body: &Received) -> Result<Answer> {
    let id = call.required("uploadId")?;
    let conditions = conditions(call, state.faults.settings().conditional_put)?;
    let list = xml::read(&body.bytes())?;
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    let upload = bucket.upload_mut(&call.key, id)?;
    let parts = named_parts(upload, &list)?;
    check_sizes(&parts, state.options.least_part_bytes)?;
    let object = assemble(state, upload, &parts);
    check_sum(call, object.sum.as_ref())?;
    let mut document = Document::new("CompleteMultipartUploadResult");
    document.element("Location", &format!("/{}/{}", call.bucket, call.key));
    document.element("Bucket", &call.bucket);
    document.element("Key", &call.key);
    document.element("ETag", &object.quoted_etag());
    if let Some(sum) = &object.sum {
        document.element(&sum.algorithm.element(), &sum.text());
        document.element("ChecksumType", sum.kind());
    }
    bucket.put(&call.key, object, &conditions)?;
    bucket.uploads.remove(&(call.key.clone(), id.to_owned()));
    Ok(answer::xml(document))
}

fn named_parts(upload: &Upload, list: &Element) -> Result<Vec<Part>> {
    let invalid = || {
        let text = "One or more of the specified parts could not be found. The part may not have \
            been uploaded, or the specified entity tag may not match the part's entity tag.";
        S3Error::new(Code::InvalidPart, text)
    };
    let mut parts = Vec::new();
    let mut last = 0;
    for element in list.children.iter().filter(|child| child.name == "Part") {
        let number = element.text_of("PartNumber").unwrap_or("");
        let number: u16 = number.parse().map_err(|_| invalid())?;
        if number <= last {
            let text = "The list of parts was not in ascending order. Parts must be ordered by \
                part number.";
            return Err(S3Error::new(Code::InvalidPartOrder, text));
        }
        last = number;
        let part = upload.parts.get(&number).ok_or_else(invalid)?;
        let etag = element.text_of("ETag").unwrap_or("");
        let is_right_sum = part.sum.as_ref().is_none_or(|sum| {
            let named = element.text_of(&sum.algorithm.element());
            named.is_none_or(|named| named == sum.text())
        });
        if etag.trim_matches('"') != part.etag || !is_right_sum {
            return Err(invalid());
        }
        parts.push(part.clone());
    }
    if parts.is_empty() {
        let text = "You must specify at least one part";
        return Err(S3Error::new(Code::MalformedXML, text));
    }
    Ok(parts)
}

fn check_sizes(parts: &[Part], least: u64) -> Result<()> {
    let all_but_last = &parts[..parts.len() - 1];
    if all_but_last
        .iter()
        .any(|part| part.content.length() < least)
    {
        let text = "Your proposed upload is smaller than the minimum allowed size";
        return Err(S3Error::new(Code::EntityTooSmall, text));
    }
    Ok(())
}

fn assemble(state: &State, upload: &Upload, parts: &[Part]) -> Object {
    let mut content = Content::default();
    let mut etags = Md5::new();
    for part in parts {
        content.append(&part.content);
        etags.update(unhex(&part.etag));
    }
    let sums: Vec<_> = parts
        .iter()
        .map(|part| (part.sum.clone(), part.content.length()))
        .collect();
    Object {
        content,
        etag: format!("{}-{}", hex(&etags.finalize()), parts.len()),
        modified: now(),
        headers: upload.headers.clone(),
        sum: kept_sum(state, join(&sums, upload.full)),
        parts: sums.iter().map(|(_, length)| *length).collect(),
    }
}

/// The bytes that hexadecimal digits stand for; a whole's tag is made from those of its parts.
fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).filter_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// A checksum of the whole that came along with the completion.
fn check_sum(call: &Call, sum: Option<&Sum>) -> Result<()> {
    let Some(sum) = sum else { return Ok(()) };
    match call.header(&sum.algorithm.header()) {
        Some(wanted) if wanted != sum.text() => {
            let text = format!(
                "The {} you specified did not match the calculated checksum.",
                sum.algorithm.name()
            );
            Err(S3Error::new(Code::BadDigest, text))
        }
        _ => Ok(()),
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UploadPart and ListParts.

use hyper::StatusCode;

use crate::answer::{Answer, add, empty, xml};
use crate::calls::date;
use crate::calls::write::{add_sum, kept_sum};
use crate::error::{Code, Result, S3Error};
use crate::object::now;
use crate::payload::Received;
use crate::request::Call;
use crate::state::State;
use crate::store::Part;
use crate::xml::Document;

/// S3 counts parts from 1 up to this.
const MOST_PARTS: u64 = 10_000;

/// UploadPart.
pub fn upload(state: &State, call: &Call, body: Received) -> Result<Answer> {
    let (number, id) = named(call)?;
    let mut store = state.store();
    let upload = store.bucket_mut(&call.bucket)?.upload_mut(&call.key, id)?;
    if let Some(wanted) = upload.algorithm
        && body.is_announced
        && body.sum.algorithm != wanted
    {
        let text = format!(
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
            wanted.name(),
            body.sum.algorithm.name()
        );
        return Err(S3Error::new(Code::InvalidRequest, text));
    }
    let part = Part {
        etag: state.etag(body.md5.as_deref()),
        sum: kept_sum(state, Some(body.sum)),
        modified: now(),
        content: body.content,
    };
    let mut answer = empty(StatusCode::OK);
    add(&mut answer, "etag", &format!("\"{}\"", part.etag));
    add_sum(&mut answer, part.sum.as_ref());
    upload.parts.insert(number, part);
    Ok(answer)
}

/// ListParts.
pub fn list(state: &State, call: &Call) -> Result<Answer> {
    let id = call.required("uploadId")?;
    let after = call.number("part-number-marker", 0)?;
    let most = call.number("max-parts", 1000)?.min(1000);
    let mut store = state.store();
    let upload = store.bucket_mut(&call.bucket)?.upload_mut(&call.key, id)?;
    let rest = upload
        .parts
        .iter()
        .filter(|(number, _)| u64::from(**number) > after);
    let shown: Vec<_> = rest.clone().take(most as usize).collect();
    let is_cut = rest.count() > shown.len();
    let mut document = Document::new("ListPartsResult");
    document.element("Bucket", &call.bucket);
    document.element("Key", &call.key);
    document.element("UploadId", id);
    document.element("PartNumberMarker", &after.to_string());
    if let Some((last, _)) = shown.last() {
        document.element("NextPartNumberMarker", &last.to_string());
    }
    document.element("MaxParts", &most.to_string());
    document.element("IsTruncated", if is_cut { "true" } else { "false" });
    for (number, part) in shown {
        document.open("Part");
        document.element("PartNumber", &number.to_string());
        document.element("LastModified", &date::in_xml(part.modified));
        document.element("ETag", &format!("\"{}\"", part.etag));
        document.element("Size", &part.content.length().to_string());
        if let Some(sum) = &part.sum {
            document.element(&sum.algorithm.element(), &sum.text());
        }
        document.close();
    }
    Ok(xml(document))
}

/// The part's number and the upload's identifier in a query.
///
/// # Errors
/// `InvalidArgument` for a number that no part may have.
pub fn named(call: &Call) -> Result<(u16, &str)> {
    call.required("partNumber")?;
    let number = call.number("partNumber", 0)?;
    if !(1..=MOST_PARTS).contains(&number) {
        let text = "Part number must be an integer between 1 and 10000, inclusive";
        return Err(S3Error::new(Code::InvalidArgument, text));
    }
    Ok((number as u16, call.required("uploadId")?))
}

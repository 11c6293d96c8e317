// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls on whole buckets.

use hyper::StatusCode;
use time::Duration;

use crate::answer::{Answer, add, empty, xml};
use crate::calls::date;
use crate::error::{Code, Result, S3Error};
use crate::request::Call;
use crate::state::State;
use crate::xml::Document;

/// The end of the names of directory buckets.
pub const DIRECTORY_BUCKET: &str = "--x-s3";

/// HeadBucket.
pub fn head(state: &State, call: &Call) -> Result<Answer> {
    state.store().bucket(&call.bucket)?;
    let mut answer = empty(StatusCode::OK);
    add(&mut answer, "x-amz-bucket-region", "us-east-1");
    Ok(answer)
}

/// CreateBucket.
pub fn create(state: &State, call: &Call) -> Result<Answer> {
    if !state.store().make_bucket(&call.bucket) {
        let text = "Your previous request to create the named bucket succeeded and you already \
            own it.";
        return Err(S3Error::new(Code::BucketAlreadyOwnedByYou, text));
    }
    let mut answer = empty(StatusCode::OK);
    add(&mut answer, "location", &format!("/{}", call.bucket));
    Ok(answer)
}

/// DeleteBucket.
pub fn delete(state: &State, call: &Call) -> Result<Answer> {
    state.store().remove_bucket(&call.bucket)?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// GetBucketLocation: the empty name is us-east-1.
pub fn location(state: &State, call: &Call) -> Result<Answer> {
    state.store().bucket(&call.bucket)?;
    Ok(xml(Document::new("LocationConstraint")))
}

/// GetBucketVersioning: there is none.
pub fn versioning(state: &State, call: &Call) -> Result<Answer> {
    state.store().bucket(&call.bucket)?;
    Ok(xml(Document::new("VersioningConfiguration")))
}

/// CreateSession: directory buckets hand out credentials of their own; here they are the same.
pub fn session(state: &State, call: &Call) -> Result<Answer> {
    state.store().bucket(&call.bucket)?;
    let keys = &state.options.keys;
    let mut document = Document::new("CreateSessionResult");
    document.open("Credentials");
    document.element("AccessKeyId", &keys.access_key);
    document.element("SecretAccessKey", &keys.secret_key);
    let token = keys.session_token.as_deref();
    document.element("SessionToken", token.unwrap_or("session"));
    let expires = crate::object::now() + Duration::minutes(5);
    document.element("Expiration", &date::in_xml(expires));
    Ok(xml(document))
}

/// ListBuckets.
pub fn list(state: &State) -> Answer {
    let store = state.store();
    let mut document = Document::new("ListAllMyBucketsResult");
    document.open("Buckets");
    for (name, bucket) in store.buckets() {
        document.open("Bucket");
        document.element("Name", name);
        document.element("CreationDate", &date::in_xml(bucket.created));
        document.close();
    }
    xml(document)
}

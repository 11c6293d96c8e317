// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DeleteObject and DeleteObjects.

use hyper::StatusCode;

use crate::answer::{self, Answer, empty};
use crate::calls::write::conditions;
use crate::condition::Conditions;
use crate::error::{Code, Result, S3Error};
use crate::payload::Received;
use crate::request::Call;
use crate::state::State;
use crate::xml::{self, Document};

/// S3 takes no more keys in one call.
const MOST_KEYS: usize = 1000;

/// DeleteObject.
pub fn one(state: &State, call: &Call) -> Result<Answer> {
    let conditions = conditions(call, state.faults.settings().conditional_put)?;
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    bucket.delete(&call.key, &conditions)?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// DeleteObjects: each key for itself.
pub fn many(state: &State, call: &Call, body: &Received) -> Result<Answer> {
    let list = xml::read(&body.bytes())?;
    let objects: Vec<_> = list
        .children
        .iter()
        .filter(|child| child.name == "Object")
        .collect();
    if objects.is_empty() || objects.len() > MOST_KEYS {
        let text = format!("A list has 1 to {MOST_KEYS} keys, not {}.", objects.len());
        return Err(S3Error::new(Code::MalformedXML, text));
    }
    let is_quiet = list.text_of("Quiet") == Some("true");
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket)?;
    let mut document = Document::new("DeleteResult");
    for object in objects {
        let key = object.text_of("Key").unwrap_or("");
        let wanted = object.text_of("ETag").map(str::to_owned);
        match bucket.delete(key, &Conditions::with_match(wanted)) {
            Ok(()) if is_quiet => {}
            Ok(()) => {
                document.open("Deleted");
                document.element("Key", key);
                document.close();
            }
            Err(error) => {
                document.open("Error");
                document.element("Key", key);
                document.element("Code", &error.code.name());
                document.element("Message", &error.message);
                document.close();
            }
        }
    }
    Ok(answer::xml(document))
}

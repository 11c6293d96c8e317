// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the answer to ListObjectsV2. The SDK's own reader takes most of the processor's time of a
//! long listing, since it makes a tree of names and types of each element; this one reads a page in
//! one pass. [`crate::bucket`] gives it to a request. What the store refuses becomes the error that
//! the SDK would make of it, so that the SDK repeats requests as before.
//!
//! Source: the API reference of Amazon S3, ListObjectsV2 and "Error responses".

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use aws_sdk_s3::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept};
use aws_sdk_s3::error::{BoxError, ErrorMetadata};
use aws_sdk_s3::operation::list_objects_v2::{ListObjectsV2Error, ListObjectsV2Output};
use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use aws_smithy_runtime_api::client::interceptors::context::{Error, Output, OutputOrError};
use aws_smithy_runtime_api::client::orchestrator::{HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::ser_de::{DeserializeResponse, SharedResponseDeserializer};
use quick_xml::Reader;
use quick_xml::errors::IllFormedError;
use quick_xml::escape::unescape;
use quick_xml::events::Event;
use weft_store::{ETag, ObjectInfo, Page};

use crate::encoding::decode;

/// Where the page of one request comes to. Clones share the place.
#[derive(Debug, Clone, Default)]
pub struct ListAnswer {
    page: Arc<Mutex<Option<Page>>>,
}

impl ListAnswer {
    /// The page, once the request has succeeded; nothing if the SDK did not read it with this.
    pub fn take(&self) -> Option<Page> {
        self.place().take()
    }

    fn place(&self) -> MutexGuard<'_, Option<Page>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for ListAnswer {
    fn name(&self) -> &'static str {
        "ListAnswer"
    }

    fn read_before_execution(
        &self,
        _context: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let reader = SharedResponseDeserializer::new(self.clone());
        config.interceptor_state().store_put(reader);
        Ok(())
    }
}

impl DeserializeResponse for ListAnswer {
    fn deserialize_nonstreaming_with_config(
        &self,
        response: &HttpResponse,
        _config: &ConfigBag,
    ) -> OutputOrError {
        // The SDK has read the body whole before it calls this.
        let body = response.body().bytes().unwrap_or_default();
        let about = if response.status().is_success() {
            match page(body) {
                Ok(page) => {
                    *self.place() = Some(page);
                    return Ok(Output::erase(ListObjectsV2Output::builder().build()));
                }
                // The SDK asks again after an error of this kind.
                Err(NoPage::Cut) => return Err(OrchestratorError::response(CUT.into())),
                Err(NoPage::Refused(refused)) => refused,
            }
        } else {
            refusal(body)
        };
        Err(Error::erase(ListObjectsV2Error::generic(about)).into())
    }
}

/// What the store says of a request that it refuses; nothing where it does not say it in XML, as
/// proxies do.
fn refusal(body: &[u8]) -> ErrorMetadata {
    let mut about = ErrorMetadata::builder();
    // What was read before the text went wrong counts.
    let _ = each(body, |path, text| {
        match path {
            ["Error", "Code"] => about = std::mem::take(&mut about).code(text),
            ["Error", "Message"] => about = std::mem::take(&mut about).message(text),
            _ => {}
        }
        Ok(())
    });
    about.build()
}

const CUT: &str = "the answer breaks off";
/// Chosen: letters of an error that quotes an answer, at most.
const QUOTED_LIMIT: usize = 100;

/// Why there is no page.
#[derive(Debug)]
enum NoPage {
    /// The answer breaks off. Not every transport notices that.
    Cut,
    Refused(ErrorMetadata),
}

impl From<Wrong> for NoPage {
    fn from(wrong: Wrong) -> Self {
        let text = match wrong {
            Wrong::Cut => return Self::Cut,
            Wrong::Text(text) => text,
        };
        let text: String = text.chars().take(QUOTED_LIMIT).collect();
        let about = ErrorMetadata::builder()
            .code("WrongAnswer")
            .message(format!("the answer is no page of a listing: {text}"));
        Self::Refused(about.build())
    }
}

/// Reads a page.
fn page(body: &[u8]) -> Result<Page, NoPage> {
    let mut reading = Reading::default();
    let read = each(body, |path, text| reading.element(path, text));
    if !reading.has_listing {
        // A store may say that it failed when it has sent its status already.
        let said = refusal(body);
        if said.code().is_some() {
            return Err(NoPage::Refused(said));
        }
    }
    read?;
    if !reading.has_listing {
        return Err(Wrong::Text("it has no element ListBucketResult".to_owned()).into());
    }
    Ok(reading.whole()?)
}

/// A page as far as it was read.
#[derive(Default)]
struct Reading {
    page: Page,
    has_listing: bool,
    is_truncated: Option<bool>,
    is_encoded: bool,
    object: Object,
}

/// An object as far as it was read. S3 always sends these; a store that does not is taken at its
/// least.
#[derive(Default)]
struct Object {
    key: String,
    etag: Option<ETag>,
    size_bytes: u64,
    modified: Option<SystemTime>,
    is_archived: bool,
}

impl Reading {
    /// An element that ended, with those that it is in, and its text.
    fn element(&mut self, path: &[&str], text: &str) -> Result<(), String> {
        let (&root, path) = path.split_first().ok_or("it is empty")?;
        if root != "ListBucketResult" {
            return Ok(());
        }
        self.has_listing = true;
        match path {
            ["Contents", field] => return self.object.field(field, text),
            ["Contents"] => {
                let object = std::mem::take(&mut self.object);
                self.page.objects.push(object.whole());
            }
            ["CommonPrefixes", "Prefix"] => self.page.folders.push(text.to_owned()),
            ["EncodingType"] => self.is_encoded = text == "url",
            ["NextContinuationToken"] => {
                self.page.next = Some(text.to_owned()).filter(|token| !token.is_empty());
            }
            ["IsTruncated"] => self.is_truncated = text.trim().parse().ok(),
            _ => {}
        }
        Ok(())
    }

    fn whole(mut self) -> Result<Page, Wrong> {
        match (self.is_truncated, &self.page.next) {
            (Some(true), None) => {
                let text = "it says that more follows, but not how to ask for it";
                return Err(Wrong::Text(text.to_owned()));
            }
            (Some(false), Some(_)) => self.page.next = None,
            _ => {}
        }
        if self.is_encoded {
            let keys = self.page.objects.iter_mut().map(|(key, _)| key);
            for key in keys.chain(&mut self.page.folders) {
                if key.contains(['%', '+']) {
                    *key = decode(key);
                }
            }
        }
        Ok(self.page)
    }
}

impl Object {
    fn field(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "Key" => text.clone_into(&mut self.key),
            "ETag" => self.etag = Some(ETag::new(text)),
            "Size" => {
                let size = text.trim().parse::<i64>();
                let size = size.map_err(|_| format!("`{text}` is no size"))?;
                self.size_bytes = u64::try_from(size).unwrap_or(0);
            }
            "LastModified" => {
                let time = DateTime::from_str(text.trim(), DateTimeFormat::DateTimeWithOffset);
                let time = time.map_err(|_| format!("`{text}` is no time"))?;
                self.modified = SystemTime::try_from(time).ok();
            }
            "StorageClass" => self.is_archived = matches!(text, "GLACIER" | "DEEP_ARCHIVE"),
            _ => {}
        }
        Ok(())
    }

    fn whole(self) -> (String, ObjectInfo) {
        let info = ObjectInfo {
            size_bytes: self.size_bytes,
            etag: self.etag.unwrap_or_else(|| ETag::new("")),
            modified: self.modified.unwrap_or(SystemTime::UNIX_EPOCH),
            is_archived: self.is_archived,
        };
        (self.key, info)
    }
}

/// Why a body could not be read to its end.
#[derive(Debug)]
enum Wrong {
    Cut,
    Text(String),
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Wrong {
    fn in_xml(error: &quick_xml::Error, body: &str) -> Self {
        let is_at_end = match error {
            quick_xml::Error::Syntax(_) => true,
            quick_xml::Error::IllFormed(IllFormedError::UnclosedReference) => {
                body.rfind('&') > body.rfind('<')
            }
            _ => false,
        };
        match is_at_end {
            true => Self::Cut,
            false => Self::Text(error.to_string()),
        }
    }
}

/// A body as far as it is UTF-8, and what is wrong behind that.
fn letters(body: &[u8]) -> (&str, Option<Wrong>) {
    match std::str::from_utf8(body) {
        Ok(whole) => (whole, None),
        Err(error) => {
            let begin = std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default();
            // There is no length where the last letter is not whole.
            let wrong = error.error_len().map(|_| Wrong::Text(error.to_string()));
            (begin, Some(wrong.unwrap_or(Wrong::Cut)))
        }
    }
}

/// Chosen: elements that lie deeper than this say nothing of a page.
const DEPTH: usize = 3;

/// Calls `take` at the end of each element, with the names of those that it is in and its own, and
/// the text that stands directly before its end.
fn each(
    body: &[u8],
    mut take: impl FnMut(&[&str], &str) -> Result<(), String>,
) -> Result<(), Wrong> {
    let (body, wrong) = letters(body);
    let mut reader = Reader::from_str(body);
    reader.config_mut().expand_empty_elements = true;
    let (mut names, mut ends) = (String::new(), [0; DEPTH]);
    let (mut depth, mut text) = (0, String::new());
    loop {
        let event = reader.read_event();
        match event.map_err(|error| Wrong::in_xml(&error, body))? {
            Event::Start(start) => {
                if let Some(end) = ends.get_mut(depth) {
                    names.push_str(start.local_name().as_ref());
                    *end = names.len();
                }
                depth += 1;
                text.clear();
            }
            Event::Text(more) => text.push_str(&more),
            Event::CData(more) => text.push_str(&more),
            Event::GeneralRef(reference) => {
                let reference = format!("&{};", &*reference);
                let letter = unescape(&reference).map_err(|error| error.to_string())?;
                text.push_str(&letter);
            }
            Event::End(_) => {
                if depth <= DEPTH {
                    let mut path = [""; DEPTH];
                    let begins = [0, ends[0], ends[1]];
                    for at in 0..depth {
                        path[at] = &names[begins[at]..ends[at]];
                    }
                    take(&path[..depth], &text)?;
                    names.truncate(begins[depth - 1]);
                }
                text.clear();
                depth -= 1;
            }
            Event::Eof if wrong.is_some() => return wrong.map_or(Ok(()), Err),
            Event::Eof if depth > 0 || body.trim().is_empty() => return Err(Wrong::Cut),
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "list_answer_tests.rs"]
mod tests;

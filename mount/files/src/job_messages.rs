// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages between the mounts of a job, as bytes: docs/job-cache.md, clause 2. [`crate::job`]
//! sends and receives them. Bytes that do not have the specified form are refused.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use weft_store::{ETag, ListRequest, ObjectInfo, Page, Range};

use crate::attribute_object::Time;
use crate::names;

/// Specified (2.4).
pub const VERSION: u8 = 7;
/// Chosen (2.4): the longest token of a page, and the longest entity tag. A header of HTTP is no
/// longer with most servers, and tokens of stores are made of a key of 1,024 bytes at most.
const MARK_BYTES: usize = 8 << 10;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Bytes of a content.
    Bytes {
        /// The object's.
        key: String,
        /// The content's.
        etag: ETag,
        /// Of the content.
        size_bytes: u64,
        /// Inside it.
        range: Range,
        /// What who asks will ask for besides, of the same extent; `range` lies in it.
        whole: Range,
    },
    /// What is known of an object.
    Object(Duration, String),
    /// A page of a listing.
    Page(Duration, Wanted),
}

/// A page that is asked for; [`ListRequest`] with an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    prefix: String,
    by_folder: bool,
    limit: u16,
    token: Option<String>,
    start_after: Option<String>,
}

impl From<&ListRequest> for Wanted {
    fn from(request: &ListRequest) -> Self {
        Self {
            prefix: request.prefix.clone(),
            by_folder: request.by_folder,
            limit: request.limit,
            token: request.token.clone(),
            start_after: request.start_after.clone(),
        }
    }
}

impl From<Wanted> for ListRequest {
    fn from(wanted: Wanted) -> Self {
        Self {
            prefix: wanted.prefix,
            by_folder: wanted.by_folder,
            limit: wanted.limit,
            token: wanted.token,
            start_after: wanted.start_after,
        }
    }
}

impl Wanted {
    /// Whether a question may name it.
    pub fn fits(&self) -> bool {
        let is_short = |mark: &Option<String>, most| mark.as_ref().map_or(0, String::len) <= most;
        is_short(&self.token, MARK_BYTES) && is_short(&self.start_after, names::KEY_BYTES)
    }
}

impl Question {
    /// As bytes.
    pub fn write(&self) -> Bytes {
        let mut to = BytesMut::new();
        to.put_u8(VERSION);
        match self {
            Self::Bytes {
                key,
                etag,
                size_bytes,
                range,
                whole,
            } => {
                to.put_u8(1);
                put_text(&mut to, key);
                put_text(&mut to, etag.as_str());
                let (range, whole) = (*range, *whole);
                let places = [range.start, range.end, whole.start, whole.end];
                for number in [*size_bytes].into_iter().chain(places) {
                    to.put_u64_le(number);
                }
            }
            Self::Object(age, key) => {
                to.put_u8(2);
                to.put_u64_le(age.as_millis() as u64);
                put_text(&mut to, key);
            }
            Self::Page(age, wanted) => {
                to.put_u8(3);
                to.put_u64_le(age.as_millis() as u64);
                put_text(&mut to, &wanted.prefix);
                to.put_u8(u8::from(wanted.by_folder));
                to.put_u16_le(wanted.limit);
                put_option(&mut to, wanted.token.as_deref());
                put_option(&mut to, wanted.start_after.as_deref());
            }
        }
        to.freeze()
    }

    /// From bytes.
    pub fn read(mut from: Bytes) -> Option<Self> {
        let from = &mut from;
        if from.try_get_u8().ok()? != VERSION {
            return None;
        }
        match from.try_get_u8().ok()? {
            1 => {
                let (key, etag) = (key(from)?, ETag::new(&mark(from)?));
                let mut number = || from.try_get_u64_le().ok();
                let (size_bytes, start, end) = (number()?, number()?, number()?);
                let (from, to) = (number()?, number()?);
                let is_inside = from <= start && start < end && end <= to && to <= size_bytes;
                is_inside.then(|| Self::Bytes {
                    key,
                    etag,
                    size_bytes,
                    range: Range::new(start, end),
                    whole: Range::new(from, to),
                })
            }
            2 => Some(Self::Object(age(from)?, key(from)?)),
            3 => Some(Self::Page(
                age(from)?,
                Wanted {
                    prefix: key(from)?,
                    by_folder: from.try_get_u8().ok()? != 0,
                    limit: from.try_get_u16_le().ok()?.clamp(1, 1000),
                    token: option(from, mark)?,
                    start_after: option(from, key)?,
                },
            )),
            _ => None,
        }
    }
}

fn age(from: &mut Bytes) -> Option<Duration> {
    from.try_get_u64_le().ok().map(Duration::from_millis)
}

/// A text with its length before it.
pub fn put_text(to: &mut BytesMut, text: &str) {
    to.put_u32_le(text.len() as u32);
    to.put_slice(text.as_bytes());
}

/// From bytes.
pub fn text(from: &mut Bytes) -> Option<String> {
    let length = from.try_get_u32_le().ok()? as usize;
    let bytes = (length <= from.len()).then(|| from.split_to(length))?;
    String::from_utf8(bytes.to_vec()).ok()
}

/// A key that a store may have, or the beginning of one.
pub fn key(from: &mut Bytes) -> Option<String> {
    text(from).filter(|key| names::check_key(key).is_ok())
}

/// A token or an entity tag.
fn mark(from: &mut Bytes) -> Option<String> {
    text(from).filter(|mark| mark.len() <= MARK_BYTES)
}

fn put_option(to: &mut BytesMut, text: Option<&str>) {
    to.put_u8(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(to, text);
    }
}

fn option(from: &mut Bytes, read: fn(&mut Bytes) -> Option<String>) -> Option<Option<String>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        _ => read(from).map(Some),
    }
}

/// What is known of an object, as bytes.
pub fn put_object(to: &mut BytesMut, info: &ObjectInfo) {
    to.put_u64_le(info.size_bytes);
    put_text(to, info.etag.as_str());
    to.put_slice(&Time::of(info.modified).bytes());
    to.put_u8(u8::from(info.is_archived));
}

/// From bytes.
pub fn object(from: &mut Bytes) -> Option<ObjectInfo> {
    let size_bytes = from.try_get_u64_le().ok()?;
    let etag = ETag::new(&mark(from)?);
    let modified = from.try_get_u64_le().ok()?.to_le_bytes();
    Some(ObjectInfo {
        size_bytes,
        etag,
        modified: Time::from_bytes(modified).system(),
        is_archived: from.try_get_u8().ok()? != 0,
    })
}

/// A page, as bytes.
pub fn put_page(to: &mut BytesMut, page: &Page) {
    to.put_u32_le(page.objects.len() as u32);
    for (key, info) in &page.objects {
        put_text(to, key);
        put_object(to, info);
    }
    to.put_u32_le(page.folders.len() as u32);
    for folder in &page.folders {
        put_text(to, folder);
    }
    put_option(to, page.next.as_deref());
}

/// From bytes.
pub fn page(from: &mut Bytes) -> Option<Page> {
    let mut page = Page::default();
    for _ in 0..from.try_get_u32_le().ok()? {
        page.objects.push((text(from)?, object(from)?));
    }
    for _ in 0..from.try_get_u32_le().ok()? {
        page.folders.push(text(from)?);
    }
    page.next = option(from, mark)?;
    Some(page)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;

    use super::*;

    fn questions() -> Vec<Question> {
        let wanted = Wanted {
            prefix: "a/ü".to_owned(),
            by_folder: true,
            limit: 1000,
            token: None,
            start_after: Some("b".to_owned()),
        };
        vec![
            Question::Bytes {
                key: "k".to_owned(),
                etag: ETag::new("\"1\""),
                size_bytes: 10,
                range: Range::new(2, 8),
                whole: Range::new(1, 10),
            },
            Question::Object(Duration::from_millis(1500), "k".to_owned()),
            Question::Page(Duration::ZERO, wanted),
        ]
    }

    #[test]
    fn questions_and_answers_are_read_as_they_were_written() {
        for question in questions() {
            assert_eq!(Question::read(question.write()), Some(question));
        }
        let info = ObjectInfo {
            size_bytes: 7,
            etag: ETag::new("\"2\""),
            modified: UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789),
            is_archived: true,
        };
        let written = Page {
            objects: vec![("x".to_owned(), info.clone()), ("y".to_owned(), info)],
            folders: vec!["f/".to_owned()],
            next: Some("n".to_owned()),
        };
        let mut bytes = BytesMut::new();
        put_page(&mut bytes, &written);
        let read = page(&mut bytes.freeze()).unwrap();
        assert_eq!(read.objects, written.objects);
        assert_eq!((read.folders, read.next), (written.folders, written.next));
    }

    fn page_after(token: Option<usize>, start_after: Option<usize>) -> Wanted {
        let marks = [token, start_after].map(|length| length.map(|length| "t".repeat(length)));
        let [token, start_after] = marks;
        Wanted {
            prefix: String::new(),
            by_folder: false,
            limit: 1000,
            token,
            start_after,
        }
    }

    #[test]
    fn marks_that_are_longer_than_any_store_gives_are_refused() {
        let marks = [
            (Some(MARK_BYTES), None, true),
            (Some(MARK_BYTES + 1), None, false),
            (None, Some(names::KEY_BYTES), true),
            (None, Some(names::KEY_BYTES + 1), false),
        ];
        for (token, start_after, may_be) in marks {
            let wanted = page_after(token, start_after);
            assert_eq!(wanted.fits(), may_be, "{token:?} {start_after:?}");
            let question = Question::Page(Duration::ZERO, wanted);
            let read = Question::read(question.write());
            assert_eq!(
                read,
                may_be.then_some(question),
                "{token:?} {start_after:?}"
            );
        }
        for (length, may_be) in [(MARK_BYTES, true), (MARK_BYTES + 1, false)] {
            let long = "t".repeat(length);
            let mut bytes = BytesMut::new();
            let found = Page {
                next: Some(long.clone()),
                ..Page::default()
            };
            put_page(&mut bytes, &found);
            assert_eq!(
                page(&mut bytes.freeze()).is_some(),
                may_be,
                "page, {length}"
            );
            let info = ObjectInfo {
                size_bytes: 1,
                etag: ETag::new(&long),
                modified: UNIX_EPOCH,
                is_archived: false,
            };
            let mut bytes = BytesMut::new();
            put_object(&mut bytes, &info);
            assert_eq!(
                object(&mut bytes.freeze()).is_some(),
                may_be,
                "object, {length}"
            );
            let bytes = Question::Bytes {
                key: "k".to_owned(),
                etag: info.etag,
                size_bytes: 1,
                range: Range::new(0, 1),
                whole: Range::new(0, 1),
            };
            assert_eq!(
                Question::read(bytes.write()).is_some(),
                may_be,
                "bytes, {length}"
            );
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_or_refused(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            which in 0..3usize,
            cut in 0..100usize,
        ) {
            let question = questions()[which].write();
            let mut bytes = question[..question.len().saturating_sub(cut)].to_vec();
            bytes.extend(&noise);
            let _ = Question::read(bytes.into());
            let _ = Question::read(noise.clone().into());
            let _ = page(&mut noise.clone().into());
            let _ = object(&mut noise.into());
        }
    }
}

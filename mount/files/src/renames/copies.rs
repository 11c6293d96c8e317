// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which copies this mount requested for a rename, and the store's answers. A copy can have another
//! entity tag than its source. Only the answer says which object at the new name is the copy, and
//! which was written by somebody else. [`crate::renames::moving`] asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_store::{ETag, Failure, StoreError};

use crate::renames::record::Moved;

/// What is known of one copy.
enum Sent {
    /// There is no answer: the store has made it, will make it, or never.
    Unanswered,
    /// The store made this one.
    Made(ETag),
    /// The store made none, since the new name was taken.
    Refused,
    /// There is no answer; this one at the new name has other bytes, and is not the copy.
    NotThis(ETag),
}

/// The copies of one rename. Clones share them.
#[derive(Clone, Default)]
pub struct Copies {
    sent: Arc<Mutex<HashMap<String, Sent>>>,
    /// Another mount may have made copies, of which nothing is known here.
    is_taken_over: bool,
}

/// An object whose copy has another entity tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherTag {
    /// Without the folder's prefix.
    pub key: String,
    /// Of the source.
    pub before: String,
    /// Of the copy.
    pub after: String,
}

/// Whether an object at the new name is the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsCopy {
    /// It is.
    Yes,
    /// Somebody else wrote it.
    No,
    /// Nobody heard the answer, or another mount did: the contents must be compared.
    Unknown,
}

impl OtherTag {
    /// The key's folder, empty or with `/` at its end, and its name in there.
    pub fn place(&self) -> (&str, &str) {
        self.key
            .split_at(self.key.rfind('/').map_or(0, |at| at + 1))
    }
}

impl Copies {
    /// Of a rename that another mount began.
    pub fn of_other() -> Self {
        Self {
            is_taken_over: true,
            ..Self::default()
        }
    }

    fn sent(&self) -> MutexGuard<'_, HashMap<String, Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of an object is about to be sent. Whether all earlier ones of it were answered.
    pub fn send(&self, object: &Moved) -> bool {
        let earlier = self.sent().insert(object.key.clone(), Sent::Unanswered);
        !matches!(earlier, Some(Sent::Unanswered | Sent::NotThis(_)))
    }

    /// The answer to it; `is_alone` is what [`Copies::send`] said. Else the store may have refused
    /// this copy because it has made an earlier one. Of a copy with the tag of its `source` nothing
    /// is kept: the tag says what it is.
    pub fn answered(
        &self,
        key: &str,
        source: &ETag,
        is_alone: bool,
        answer: &Result<ETag, StoreError>,
    ) {
        let known = match answer {
            // A store that does not say which one it made.
            Ok(etag) if etag.as_str().is_empty() => return,
            Ok(etag) if etag == source => {
                self.sent().remove(key);
                return;
            }
            Ok(etag) => Sent::Made(etag.clone()),
            // One that was sent twice may have been refused because the first one was done, or is
            // being done.
            Err(error) if is_alone && !error.is_repeated && error.failure == Failure::Changed => {
                if self.is_taken_over {
                    // The copy that the other mount sent may have come in between.
                    self.sent().remove(key);
                    return;
                }
                Sent::Refused
            }
            Err(_) => return,
        };
        self.sent().insert(key.to_owned(), known);
    }

    /// The contents were compared: whether `found`, which is at the new name, counts as the copy.
    pub fn compared(&self, key: &str, found: &ETag, is_copy: bool) {
        let known = if is_copy {
            Sent::Made(found.clone())
        } else {
            Sent::NotThis(found.clone())
        };
        self.sent().insert(key.to_owned(), known);
    }

    /// Which of these objects have copies with other tags, as far as this mount knows.
    pub fn other_tags(&self, objects: &[Moved]) -> Vec<OtherTag> {
        let sent = self.sent();
        let with_tag = |object: &Moved| match sent.get(&object.key) {
            Some(Sent::Made(etag)) if *etag.as_str() != *object.etag => Some(OtherTag {
                key: object.key.clone(),
                before: object.etag.clone(),
                after: etag.as_str().to_owned(),
            }),
            _ => None,
        };
        objects.iter().filter_map(with_tag).collect()
    }

    /// Whether `found`, which is at the new name, is the copy.
    pub fn is_copy(&self, object: &Moved, found: &ETag) -> IsCopy {
        match self.sent().get(&object.key) {
            Some(Sent::Made(etag)) if etag == found => IsCopy::Yes,
            Some(Sent::Made(_) | Sent::Refused) => IsCopy::No,
            Some(Sent::NotThis(etag)) if etag == found => IsCopy::No,
            Some(Sent::Unanswered | Sent::NotThis(_)) => IsCopy::Unknown,
            None if self.is_taken_over => IsCopy::Unknown,
            None => IsCopy::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(key: &str) -> Moved {
        Moved {
            key: key.to_owned(),
            etag: "\"1\"".to_owned(),
            size_bytes: 3,
            over: None,
        }
    }

    #[test]
    fn copies_with_the_tag_of_their_source_take_no_memory_and_others_are_somebody_elses() {
        let (copies, source) = (Copies::default(), ETag::new("\"1\""));
        for number in 0..1000 {
            let object = moved(&number.to_string());
            let is_alone = copies.send(&object);
            copies.answered(&object.key, &source, is_alone, &Ok(source.clone()));
        }
        assert_eq!(copies.sent().len(), 0);
        let later = ETag::new("\"2\"");
        assert_eq!(copies.is_copy(&moved("7"), &later), IsCopy::No);
        assert!(copies.send(&moved("7")), "the earlier one was answered");
        copies.answered("7", &source, true, &Ok(later.clone()));
        assert_eq!(copies.is_copy(&moved("7"), &later), IsCopy::Yes);
    }
    #[test]
    fn what_another_mount_sent_or_nobody_answered_is_unknown_until_it_is_compared() {
        let (x, found, later) = (moved("x"), ETag::new("\"2\""), ETag::new("\"3\""));
        let unheard = Copies::default();
        unheard.send(&x);
        for copies in [Copies::of_other(), unheard] {
            assert_eq!(copies.is_copy(&x, &found), IsCopy::Unknown);
            copies.compared("x", &found, false);
            assert_eq!(copies.is_copy(&x, &found), IsCopy::No);
            assert_eq!(copies.is_copy(&x, &later), IsCopy::Unknown);
            assert!(!copies.send(&x), "an earlier one may come yet");
            copies.compared("x", &later, true);
            assert_eq!(copies.is_copy(&x, &later), IsCopy::Yes);
            assert_eq!(copies.is_copy(&x, &found), IsCopy::No);
        }
    }
}

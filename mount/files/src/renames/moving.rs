// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carries out a record, from the beginning or from where another mount stopped. Each round looks
//! at both folders, copies objects that are not copied yet, and removes those that are. For
//! [`crate::renames`].

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use weft_store::{Condition, ETag, ListRequest, ObjectInfo, StoreError};

use crate::fault::{Fault, Reason, mount_ends};
use crate::names::PAGE_KEYS;
use crate::object_copies::{Source, copy_by_content, delete_same, has_same_content, is_otherwise};
use crate::renames::copies::{Copies, IsCopy};
use crate::renames::record::{Moved, Record};
use crate::staging::ways::Ways;

/// Chosen: objects that are copied, or removed, side by side.
const SIDE_BY_SIDE: usize = 32;
/// Chosen: how often somebody else may change what is moved before it is left for later.
const ROUNDS: u32 = 8;
/// Why an object stays whose new name holds another one.
const TAKEN: &str = "somebody else wrote the new name";
/// Chosen: the pause after the first round; each is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// All objects of a folder, by their keys without its prefix.
pub type Found = BTreeMap<String, ObjectInfo>;

/// A folder that is being moved.
pub struct Move<'a> {
    /// The way to the store.
    pub ways: &'a Ways,
    /// The mount's.
    pub prefix: &'a str,
    /// What is to be done.
    pub record: &'a Record,
    /// Where that is written.
    pub key: &'a str,
    /// When it was written, by the store's clock; before it is asked for, nothing.
    pub written: Option<SystemTime>,
    /// What is known of copies that were sent before.
    pub copies: Copies,
    /// Takes what stays where it is, a line each.
    pub tell: fn(&str),
}

/// How a rename ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All that the record names has its new name.
    Whole,
    /// Some of it stays where it is: somebody else wrote it, or its new name, meanwhile.
    Partly,
    /// Neither folder holds anything that the record names: somebody else removed it.
    Nothing,
    /// Another mount goes on with it, or has done all.
    Elsewhere,
}

/// What one round found and did.
struct Round {
    /// Nothing is left to be done.
    is_done: bool,
    /// Something has its new name.
    has_moved: bool,
    /// What stays where it is, a line each.
    stay: Vec<String>,
}

/// What is to be done with one object.
enum Verdict<'a> {
    /// It was moved, or it is gone.
    Done,
    /// It was written since, or the new name was taken before.
    Stays(&'static str),
    /// It is copied, and the old one may go.
    IsCopied,
    /// The old one and the new one: it is copied if they have the same content.
    Compare(&'a ObjectInfo, &'a ObjectInfo),
    /// It is to be copied.
    Copy(&'a ObjectInfo, Condition),
}

/// How one request ended.
enum Ended {
    /// As it should.
    Well,
    /// Somebody changed something: both folders are looked at again.
    Otherwise,
}

impl Move<'_> {
    /// Does all that is left; `seen` is what both folders hold, if that was asked for just now.
    ///
    /// # Errors
    /// What the store said; `Broken` where somebody else changes the folders again and again.
    pub async fn run(&mut self, mut seen: Option<(Found, Found)>) -> Result<Outcome, Fault> {
        for round in 0..ROUNDS {
            if round > 0 {
                tokio::time::sleep(FIRST_PAUSE * (1 << (round - 1))).await;
            }
            let (from, to) = match seen.take() {
                Some(seen) => seen,
                None => {
                    let Some(info) = self.ways.store.find(self.key).await? else {
                        return Ok(Outcome::Elsewhere);
                    };
                    self.written = Some(info.modified);
                    (
                        list(self.ways, &self.from("")).await?,
                        list(self.ways, &self.to("")).await?,
                    )
                }
            };
            let round = self.round(&from, &to).await?;
            if round.is_done {
                round.stay.iter().for_each(|line| (self.tell)(line));
                return Ok(match (round.stay.is_empty(), round.has_moved) {
                    (false, _) => Outcome::Partly,
                    (true, true) => Outcome::Whole,
                    (true, false) => Outcome::Nothing,
                });
            }
        }
        let text = format!("`{}` changes faster than it can be moved", self.record.from);
        Err(Fault::because(Reason::Broken, text))
    }

    fn from(&self, key: &str) -> String {
        format!("{}{}{key}", self.prefix, self.record.from)
    }

    fn to(&self, key: &str) -> String {
        format!("{}{}{key}", self.prefix, self.record.to)
    }

    async fn round(&self, from: &Found, to: &Found) -> Result<Round, Fault> {
        self.make_room(to).await?;
        let (mut copied, mut stay) = (Vec::new(), Vec::new());
        let mut tasks = JoinSet::new();
        let mut is_whole = true;
        for object in &self.record.objects {
            let mut verdict = self.judge(object, from.get(&object.key), to.get(&object.key));
            if let Verdict::Compare(old, new) = verdict {
                verdict = self.compare(object, old, new).await?;
            }
            match verdict {
                Verdict::Done => {}
                Verdict::Stays(why) => {
                    let (from, to) = (self.from(&object.key), self.to(&object.key));
                    stay.push(format!("`{from}` was not moved to `{to}`: {why}"));
                }
                Verdict::IsCopied => copied.push(object),
                // One of the two changed meanwhile: both folders are looked at again.
                Verdict::Compare(..) => is_whole = false,
                Verdict::Copy(info, when) => {
                    self.start_copy(&mut tasks, object, info.clone(), when);
                    copied.push(object);
                }
            }
            is_whole &= take(&mut tasks, SIDE_BY_SIDE).await?;
        }
        let mut objects = self.record.objects.iter();
        let has_moved = !copied.is_empty() || objects.any(|object| to.contains_key(&object.key));
        if !(take(&mut tasks, 1).await? && is_whole) {
            return Ok(Round {
                is_done: false,
                has_moved,
                stay,
            });
        }
        for object in copied {
            let (ways, key) = (self.ways.clone(), self.from(&object.key));
            let etag = ETag::new(&object.etag);
            let remove = async move {
                let is_gone = delete_same(&ways, &key, &etag).await?;
                Ok(if is_gone {
                    Ended::Well
                } else {
                    Ended::Otherwise
                })
            };
            tasks.spawn_on(remove, &self.ways.runtime);
            is_whole &= take(&mut tasks, SIDE_BY_SIDE).await?;
        }
        Ok(Round {
            is_done: take(&mut tasks, 1).await? && is_whole,
            has_moved,
            stay,
        })
    }

    /// Removes what an empty folder has that is replaced.
    async fn make_room(&self, to: &Found) -> Result<(), Fault> {
        for removed in &self.record.removed {
            if to
                .get(&removed.key)
                .is_some_and(|info| *info.etag.as_str() == *removed.etag)
            {
                // What is another one by now stays.
                let etag = ETag::new(&removed.etag);
                delete_same(self.ways, &self.to(&removed.key), &etag).await?;
            }
        }
        Ok(())
    }

    fn judge<'b>(
        &self,
        object: &Moved,
        from: Option<&'b ObjectInfo>,
        to: Option<&'b ObjectInfo>,
    ) -> Verdict<'b> {
        let Some(from) = from else {
            return Verdict::Done;
        };
        if *from.etag.as_str() != *object.etag {
            return Verdict::Stays("somebody wrote it meanwhile");
        }
        match to {
            None => Verdict::Copy(from, Condition::IfAbsent),
            Some(to) if *to.etag.as_str() == *object.etag => Verdict::IsCopied,
            Some(to) if object.over.as_deref() == Some(to.etag.as_str()) => {
                Verdict::Copy(from, Condition::IfMatch(to.etag.clone()))
            }
            // A copy can have an entity tag of its own.
            Some(to) => match self.copies.is_copy(object, &to.etag) {
                IsCopy::Yes => Verdict::IsCopied,
                IsCopy::Unanswered => Verdict::Compare(from, to),
                IsCopy::Perhaps if self.may_be_copy(object, to) => Verdict::IsCopied,
                IsCopy::Perhaps | IsCopy::No => Verdict::Stays(TAKEN),
            },
        }
    }

    /// The answer to a copy was lost. An object with the same bytes counts as the copy: whoever
    /// wrote it, no bytes are lost when the old one goes.
    async fn compare<'b>(
        &self,
        object: &Moved,
        old: &'b ObjectInfo,
        new: &'b ObjectInfo,
    ) -> Result<Verdict<'b>, StoreError> {
        let (from, to) = (self.from(&object.key), self.to(&object.key));
        let source = |key, info| Source { key, info };
        match has_same_content(self.ways, source(&from, old), source(&to, new)).await {
            Ok(is_copy) => {
                self.copies.compared(&object.key, &new.etag, is_copy);
                Ok(if is_copy {
                    Verdict::IsCopied
                } else {
                    Verdict::Stays(TAKEN)
                })
            }
            Err(error) if is_otherwise(&error) => Ok(Verdict::Compare(old, new)),
            Err(error) => Err(error),
        }
    }

    fn may_be_copy(&self, object: &Moved, to: &ObjectInfo) -> bool {
        let is_since = |written| seconds(to.modified) >= seconds(written);
        to.size_bytes == object.size_bytes && self.written.is_some_and(is_since)
    }

    fn start_copy(&self, tasks: &mut Tasks, object: &Moved, info: ObjectInfo, when: Condition) {
        let (ways, from, to) = (
            self.ways.clone(),
            self.from(&object.key),
            self.to(&object.key),
        );
        let (copies, object_key) = (self.copies.clone(), object.key.clone());
        let is_alone = copies.send(object);
        let copy = async move {
            let source = Source {
                key: &from,
                info: &info,
            };
            let answer = copy_by_content(&ways, source, &to, &when).await;
            copies.answered(&object_key, &info.etag, is_alone, &answer);
            match answer {
                Ok(_) => Ok(Ended::Well),
                Err(error) if is_otherwise(&error) => Ok(Ended::Otherwise),
                Err(error) => Err(error),
            }
        };
        tasks.spawn_on(copy, &self.ways.runtime);
    }
}

/// Some stores say in listings alone when within a second something was written.
fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

type Tasks = JoinSet<Result<Ended, StoreError>>;

/// Waits until fewer than `limit` requests are under way; whether all ended as they should.
async fn take(tasks: &mut Tasks, limit: usize) -> Result<bool, StoreError> {
    let mut is_well = true;
    while tasks.len() >= limit {
        match tasks.join_next().await {
            Some(Ok(ended)) => is_well &= matches!(ended?, Ended::Well),
            Some(Err(_)) => return Err(mount_ends("CopyObject", "")),
            None => break,
        }
    }
    Ok(is_well)
}

/// All that a folder holds, by keys without its prefix.
///
/// # Errors
/// What the store said.
pub async fn list(ways: &Ways, prefix: &str) -> Result<Found, StoreError> {
    let mut request = ListRequest {
        prefix: prefix.to_owned(),
        by_folder: false,
        limit: PAGE_KEYS,
        ..ListRequest::default()
    };
    let mut found = Found::new();
    loop {
        let page = ways.store.list(&request).await?;
        let named = page.objects.into_iter();
        found.extend(named.filter_map(|(key, info)| {
            let key = key.strip_prefix(prefix)?.to_owned();
            Some((key, info))
        }));
        match page.next {
            Some(token) => request.token = Some(token),
            None => return Ok(found),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carries out a record, from the beginning or from where another mount stopped. Each round looks
//! at both folders, copies objects that are not copied yet, and removes those that are. For
//! [`crate::renames`].

use std::collections::BTreeMap;
use std::time::Duration;

use weft_store::{Condition, ETag, ListRequest, ObjectInfo, StoreError};

use crate::fault::{Fault, Reason};
use crate::names::PAGE_KEYS;
use crate::object_copies::{Source, copy_by_content, delete_same, has_same_content, is_otherwise};
use crate::renames::copies::{Copies, IsCopy};
use crate::renames::record::{Moved, Record};
use crate::renames::side_by_side::SideBySide;
use crate::staging::ways::Ways;

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
    /// It is copied if these two have the same content: the old one, and that of the new name.
    Compare(&'a ObjectInfo, &'a ObjectInfo),
    /// It is to be copied.
    Copy(&'a ObjectInfo, Condition),
}

/// How the copy of an object ended, or its comparison; objects by their places in the record.
enum Ended {
    /// It is copied, and the old one may go.
    IsCopied(usize),
    /// The new name has other bytes.
    Stays(usize),
    /// Somebody changed something meanwhile: both folders are looked at again.
    Otherwise,
}

impl Move<'_> {
    /// Does all that is left; `seen` is what both folders hold, if that was asked for just now.
    ///
    /// # Errors
    /// What the store said; `Broken` where somebody else changes the folders again and again.
    pub async fn run(&self, mut seen: Option<(Found, Found)>) -> Result<Outcome, Fault> {
        for round in 0..ROUNDS {
            if round > 0 {
                tokio::time::sleep(FIRST_PAUSE * (1 << (round - 1))).await;
            }
            let (from, to) = match seen.take() {
                Some(seen) => seen,
                None => {
                    if self.ways.store.find(self.key).await?.is_none() {
                        return Ok(Outcome::Elsewhere);
                    }
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

    /// The whole new name of an object.
    pub fn to(&self, key: &str) -> String {
        format!("{}{}{key}", self.prefix, self.record.to)
    }

    async fn round(&self, from: &Found, to: &Found) -> Result<Round, Fault> {
        self.make_room(to).await?;
        let objects = &self.record.objects;
        let (mut copied, mut stay) = (Vec::new(), Vec::new());
        let mut tasks = SideBySide::new(&self.ways.runtime);
        for (index, object) in objects.iter().enumerate() {
            match self.judge(object, from.get(&object.key), to.get(&object.key)) {
                Verdict::Done => {}
                Verdict::Stays(why) => stay.push(self.stays(object, why)),
                Verdict::IsCopied => copied.push(object),
                Verdict::Compare(old, new) => tasks.begin(self.compare(index, old, new)).await?,
                Verdict::Copy(info, when) => tasks.begin(self.copy(index, info, when)).await?,
            }
        }
        let mut is_whole = true;
        for ended in tasks.end().await? {
            match ended {
                Ended::IsCopied(index) => copied.push(&objects[index]),
                Ended::Stays(index) => stay.push(self.stays(&objects[index], TAKEN)),
                Ended::Otherwise => is_whole = false,
            }
        }
        stay.sort();
        let is_there = |object: &Moved| to.contains_key(&object.key);
        let has_moved = !copied.is_empty() || objects.iter().any(is_there);
        Ok(Round {
            is_done: is_whole && self.remove(&copied).await?,
            has_moved,
            stay,
        })
    }

    /// Removes old ones that are copied; whether none is left.
    async fn remove(&self, copied: &[&Moved]) -> Result<bool, StoreError> {
        let mut tasks = SideBySide::new(&self.ways.runtime);
        for object in copied {
            let (ways, key) = (self.ways.clone(), self.from(&object.key));
            let etag = ETag::new(&object.etag);
            let remove = async move { delete_same(&ways, &key, &etag).await };
            tasks.begin(remove).await?;
        }
        Ok(tasks.end().await?.into_iter().all(|is_gone| is_gone))
    }

    fn stays(&self, object: &Moved, why: &str) -> String {
        let (from, to) = (self.from(&object.key), self.to(&object.key));
        format!("`{from}` was not moved to `{to}`: {why}")
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
                IsCopy::Unknown => Verdict::Compare(from, to),
                IsCopy::No => Verdict::Stays(TAKEN),
            },
        }
    }

    /// Nobody here heard the answer to a copy. An object with the same bytes counts as the copy:
    /// whoever wrote it, no bytes are lost when the old one goes.
    fn compare(
        &self,
        index: usize,
        old: &ObjectInfo,
        new: &ObjectInfo,
    ) -> impl Future<Output = Result<Ended, StoreError>> + use<> {
        let object = &self.record.objects[index];
        let (ways, copies, key) = (self.ways.clone(), self.copies.clone(), object.key.clone());
        let (from, to) = (self.from(&key), self.to(&key));
        let (old, new) = (old.clone(), new.clone());
        async move {
            let (one, other) = (Source::new(&from, &old), Source::new(&to, &new));
            match has_same_content(&ways, one, other).await {
                Ok(is_copy) => {
                    copies.compared(&key, &new.etag, is_copy);
                    Ok(if is_copy {
                        Ended::IsCopied(index)
                    } else {
                        Ended::Stays(index)
                    })
                }
                Err(error) if is_otherwise(&error) => Ok(Ended::Otherwise),
                Err(error) => Err(error),
            }
        }
    }

    fn copy(
        &self,
        index: usize,
        info: &ObjectInfo,
        when: Condition,
    ) -> impl Future<Output = Result<Ended, StoreError>> + use<> {
        let object = &self.record.objects[index];
        let (ways, copies, key) = (self.ways.clone(), self.copies.clone(), object.key.clone());
        let (from, to, info) = (self.from(&key), self.to(&key), info.clone());
        let is_alone = copies.send(object);
        async move {
            let answer = copy_by_content(&ways, Source::new(&from, &info), &to, &when).await;
            copies.answered(&key, &info.etag, is_alone, &answer);
            match answer {
                Ok(_) => Ok(Ended::IsCopied(index)),
                Err(error) if is_otherwise(&error) => Ok(Ended::Otherwise),
                Err(error) => Err(error),
            }
        }
    }
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

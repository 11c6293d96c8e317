// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Renames of folders. A record in the bucket says what is to be done, so that any mount that finds
//! the record can finish it. docs/mount-names.md specifies the record and the steps.
//! [`crate::changes`] begins a rename, [`crate::core`] holds this module, and
//! [`crate::staging::recovery`] finishes what a dead mount of this host left.
//!
//! - [`record`]: what is to be done. [`hold`]: which mount does it. [`moving`]: does it.
//!   [`copies`]: which copies this mount made. [`kept_times`]: times that were set for contents
//!   whose copies have other entity tags. [`overlaps`]: which renames go first.
//!   [`side_by_side`]: requests that are under way together.
//! - [`watch`]: finds records that other mounts left.

pub mod copies;
pub mod hold;
mod kept_times;
pub mod moving;
pub mod overlaps;
pub mod record;
mod side_by_side;
pub mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use weft_store::{Condition, ObjectInfo, Store, StoreError};

use crate::fault::{Fault, Reason, mount_ends};
use crate::names::{self, RENAMES};
use crate::nodes::Nodes;
use crate::renames::copies::{Copies, OtherTag};
use crate::renames::hold::{Hold, Holder, Times};
use crate::renames::moving::{Found, Move, Outcome};
use crate::renames::overlaps::{Other, overlap};
use crate::renames::record::{Moved, Record, Removed};
use crate::staging::stage::{Stage, new_id, refused};
use crate::staging::ways::Ways;

/// Chosen: the longest pause before what broke off is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The renames of one mount.
pub struct Renames {
    ways: Ways,
    /// In a job, the way past what its mounts remember of names.
    past_job: OnceLock<Ways>,
    prefix: String,
    stage: Arc<Stage>,
    /// What the mount shows.
    nodes: Arc<Mutex<Nodes>>,
    tell: fn(&str),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Begun here, and not finished, since the store was away.
    left: Vec<Arc<Left>>,
    /// Somebody tries those again.
    is_trying: bool,
    /// The names of records that this mount works on.
    mine: Vec<String>,
    times: Times,
    /// This mount looks for others' records.
    may_watch: bool,
    /// Somebody looks at others' records.
    is_watching: bool,
}

/// A rename that broke off.
struct Left {
    id: String,
    record: Record,
    note: PathBuf,
    /// Locked while somebody goes on with it.
    work: tokio::sync::Mutex<Work>,
}

/// How a rename ended.
#[derive(Debug)]
pub struct Renamed {
    /// Whole or not.
    pub outcome: Outcome,
    /// What has another entity tag now.
    pub other_tags: Vec<OtherTag>,
}

/// How far a rename is that was begun here.
struct Work {
    hold: Hold,
    /// No other rename is in the way.
    may_go: bool,
    /// Copies that were sent.
    copies: Copies,
}

impl Renamed {
    fn without_changes(outcome: Outcome) -> Self {
        let other_tags = Vec::new();
        Self {
            outcome,
            other_tags,
        }
    }
}

impl Left {
    /// Whether one of these folders is in a folder of this rename, or has one of them in it. All
    /// are prefixes below the mount's, and end in `/`.
    fn concerns(&self, folders: &[String]) -> bool {
        let ours = [&self.record.from, &self.record.to];
        folders
            .iter()
            .any(|folder| ours.iter().any(|one| overlap(one, folder)))
    }
}

impl Renames {
    /// Of the mount of `prefix`, which shows `nodes`.
    pub fn new(
        ways: Ways,
        prefix: String,
        stage: Arc<Stage>,
        nodes: Arc<Mutex<Nodes>>,
        tell: fn(&str),
    ) -> Self {
        Self {
            ways,
            past_job: OnceLock::new(),
            prefix,
            stage,
            nodes,
            tell,
            state: Mutex::default(),
        }
    }

    /// In a job, names are asked for past what its mounts remember: at this store.
    pub fn ask_past_job(&self, store: Arc<dyn Store>) {
        let _ = self.past_job.set(self.ways.over(store));
    }

    /// The way to what the store has now, also in a job.
    pub fn fresh(&self) -> &Ways {
        self.past_job.get().unwrap_or(&self.ways)
    }

    /// For how long a rename waits for another one that is about the same folders.
    pub fn wait(&self) -> Duration {
        self.state().times.wait
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves all objects of the folder `from` to the folder `to`, which holds nothing but what an
    /// empty folder has. Both are prefixes below the mount's, and end in `/`.
    ///
    /// # Errors
    /// `NotEmpty`, `NameTooLong`, `NoSpace`, `Busy` where another rename is in the way, and then
    /// nothing was done; what the store said, and then this mount tries again.
    pub async fn run(self: &Arc<Self>, from: &str, to: &str) -> Result<Renamed, Fault> {
        let id = new_id();
        let (objects, there) = (self.start_list(from), self.start_list(to));
        let others = overlaps::find(self.fresh(), &self.prefix, &id, [from, to]).await?;
        if let Some(other) = others.first() {
            return Err(overlaps::busy(other));
        }
        let (objects, there) = (listed(objects).await?, listed(there).await?);
        if objects.is_empty() {
            return Ok(Renamed::without_changes(Outcome::Nothing));
        }
        let record = self.plan((from, &objects), (to, &there))?;
        let body = record.write()?;
        let key = self.key(&id);
        let note = self.stage.note_rename(&key);
        let note = note.map_err(|error| refused(&error, self.stage.folder()))?;
        self.state().mine.push(id.clone());
        let work = Work {
            hold: Hold::of_writer(&key, id.clone()),
            may_go: false,
            copies: Copies::default(),
        };
        let left = Left {
            id,
            record,
            note,
            work: work.into(),
        };
        let written = self.ways.store.put(&key, body, &Condition::IfAbsent).await;
        let done = match written {
            Ok(_) => {
                let mut work = left.work.lock().await;
                self.go_on(&left, &mut work, Some((objects, there))).await
            }
            // It may be there all the same, so it is looked for.
            Err(error) => Err(error.into()),
        };
        match &done {
            Ok(renamed) if renamed.outcome == Outcome::Nothing => self.moved(&left.record),
            Err(fault) if fault.reason != Reason::Busy => {
                self.moved(&left.record);
                (self.tell)(&format!(
                    "the rename of `{from}` to `{to}` broke off, and is tried again: {fault}"
                ));
                self.state().left.push(Arc::new(left));
                self.try_again();
            }
            _ => {}
        }
        done
    }

    fn start_list(&self, folder: &str) -> JoinHandle<Result<Found, StoreError>> {
        let (ways, prefix) = (self.fresh().clone(), format!("{}{folder}", self.prefix));
        let list = async move { moving::list(&ways, &prefix).await };
        self.ways.runtime.spawn(list)
    }

    /// The record is written or done: the folder has its new name, whatever is known here.
    fn moved(&self, record: &Record) {
        let nodes = self.nodes.lock();
        let mut nodes = nodes.unwrap_or_else(PoisonError::into_inner);
        nodes.moved_elsewhere(&record.from, &record.to);
    }

    fn key(&self, id: &str) -> String {
        format!("{}{RENAMES}/{id}", self.prefix)
    }

    fn plan(&self, from: (&str, &Found), to: (&str, &Found)) -> Result<Record, Fault> {
        let is_own = |key: &String| key.is_empty() || *key == names::ATTRIBUTES;
        if !to.1.keys().all(is_own) {
            return Err(Reason::NotEmpty.into());
        }
        let etag = |info: &ObjectInfo| info.etag.as_str().to_owned();
        let mut objects = Vec::with_capacity(from.1.len());
        for (key, info) in from.1 {
            names::check_key(&format!("{}{}{key}", self.prefix, to.0))?;
            if info.is_archived {
                let text = format!("`{}{}{key}` lies in an archive", self.prefix, from.0);
                return Err(Fault::because(Reason::Denied, text));
            }
            objects.push(Moved {
                key: key.clone(),
                etag: etag(info),
                size_bytes: info.size_bytes,
                over: to.1.get(key).map(etag),
            });
        }
        let goes = to.1.iter().filter(|(key, _)| !from.1.contains_key(*key));
        // A marker is in nobody's way.
        let goes = goes.filter(|(key, _)| !key.is_empty());
        let removed = goes.map(|(key, info)| Removed {
            key: key.clone(),
            etag: etag(info),
        });
        let (from, to) = (from.0.to_owned(), to.0.to_owned());
        let record = Record::new(from, to, objects, removed.collect());
        record.check_objects()?;
        Ok(record)
    }

    /// Does what is left of a rename that was begun here.
    ///
    /// # Errors
    /// `Busy` where another rename is in the way: this one is over, and nothing was done; what the
    /// store said.
    async fn go_on(
        &self,
        left: &Left,
        work: &mut Work,
        seen: Option<(Found, Found)>,
    ) -> Result<Renamed, Fault> {
        let (key, times) = (self.key(&left.id), self.state().times);
        let hold = &mut work.hold;
        // Before anything is looked at: who has taken it over meanwhile may have finished it, and
        // what was seen then would not be so any more.
        if seen.is_none() && hold.show(&self.ways).await? == Holder::Other {
            self.is_over(left);
            return Ok(Renamed::without_changes(Outcome::Elsewhere));
        }
        if !work.may_go {
            match hold.during(&self.ways, &times, self.give_way(left)).await? {
                None => {
                    self.is_over(left);
                    return Ok(Renamed::without_changes(Outcome::Elsewhere));
                }
                Some(None) => work.may_go = true,
                Some(Some(other)) => {
                    hold.end(&self.ways).await?;
                    self.is_over(left);
                    return Err(overlaps::busy(&other));
                }
            }
        }
        let moving = Move {
            ways: &self.ways,
            prefix: &self.prefix,
            record: &left.record,
            key: &key,
            copies: work.copies.clone(),
            tell: self.tell,
        };
        let renamed = carry_out(moving, hold, &times, seen).await?;
        self.is_over(left);
        Ok(renamed)
    }

    /// Removes the record if another rename is in the way: that one, if there is one.
    async fn give_way(&self, left: &Left) -> Result<Option<Other>, Fault> {
        let folders = [&*left.record.from, &*left.record.to];
        let others = overlaps::find(self.fresh(), &self.prefix, &left.id, folders).await?;
        let first = others.into_iter().next();
        if first.is_some() {
            let key = self.key(&left.id);
            self.ways.store.delete(&key, &Condition::Always).await?;
        }
        Ok(first)
    }

    /// This mount has nothing more to do with a rename that was begun here.
    fn is_over(&self, left: &Left) {
        let _ = std::fs::remove_file(&left.note);
        self.state().mine.retain(|id| *id != left.id);
    }

    /// Finishes what was begun here and broke off, where it has to do with one of `folders`: a
    /// rename of these begins after it. Prefixes below the mount's, which end in `/`.
    ///
    /// # Errors
    /// What the store said.
    pub async fn finish_left(&self, folders: &[String]) -> Result<(), Fault> {
        let left = self.state().left.clone();
        for one in left.iter().filter(|left| left.concerns(folders)) {
            self.finish_one(one).await?;
        }
        Ok(())
    }

    /// Goes on with one that broke off, unless somebody has finished it meanwhile.
    async fn finish_one(&self, left: &Arc<Left>) -> Result<(), Fault> {
        let mut work = left.work.lock().await;
        let is_same = |one: &Arc<Left>| Arc::ptr_eq(one, left);
        if !self.state().left.iter().any(is_same) {
            return Ok(());
        }
        match self.go_on(left, &mut work, None).await {
            Ok(_) => {}
            Err(fault) if fault.reason == Reason::Busy => (self.tell)(&format!(
                "the rename of `{}` to `{}` is given up: {fault}",
                left.record.from, left.record.to
            )),
            Err(fault) => return Err(fault),
        }
        self.moved(&left.record);
        self.state().left.retain(|one| !is_same(one));
        Ok(())
    }

    fn try_again(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().is_trying, true) {
            return;
        }
        let renames = Arc::clone(self);
        self.ways.runtime.spawn(async move {
            let mut pause = renames.state().times.pause;
            loop {
                tokio::time::sleep(pause).await;
                let left = renames.state().left.clone();
                for one in &left {
                    // One that the store refuses keeps no other waiting.
                    let _ = renames.finish_one(one).await;
                }
                let mut state = renames.state();
                if state.left.is_empty() {
                    state.is_trying = false;
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }
}

/// Finishes a rename that another mount began and that this one holds now.
async fn finish(moving: Move<'_>, hold: &mut Hold, times: &Times) -> Result<(), Fault> {
    let (prefix, record, tell) = (moving.prefix, moving.record, moving.tell);
    if carry_out(moving, hold, times, None).await?.outcome != Outcome::Elsewhere {
        tell(&format!(
            "`{prefix}{}` got its new name `{prefix}{}`: another mount had stopped half-way",
            record.from, record.to
        ));
    }
    Ok(())
}

/// Does what is left of a rename; when all is moved, the record goes.
async fn carry_out(
    moving: Move<'_>,
    hold: &mut Hold,
    times: &Times,
    seen: Option<(Found, Found)>,
) -> Result<Renamed, Fault> {
    let (ways, key) = (moving.ways, moving.key);
    let work = async {
        let outcome = moving.run(seen).await?;
        let other_tags = moving.copies.other_tags(&moving.record.objects);
        if matches!(outcome, Outcome::Whole | Outcome::Partly) {
            kept_times::keep(&moving, &other_tags).await;
        }
        Ok(Renamed {
            outcome,
            other_tags,
        })
    };
    let Some(renamed) = hold.during(ways, times, work).await? else {
        return Ok(Renamed::without_changes(Outcome::Elsewhere));
    };
    if renamed.outcome != Outcome::Elsewhere {
        ways.store.delete(key, &Condition::Always).await?;
    }
    hold.end(ways).await?;
    Ok(renamed)
}

async fn listed(list: JoinHandle<Result<Found, StoreError>>) -> Result<Found, StoreError> {
    let listed = list.await;
    listed.unwrap_or_else(|_| Err(mount_ends("ListObjectsV2", "")))
}

/// What every key of the mount begins with whose note names this record.
fn prefix_of(key: &str) -> &str {
    key.rfind(&format!("{RENAMES}/"))
        .map_or("", |at| &key[..at])
}

/// Finishes what a dead mount of this host began, by its note. A note without a record is of a
/// rename that did not begin, or was finished.
///
/// # Errors
/// What the store said: the note stays.
pub async fn finish_dead(ways: &Ways, note: &Path, tell: fn(&str)) -> Result<(), Fault> {
    let key = std::fs::read_to_string(note).map_err(|error| refused(&error, note))?;
    let id = key.rsplit('/').next().unwrap_or_default();
    let is_key = !id.is_empty() && key == format!("{}{RENAMES}/{id}", prefix_of(&key));
    let record = match record::find(ways, &key).await {
        Ok(record) => record.filter(|_| is_key),
        Err(fault) if fault.reason == Reason::Invalid => {
            tell(&format!("`{key}` is left alone: {fault}"));
            None
        }
        Err(fault) => return Err(fault),
    };
    if let Some(record) = record {
        // Of one that began in the same second nobody knows whether it was the first.
        let folders = [&*record.from, &*record.to];
        let others = overlaps::find(ways, prefix_of(&key), id, folders).await?;
        if let Some(other) = others.first() {
            return Err(overlaps::busy(other));
        }
        // Else another mount has taken it over.
        if let Some(mut hold) = Hold::of_dead(ways, &key, id).await? {
            let moving = Move {
                ways,
                prefix: prefix_of(&key),
                record: &record,
                key: &key,
                copies: Copies::of_other(),
                tell,
            };
            finish(moving, &mut hold, &Times::default()).await?;
        }
    }
    std::fs::remove_file(note).map_err(|error| refused(&error, note))
}

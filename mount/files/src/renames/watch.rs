// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds records of renames that other mounts left, waits until nobody works on them, and finishes
//! them. Started by [`crate::bucket_files`] for a mount, and by listings that show records.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_store::{Condition, ETag};

use crate::fault::{Fault, Reason};
use crate::names::RENAMES;
use crate::renames::copies::Copies;
use crate::renames::hold::{ENDING, Hold, Times};
use crate::renames::moving::{self, Move};
use crate::renames::overlaps;
use crate::renames::record::{self, is_id};
use crate::renames::{Renames, finish};
use crate::staging::stage::new_id;

/// Chosen: how often records are looked at while they must be still.
const LOOKS: u32 = 12;

/// A record as it was seen, and since when it is so.
struct Seen {
    record: ETag,
    holder: Option<ETag>,
    since: Instant,
    /// It cannot be finished by this mount.
    is_strange: bool,
    /// What this mount found out of its copies when it tried before.
    copies: Copies,
}

type All = HashMap<String, Seen>;

impl Renames {
    /// From now on this mount finishes what others left; the first look is now.
    pub fn watch_from_now(self: &Arc<Self>, times: Times) {
        {
            let mut state = self.state();
            (state.times, state.may_watch) = (times, true);
        }
        self.notice();
    }

    /// There are records.
    pub fn notice(self: &Arc<Self>) {
        let patience = {
            let mut state = self.state();
            if !state.may_watch || std::mem::replace(&mut state.is_watching, true) {
                return;
            }
            state.times.patience
        };
        let renames = Arc::clone(self);
        self.ways.runtime.spawn(async move {
            let mut seen = All::new();
            // What cannot be asked is asked again.
            while !matches!(renames.look(&mut seen, patience).await, Ok(true)) {
                tokio::time::sleep(patience / LOOKS).await;
            }
            renames.state().is_watching = false;
        });
    }

    /// Looks at all records once; whether there is nothing more to wait for.
    async fn look(&self, seen: &mut All, patience: Duration) -> Result<bool, Fault> {
        let folder = format!("{}{RENAMES}/", self.prefix);
        let found = moving::list(&self.ways, &folder).await?;
        seen.retain(|id, _| found.contains_key(id));
        // One that the store refuses keeps no other waiting.
        let mut first_fault = None;
        for (id, info) in &found {
            if let Some(record) = id.strip_suffix(ENDING) {
                if !found.contains_key(record) {
                    let key = format!("{folder}{id}");
                    self.ways.store.delete(&key, &Condition::Always).await?;
                }
                continue;
            }
            if !is_id(id) || self.state().mine.contains(id) {
                continue;
            }
            let holder = found.get(&format!("{id}{ENDING}"));
            let holder = holder.map(|info| info.etag.clone());
            let now = seen.entry(id.clone()).or_insert_with(|| Seen {
                record: info.etag.clone(),
                holder: holder.clone(),
                since: Instant::now(),
                is_strange: false,
                copies: Copies::of_other(),
            });
            if (&now.record, &now.holder) != (&info.etag, &holder) {
                (now.record, now.holder) = (info.etag.clone(), holder.clone());
                now.since = Instant::now();
            }
            if !now.is_strange && now.since.elapsed() >= patience {
                match self.finish_other(id, holder, &now.copies).await {
                    Ok(is_strange) => now.is_strange = is_strange,
                    Err(fault) => first_fault = first_fault.or(Some(fault)),
                }
                now.since = Instant::now();
            }
        }
        if let Some(fault) = first_fault {
            return Err(fault);
        }
        let is_strange = |id: &String| seen.get(id).is_some_and(|seen| seen.is_strange);
        let waits = |id: &&String| is_id(id) && !is_strange(id);
        Ok(!found.keys().any(|id| waits(&id)))
    }

    /// Finishes another mount's rename; whether it is one that this mount does not understand.
    async fn finish_other(
        &self,
        id: &str,
        holder: Option<ETag>,
        copies: &Copies,
    ) -> Result<bool, Fault> {
        let key = self.key(id);
        let times = self.state().times;
        // Nothing is written beside what is no record.
        let record = match record::find(&self.ways, &key).await {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(false),
            Err(fault) if fault.reason == Reason::Invalid => {
                (self.tell)(&format!("`{key}` is left alone: {fault}"));
                return Ok(true);
            }
            Err(fault) => return Err(fault),
        };
        if overlaps::is_behind(self.fresh(), &self.prefix, id, &record).await? {
            return Ok(false);
        }
        let taken = Hold::take_over(&self.ways, &key, holder, new_id()).await?;
        // Else another mount was quicker.
        if let Some(mut hold) = taken {
            let moving = Move {
                ways: &self.ways,
                prefix: &self.prefix,
                record: &record,
                key: &key,
                copies: copies.clone(),
                tell: self.tell,
            };
            finish(moving, &mut hold, &times).await?;
            self.moved(&record);
        }
        Ok(false)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Goes on with renames that were begun here and broke off, until this mount or another one has
//! ended them. [`crate::renames`] leaves them here; a rename of the same folders, and a file in
//! them that is to be published, has them finished first.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use weft_store::ObjectInfo;

use crate::fault::{Fault, Reason};
use crate::renames::Renames;
use crate::renames::copies::Copies;
use crate::renames::left::{Left, Work};
use crate::renames::moving::{self, Outcome};
use crate::renames::record::{Moved, Record};
use crate::renames::trails::Trail;

/// Chosen: the longest pause before what broke off is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Finishes what was begun here and broke off, where it has to do with one of `folders`: a
/// rename of these begins after it. Prefixes below the mount's, which end in `/`.
///
/// # Errors
/// What the store said.
pub async fn finish_left(renames: &Renames, folders: &[String]) -> Result<(), Fault> {
    let left = renames.state().left.clone();
    for one in left.iter().filter(|left| left.concerns(folders)) {
        finish_one(renames, one).await?;
    }
    Ok(())
}

/// Goes on with one that broke off, unless somebody has finished it meanwhile.
async fn finish_one(renames: &Renames, left: &Arc<Left>) -> Result<(), Fault> {
    let mut work = left.work.lock().await;
    let is_same = |one: &Arc<Left>| Arc::ptr_eq(one, left);
    if !renames.state().left.iter().any(is_same) {
        return Ok(());
    }
    let _renaming = renames.shown.begin_rename(&left.record.from);
    let outcome = match end_of(renames, left, &mut work).await {
        Ok(Outcome::Elsewhere) => return Ok(()),
        Err(fault) if fault.reason == Reason::Busy => {
            (renames.tell)(&format!(
                "the rename of `{}` to `{}` is given up: {fault}",
                left.record.from, left.record.to
            ));
            Outcome::Nothing
        }
        outcome => outcome?,
    };
    follow_folder(renames, &left.record, &left.copies(), outcome).await;
    renames.state().left.retain(|one| !is_same(one));
    Ok(())
}

/// Goes on with a rename, or sees how another mount ended it; `Elsewhere` if that one works on.
async fn end_of(renames: &Renames, left: &Left, work: &mut Work) -> Result<Outcome, Fault> {
    if !work.is_elsewhere {
        let outcome = renames.go_on(left, work, None).await?;
        if outcome != Outcome::Elsewhere {
            return Ok(outcome);
        }
        work.is_elsewhere = true;
        left.forget_copies();
    }
    let (ways, record) = (renames.fresh(), &left.record);
    if ways.store.find(&renames.key(&left.id)).await?.is_some() {
        return Ok(Outcome::Elsewhere);
    }
    let from = moving::list(ways, &format!("{}{}", renames.prefix, record.from)).await?;
    let to = moving::list(ways, &format!("{}{}", renames.prefix, record.to)).await?;
    let is_at = |found: &ObjectInfo, object: &Moved| *found.etag.as_str() == *object.etag;
    let was_moved = |object: &Moved| {
        let stays = from.get(&object.key).is_some_and(|one| is_at(one, object));
        !stays && to.contains_key(&object.key)
    };
    // Where nothing was, the record may never have come to the store.
    Ok(match record.objects.iter().any(was_moved) {
        true => Outcome::Partly,
        false => Outcome::Nothing,
    })
}

/// A rename has ended: what is open goes with its folder.
pub async fn follow_folder(renames: &Renames, record: &Record, copies: &Copies, outcome: Outcome) {
    if let (Some(followers), Outcome::Whole | Outcome::Partly) = (renames.followers(), outcome) {
        let is_whole = outcome == Outcome::Whole;
        followers.follow_folder(record, copies, is_whole).await;
    }
    renames.moved(record);
}

/// Whether a rename that broke off has to do with a path below the mount's prefix.
pub fn concerns(renames: &Renames, path: &str) -> bool {
    let path = path.to_owned();
    renames
        .state()
        .left
        .iter()
        .any(|left| left.concerns(slice::from_ref(&path)))
}

/// Where the object of a file may be, if the rename of a folder above it broke off.
pub fn trail(renames: &Renames, path: &str) -> Option<Trail> {
    let left = renames.state().left.clone();
    let mut left = left.iter();
    left.find_map(|left| Trail::of_record(&left.record, &left.copies(), path))
}

/// Until all have ended, somebody goes on with them.
pub fn try_again(renames: &Arc<Renames>) {
    {
        let mut state = renames.state();
        if state.left.is_empty() || std::mem::replace(&mut state.is_trying, true) {
            return;
        }
    }
    let (runtime, renames) = (renames.ways.runtime.clone(), Arc::clone(renames));
    runtime.spawn(async move {
        let mut pause = renames.state().times.pause;
        loop {
            tokio::time::sleep(pause).await;
            let left = renames.state().left.clone();
            for one in &left {
                // One that the store refuses keeps no other waiting.
                let _ = finish_one(&renames, one).await;
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What may be there after a call that met a failure of the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use weft_files::Reason;

use super::{Call, Seen, Slot, Thing, World};

impl World {
    /// The worlds that may be there after a call that met a failure of the store, and answered
    /// `outcome`. `closed` are the open files that were closed afterwards.
    pub fn troubled(
        &self,
        call: &Call,
        outcome: &Result<Seen, Reason>,
        closed: &BTreeSet<usize>,
    ) -> Vec<World> {
        let is_refused = matches!(outcome, Err(Reason::Broken | Reason::Denied));
        if !is_refused {
            return match call {
                // The kernel closes a file after close(2) has answered, and nobody hears of that.
                Call::Close(slot) if outcome.is_ok() => self.close_untold(*slot),
                _ => Vec::new(),
            };
        }
        match call {
            Call::Close(slot) => self.close_failed(*slot, closed),
            Call::Sync(_) | Call::Write(..) | Call::Cut(..) => {
                vec![self.clone(), self.call(call).1.remove(0)]
            }
            Call::Resize(path, size) => self.resize_failed(path, *size),
            Call::Unlink(_) | Call::MakeFolder(_) | Call::RemoveFolder(_) => {
                let (done, mut after) = self.call(call);
                let mut worlds = vec![self.closed(closed)];
                if done.is_ok() {
                    worlds.push(after.remove(0).closed(closed));
                }
                worlds
            }
            Call::Rename(old, new, _) => self.rename_failed(call, (old, new), closed),
            _ => vec![self.clone()],
        }
    }

    /// After open files were closed without a failure.
    fn closed(&self, closed: &BTreeSet<usize>) -> World {
        let mut after = self.clone();
        for slot in closed {
            let _ = after.change_open(&Call::Close(*slot), *slot);
        }
        after.tidy()
    }

    fn close_untold(&self, at: usize) -> Vec<World> {
        let is_untold = |slot: &Slot| slot.writes && !self.files[&slot.file].is_written;
        match self.slots[at].filter(is_untold) {
            Some(_) => self.close_failed(at, &BTreeSet::new()),
            None => Vec::new(),
        }
    }

    fn close_failed(&self, at: usize, closed: &BTreeSet<usize>) -> Vec<World> {
        let Some(slot) = self.slots[at] else {
            return vec![self.clone()];
        };
        let mut done = self.clone();
        let _ = done.change_open(&Call::Close(at), at);
        let mut lost = self.clone();
        lost.slots[at] = None;
        if slot.writes && !lost.has_writer(slot.file) {
            let file = lost.file_mut(slot.file);
            file.is_written = false;
            match &file.stored {
                Some(stored) => file.now = Arc::clone(stored),
                None => lost
                    .names
                    .retain(|_, thing| *thing != Thing::File(slot.file)),
            }
        }
        vec![done.closed(closed), lost.closed(closed)]
    }

    fn resize_failed(&self, path: &str, size: u64) -> Vec<World> {
        let Ok(file) = self.find_file(path) else {
            return vec![self.clone()];
        };
        let mut published = self.clone();
        published.resize(file, size);
        let mut changed = published.clone();
        published.publish(file);
        let mut kept = self.clone();
        kept.publish(file);
        if self.has_writer(file) {
            changed.file_mut(file).is_written = true;
            return vec![self.clone(), kept, changed, published];
        }
        vec![self.clone(), published]
    }

    fn rename_failed(
        &self,
        call: &Call,
        paths: (&str, &str),
        closed: &BTreeSet<usize>,
    ) -> Vec<World> {
        let mut worlds = vec![self.closed(closed)];
        let (done, after) = self.call(call);
        if done.is_err() {
            return worlds;
        }
        worlds.extend(after.iter().map(|world| world.closed(closed)));
        if let Ok(Thing::File(from)) = self.find(paths.0) {
            // The copy is there, and the old name, too.
            let mut both = self.closed(closed);
            let now = Arc::clone(&self.files[&from].now);
            let copy = both.add(Arc::clone(&now), Some(now));
            both.names.insert(paths.1.to_owned(), Thing::File(copy));
            worlds.push(both.tidy());
        }
        worlds
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What calls answer and change, as long as the store answers.

use std::sync::Arc;

use weft_files::Reason;

use super::{Call, Content, Opens, Seen, Thing, World, above, is_in};

impl World {
    /// What a call answers, and the worlds that may be there then: a mount need not publish at some
    /// moments, but it may.
    pub fn call(&self, call: &Call) -> (Result<Seen, Reason>, Vec<World>) {
        let mut after = self.clone();
        match after.change(call) {
            Err(reason) => (Err(reason), vec![self.clone()]),
            Ok(seen) => {
                let mut worlds = vec![after.clone().tidy()];
                if let Call::Rename(_, new, _) = call
                    && let Ok(Thing::File(file)) = after.find(new)
                {
                    after.publish(file);
                    worlds.push(after.tidy());
                }
                (Ok(seen), worlds)
            }
        }
    }

    fn change(&mut self, call: &Call) -> Result<Seen, Reason> {
        match call {
            Call::Create(path, slot) => match self.find(path) {
                Ok(Thing::Folder) => return Err(Reason::IsFolder),
                Ok(Thing::File(file)) => self.open(file, *slot, Opens::Writes),
                Err(Reason::NotFound) if self.find(above(path)) == Ok(Thing::Folder) => {
                    let file = self.add(Content::default(), None);
                    self.names.insert(path.clone(), Thing::File(file));
                    self.open(file, *slot, Opens::Writes);
                }
                Err(reason) => return Err(reason),
            },
            Call::Open(path, slot, opens) => {
                let file = self.find_file(path)?;
                self.open(file, *slot, *opens);
            }
            Call::Write(slot, ..)
            | Call::Cut(slot, _)
            | Call::Read(slot, ..)
            | Call::Sync(slot)
            | Call::Close(slot) => return self.change_open(call, *slot),
            Call::Resize(path, size) => {
                let file = self.find_file(path)?;
                self.resize(file, *size);
                self.publish(file);
            }
            Call::Look(path) => {
                return Ok(match self.find(path)? {
                    Thing::Folder => Seen::Folder,
                    Thing::File(file) => Seen::File(self.files[&file].now.len() as u64),
                });
            }
            Call::ReadWhole(path) => {
                let file = self.find_file(path)?;
                return Ok(Seen::Bytes(self.files[&file].now.to_vec()));
            }
            Call::List(path) => match self.find(path)? {
                Thing::Folder => return Ok(Seen::Names(self.names_in(path))),
                Thing::File(_) => return Err(Reason::NotFolder),
            },
            Call::Rename(old, new, may_replace) => self.rename(old, new, *may_replace)?,
            Call::Unlink(path) => {
                self.find_file(path)?;
                self.names.remove(path);
            }
            Call::MakeFolder(path) => match self.find(path) {
                Ok(_) => return Err(Reason::Exists),
                Err(Reason::NotFound) if self.find(above(path)) == Ok(Thing::Folder) => {
                    self.names.insert(path.clone(), Thing::Folder);
                }
                Err(reason) => return Err(reason),
            },
            Call::RemoveFolder(path) => match self.find(path)? {
                Thing::File(_) => return Err(Reason::NotFolder),
                Thing::Folder if !self.is_empty(path) => return Err(Reason::NotEmpty),
                Thing::Folder => {
                    self.names.remove(path);
                }
            },
            Call::Forget | Call::Remount => {}
        }
        Ok(Seen::Done)
    }

    pub(super) fn change_open(&mut self, call: &Call, at: usize) -> Result<Seen, Reason> {
        let slot = self.slots[at].ok_or(Reason::NotOpen)?;
        match call {
            Call::Read(_, offset, size) => {
                let now = &self.files[&slot.file].now;
                let from = now.len().min(*offset as usize);
                let to = now.len().min((*offset + *size) as usize);
                return Ok(Seen::Bytes(now[from..to].to_vec()));
            }
            Call::Write(..) | Call::Cut(..) if !slot.writes => return Err(Reason::NotOpen),
            Call::Write(_, offset, data) => {
                let file = self.file_mut(slot.file);
                let end = (*offset as usize) + data.len();
                let mut now = file.now.to_vec();
                now.resize(now.len().max(end), 0);
                now[*offset as usize..end].copy_from_slice(data);
                file.now = Arc::new(now);
                file.is_written = true;
            }
            Call::Cut(_, size) => self.resize(slot.file, *size),
            Call::Sync(_) if slot.writes => self.publish(slot.file),
            Call::Close(_) => {
                if slot.writes {
                    self.publish(slot.file);
                }
                self.slots[at] = None;
            }
            _ => {}
        }
        Ok(Seen::Done)
    }

    fn rename(&mut self, old: &str, new: &str, may_replace: bool) -> Result<(), Reason> {
        let from = self.find(old)?;
        if self.find(above(new))? != Thing::Folder {
            return Err(Reason::NotFolder);
        }
        match (from, self.names.get(new)) {
            (_, Some(_)) if !may_replace => return Err(Reason::Exists),
            (Thing::File(_), Some(Thing::Folder)) => return Err(Reason::IsFolder),
            (Thing::Folder, Some(Thing::File(_))) => return Err(Reason::NotFolder),
            (Thing::Folder, Some(Thing::Folder)) if !self.is_empty(new) => {
                return Err(Reason::NotEmpty);
            }
            _ => {}
        }
        let below: Vec<String> = self
            .names
            .keys()
            .filter(|path| is_in(path, old))
            .cloned()
            .collect();
        for path in below {
            let thing = self.names.remove(&path).expect("it was there");
            if let Thing::File(file) = thing
                && self.has_writer(file)
                && (from == Thing::Folder || self.files[&file].stored.is_some())
            {
                self.publish(file);
            }
            let path = format!("{new}{}", &path[old.len()..]);
            self.names.insert(path, thing);
        }
        Ok(())
    }
}
